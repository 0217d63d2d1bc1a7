package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// Leaf is what a certificate says: whose it is, and what it is good for.
type Leaf struct {
	CommonName string
	// DNSNames and IPAddresses may both be empty; then the certificate must have none either.
	DNSNames    []string
	IPAddresses []net.IP
	Usages      []x509.ExtKeyUsage
}

func (l Leaf) template() *x509.Certificate {
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: l.CommonName},
		DNSNames:              l.DNSNames,
		IPAddresses:           l.IPAddresses,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           l.Usages,
		BasicConstraintsValid: true,
	}
}

// Check returns nil if p can be used as the leaf l by those who trust the authorities in trusted (PEM), and will be
// for more than a third of its lifetime, or as long as its authority. The error says why it is to be reissued.
func Check(p Pair, trusted []byte, l Leaf, now time.Time) error {
	certificate, _, err := p.parse()
	if err != nil {
		return err
	}
	issuer, unknown := issuerOf(certificate, trusted)
	return errors.Join(
		unknown,
		checkLifetime(certificate, issuer, now),
		checkContent(certificate, l),
	)
}

func issuerOf(certificate *x509.Certificate, trusted []byte) (*x509.Certificate, error) {
	authorities, err := ParseCertificates(trusted)
	if err != nil {
		return nil, fmt.Errorf("read the trusted authorities: %w", err)
	}
	for _, authority := range authorities {
		if certificate.CheckSignatureFrom(authority) == nil {
			return authority, nil
		}
	}
	return nil, fmt.Errorf("it was issued by %q, which is not the authority of this cluster", certificate.Issuer)
}

// checkLifetime: what ends with its issuer is not reissued before that, since the next one would not be good for longer.
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

func checkContent(certificate *x509.Certificate, l Leaf) error {
	var lacks []string
	if certificate.Subject.CommonName != l.CommonName {
		lacks = append(lacks, fmt.Sprintf("the common name %q", l.CommonName))
	}
	for _, name := range l.DNSNames {
		if !slices.Contains(certificate.DNSNames, name) {
			lacks = append(lacks, "the name "+name)
		}
	}
	for _, ip := range l.IPAddresses {
		if !slices.ContainsFunc(certificate.IPAddresses, ip.Equal) {
			lacks = append(lacks, "the address "+ip.String())
		}
	}
	for _, usage := range l.Usages {
		if !slices.Contains(certificate.ExtKeyUsage, usage) {
			lacks = append(lacks, "the usage "+usage.String())
		}
	}
	if len(lacks) > 0 {
		return fmt.Errorf("it lacks %s", strings.Join(lacks, ", "))
	}
	// etcd looks the names of a peer's client certificate up in DNS; one without names it takes as it is.
	if names := len(certificate.DNSNames) + len(certificate.IPAddresses); names > 0 && len(l.DNSNames)+len(l.IPAddresses) == 0 {
		return fmt.Errorf("it bears names where none belong")
	}
	return nil
}
