package objects

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/reconcile/decide"
)

const (
	dataDir       = "/var/lib/etcd/data" // below the mount point, which has a lost+found on some file systems
	dataMount     = "/var/lib/etcd"
	membersMount  = "/etc/etcd/members"
	peerTLSMount  = "/etc/etcd/tls/peer"
	serveTLSMount = "/etc/etcd/tls/server"

	// sealedCluster is the initial-cluster of a sealed member. It must be there and must not name the member: where it is left out,
	// etcd takes the member itself for the initial cluster. The host is under a domain that never resolves (RFC 6761).
	sealedCluster = "sealed=http://sealed.invalid:2380"
)

// ConfigKey is the key of the configuration file of the member with that ordinal in the data of the ConfigMap.
func ConfigKey(cluster string, ordinal int) string { return PodName(cluster, ordinal) + ".yaml" }

// memberConfig is etcd's configuration file for one recorded member.
func memberConfig(in Input, m decide.RecordedMember) (string, error) {
	c := in.Cluster
	keys, problems := etcdOptions(c.Spec)
	if len(problems) > 0 {
		return "", fmt.Errorf("write the configuration of %s: %s", PodName(c.Name, m.Ordinal), strings.Join(problems, "; "))
	}
	initial, comment, err := initialCluster(in, m)
	if err != nil {
		return "", err
	}
	maps.Copy(keys, initial)
	maps.Copy(keys, listening(in, m.Ordinal))
	maps.Copy(keys, transportSecurity(in))
	text, err := yaml.Marshal(keys)
	if err != nil {
		return "", fmt.Errorf("encode the configuration of %s: %w", PodName(c.Name, m.Ordinal), err)
	}
	return comment + string(text), nil
}

func listening(in Input, ordinal int) map[string]any {
	c := in.Cluster
	keys := map[string]any{
		"name":     PodName(c.Name, ordinal),
		"data-dir": dataDir,
		// Go listens on IPv6 as well where the address is 0.0.0.0, and, unlike with [::], also runs where IPv6 is off.
		"listen-peer-urls":            fmt.Sprintf("%s://0.0.0.0:%d", scheme(c), PeerPort),
		"listen-client-urls":          fmt.Sprintf("%s://0.0.0.0:%d", scheme(c), ClientPort),
		"listen-metrics-urls":         fmt.Sprintf("http://0.0.0.0:%d", MetricsPort),
		"initial-advertise-peer-urls": PeerURL(c, ordinal),
		"advertise-client-urls":       ClientURL(c, ordinal),
		"strict-reconfig-check":       true,
		"logger":                      "zap",
		"log-outputs":                 []string{"stderr"},
	}
	return keys
}

// initialCluster returns how the member starts, and a comment that says so.
func initialCluster(in Input, m decide.RecordedMember) (map[string]any, string, error) {
	keys := map[string]any{"initial-cluster-token": fmt.Sprintf("%s-%s-%s", in.Cluster.Namespace, in.Cluster.Name, in.Record.Token)}
	switch m.Mode {
	case decide.Founding:
		keys["initial-cluster-state"] = "new"
		keys["initial-cluster"] = joinPeers(foundingPeers(in))
		return keys, "# Founding: starts a new cluster together with the members listed.\n", nil
	case decide.Joining:
		name := PodName(in.Cluster.Name, m.Ordinal)
		if in.Peers[name] == "" {
			return nil, "", fmt.Errorf("write the configuration of %s, which is joining: the list of members does not name it", name)
		}
		keys["initial-cluster-state"] = "existing"
		keys["initial-cluster"] = joinPeers(in.Peers)
		return keys, "# Joining: starts as a new member of the cluster of the members listed.\n", nil
	case decide.Sealed:
		keys["initial-cluster-state"] = "existing"
		keys["initial-cluster"] = sealedCluster
		return keys, "# Sealed: starts on its data, or not at all.\n", nil
	}
	return nil, "", fmt.Errorf("write the configuration of %s: unknown mode %q", PodName(in.Cluster.Name, m.Ordinal), m.Mode)
}

// foundingPeers are the members that the cluster is founded with. Those that have been sealed meanwhile stay in the list: all founding
// members must name the same ones, or they found different clusters.
func foundingPeers(in Input) map[string]string {
	peers := map[string]string{}
	for _, m := range in.Record.Members {
		if m.Mode != decide.Joining {
			peers[PodName(in.Cluster.Name, m.Ordinal)] = PeerURL(in.Cluster, m.Ordinal)
		}
	}
	return peers
}

func joinPeers(peers map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(peers)) {
		list = append(list, name+"="+peers[name])
	}
	return strings.Join(list, ",")
}

// withAllowedNames is the first version whose configuration file takes a list as allowed-cn.
var withAllowedNames = version{5, 15}

// transportSecurity says which certificates to serve and to trust. Toward other members a member shows a certificate without names:
// etcd looks the names of an incoming peer certificate up in DNS, in reverse for wildcards, and lets a peer in only if they
// lead to its address (checkCertSAN in client/pkg/transport); it takes one without names as it is.
func transportSecurity(in Input) map[string]any {
	if !secure(in.Cluster) {
		return nil
	}
	peer := map[string]any{
		"cert-file":        peerTLSMount + "/" + keyCertificate,
		"key-file":         peerTLSMount + "/" + keyPrivate,
		"client-cert-file": peerTLSMount + "/" + keyClientCertificate,
		"client-key-file":  peerTLSMount + "/" + keyClientPrivate,
		"trusted-ca-file":  peerTLSMount + "/" + keyAuthority,
		"client-cert-auth": true,
	}
	if v, err := parseVersion(in.Cluster.Spec.Version); err == nil && v.atLeast(withAllowedNames) {
		// The certificate of a client, which is of the same authority, does not make it a member.
		peer["allowed-cn"] = []string{peerName(in.Cluster)}
	}
	return map[string]any{
		"peer-transport-security": peer,
		"client-transport-security": map[string]any{
			"cert-file":        serveTLSMount + "/" + keyCertificate,
			"key-file":         serveTLSMount + "/" + keyPrivate,
			"trusted-ca-file":  serveTLSMount + "/" + keyAuthority,
			"client-cert-auth": true,
		},
	}
}
