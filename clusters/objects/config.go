package objects

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"quorate.dev/quorate/etcdversion"
	"quorate.dev/quorate/reconcile/decide"
)

const (
	dataDir       = "/var/lib/etcd/data" // below the mount point, which has a lost+found on some file systems
	dataMount     = "/var/lib/etcd"
	membersMount  = "/etc/etcd/members"
	peerTLSMount  = "/etc/etcd/tls/peer"
	serveTLSMount = "/etc/etcd/tls/server"

	// sealedCluster is the initial-cluster of a sealed member. It must be there and must not name
	// the member: where it is left out, etcd takes the member itself for the initial cluster. The
	// host is under a domain that never resolves (RFC 6761).
	sealedCluster = "sealed=http://sealed.invalid:2380"
)

// ownKeys are the keys in which the files of two members of one template differ.
var ownKeys = []string{
	"name", "initial-advertise-peer-urls", "advertise-client-urls",
	"initial-cluster", "initial-cluster-state", "initial-cluster-token",
}

// memberFiles returns etcd's configuration files, by their key in the ConfigMap: for every recorded
// member one for every template in use.
func memberFiles(in Input) (map[string]string, error) {
	files := map[string]string{}
	for _, t := range templates(in) {
		options, err := templateOptions(in, t)
		if err != nil {
			return nil, err
		}
		if options == nil {
			continue
		}
		if n := maxLearners(in, t); n > 0 {
			options["max-learners"] = n
		}
		form, err := formOf(options)
		if err != nil {
			return nil, err
		}
		for _, m := range in.Record.Members {
			key := ConfigKey(PodName(in.Cluster.Name, m.Ordinal), t)
			if files[key], err = memberFile(in, m, form, in.Live[key]); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

// maxLearners is how many learners a member of that template allows; zero if its file is not to say.
// All files of a cluster say the same for as long as it lives, or members would believe in different
// lists.
func maxLearners(in Input, t Template) int {
	v, err := declaredVersion(t.Version)
	if err != nil {
		return 0
	}
	return in.Record.MaxLearners(v)
}

// memberFile is the configuration file of one recorded member, given what it has in common with
// those of the others, and its own as it is now.
func memberFile(in Input, m decide.RecordedMember, common form, live string) (string, error) {
	own, comment, err := initialCluster(in, m, live)
	if err != nil {
		return "", err
	}
	own["name"] = PodName(in.Cluster.Name, m.Ordinal)
	own["initial-advertise-peer-urls"] = PeerURL(in.Cluster, m.Ordinal)
	own["advertise-client-urls"] = ClientURL(in.Cluster, m.Ordinal)
	text, err := common.filledIn(own)
	return comment + text, err
}

// declaredOptions is what the files of all members have in common as git declares it.
func declaredOptions(in Input) (map[string]any, error) {
	options, problems := etcdOptions(in.Cluster.Spec)
	if len(problems) > 0 {
		return nil, fmt.Errorf("write the configuration of the members: %s", strings.Join(problems, "; "))
	}
	return commonKeys(in, options), nil
}

// commonKeys completes the options of etcd with what is the same in all clusters.
func commonKeys(in Input, options map[string]any) map[string]any {
	c := in.Cluster
	keys := map[string]any{
		"data-dir": dataDir,
		// Go listens on IPv6 as well where the address is 0.0.0.0, and, unlike with [::], also runs
		// where IPv6 is off.
		"listen-peer-urls":      fmt.Sprintf("%s://0.0.0.0:%d", scheme(c), PeerPort),
		"listen-client-urls":    fmt.Sprintf("%s://0.0.0.0:%d", scheme(c), ClientPort),
		"listen-metrics-urls":   fmt.Sprintf("http://0.0.0.0:%d", MetricsPort),
		"strict-reconfig-check": true,
		"logger":                "zap",
		"log-outputs":           []string{"stderr"},
	}
	maps.Copy(keys, options)
	maps.Copy(keys, transportSecurity(in))
	return keys
}

// initialCluster returns how the member starts, and a comment that says so.
func initialCluster(in Input, m decide.RecordedMember, live string) (map[string]string, string, error) {
	keys := map[string]string{
		"initial-cluster-token": clusterToken(in),
		"initial-cluster-state": "existing",
		"initial-cluster":       sealedCluster,
	}
	switch m.Mode {
	case decide.Founding:
		keys["initial-cluster-state"] = "new"
		keys["initial-cluster"] = joinPeers(foundingPeers(in))
		return keys, "# Founding: starts a new cluster together with the members listed.\n", nil
	case decide.Joining:
		if peers := joiningPeers(in, m, live); peers != "" {
			keys["initial-cluster"] = peers
			return keys, "# Joining: starts as a new member of the cluster of the members listed.\n", nil
		}
		return keys, sealedComment, nil
	case decide.Sealed, decide.Restoring:
		return keys, sealedComment, nil
	}
	return nil, "", fmt.Errorf("write the configuration of %s: unknown mode %q", PodName(in.Cluster.Name, m.Ordinal),
		m.Mode)
}

// clusterToken is what tells the cluster from others of its name.
func clusterToken(in Input) string {
	return fmt.Sprintf("%s-%s-%s", in.Cluster.Namespace, in.Cluster.Name, in.Record.Token)
}

const sealedComment = "# Sealed: starts on its data, or not at all.\n"

// joiningPeers are the members that a joining one starts with: those that etcd lists at that
// moment, or it refuses to start (hard case H18). While the list is not known they stay as they
// are. It is empty if they do not include the member itself: what is not listed must not start.
func joiningPeers(in Input, m decide.RecordedMember, live string) string {
	peers := joinPeers(in.Peers)
	if in.Peers == nil {
		peers, _ = readFile(live)["initial-cluster"].(string)
	}
	if !strings.Contains(","+peers, ","+PodName(in.Cluster.Name, m.Ordinal)+"=") {
		return ""
	}
	return peers
}

// foundingPeers are the members that the cluster is founded with. Those that have been sealed
// meanwhile stay in the list: all founding members must name the same ones, or they found different
// clusters.
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

// withAllowedNames is the first etcdversion.Version whose configuration file takes a list as allowed-cn.
var withAllowedNames = etcdversion.Must("3.5.15")

// transportSecurity says which certificates to serve and to trust. Toward other members a member
// shows a certificate without names: etcd looks the names of an incoming peer certificate up in
// DNS, in reverse for wildcards, and lets a peer in only if they lead to its address (checkCertSAN
// in client/pkg/transport); it takes one without names as it is.
func transportSecurity(in Input) map[string]any {
	if !secure(in.Cluster) {
		return nil
	}
	peer := map[string]any{
		"cert-file":        peerTLSMount + "/" + keyCertificate,
		"key-file":         peerTLSMount + "/" + keyPrivate,
		"client-cert-file": peerTLSMount + "/" + keyClientCertificate,
		"client-key-file":  peerTLSMount + "/" + keyClientPrivate,
		"trusted-ca-file":  peerTLSMount + "/" + keyCA,
		"client-cert-auth": true,
	}
	if v, err := declaredVersion(in.Cluster.Spec.Version); err == nil && v.AtLeast(withAllowedNames) {
		// The certificate of a client, which is of the same CA, does not make it a member.
		peer["allowed-cn"] = []string{peerName(in.Cluster)}
	}
	return map[string]any{
		"peer-transport-security": peer,
		"client-transport-security": map[string]any{
			"cert-file":        serveTLSMount + "/" + keyCertificate,
			"key-file":         serveTLSMount + "/" + keyPrivate,
			"trusted-ca-file":  serveTLSMount + "/" + keyCA,
			"client-cert-auth": true,
		},
	}
}
