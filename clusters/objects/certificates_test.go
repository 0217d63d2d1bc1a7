package objects

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/pki"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// TestMembersAreTrustedByCA checks that every current or future member is trusted under its own name by clients that
// trust the CA, and by no other clients.
func TestMembersAreTrustedByCA(t *testing.T) {
	c := threeMembers(t, "3.6.16")
	k, other := certificates(t, c), certificates(t, c)
	names := []string{"localhost", "127.0.0.1", "::1", "a-client.default.svc", "a-client.default", "a-client.default.svc.cluster.local"}
	for n := range 100 {
		host := Host(c, n)
		for _, name := range []string{host, host + ".cluster.local"} {
			if err := handshake(k.Peer, k.PeerClient, k, name); err != nil {
				t.Errorf("peer %s: %v", name, err)
			}
			names = append(names, name)
		}
	}
	for _, name := range names {
		if err := handshake(k.Server, k.Client, k, name); err != nil {
			t.Errorf("server %s: %v", name, err)
		}
	}
	for what, pairs := range map[string][2]pki.Pair{
		"server certificate of a different cluster": {other.Server, k.Client},
		"client certificate of a different cluster": {k.Server, other.Client},
		"client certificate as server certificate":  {k.Client, k.Client},
		"peer certificate as client certificate":    {k.Server, k.Peer},
	} {
		if handshake(pairs[0], pairs[1], k, Host(c, 0)) == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	for _, name := range []string{"a-0.b.default.svc", "a-0.a.other.svc", "default.svc", "x.a-0.a.default.svc", "example.com"} {
		if handshake(k.Server, k.Client, k, name) == nil {
			t.Errorf("accepted as %s", name)
		}
	}
}

// handshake connects a client to a server by name. Both trust only k's CA, and the server requires a client
// certificate.
func handshake(server, client pki.Pair, k Certificates, name string) error {
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(k.Trusted())
	at := func() time.Time { return now }
	serves, err := tls.X509KeyPair(server.Certificate, server.Key)
	if err != nil {
		return err
	}
	shows, err := tls.X509KeyPair(client.Certificate, client.Key)
	if err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{serves}, ClientCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert, Time: at,
	})
	if err != nil {
		return err
	}
	defer listener.Close()
	done := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			err = conn.(*tls.Conn).Handshake()
			conn.Close()
		}
		done <- err
	}()
	conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{Certificates: []tls.Certificate{shows}, RootCAs: trusted, ServerName: name, Time: at})
	if err != nil {
		return err
	}
	defer conn.Close()
	return <-done
}

// TestPeerClientCertificateHasNoNames checks that the certificate that a member presents to other members contains no
// names, so that etcd does not look up peers in DNS.
func TestPeerClientCertificateHasNoNames(t *testing.T) {
	k := certificates(t, threeMembers(t, "3.6.16"))
	list, err := pki.ParseCertificates(k.PeerClient.Certificate)
	if err != nil || len(list[0].DNSNames)+len(list[0].IPAddresses) > 0 {
		t.Errorf("%v %v: %v", list[0].DNSNames, list[0].IPAddresses, err)
	}
}

// data returns the content of the Secrets after they have been applied.
func data(t *testing.T, c *v1alpha1.EtcdCluster, k Certificates) map[string]map[string][]byte {
	t.Helper()
	list, err := secrets(Input{Cluster: c, Certificates: k})
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]map[string][]byte{}
	for _, o := range list {
		fields, err := convert[struct{ Data map[string][]byte }](o.Apply)
		if err != nil {
			t.Fatal(err)
		}
		stored[o.Name] = fields.Data
	}
	return stored
}

func TestStoredCertificatesAreKept(t *testing.T) {
	c := threeMembers(t, "3.6.16")
	stored := data(t, c, certificates(t, c))
	k := ReadCertificates(c, stored)
	again, problems, err := k.Renew(c, now.Add(200*24*time.Hour))
	if err != nil || len(problems) > 0 {
		t.Fatalf("%v %v", problems, err)
	}
	for name, want := range stored {
		for key, value := range data(t, c, again)[name] {
			if !slices.Equal(value, want[key]) {
				t.Errorf("%s %s has changed", name, key)
			}
		}
	}
}

