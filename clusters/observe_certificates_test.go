package clusters

import (
	"crypto/x509"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/pki"
	"quorate.dev/quorate/reconcile/decide"
)

// TestClientStaysRoot checks that the applications' certificate stops naming etcd's superuser only if the applications
// certainly do not need that name.
func TestClientStaysRoot(t *testing.T) {
	client := func(name string) (k objects.Certificates) {
		pair, err := caMade(t, time.Now()).Issue(pki.Leaf{CommonName: name}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		k.Client = pair
		return k
	}
	on, off := true, false
	for what, test := range map[string]struct {
		present objects.Certificates
		auth    *bool
		unknown bool
		stays   bool
	}{
		"authentication is disabled":        {client("root"), &off, false, false},
		"authentication is enabled":         {client("root"), &on, false, true},
		"authentication status is unknown":  {client("root"), nil, false, true},
		"member list is unknown":            {client("root"), &off, true, true},
		"certificate does not name root":    {client("a-client"), &on, false, false},
		"no certificate":                    {objects.Certificates{}, &on, false, false},
		"certificate cannot be parsed":      {objects.Certificates{Client: pki.Pair{Certificate: []byte("x")}}, &on, false, false},
		"no certificate and no member list": {objects.Certificates{}, nil, true, false},
	} {
		t.Run(what, func(t *testing.T) {
			l := newLife(t)
			l.etcd.auth = test.auth
			c := l.seen(l.old)
			if !c.state.Membership.Known {
				t.Fatal("the member list is unknown")
			}
			if test.unknown {
				c.state.Membership = decide.Membership{}
			}
			if got := c.clientStaysRoot(t.Context(), test.present); got != test.stays {
				t.Errorf("the certificate continues to name root: %t", got)
			}
			if told := c.state.ClientIsRoot; told != (test.stays && test.auth == &on && !test.unknown) {
				t.Errorf("manual action is reported: %t", told)
			}
		})
	}
}

// TestOwnClientCertificateIsIssued checks that Quorate's own client certificate is issued for a cluster that was
// created without it, and that etcd is asked with the applications' certificate until then.
func TestOwnClientCertificateIsIssued(t *testing.T) {
	s := running(t)
	c := s.observe()
	ca, err := pki.ReadCA(c.certificates.CA, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	root, err := ca.Issue(pki.Leaf{CommonName: "root", Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s.put("a-client-tls", map[string][]byte{"tls.crt": root.Certificate, "tls.key": root.Key, "ca.crt": c.certificates.Trusted()})
	if err := s.server.Client.CoreV1().Secrets("default").Delete(s.Context(), "a-quorate-tls", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c = s.decided("ApplyObjects", "Secret a-quorate-tls")
	if tls := c.clientTLS(); tls == nil || string(tls.Cert) != string(root.Certificate) {
		t.Error("etcd would not be queried with the existing certificate")
	}
	s.do(c, decide.ApplyObjects{}, true)
	c = s.observe()
	s.settled(c)
	if tls := c.clientTLS(); string(tls.Cert) != string(secretOf(c, "a-quorate-tls")["tls.crt"]) || string(tls.Cert) == string(root.Certificate) {
		t.Error("etcd would not be queried with Quorate's own certificate")
	}
	if !c.certificates.NamesRoot() { // it is unknown whether authentication is enabled
		t.Error("applications lose access to etcd")
	}
}
