// Package etcd queries etcd for its members and their state, and changes its membership. It is the only package that
// uses etcd's protocol. It returns results as types of package decide.
//
// Each member has its own connection, so that each response is known to come from that member. The connections use gRPC
// without the defaults of etcd's client, which waits for a connection to come up, retries a hundred times, and dials
// again for each Status request. A pass needs to know whether a member responds right now.
package etcd

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"quorate.dev/quorate/clusters/pki"
	"quorate.dev/quorate/internal/panics"
	"quorate.dev/quorate/reconcile/decide"
)

// DefaultTimeout is the default timeout of a request. It is longer than etcd takes to elect a leader with its default
// options (1 to 2 s), and short enough for a pass to wait for.
const DefaultTimeout = 2 * time.Second

// buffer is the size of gRPC's read and write buffers, in bytes. It is an eighth of gRPC's default, because messages
// are small and there are very many connections.
const buffer = 4 << 10

// maxIdle is how long an unused connection is kept. A connection is no longer used once its pod or its cluster is gone.
const maxIdle = time.Minute

// Dialer connects to the client port of the named pod or endpoint. Only the Dialer determines the route: names are not
// resolved, and TLS is verified from end to end.
type Dialer func(ctx context.Context, pod string) (net.Conn, error)

// Pod is a pod of a cluster. A new UID or address requires a new connection.
type Pod struct {
	Name, UID, IP string
	// Host is the host that the member's certificate must contain. It is empty for Quorate's clusters, whose
	// certificates contain the pod's DNS name.
	Host string
	// Unready means that Kubernetes does not report the pod as ready.
	Unready bool
	// Gone means that the pod's member is recorded as removed. The pod is asked last, and only if etcd still lists a
	// member in the pod, or if no other pod returns a list.
	Gone bool
	// Endpoint means that this is the address of a member that Quorate does not manage, instead of a pod. Name is then
	// HOST:PORT. The member behind the endpoint is known only from its response.
	Endpoint bool
}

// TLS holds the PEM data with which a client verifies the members and authenticates to them. It must not change
// after its first use: use a new TLS instead.
type TLS struct {
	CA, Cert []byte
	Key      pki.PrivateKey
	// Anonymous means that the client has no certificate, so Cert and Key are empty.
	Anonymous bool
	// Now is the clock for certificate validity. nil means this machine's clock.
	Now func() time.Time

	// The parsed data, set when the first connection needs it.
	read     sync.Once
	config   *tls.Config
	identity [sha256.Size]byte
	err      error
}

// Cluster describes how to reach a cluster.
type Cluster struct {
	Namespace, Name string
	// Pods are the pods to ask.
	Pods []Pod
	// TLS is nil if the members serve without TLS.
	TLS  *TLS
	Dial Dialer
	// Login is the user to log in as. It is nil if Quorate does not log in with a password.
	Login *Login
	// Voters are the names of the pods whose members are recorded as voters. A member list counts only if those that
	// return it are a majority of themselves and these voters, or if it lists exactly the members in Confirmed, in
	// ascending order.
	Voters    []string
	Confirmed []decide.ID
	// Guests are the members of an adopted cluster that git does not release. They count like Voters.
	Guests []decide.ID
	// Foreign reports whether a member is not a replica, so that it does not run in the pod with its name. It is nil if
	// the cluster does not adopt another.
	Foreign func(decide.Member) bool
	// Adopted is the ID of the cluster to which endpoints must belong, or zero if they may belong to any cluster.
	// Replicas are the IDs of recorded replicas. Their responses count only if they come from their pods.
	Adopted  decide.ID
	Replicas []decide.ID
	// Known are the recorded guests. If there are any, endpoints must lead to them. Without a record, a list counts
	// only if more of the pods return it than return a different list.
	Known []decide.ID
	// CompareData requests a comparison of the members' data even without an alarm.
	CompareData bool
	// CompareFrom requests the comparison once there are at least this many voters and no learners. Zero disables it.
	CompareFrom int
	// CompareHealthy requests the comparison if all members are responding voters of the same version.
	CompareHealthy bool
	// Patient gives members that were recently unresponsive their full timeout again, because they are about to be
	// treated as lost.
	Patient bool
}

