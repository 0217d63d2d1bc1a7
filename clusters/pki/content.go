package pki

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"strings"
)

// checkContent returns an error that lists what the certificate of a leaf lacks.
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
	return nil
}

// checkExcess returns an error if the certificate of a leaf allows more than required, because everything that it
// allows is also available to someone who steals the key. Moreover, etcd looks up the names in a peer's client
// certificate in DNS, but accepts a certificate without names.
func checkExcess(certificate *x509.Certificate, l Leaf) error {
	weak := Weakness(certificate)
	switch {
	case certificate.IsCA:
		return fmt.Errorf("it is a CA certificate")
	case certificate.KeyUsage != leafKeyUsage:
		return fmt.Errorf("its key may be used for more than signing handshakes")
	case weak != "":
		return fmt.Errorf("its key is weak: %s", weak)
	case certificate.NotAfter.Sub(certificate.NotBefore) > leafLifetime+2*clockSkew:
		return fmt.Errorf("it is valid for more than a year")
	}
	if extra := excess(certificate, l); len(extra) > 0 {
		return fmt.Errorf("it must not have %s", strings.Join(extra, ", "))
	}
	return nil
}

func excess(certificate *x509.Certificate, l Leaf) []string {
	var extra []string
	for _, name := range certificate.DNSNames {
		if !slices.Contains(l.DNSNames, name) {
			extra = append(extra, "the name "+name)
		}
	}
	for _, ip := range certificate.IPAddresses {
		if !slices.ContainsFunc(l.IPAddresses, func(own net.IP) bool { return own.Equal(ip) }) {
			extra = append(extra, "the address "+ip.String())
		}
	}
	for _, address := range certificate.EmailAddresses {
		extra = append(extra, "the email address "+address)
	}
	for _, uri := range certificate.URIs {
		extra = append(extra, "the URI "+uri.String())
	}
	for _, usage := range certificate.ExtKeyUsage {
		if !slices.Contains(l.Usages, usage) {
			extra = append(extra, "the usage "+usage.String())
		}
	}
	for _, usage := range certificate.UnknownExtKeyUsage {
		extra = append(extra, "the usage "+usage.String())
	}
	return extra
}

// checkLimits returns an error if a CA may not issue the certificates that a cluster needs. Verifiers would reject
// certificates from such a CA.
func checkLimits(c *x509.Certificate) error {
	if c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageCertSign == 0 {
		return fmt.Errorf("its key may not sign certificates")
	}
	limited := len(c.ExtKeyUsage)+len(c.UnknownExtKeyUsage) > 0 && !slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageAny)
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if limited && !slices.Contains(c.ExtKeyUsage, usage) {
			return fmt.Errorf("it may not issue certificates for %s", usage)
		}
	}
	if len(c.UnhandledCriticalExtensions) > 0 {
		return fmt.Errorf("it has the critical extension %s, which is not supported", c.UnhandledCriticalExtensions[0])
	}
	if len(c.PermittedDNSDomains)+len(c.ExcludedDNSDomains)+len(c.PermittedIPRanges)+len(c.ExcludedIPRanges) > 0 {
		return fmt.Errorf("it may issue certificates only for certain names")
	}
	return nil
}

// enoughBits is the size of the smallest curve that crypto/tls accepts. enoughRSABits is the size of the smallest RSA
// key that public CAs may use.
const (
	enoughBits    = 256
	enoughRSABits = 2048
)

// Weakness returns the reason why the key of a certificate is too weak, or "".
func Weakness(certificate *x509.Certificate) string {
	switch key := certificate.PublicKey.(type) {
	case *ecdsa.PublicKey:
		if key.Params().BitSize < enoughBits {
			return key.Params().Name
		}
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < enoughRSABits {
			return fmt.Sprintf("%d-bit RSA", bits)
		}
	}
	return ""
}
