package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"time"
)

// Leaf is what a certificate says: whose it is, and what it is good for.
type Leaf struct {
	CommonName string
	// DNSNames and IPAddresses, and no others; both may be empty.
	DNSNames    []string
	IPAddresses []net.IP
	Usages      []x509.ExtKeyUsage
}

// leafKeyUsage: the handshakes of TLS take signatures, with keys on elliptic curves nothing else.
const leafKeyUsage = x509.KeyUsageDigitalSignature

func (l Leaf) template() *x509.Certificate {
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: l.CommonName},
		DNSNames:              l.DNSNames,
		IPAddresses:           l.IPAddresses,
		KeyUsage:              leafKeyUsage,
		ExtKeyUsage:           l.Usages,
		BasicConstraintsValid: true,
	}
}

// Check returns nil if p can be used as the leaf l, and as nothing else, by those who trust the CA, and will be for
// more than a third of its lifetime, or as long as the CA. The error says why it is to be reissued.
func (a *CA) Check(p Pair, l Leaf, now time.Time) error {
	certificate, _, err := p.parse()
	if err != nil {
		return err
	}
	var foreign error
	issuer := a.certificate
	if certificate.CheckSignatureFrom(issuer) != nil {
		foreign = fmt.Errorf("it was issued by %q, which is not the CA of this cluster", certificate.Issuer)
		issuer = nil
	}
	return errors.Join(
		foreign,
		checkLifetime(certificate, issuer, now),
		checkContent(certificate, l),
		checkExcess(certificate, l),
	)
}

// checkLifetime: what ends with its issuer is not reissued before that, since the next one would
// not be good for longer.
func checkLifetime(certificate, issuer *x509.Certificate, now time.Time) error {
	lifetime := certificate.NotAfter.Sub(certificate.NotBefore)
	left := certificate.NotAfter.Sub(now)
	at := certificate.NotAfter.UTC().Format(time.RFC3339)
	switch {
	case left < 0:
		return fmt.Errorf("it expired at %s", at)
	case left < lifetime/3 && (issuer == nil || certificate.NotAfter.Before(issuer.NotAfter)):
		return fmt.Errorf("it expires at %s, less than a third of its lifetime is left", at)
	case now.Before(certificate.NotBefore):
		return fmt.Errorf("it is not valid before %s", certificate.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}