func TestRenew(t *testing.T) {
	c := threeMembers(t, "3.6.16")
	names := NamesOf("a")
	for name, test := range map[string]struct {
		damage func(map[string]map[string][]byte)
		at     time.Duration
		want   []string
	}{
		"a Secret is missing":             {func(s map[string]map[string][]byte) { delete(s, names.ClientSecret) }, 0, []string{"tls.crt in Secret a-client-tls"}},
		"a key is missing":                {func(s map[string]map[string][]byte) { delete(s[names.PeerSecret], "client.key") }, 0, []string{"client.crt in Secret a-peer-tls: the key is missing"}},
		"ca.crt contains a different CA":  {func(s map[string]map[string][]byte) { s[names.ServerSecret]["ca.crt"] = []byte("x") }, 0, []string{"tls.crt in Secret a-server-tls: ca.crt in the same Secret is not this cluster's CA"}},
		"Quorate's own Secret is missing": {func(s map[string]map[string][]byte) { delete(s, names.OwnSecret) }, 0, []string{"tls.crt in Secret a-quorate-tls"}},
		"certificates are 250 days old":   {func(map[string]map[string][]byte) {}, 250 * 24 * time.Hour, []string{"a-peer-tls", "a-peer-tls", "a-server-tls", "a-quorate-tls", "a-client-tls"}},
		"CA was replaced": {func(s map[string]map[string][]byte) {
			s[names.CASecret] = data(t, c, certificates(t, c))[names.CASecret]
		}, 0, []string{"a-peer-tls", "a-peer-tls", "a-server-tls", "a-quorate-tls", "a-client-tls"}},
	} {
		stored := data(t, c, certificates(t, c))
		test.damage(stored)
		at := now.Add(test.at)
		renewed, problems, err := ReadCertificates(c, stored).Renew(c, at)
		if err != nil || len(problems) != len(test.want) {
			t.Errorf("%s: %q, %v", name, problems, err)
			continue
		}
		for i, want := range test.want {
			if !strings.Contains(problems[i], want) {
				t.Errorf("%s: %s, want %s", name, problems[i], want)
			}
		}
		if _, left, err := ReadCertificates(c, data(t, c, renewed)).Renew(c, at); err != nil || len(left) > 0 {
			t.Errorf("%s: after renewal: %q, %v", name, left, err)
		}
	}
}