// Clients holds the connections to the members of any number of clusters across passes. The zero value is ready for
// use. Its methods may be called concurrently for different clusters, but by only one caller per cluster.
type Clients struct {
	// Timeout is the timeout of a request to one member. Zero means DefaultTimeout.
	Timeout time.Duration
	// Stall is how long a member may go without sending any bytes of its snapshot. Zero means one minute.
	Stall time.Duration
	// Patience is how long to keep asking members that have not yet proved a snapshot. Zero means half a minute.
	Patience time.Duration

	mu   sync.Mutex
	open map[identity]*client
	// silent holds the pods that did not respond within the full timeout. left holds the pods of removed members.
	silent, left pods
}

// identity identifies a connection. A different pod, user or certificate requires a different connection.
type identity struct {
	namespace, cluster string
	pod, uid, ip, host string
	tls                [sha256.Size]byte
	login              Login
}

// client is the connection to one member.
type client struct {
	clientv3.Cluster
	clientv3.Maintenance
	auth     etcdserverpb.AuthClient
	kv       etcdserverpb.KVClient
	conn     *grpc.ClientConn
	dial     atomic.Value // the newest Dialer
	lastUsed time.Time
}

// Close closes all connections. The Clients can be used again.
func (c *Clients) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, client := range c.open {
		client.conn.Close()
		delete(c.open, id)
	}
}

func (c *Clients) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return DefaultTimeout
}

// impatience is the timeout for a member's status if its pod is not ready or most other members have already responded:
// a quarter of the normal timeout, but at least half a second. It is short because a starting member accepts
// connections before it responds, and is asked again later.
func (c *Clients) impatience() time.Duration {
	return max(c.timeout()/4, min(c.timeout(), time.Second/2))
}

// client returns the connection to the pod, and whether it existed before. A new connection is not up yet.
func (c *Clients) client(cluster Cluster, pod Pod) (found *client, kept bool, err error) {
	id := identity{namespace: cluster.Namespace, cluster: cluster.Name, pod: pod.Name, uid: pod.UID, ip: pod.IP,
		host: pod.Host, tls: cluster.TLS.digest()}
	if cluster.Login != nil {
		id.login = *cluster.Login
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	found, kept = c.open[id]
	if !kept {
		if found, err = newClient(cluster, pod); err != nil {
			return nil, false, err
		}
		if c.open == nil {
			c.open = map[identity]*client{}
		}
		c.open[id] = found
	}
	found.dial.Store(cluster.Dial)
	found.lastUsed = time.Now()
	return found, kept, nil
}

// CloseCluster closes the connections to the members of a cluster. They are reopened when needed.
func (c *Clients) CloseCluster(namespace, cluster string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, client := range c.open {
		if id.namespace == namespace && id.cluster == cluster {
			client.conn.Close()
			delete(c.open, id)
		}
	}
}

// drop closes a connection on which no response arrived, so that the next pass tries a new one immediately, without
// gRPC's backoff.
func (c *Clients) drop(broken *client) {
	c.closeIf(func(client *client) bool { return client == broken })
}

// dropIdle closes connections that have not been used for maxIdle.
func (c *Clients) dropIdle() {
	now := time.Now()
	c.closeIf(func(client *client) bool { return now.Sub(client.lastUsed) > maxIdle })
}

func (c *Clients) closeIf(unwanted func(*client) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, client := range c.open {
		if unwanted(client) {
			client.conn.Close()
			delete(c.open, id)
		}
	}
}

func newClient(cluster Cluster, pod Pod) (*client, error) {
	host := cmp.Or(pod.Host, fmt.Sprintf("%s.%s.%s.svc", pod.Name, cluster.Name, cluster.Namespace))
	transport, err := cluster.TLS.transport(host)
	if err != nil {
		return nil, err
	}
	c := &client{}
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		var conn net.Conn
		err := panics.Catch(func() (err error) { // it runs in a goroutine of gRPC
			conn, err = c.dial.Load().(Dialer)(ctx, pod.Name)
			return err
		})
		return conn, plain(err)
	}
	// The passthrough scheme skips name resolution.
	options := append(cluster.Login.options(), grpc.WithContextDialer(dial), grpc.WithTransportCredentials(transport),
		grpc.WithChainUnaryInterceptor(checked), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithMaxHeaderListSize(maxHeaders), grpc.WithReadBufferSize(buffer), grpc.WithWriteBufferSize(buffer))
	c.conn, err = grpc.NewClient("passthrough:///"+net.JoinHostPort(host, "2379"), options...)
	if err != nil {
		return nil, fmt.Errorf("prepare the connection to %s: %w", host, err)
	}
	c.Cluster = clientv3.NewClusterFromClusterClient(etcdserverpb.NewClusterClient(c.conn), nil)
	c.Maintenance = clientv3.NewMaintenanceFromMaintenanceClient(etcdserverpb.NewMaintenanceClient(c.conn), nil)
	c.auth, c.kv = etcdserverpb.NewAuthClient(c.conn), etcdserverpb.NewKVClient(c.conn)
	return c, nil
}

