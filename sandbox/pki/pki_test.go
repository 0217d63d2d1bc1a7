package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func parse(t *testing.T, pair Pair) *x509.Certificate {
	t.Helper()
	if _, err := tls.X509KeyPair([]byte(pair.Certificate), []byte(pair.Key)); err != nil {
		t.Fatalf("certificate and key do not belong together: %v", err)
	}
	block, _ := pem.Decode([]byte(pair.Certificate))
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func must(t *testing.T) func(Pair, error) Pair {
	return func(pair Pair, err error) Pair {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
}

func TestServerIsTrustedByAllItsNames(t *testing.T) {
	store := Store{Dir: t.TempDir()}
	authority := must(t)(store.Authority())
	server := parse(t, must(t)(store.Server("api", []string{"kubernetes.default.svc"}, []string{"127.0.0.1", "10.96.0.1"})))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(authority.Certificate))
	for _, name := range []string{"kubernetes.default.svc", "127.0.0.1", "10.96.0.1"} {
		if _, err := server.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("as %s: %v", name, err)
		}
	}
	if _, err := server.Verify(x509.VerifyOptions{DNSName: "10.96.0.2", Roots: roots}); err == nil {
		t.Error("it is trusted by a name that it does not have")
	}
	clients := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := server.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: clients}); err == nil {
		t.Error("it is trusted as a client")
	}
}

func TestClientCarriesUserAndGroups(t *testing.T) {
	store := Store{Dir: t.TempDir()}
	authority := must(t)(store.Authority())
	client := parse(t, must(t)(store.Client("node", "system:node:node-1", "system:nodes")))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(authority.Certificate))
	if _, err := client.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	if client.Subject.CommonName != "system:node:node-1" || len(client.Subject.Organization) != 1 || client.Subject.Organization[0] != "system:nodes" {
		t.Errorf("subject is %s", client.Subject)
	}
}

func TestWhatExistsIsKept(t *testing.T) {
	store := Store{Dir: t.TempDir()}
	for name, get := range map[string]func() (Pair, error){
		"authority":        store.Authority,
		"client":           func() (Pair, error) { return store.Client("client", "someone") },
		"service accounts": store.ServiceAccount,
	} {
		first, second := must(t)(get()), must(t)(get())
		if first != second {
			t.Errorf("%s: recreated", name)
		}
	}
	entries, err := os.ReadDir(store.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s can be read by others: %v (%v)", entry.Name(), info.Mode(), err)
		}
	}
}

func TestKubeconfigIsUnderstood(t *testing.T) {
	store := Store{Dir: t.TempDir()}
	authority, client := must(t)(store.Authority()), must(t)(store.Client("admin", "admin"))
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(Kubeconfig("https://127.0.0.1:1234", authority, client)))
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:1234" || string(config.CAData) != authority.Certificate ||
		string(config.CertData) != client.Certificate || string(config.KeyData) != client.Key || config.Insecure {
		t.Errorf("understood as %+v", config)
	}
}
