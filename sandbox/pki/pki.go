// Package pki manages the certificates of a sandbox: a certificate authority, a server certificate for each server, a
// client certificate for each identity, and the key that signs service account tokens. It keeps existing files and
// creates missing files.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const lifetime = 10 * 365 * 24 * time.Hour

// Store is a directory of certificates and keys.
type Store struct {
	Dir string
}

// Pair is a certificate and its key, PEM-encoded.
type Pair struct {
	Certificate, Key string
}

// Authority returns the certificate authority that signs all other certificates.
func (s Store) Authority() (Pair, error) {
	return s.keep("ca", &x509.Certificate{
		Subject:               pkix.Name{CommonName: "quorate-sandbox"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	})
}

// Client returns the client certificate of an API server user.
func (s Store) Client(file, user string, groups ...string) (Pair, error) {
	return s.keep(file, &x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// Server returns the certificate of a server, which is valid for all of its names and addresses.
func (s Store) Server(file string, names, addresses []string) (Pair, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: file},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    names,
	}
	for _, address := range addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
	}
	return s.keep(file, template)
}

// ServiceAccount returns the key pair for service account tokens. Its Certificate is a public key.
func (s Store) ServiceAccount() (Pair, error) {
	if pair, err := s.read("service-account"); err == nil || !errors.Is(err, os.ErrNotExist) {
		return pair, err
	}
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return Pair{}, fmt.Errorf("encode the service account key: %w", err)
	}
	return s.write("service-account", "PUBLIC KEY", public, key)
}

func (s Store) keep(file string, template *x509.Certificate) (Pair, error) {
	if pair, err := s.read(file); err == nil || !errors.Is(err, os.ErrNotExist) {
		return pair, err
	}
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	parent, signer := template, crypto.Signer(key)
	if !template.IsCA {
		if parent, signer, err = s.authority(); err != nil {
			return Pair{}, err
		}
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return Pair{}, fmt.Errorf("generate a serial number: %w", err)
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = template.NotBefore.Add(lifetime)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return Pair{}, fmt.Errorf("sign certificate %s: %w", file, err)
	}
	return s.write(file, "CERTIFICATE", der, key)
}

func (s Store) authority() (*x509.Certificate, crypto.Signer, error) {
	pair, err := s.Authority()
	if err != nil {
		return nil, nil, err
	}
	certificate, _ := pem.Decode([]byte(pair.Certificate))
	key, _ := pem.Decode([]byte(pair.Key))
	if certificate == nil || key == nil {
		return nil, nil, fmt.Errorf("decode the CA in %s: the file is not PEM", s.Dir)
	}
	parsed, err := x509.ParseCertificate(certificate.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("parse the CA certificate: %w", err)
	}
	signer, err := x509.ParseECPrivateKey(key.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("parse the CA key: %w", err)
	}
	return parsed, signer, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a key: %w", err)
	}
	return key, nil
}

func (s Store) path(file, kind string) string { return filepath.Join(s.Dir, file+"."+kind) }

func (s Store) read(file string) (Pair, error) {
	certificate, err := os.ReadFile(s.path(file, "crt"))
	if err != nil {
		return Pair{}, fmt.Errorf("read certificate: %w", err)
	}
	key, err := os.ReadFile(s.path(file, "key"))
	if err != nil {
		return Pair{}, fmt.Errorf("read key: %w", err)
	}
	return Pair{Certificate: string(certificate), Key: string(key)}, nil
}

// write atomically writes the key and then the certificate, so that a certificate never exists without its key.
func (s Store) write(file, kind string, der []byte, key *ecdsa.PrivateKey) (Pair, error) {
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode key %s: %w", file, err)
	}
	pair := Pair{
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})),
		Key:         string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})),
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return Pair{}, fmt.Errorf("create the directory of certificates: %w", err)
	}
	for _, part := range []struct{ kind, content string }{{"key", pair.Key}, {"crt", pair.Certificate}} {
		path := s.path(file, part.kind)
		if err := os.WriteFile(path+".new", []byte(part.content), 0o600); err != nil {
			return Pair{}, fmt.Errorf("write %s: %w", path, err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			return Pair{}, fmt.Errorf("write %s: %w", path, err)
		}
	}
	return pair, nil
}
