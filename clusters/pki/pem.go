package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

const (
	blockCertificate  = "CERTIFICATE"
	blockKey          = "PRIVATE KEY"
	blockRSAKey       = "RSA PRIVATE KEY"
	blockECKey        = "EC PRIVATE KEY"
	blockECParameters = "EC PARAMETERS"
)

// MaxPEM is the maximum length of PEM text in bytes. A Secret can contain a mebibyte, which would take minutes to
// parse. Certificates and keys take a few thousand bytes.
const MaxPEM = 64 << 10

// MaxKey is the maximum length in bytes of a private key from another source, which is the length of an 8192-bit RSA
// key. A longer key can take minutes to parse.
const MaxKey = 8 << 10

// maxKey is the maximum length of a private key in bytes. Quorate's own keys take a few hundred bytes. It takes most of
// a minute to parse an RSA key of 32 KiB, and eight times as long to parse a key of MaxPEM bytes.
const maxKey = 2 << 10

// maxCAKey is the maximum length of a CA's private key in bytes, and maxRSABits the maximum size of an RSA key. Signing
// with a longer key, or with one that has more than two primes, can take seconds, and a pass signs several
// certificates.
const (
	maxCAKey   = 4 << 10
	maxRSABits = 4096
)

// CheckLength returns an error if text is too long to be parsed.
func CheckLength(text []byte) error {
	if len(text) > MaxPEM {
		return fmt.Errorf("it is longer than %d KiB, more than any certificate or key that Quorate creates", MaxPEM>>10)
	}
	return nil
}

// ParseCertificates parses text that consists of one or more PEM certificates and nothing else. crypto/x509 skips
// unknown content, but etcd refuses to start with it.
func ParseCertificates(text []byte) ([]*x509.Certificate, error) {
	blocks, err := parseBlocks(text, blockCertificate)
	if err != nil {
		return nil, err
	}
	certificates := make([]*x509.Certificate, 0, len(blocks))
	for i, block := range blocks {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("parse certificate %d: %w", i+1, err)
		}
		certificates = append(certificates, certificate)
	}
	return certificates, nil
}

// parseOwnKey parses a key that Quorate created.
func parseOwnKey(text PrivateKey, _ *x509.Certificate) (crypto.Signer, error) {
	if len(text) > maxKey {
		return nil, fmt.Errorf("the key is longer than %d KiB, more than any key that Quorate creates", maxKey>>10)
	}
	blocks, err := parseBlocks(text, blockKey)
	if err != nil {
		return nil, err
	}
	if len(blocks) != 1 {
		return nil, fmt.Errorf("expected one key, found %d", len(blocks))
	}
	key, err := x509.ParsePKCS8PrivateKey(blocks[0].Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse key: %w", err)
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the key is a %T, not an elliptic curve key", key)
	}
	return ec, nil
}

// parseAnyKey parses the RSA, ECDSA or Ed25519 key of a certificate, in any unencrypted PEM format that OpenSSL or Go
// writes.
func parseAnyKey(text PrivateKey, certificate *x509.Certificate) (crypto.Signer, error) {
	if len(text) > maxCAKey {
		return nil, fmt.Errorf("the key is longer than %d KiB", maxCAKey>>10)
	}
	if public, is := certificate.PublicKey.(*rsa.PublicKey); is && public.N.BitLen() > maxRSABits {
		return nil, fmt.Errorf("the RSA key has %d bits; the maximum is %d", public.N.BitLen(), maxRSABits)
	}
	blocks, err := parseBlocks(text, blockKey, blockRSAKey, blockECKey, blockECParameters)
	if err != nil {
		return nil, err
	}
	blocks = slices.DeleteFunc(blocks, func(b *pem.Block) bool { return b.Type == blockECParameters })
	if len(blocks) != 1 {
		return nil, fmt.Errorf("expected one key, found %d", len(blocks))
	}
	if err := checkRSAKey(blocks[0], certificate); err != nil {
		return nil, err
	}
	var key any
	switch blocks[0].Type {
	case blockRSAKey:
		key, err = x509.ParsePKCS1PrivateKey(blocks[0].Bytes)
	case blockECKey:
		key, err = x509.ParseECPrivateKey(blocks[0].Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(blocks[0].Bytes)
	}
	if err != nil {
		return nil, fmt.Errorf("parse key: %w", err)
	}
	signer, signs := key.(crypto.Signer)
	if !signs {
		return nil, fmt.Errorf("the key is a %T, which cannot sign", key)
	}
	return signer, nil
}

// checkRSAKey rejects an RSA key that has more than two primes, or does not belong to the certificate. crypto/x509
// would compute for seconds before it reports a long key.
func checkRSAKey(block *pem.Block, certificate *x509.Certificate) error {
	der := block.Bytes
	var wrapped struct { // RFC 5208
		Version   int
		Algorithm pkix.AlgorithmIdentifier
		Key       []byte
	}
	switch block.Type {
	case blockECKey:
		return nil
	case blockKey:
		if _, err := asn1.Unmarshal(der, &wrapped); err != nil {
			return fmt.Errorf("parse key: %w", err)
		}
		if !wrapped.Algorithm.Algorithm.Equal(rsaEncryption) {
			return nil
		}
		der = wrapped.Key
	}
	var key struct { // the beginning of an RSAPrivateKey, RFC 8017
		Version int
		Modulus *big.Int
	}
	public, is := certificate.PublicKey.(*rsa.PublicKey)
	switch _, err := asn1.Unmarshal(der, &key); {
	case err != nil:
		return fmt.Errorf("parse key: %w", err)
	case !is || key.Modulus.Cmp(public.N) != 0:
		return errors.New("the key does not match the certificate")
	case key.Version != 0:
		return errors.New("the RSA key has more than two primes")
	}
	return nil
}

var rsaEncryption = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1} // RFC 8017

// parseBlocks returns one or more PEM blocks of the given types. Only white space is allowed around the blocks.
func parseBlocks(text []byte, types ...string) ([]*pem.Block, error) {
	if err := CheckLength(text); err != nil {
		return nil, err
	}
	var blocks []*pem.Block
	for rest := bytes.TrimSpace(text); len(rest) > 0; {
		if !bytes.HasPrefix(rest, []byte("-----BEGIN ")) {
			return nil, fmt.Errorf("text found outside the PEM blocks")
		}
		before := bytes.Count(rest, []byte("-----BEGIN "))
		block, after := pem.Decode(rest)
		if block == nil || bytes.Count(after, []byte("-----BEGIN ")) != before-1 {
			return nil, fmt.Errorf("PEM block %d is malformed", len(blocks)+1)
		}
		if !slices.Contains(types, block.Type) {
			return nil, fmt.Errorf("PEM block %d is a %s, not a %s", len(blocks)+1, block.Type, types[0])
		}
		blocks = append(blocks, block)
		rest = bytes.TrimSpace(after)
	}
	if len(blocks) == 0 {
		return nil, fmt.Errorf("no PEM block found")
	}
	return blocks, nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) (PrivateKey, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: blockKey, Bytes: der}), nil
}
