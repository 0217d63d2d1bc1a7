package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"time"
)

const (
	// caLifetime is long because replacing a CA restarts every member.
	caLifetime = 10 * 365 * 24 * time.Hour
	// leafLifetime can be short because etcd rereads leaf certificates for each connection.
	leafLifetime = 365 * 24 * time.Hour
	// clockSkew is how long before its creation a certificate becomes valid, to allow for clocks that are behind.
	clockSkew = time.Hour
)

// CA is the CA of one cluster. Clusters never share a CA, because every member trusts all certificates that its CA has
// issued. A cluster that adopts another takes over that cluster's CA, whose key may be of any type.
type CA struct {
	pair        Pair
	certificate *x509.Certificate
	key         crypto.Signer
}

// NewCA creates a CA for the cluster with the given name and namespace. Its subject and its key ID are unique, so that
// the old and the new CA can be distinguished during a rotation (etcd issue 11555).
func NewCA(name, namespace string, now time.Time) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create the CA key of %s/%s: %w", namespace, name, err)
	}
	id, err := keyID(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: fmt.Sprintf("%s CA %x", name, id[:4]),
			OrganizationalUnit: []string{namespace}},
		SubjectKeyId:          id,
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(caLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	pair, err := sign(template, template, key, key)
	if err != nil {
		return nil, fmt.Errorf("create the CA of %s/%s: %w", namespace, name, err)
	}
	return ReadCA(pair, now)
}

// ReadCA returns the CA that was stored as p, or an error if the CA cannot be used.
func ReadCA(p Pair, now time.Time) (*CA, error) {
	certificate, key, err := p.parse(parseAnyKey)
	if err != nil {
		return nil, fmt.Errorf("read the CA: %w", err)
	}
	switch {
	case !certificate.IsCA || !certificate.BasicConstraintsValid:
		err = fmt.Errorf("the certificate is not a CA certificate")
	case now.After(certificate.NotAfter):
		err = fmt.Errorf("it expired at %s", certificate.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(certificate.NotBefore):
		err = fmt.Errorf("it is not valid before %s", certificate.NotBefore.UTC().Format(time.RFC3339))
	default:
		err = checkLimits(certificate)
	}
	if err != nil {
		return nil, fmt.Errorf("read the CA: %w", err)
	}
	return &CA{pair: p, certificate: certificate, key: key}, nil
}

// CheckTakeOver returns an error if another cluster must not take over the CA: it is an intermediate CA, or expires
// before the given time. Members that trust only the root CA would reject the certificates that an intermediate CA
// issues, because these certificates are presented without a chain.
func (a *CA) CheckTakeOver(until time.Time) error {
	if !bytes.Equal(a.certificate.RawIssuer, a.certificate.RawSubject) {
		return fmt.Errorf("the certificate belongs to an intermediate CA, issued by %q", a.certificate.Issuer)
	}
	if at := a.certificate.NotAfter; at.Before(until) {
		return fmt.Errorf("the CA expires too early, at %s: renew it first", at.UTC().Format(time.RFC3339))
	}
	return nil
}

// Pair returns the CA in its stored form.
func (a *CA) Pair() Pair { return a.pair }

// String returns the subject.
func (a *CA) String() string { return a.certificate.Subject.String() }

// Issue issues a leaf certificate with its own key.
func (a *CA) Issue(l Leaf, now time.Time) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("create the key of %s: %w", l.CommonName, err)
	}
	template := l.template()
	template.NotBefore = now.Add(-clockSkew)
	template.NotAfter = earlier(now.Add(leafLifetime), a.certificate.NotAfter)
	pair, err := sign(template, a.certificate, key, a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("issue the certificate of %s: %w", l.CommonName, err)
	}
	return pair, nil
}

func sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey, parentKey crypto.Signer) (Pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return Pair{}, err
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Certificate: encodeCertificate(der), Key: encoded}, nil
}

// keyID returns the leftmost 160 bits of the SHA-256 of the public key (RFC 7093, method 1).
func keyID(key *ecdsa.PublicKey) ([]byte, error) {
	encoded, err := key.Bytes()
	if err != nil {
		return nil, fmt.Errorf("encode public key: %w", err)
	}
	sum := sha256.Sum256(encoded)
	return sum[:20], nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
