package objects

import (
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/pki"
	"quorate.dev/quorate/reconcile/decide"
)

// refuseStrangers checks that a client is rejected if it has no certificate, has a certificate from a different CA, or
// poses as a member. No port accepts a member's peer server certificate.
func (w *world) refuseStrangers() {
	c := w.in.Cluster
	if !secure(c) {
		return
	}
	strange := certificates(w.T, c)
	for _, pair := range []pki.Pair{{}, strange.Client, strange.Own, strange.Server, w.in.Certificates.Peer} {
		if response, err := w.client(0, pair).Get(ClientURL(c, 0) + "/version"); err == nil {
			w.Errorf("an unknown client is accepted at the client port: %s", response.Status)
		}
	}
	if response, err := w.client(0, w.in.Certificates.PeerClient).Get(PeerURL(c, 0) + "/members"); err != nil || response.StatusCode != http.StatusOK {
		w.Errorf("a member is rejected at the peer port: %v", err)
	}
	for _, pair := range []pki.Pair{w.in.Certificates.Client, w.in.Certificates.Own, w.in.Certificates.Peer} {
		if response, err := w.client(0, pair).Get(PeerURL(c, 0) + "/members"); err == nil {
			w.Errorf("a client is accepted at the peer port: %s", response.Status)
		}
	}
}

// TestRealEtcdRejectsClientAsMember checks that a client is not accepted as a member even if etcd does not restrict the
// names in peer certificates.
func TestRealEtcdRejectsClientAsMember(t *testing.T) {
	for text, binary := range etcdToTest(t) {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, threeMembers(t, text), binary)
			w.allowsAnyName = true
			w.in.Record = record(1, decide.Founding)
			w.start(0)
			w.waitReady(0)
			w.refuseStrangers()
			nameless, err := caOf(t, w.in.Certificates).Issue(pki.Leaf{CommonName: "x", Usages: clientOnly}, now)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.client(0, nameless).Get(PeerURL(w.in.Cluster, 0) + "/members"); err != nil {
				t.Errorf("etcd restricts names, so the test proves nothing: %v", err)
			}
		})
	}
}

// caOf parses the stored CA.
func caOf(t *testing.T, k Certificates) *pki.CA {
	t.Helper()
	ca, err := pki.ReadCA(k.CA, now)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// authenticate enables authentication temporarily. It checks that Quorate can still act as root, that applications have
// only the rights granted to their own user, and that members have no rights.
func (w *world) authenticate() {
	if !secure(w.in.Cluster) {
		return
	}
	k := w.in.Certificates
	for _, command := range []string{
		"user add root --no-password", "role add root", "user grant-role root root",
		"user add a-client --no-password", "role add app", "role grant-permission app readwrite app/ --prefix", "user grant-role a-client app",
		"auth enable",
	} {
		w.allowed(k.Own, command)
	}
	w.allowed(k.Client, "put app/k v")
	w.allowed(k.Own, "member list", "put k v", "endpoint status", "endpoint hashkv", "alarm list")
	w.denied(k.Client, "put k other", "get k", "user list", "member remove 1", "role grant-permission app readwrite k")
	w.denied(k.PeerClient, "put k other", "get app/k", "user list", "member remove 1")
	w.denied(k.Server, "put k other", "get k", "user list", "member remove 1")
	w.allowed(k.Own, "auth disable")
}

func (w *world) allowed(as pki.Pair, commands ...string) {
	w.Helper()
	for _, command := range commands {
		if said, err := w.etcdctl(as, command); err != nil {
			w.Fatalf("%s: %v: %s", command, err, said)
		}
	}
}

func (w *world) denied(as pki.Pair, commands ...string) {
	w.Helper()
	refusals := []string{"permission denied", "user name not found", "user name is empty", "invalid auth token"}
	for _, command := range commands {
		said, err := w.etcdctl(as, command)
		if err == nil || !slices.ContainsFunc(refusals, func(refusal string) bool { return strings.Contains(said, refusal) }) {
			w.Errorf("%s is not refused because of missing rights: %v: %s", command, err, said)
		}
	}
}

// etcdctl runs a command against the first member with the given certificate.
func (w *world) etcdctl(as pki.Pair, command string) (string, error) {
	w.write("as.crt", as.Certificate)
	w.write("as.key", as.Key)
	args := []string{
		"--mount", "sh", "-c", `mount --bind "$1" /etc/hosts && shift && exec "$@"`, "sh", w.path("hosts"), w.binary + "ctl",
		"--endpoints=" + ClientURL(w.in.Cluster, 0), "--cacert=" + w.path("tls/server/ca.crt"), "--cert=" + w.path("as.crt"), "--key=" + w.path("as.key"),
	}
	said, err := exec.Command("unshare", append(args, strings.Fields(command)...)...).CombinedOutput()
	return string(said), err
}
