package objects

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
)

const (
	dataDir       = "/var/lib/etcd/data" // a subdirectory of the mount, because some file systems contain lost+found
	dataMount     = "/var/lib/etcd"
	membersMount  = "/etc/etcd/members"
	peerTLSMount  = "/etc/etcd/tls/peer"
	serveTLSMount = "/etc/etcd/tls/server"

	// sealedCluster is the initial-cluster of a sealed member. It must be set, because without it, etcd treats the
	// member itself as the initial cluster, and it must not name the member. The host is in a domain that never
	// resolves (RFC 6761).
	sealedCluster = "sealed=http://sealed.invalid:2380"
)

// ownKeys are the keys whose values differ between the files of members with the same template.
var ownKeys = []string{
	"name", "initial-advertise-peer-urls", "advertise-client-urls",
	"initial-cluster", "initial-cluster-state", "initial-cluster-token",
}

// memberFiles returns etcd's configuration files by their key in the ConfigMap. Every recorded member has one file per
// template in use.
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

// maxLearners returns the number of learners that members with the given template allow, or zero if their files do not
// set it. All files of a cluster must agree at all times. Otherwise, members would have different member lists.
func maxLearners(in Input, t Template) int {
	v, err := declaredVersion(t.Version)
	if err != nil {
		return 0
	}
	return in.Record.MaxLearners(v)
}

// memberFile returns the configuration file of a recorded member. common contains the options common to all members;
// live is the current file.
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

// declaredOptions returns the declared options common to the files of all members.
func declaredOptions(in Input) (map[string]any, error) {
	options, problems := etcdOptions(in.Cluster.Spec)
	if len(problems) > 0 {
		return nil, fmt.Errorf("write the configuration of the members: %s", strings.Join(problems, "; "))
	}
	return commonKeys(in, options), nil
}

// commonKeys completes etcd's options with the options common to all clusters.
func commonKeys(in Input, options map[string]any) map[string]any {
	c := in.Cluster
	keys := map[string]any{
		"data-dir": dataDir,
		// With 0.0.0.0, Go also listens on IPv6. Unlike [::], it works if IPv6 is disabled.
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

// initialCluster returns the keys that determine how a member starts, and a comment that describes them.
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
		return keys, "# Founding: starts a new cluster together with the listed members.\n", nil
	case decide.Joining:
		if peers := joiningPeers(in, m, live); peers != "" {
			keys["initial-cluster"] = peers
			return keys, "# Joining: starts as a new member of the listed members' cluster.\n", nil
		}
		return keys, sealedComment, nil
	case decide.Sealed, decide.Restoring:
		return keys, sealedComment, nil
	}
	return nil, "", fmt.Errorf("write the configuration of %s: unknown mode %q", PodName(in.Cluster.Name, m.Ordinal),
		m.Mode)
}

// clusterToken returns the token that distinguishes the cluster from other clusters with the same name.
func clusterToken(in Input) string {
	return fmt.Sprintf("%s-%s-%s", in.Cluster.Namespace, in.Cluster.Name, in.Record.Token)
}

const sealedComment = "# Sealed: starts only with its data.\n"

// joiningPeers returns the members with which a joining member starts. They must be the members that etcd currently
// lists, because otherwise etcd refuses to start (hard case H18). While etcd's list is unknown, the file keeps its
// members. joiningPeers returns "" if the list does not include the joining member, because an unlisted member must not
// start.
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

// foundingPeers returns the initial members. It includes members that have since been sealed: all initial members must
// start with the same list, or they would bootstrap different clusters.
func foundingPeers(in Input) map[string][]string {
	peers := map[string][]string{}
	for _, m := range in.Record.Members {
		if m.Mode != decide.Joining {
			peers[PodName(in.Cluster.Name, m.Ordinal)] = []string{PeerURL(in.Cluster, m.Ordinal)}
		}
	}
	return peers
}

// joinPeers returns members as an initial-cluster. A member with several peer URLs is named once for each of them.
func joinPeers(peers map[string][]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(peers)) {
		for _, url := range peers[name] {
			list = append(list, name+"="+url)
		}
	}
	return strings.Join(list, ",")
}

// transportSecurity returns the keys that determine which certificates a member presents and trusts. Members present
// certificates without names to each other. If an incoming peer certificate contains names, etcd looks them up in DNS,
// or looks up the peer's address for wildcards, and rejects the peer unless they match (checkCertSAN in
// client/pkg/transport). It accepts a certificate without names.
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
	v, err := declaredVersion(in.Cluster.Spec.Version)
	if err == nil && v.AtLeast(decide.RestrictsPeerNames) && !trustsGuests(in) {
		// A client with a certificate from the same CA must not be accepted as a member.
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

// trustsGuests reports whether members accept peer certificates with any name, because guests' certificates have
// different names. Once the guests have left and git no longer declares the adoption, the pod template changes, so all
// members restart and then accept only replicas.
func trustsGuests(in Input) bool {
	formedOtherwise := in.Record.Adopted == 0 && in.Record.NamesMembers()
	return AdoptedCA(in.Cluster) != "" && !formedOtherwise || len(in.Record.Guests) > 0
}