// TestClientKeepsRootNameOnlyIfRoot checks that, if certificates were issued before Quorate had its own, applications
// keep the name root only if they may have rights under that name.
func TestClientKeepsRootNameOnlyIfRoot(t *testing.T) {
	c := threeMembers(t, "3.6.16")
	k := certificates(t, c)
	before := func(name string, usages []x509.ExtKeyUsage, names ...string) pki.Pair {
		pair, err := caOf(t, k).Issue(pki.Leaf{CommonName: name, DNSNames: names, Usages: usages}, now)
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	k.Client, k.Peer = before("root", clientOnly), before("a-peer", bothUsages, memberNames(c)...)
	stored := data(t, c, k)
	delete(stored, NamesOf("a").OwnSecret)
	for _, stays := range []bool{false, true} {
		old := ReadCertificates(c, stored)
		if !old.NamesRoot() {
			t.Error("the applications' certificate is not recognized as root")
		}
		old.ClientIsRoot = stays
		renewed, problems, err := old.Renew(c, now)
		if err != nil || len(problems) != 3 {
			t.Fatalf("%q, %v", problems, err)
		}
		want := map[bool]string{false: "a-client", true: "root"}[stays]
		if got := commonName(t, renewed.Client); got != want || commonName(t, renewed.Own) != "root" || renewed.NamesRoot() != stays {
			t.Errorf("applications are %s, want %s; Quorate is %s", got, want, commonName(t, renewed.Own))
		}
		again := ReadCertificates(c, data(t, c, renewed))
		again.ClientIsRoot = again.NamesRoot()
		if _, left, err := again.Renew(c, now); err != nil || len(left) > 0 {
			t.Errorf("still to be issued: %q, %v", left, err)
		}
	}
	// A deleted certificate is reissued under its own name, whatever its previous name was.
	delete(stored, NamesOf("a").ClientSecret)
	if ReadCertificates(c, stored).NamesRoot() {
		t.Error("a missing certificate names root")
	}
}

func commonName(t *testing.T, p pki.Pair) string {
	t.Helper()
	list, err := pki.ParseCertificates(p.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	return list[0].Subject.CommonName
}

func TestCAIsNeverReplaced(t *testing.T) {
	c := threeMembers(t, "3.6.16")
	stored := data(t, c, certificates(t, c))
	delete(stored, NamesOf("a").CASecret)
	k := ReadCertificates(c, stored)
	if err := k.CheckCA(now); err == nil {
		t.Error("a missing CA is not reported")
	}
	if _, _, err := k.Renew(c, now); err == nil {
		t.Error("certificates are renewed without a CA")
	}
}

func TestObjectNamesAreUniqueAcrossClusters(t *testing.T) {
	seen := map[string]string{}
	for _, cluster := range []string{"a", "b", "a-b"} {
		c := threeMembers(t, "3.6.16")
		c.Name = cluster
		for _, i := range Identities(c) {
			if other, taken := seen[i.String()]; taken {
				t.Errorf("%s and %s both have %s", cluster, other, i)
			}
			seen[i.String()] = fmt.Sprint(cluster)
		}
	}
}

// TestServiceNamesAreAddedToCertificates checks that tls.serviceNames adds only the names of Services in the cluster's
// namespace to members' certificates.
func TestServiceNamesAreAddedToCertificates(t *testing.T) {
	c := threeMembers(t, "3.6.16")
	before := serverLeaf(c).DNSNames
	c.Spec.TLS.ServiceNames = []v1alpha1.ServiceName{"old", "old", "a-client", "etcd.example.com", "*", "", "ad.kube-system"}
	after := serverLeaf(c).DNSNames
	added := slices.DeleteFunc(slices.Clone(after), func(name string) bool { return slices.Contains(before, name) })
	namespace := c.Namespace
	if want := []string{"old." + namespace, "old." + namespace + ".svc", "old." + namespace + ".svc.cluster.local"}; !slices.Equal(added, want) {
		t.Errorf("added %q, want %q", added, want)
	}
	if len(after) != len(before)+len(added) {
		t.Errorf("duplicate names: %q", after)
	}
}

// TestGuestsAreAcceptedAsPeers checks that members accept certificates with unknown names, such as those of guests, only
// while git declares the adoption or guests are recorded.
func TestGuestsAreAcceptedAsPeers(t *testing.T) {
	limits := func(in Input) bool {
		peer, _ := transportSecurity(in)["peer-transport-security"].(map[string]any)
		return peer["client-cert-auth"] == true && peer["allowed-cn"] != nil
	}
	in := Input{Cluster: threeMembers(t, "3.6.16")}
	if !limits(in) {
		t.Error("members accept every certificate from the CA as a peer certificate")
	}
	in.Record.Guests = []decide.ID{1}
	if limits(in) {
		t.Error("members reject recorded guests")
	}
	in.Record.Guests, in.Cluster.Spec.Adopt = nil, &v1alpha1.AdoptionSpec{CASecretName: "old-ca"}
	if limits(in) {
		t.Error("members reject guests of a declared adoption")
	}
	in.Record = in.Record.With(decide.RecordedMember{Mode: decide.Sealed, ID: 1})
	if !limits(in) {
		t.Error("members of a cluster that formed otherwise accept every certificate from the CA")
	}
	in.Record.Adopted = 1
	if limits(in) {
		t.Error("members of an adopted cluster reject guests while git declares the adoption")
	}
}
