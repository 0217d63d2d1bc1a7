package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"time"
)

// Leaf describes the content of a leaf certificate: its subject and its uses.
type Leaf struct {
	CommonName string
	// DNSNames and IPAddresses are all names in the certificate. Both may be empty.
	DNSNames    []string
	IPAddresses []net.IP
	Usages      []x509.ExtKeyUsage
}

// leafKeyUsage contains only signatures, because TLS handshakes with elliptic-curve keys do not require anything else.
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

// Check returns nil if everyone who trusts the CA accepts p as the leaf l and as nothing else, and either more than a
// third of its lifetime is left or it expires with the CA. Otherwise, the error contains the reasons why p must be
// reissued.
func (a *CA) Check(p Pair, l Leaf, now time.Time) error {
	certificate, _, err := p.parse(parseOwnKey)
	if err != nil {
		return err
	}
	var foreign error
	issuer := a.certificate
	if certificate.CheckSignatureFrom(issuer) != nil {
		foreign = fmt.Errorf("it was issued by %q, which is not this cluster's CA", certificate.Issuer)
		issuer = nil
	}
	return errors.Join(
		foreign,
		checkLifetime(certificate, issuer, now),
		checkContent(certificate, l),
		checkExcess(certificate, l),
	)
}

// checkLifetime checks the remaining lifetime. A certificate that expires with its issuer is not reissued early,
// because a new certificate would not be valid for longer.
func checkLifetime(certificate, issuer *x509.Certificate, now time.Time) error {
	lifetime := certificate.NotAfter.Sub(certificate.NotBefore)
	left := certificate.NotAfter.Sub(now)
	at := certificate.NotAfter.UTC().Format(time.RFC3339)
	switch {
	case left < 0:
		return fmt.Errorf("it expired at %s", at)
	case left < lifetime/3 && (issuer == nil || certificate.NotAfter.Before(issuer.NotAfter)):
		return fmt.Errorf("it expires at %s: less than a third of its lifetime is left", at)
	case now.Before(certificate.NotBefore):
		return fmt.Errorf("it is not valid before %s", certificate.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}