// digest returns a hash of the TLS data.
func (t *TLS) digest() [sha256.Size]byte {
	if t == nil {
		return [sha256.Size]byte{}
	}
	t.read.Do(t.parse)
	return t.identity
}

// transport returns the credentials for a connection to a member. The member must prove that it is host.
func (t *TLS) transport(host string) (credentials.TransportCredentials, error) {
	if t == nil {
		return insecure.NewCredentials(), nil
	}
	t.read.Do(t.parse)
	if t.err != nil {
		return nil, t.err
	}
	config := t.config.Clone()
	config.ServerName = host
	return credentials.NewTLS(config), nil
}

// parse parses the data that is the same for all members.
func (t *TLS) parse() {
	ca, cert, key := sha256.Sum256(t.CA), sha256.Sum256(t.Cert), sha256.Sum256(t.Key)
	t.identity = sha256.Sum256(append(append(ca[:], cert[:]...), key[:]...))
	if t.err = t.check(); t.err != nil {
		return
	}
	roots, err := readRoots(t.CA)
	if err != nil {
		t.err = err
		return
	}
	t.config = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, Time: t.Now}
	if t.Anonymous {
		return
	}
	pair, err := tls.X509KeyPair(t.Cert, t.Key)
	if signer, is := pair.PrivateKey.(crypto.Signer); is {
		err = checkRSA(signer.Public())
	}
	if err != nil {
		t.err = fmt.Errorf("client certificate: %w", err)
		return
	}
	t.config.Certificates = []tls.Certificate{pair}
}

// readRoots reads CA certificates and ignores everything else, as crypto/x509 does.
func readRoots(text []byte) (*x509.CertPool, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New("the CA does not contain a PEM certificate")
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		root, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue
		}
		if err := checkRSA(root.PublicKey); err != nil {
			return nil, fmt.Errorf("the CA: %w", err)
		}
	}
	return roots, nil
}

// checkRSA rejects an RSA key so long that signing or verifying with it takes seconds. crypto/tls has the same limit
// for server keys.
func checkRSA(public crypto.PublicKey) error {
	const most = 8192
	if key, is := public.(*rsa.PublicKey); is && key.N.BitLen() > most {
		return fmt.Errorf("its RSA key has %d bits; the maximum is %d", key.N.BitLen(), most)
	}
	return nil
}

// check rejects TLS data that is too long. Anyone with write access to the Secret controls its length.
func (t *TLS) check() error {
	for _, part := range []struct {
		name string
		text []byte
	}{{"ca.crt", t.CA}, {"tls.crt", t.Cert}, {"tls.key", t.Key}} {
		if err := pki.CheckLength(part.text); err != nil {
			return fmt.Errorf("the client's %s: %w", part.name, err)
		}
	}
	if len(t.Key) > pki.MaxKey {
		return fmt.Errorf("the client's tls.key: it is longer than %d KiB", pki.MaxKey>>10)
	}
	return nil
}
