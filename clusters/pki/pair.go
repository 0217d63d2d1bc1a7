package pki

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"io"
)

// PrivateKey is a private key in PEM (PKCS #8). It is never printed: fmt, slog and encoding/json print a
// placeholder.
type PrivateKey []byte

const redacted = "[private key]"

// Format prints the placeholder for every verb.
func (k PrivateKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText returns the placeholder.
func (k PrivateKey) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Pair is a certificate and its key.
type Pair struct {
	// Certificate is in PEM.
	Certificate []byte
	Key         PrivateKey
}

// IsZero reports whether both certificate and key are missing.
func (p Pair) IsZero() bool { return len(p.Certificate) == 0 && len(p.Key) == 0 }

// parse decodes both halves and checks that they belong together.
func (p Pair) parse(
	parseKey func(PrivateKey, *x509.Certificate) (crypto.Signer, error),
) (*x509.Certificate, crypto.Signer, error) {
	if len(p.Certificate) == 0 {
		return nil, nil, fmt.Errorf("the certificate is missing")
	}
	if len(p.Key) == 0 {
		return nil, nil, fmt.Errorf("the key is missing")
	}
	certificates, err := ParseCertificates(p.Certificate)
	if err != nil {
		return nil, nil, err
	}
	if len(certificates) != 1 {
		return nil, nil, fmt.Errorf("expected one certificate, found %d", len(certificates))
	}
	key, err := parseKey(p.Key, certificates[0])
	if err != nil {
		return nil, nil, err
	}
	public, comparable := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !comparable || !public.Equal(certificates[0].PublicKey) {
		return nil, nil, fmt.Errorf("the key does not match the certificate")
	}
	return certificates[0], key, nil
}
