package pki

import (
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
	// authorityLifetime: replacing an authority restarts every member, so it is rare.
	authorityLifetime = 10 * 365 * 24 * time.Hour
	// leafLifetime: etcd reads leaves again on each connection, so they can be short.
	leafLifetime = 365 * 24 * time.Hour
	// clockSkew by which certificates are valid before they are made, for machines whose clocks are behind.
	clockSkew = time.Hour
)

// Authority is the certificate authority of one cluster. One cluster never shares it with another: whoever holds
// a certificate of it is trusted by every member.
type Authority struct {
	pair        Pair
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority makes an authority for the cluster of that name and namespace. Its subject and its key ID are its
// own, so that during a rotation the old and the new one are told apart (etcd issue 11555).
func NewAuthority(name, namespace string, now time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of the authority of %s/%s: %w", namespace, name, err)
	}
	id, err := keyID(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: fmt.Sprintf("%s CA %x", name, id[:4]), OrganizationalUnit: []string{namespace}},
		SubjectKeyId:          id,
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	pair, err := sign(template, template, key, key)
	if err != nil {
		return nil, fmt.Errorf("make the authority of %s/%s: %w", namespace, name, err)
	}
	return ReadAuthority(pair, now)
}

// ReadAuthority returns the authority that was stored as p. The error says why it is of no use.
func ReadAuthority(p Pair, now time.Time) (*Authority, error) {
	certificate, key, err := p.parse()
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	switch {
	case !certificate.IsCA || !certificate.BasicConstraintsValid:
		err = fmt.Errorf("the certificate is not that of an authority")
	case now.After(certificate.NotAfter):
		err = fmt.Errorf("it expired at %s", certificate.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(certificate.NotBefore):
		err = fmt.Errorf("it is not valid before %s", certificate.NotBefore.UTC().Format(time.RFC3339))
	default:
		err = checkLimits(certificate)
	}
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	return &Authority{pair: p, certificate: certificate, key: key}, nil
}

// Pair returns the authority as it is stored.
func (a *Authority) Pair() Pair { return a.pair }

// String returns the subject.
func (a *Authority) String() string { return a.certificate.Subject.String() }

// Issue makes a leaf with a key of its own.
func (a *Authority) Issue(l Leaf, now time.Time) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make the key of %s: %w", l.CommonName, err)
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

func sign(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) (Pair, error) {
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

// keyID is the leftmost 160 bits of the SHA-256 of the public key (RFC 7093, method 1).
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
