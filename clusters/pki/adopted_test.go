package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"
)

// TestCAWithAnyKeyTypeIsUsed checks that certificates can be issued from a CA with a key of any type in any PEM format,
// and that clients that trust the CA accept the certificates.
func TestCAWithAnyKeyTypeIsUsed(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(ecKey)
	if err != nil {
		t.Fatal(err)
	}
	parameters := pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte{6, 5, 43, 129, 4, 0, 34}})
	for what, test := range map[string]struct {
		key    crypto.Signer
		stored []byte
	}{
		"RSA, PKCS #1":           {rsaKey, encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey))},
		"RSA, PKCS #8":           {rsaKey, pkcs8(t, rsaKey)},
		"ECDSA, with parameters": {ecKey, append(parameters, encode("EC PRIVATE KEY", sec1)...)},
		"ECDSA, PKCS #8":         {ecKey, pkcs8(t, ecKey)},
		"Ed25519, PKCS #8":       {edKey, pkcs8(t, edKey)},
	} {
		t.Run(what, func(t *testing.T) {
			ca, err := ReadCA(Pair{Certificate: selfSigned(t, test.key), Key: test.stored}, now)
			if err != nil {
				t.Fatal(err)
			}
			if err := ca.CheckTakeOver(now); err != nil {
				t.Error(err)
			}
			leaf := Leaf{CommonName: "a", DNSNames: []string{"a.example"}, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
			pair, err := ca.Issue(leaf, now)
			if err != nil {
				t.Fatal(err)
			}
			if err := ca.Check(pair, leaf, now); err != nil {
				t.Error(err)
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(ca.Pair().Certificate)
			issued, err := ParseCertificates(pair.Certificate)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := issued[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: "a.example", CurrentTime: now}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestIntermediateCAIsRejected checks that an intermediate CA is rejected. Certificates that it issues would have to be
// presented with a chain.
func TestIntermediateCAIsRejected(t *testing.T) {
	root, err := NewCA("root", "ns", now)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := sign(caTemplate(), root.certificate, key, root.key)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := ReadCA(pair, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := ca.CheckTakeOver(now); err == nil || !strings.Contains(err.Error(), `an intermediate CA, issued by "CN=root CA`) {
		t.Errorf("got %v", err)
	}
}

func caTemplate() *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "old"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(5 * 365 * 24 * time.Hour),
	}
}

func selfSigned(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	template := caTemplate()
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return encodeCertificate(der)
}

func pkcs8(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return encode("PRIVATE KEY", der)
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// TestSlowKeyIsRejected checks that a key is rejected quickly if signing with it, or parsing it, would take seconds.
func TestSlowKeyIsRejected(t *testing.T) {
	exponent := func(n int) *big.Int { return new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(n)), big.NewInt(1)) }
	type rest struct{ Version, Modulus, E, D, P, Q, DP, DQ, QInv *big.Int }
	zero := big.NewInt(0)
	product := new(big.Int).Mul(exponent(2203), exponent(1279)) // Mersenne primes
	ca, err := NewCA("a", "ns", now)
	if err != nil {
		t.Fatal(err)
	}
	for what, test := range map[string]struct {
		modulus *big.Int
		version int64
		says    string
	}{
		"several primes":        {product, 1, "more than two primes"},
		"long":                  {new(big.Int).Mul(exponent(4423), exponent(3217)), 0, "has 7640 bits; the maximum is 4096"},
		"of another":            {product, 0, "does not match"},
		"of another, one prime": {exponent(2203), 0, "does not match"},
	} {
		t.Run(what, func(t *testing.T) {
			template := caTemplate()
			public := &rsa.PublicKey{N: test.modulus, E: 65537}
			if test.says == "does not match" {
				public.N = new(big.Int).Mul(exponent(1279), exponent(607))
			}
			der, err := x509.CreateCertificate(rand.Reader, template, ca.certificate, public, ca.key)
			if err != nil {
				t.Fatal(err)
			}
			key, err := asn1.Marshal(rest{big.NewInt(test.version), test.modulus, big.NewInt(65537), zero, zero, zero, zero, zero, zero})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			_, err = ReadCA(Pair{Certificate: encodeCertificate(der), Key: encode("RSA PRIVATE KEY", key)}, now)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
			if took := time.Since(start); took > time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}
