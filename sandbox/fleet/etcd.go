package fleet

import (
	"crypto/sha1" //nolint:gosec // see hash
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"k8s.io/apimachinery/pkg/types"
)

// member contains the parameters with which a pod's etcd is started.
type member struct {
	uid, volume types.UID
	version     string
	config      configuration
	tls         *tls.Config
}

// configuration is the part of etcd's configuration file that describes the membership.
type configuration struct {
	Name           string `json:"name"`
	InitialCluster string `json:"initial-cluster"`
	State          string `json:"initial-cluster-state"`
	Token          string `json:"initial-cluster-token"`
	Peer           string `json:"initial-advertise-peer-urls"`
	Client         string `json:"advertise-client-urls"`
}

// etcd holds all members of all clusters.
type etcd struct {
	mu sync.Mutex
	// clusters maps namespace and token to the cluster. running maps pods to their running members.
	clusters map[string]*cluster
	running  map[types.NamespacedName]*process
	// hosts maps the host names to which clients connect to the running members.
	hosts map[string]*process
}

// cluster is an etcd cluster. Its members agree on everything immediately.
type cluster struct {
	id       uint64
	revision int64
	members  []*pb.Member
	// volumes maps each volume with data to its member.
	volumes map[types.UID]uint64
	// ready contains the running members.
	ready map[uint64]bool
}

// process is a running member.
type process struct {
	member
	id      uint64
	cluster *cluster
}

func newEtcd() *etcd {
	return &etcd{clusters: map[string]*cluster{}, running: map[types.NamespacedName]*process{},
		hosts: map[string]*process{}}
}

// start starts a member as etcd would: with its data, as an initial member of a new cluster, or as a member that was
// added to an existing cluster.
func (e *etcd) start(pod types.NamespacedName, m member) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := pod.Namespace + "/" + m.config.Token
	c := e.clusters[key]
	if c == nil && m.config.State == "new" {
		c = found(m.config)
		e.clusters[key] = c
	}
	if c == nil {
		return errors.New("the member has no data, and the cluster to join does not exist")
	}
	id, sealed := c.volumes[m.volume]
	if !sealed {
		i := slices.IndexFunc(c.members, func(l *pb.Member) bool { return l.PeerURLs[0] == m.config.Peer })
		if i < 0 || m.config.State == "existing" && c.members[i].Name != "" {
			return errors.New("the member has no data, and was not added to the cluster")
		}
		id = c.members[i].ID
		c.volumes[m.volume] = id
		c.members[i].Name, c.members[i].ClientURLs = m.config.Name, []string{m.config.Client}
	}
	p := &process{member: m, id: id, cluster: c}
	c.ready[id] = true
	e.running[pod], e.hosts[host(m.config.Client)] = p, p
	return nil
}

// stop stops the member in a pod if uid is the pod's UID or empty.
func (e *etcd) stop(pod types.NamespacedName, uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.running[pod]
	if p == nil || uid != "" && p.uid != uid {
		return
	}
	delete(p.cluster.ready, p.id)
	delete(e.running, pod)
	delete(e.hosts, host(p.config.Client))
}

// found creates a cluster with the members in a configuration. As in etcd, it derives the IDs from the configuration.
func found(c configuration) *cluster {
	made := &cluster{revision: 1, volumes: map[types.UID]uint64{}, ready: map[uint64]bool{}}
	var ids []uint64
	for _, entry := range strings.Split(c.InitialCluster, ",") {
		_, peer, _ := strings.Cut(entry, "=")
		made.members = append(made.members, &pb.Member{ID: hash(peer, c.Token), PeerURLs: []string{peer}})
		ids = append(ids, hash(peer, c.Token))
	}
	slices.Sort(ids)
	var all []byte
	for _, id := range ids {
		all = binary.BigEndian.AppendUint64(all, id)
	}
	made.id = hash(string(all))
	return made
}

// leader returns the ID of the leader, or 0 if there is no quorum.
func (c *cluster) leader() uint64 {
	voters, ready, first := 0, 0, uint64(0)
	for _, m := range c.members {
		if m.IsLearner {
			continue
		}
		voters++
		if c.ready[m.ID] {
			ready++
			if first == 0 {
				first = m.ID
			}
		}
	}
	if ready <= voters/2 {
		return 0
	}
	return first
}

func hash(words ...string) uint64 {
	sum := sha1.Sum([]byte(strings.Join(words, ""))) //nolint:gosec // etcd derives its IDs so
	return binary.BigEndian.Uint64(sum[:8])
}

// host returns the host name in a URL.
func host(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	name, _, _ := strings.Cut(rest, ":")
	return name
}

// serves returns a member's TLS configuration, which uses its Secret and requires client certificates.
func serves(secret map[string][]byte) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(secret["tls.crt"], secret["tls.key"])
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret["ca.crt"]) {
		return nil, errors.New("ca.crt does not contain a certificate")
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: roots, MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"h2"}}, nil
}
