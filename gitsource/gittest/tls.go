package gittest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Day is the lifetime of most certificates.
const Day = 24 * time.Hour

// Quiet discards logs, because server messages about test clients are not useful.
var Quiet = log.New(io.Discard, "", 0)

// Authority is a CA that issues TLS certificates for servers and clients.
type Authority struct {
	t           testing.TB
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority creates a CA that is valid for two days.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t}
	a.certificate, a.key = a.make(&x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:  x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
	})
	return a
}

func (a *Authority) make(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	return certificate, key
}

// Pair issues a certificate that is valid for names and expires after the given duration.
func (a *Authority) Pair(holds time.Duration, names ...string) (certificate, key []byte) {
	a.t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "x"}, NotBefore: time.Now().Add(-24 * time.Hour),
		NotAfter:    time.Now().Add(holds),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	c, k := a.make(template)
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// PEM returns the CA's own certificate in PEM format.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

func (a *Authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// Serve starts a TLS server. Its certificate is valid for names and expires after the given duration. people specifies
// whether clients must present a certificate.
func (a *Authority) Serve(
	handler http.Handler, people tls.ClientAuthType, holds time.Duration, names ...string,
) *httptest.Server {
	a.t.Helper()
	pair, err := tls.X509KeyPair(a.Pair(holds, names...))
	if err != nil {
		a.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: people, ClientCAs: a.pool()}
	server.Config.ErrorLog = Quiet
	server.StartTLS()
	a.t.Cleanup(server.Close)
	return server
}
