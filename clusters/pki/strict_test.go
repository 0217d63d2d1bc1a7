package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/asn1"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"
)

// forge returns a certificate, signed by the CA, that differs in one detail from the certificate that the CA would
// issue for the leaf.
func forge(t *testing.T, a *CA, l Leaf, curve elliptic.Curve, change func(*x509.Certificate)) Pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := l.template()
	template.NotBefore, template.NotAfter = now.Add(-clockSkew), now.Add(leafLifetime)
	change(template)
	pair, err := sign(template, a.certificate, key, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// TestCheckRejectsExcessContent checks that a certificate that contains more than required must be reissued: even if
// the CA signed it, Quorate did not issue it.
func TestCheckRejectsExcessContent(t *testing.T) {
	a := ca(t)
	for _, test := range []struct {
		name   string
		change func(*x509.Certificate)
		want   string
	}{
		{"nothing", func(*x509.Certificate) {}, ""},
		{"a CA", func(c *x509.Certificate) { c.IsCA, c.KeyUsage = true, c.KeyUsage|x509.KeyUsageCertSign }, "it is a CA certificate"},
		{"a name", func(c *x509.Certificate) { c.DNSNames = append(c.DNSNames, "example.com") }, "it must not have the name example.com"},
		{"an address", func(c *x509.Certificate) { c.IPAddresses = append(c.IPAddresses, net.IPv6loopback) }, "it must not have the address ::1"},
		{"a mailbox", func(c *x509.Certificate) { c.EmailAddresses = []string{"a@example.com"} }, "it must not have the email address a@example.com"},
		{"a URI", func(c *x509.Certificate) { c.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }, "it must not have the URI spiffe://x"},
		{"a usage", func(c *x509.Certificate) { c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageCodeSigning) }, "it must not have the usage codeSigning"},
		{"any usage", func(c *x509.Certificate) { c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageAny) }, "it must not have the usage anyExtendedKeyUsage"},
		{"an unknown usage", func(c *x509.Certificate) { c.UnknownExtKeyUsage = []asn1.ObjectIdentifier{{1, 2, 3}} }, "it must not have the usage 1.2.3"},
		{"another key usage", func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageKeyAgreement }, "its key may be used for more than signing handshakes"},
		{"no key usage", func(c *x509.Certificate) { c.KeyUsage = 0 }, "its key may be used for more than signing handshakes"},
		{"ten years", func(c *x509.Certificate) { c.NotAfter = now.Add(9 * leafLifetime) }, "it is valid for more than a year"},
	} {
		err := a.Check(forge(t, a, first, elliptic.P256(), test.change), first, now)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	err := a.Check(forge(t, a, first, elliptic.P224(), func(*x509.Certificate) {}), first, now)
	if err == nil || !strings.Contains(err.Error(), "its key is weak: P-224") {
		t.Errorf("a weak key: %v", err)
	}
}

// caWith returns a CA that differs from a CA created by Quorate in one detail.
func caWith(t *testing.T, curve elliptic.Curve, change func(*x509.Certificate)) Pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := *ca(t).certificate
	template.Raw, template.PublicKey, template.SubjectKeyId, template.AuthorityKeyId = nil, nil, []byte{1}, nil
	change(&template)
	pair, err := sign(&template, &template, key, key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// TestRestrictedCAIsRejected checks that a restricted CA is rejected. Otherwise, all verifiers would reject the
// certificates that it issues, and every pass would reissue them.
func TestRestrictedCAIsRejected(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*x509.Certificate)
		want   string
	}{
		{"nothing", func(*x509.Certificate) {}, ""},
		{"may not sign", func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature }, "its key may not sign certificates"},
		{"servers only", func(c *x509.Certificate) { c.ExtKeyUsage = both[:1] }, "it may not issue certificates for clientAuth"},
		{"both", func(c *x509.Certificate) { c.ExtKeyUsage = both }, ""},
		{"some names", func(c *x509.Certificate) { c.PermittedDNSDomains = []string{"example.com"} }, "it may issue certificates only for certain names"},
		{"not some addresses", func(c *x509.Certificate) {
			c.ExcludedIPRanges = []*net.IPNet{{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}}
		}, "it may issue certificates only for certain names"},
	} {
		_, err := ReadCA(caWith(t, elliptic.P256(), test.change), now)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

// TestWeakness checks that a weak CA is reported but still used, because it works, and replacing it requires manual
// action.
func TestWeakness(t *testing.T) {
	weak := caWith(t, elliptic.P224(), func(*x509.Certificate) {})
	if _, err := ReadCA(weak, now); err != nil {
		t.Error(err)
	}
	list, err := ParseCertificates(weak.Certificate)
	if err != nil || Weakness(list[0]) != "P-224" || Weakness(ca(t).certificate) != "" {
		t.Errorf("weakness of %v, or of its own; %v", list, err)
	}
}

// TestIssuedCertificatesPassCryptoTLS checks that issued certificates pass the checks of crypto/tls for each of their
// usages.
func TestIssuedCertificatesPassCryptoTLS(t *testing.T) {
	a := ca(t)
	list, err := ParseCertificates(issue(t, a, first).Certificate)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	for _, usage := range both {
		options := x509.VerifyOptions{Roots: roots, CurrentTime: now.Add(time.Hour), KeyUsages: []x509.ExtKeyUsage{usage}}
		if _, err := list[0].Verify(options); err != nil {
			t.Errorf("%s: %v", usage, err)
		}
	}
}
