package pki

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// Fingerprint returns the SHA-256 fingerprint of a PEM certificate, as printed by "openssl x509 -noout -fingerprint
// -sha256". It returns "" unless there is exactly one certificate.
func Fingerprint(certificate []byte) string {
	if list := Fingerprints(certificate); len(list) == 1 {
		return list[0]
	}
	return ""
}

// Fingerprints returns the fingerprints of all PEM certificates, or nil if they cannot be parsed.
func Fingerprints(certificates []byte) []string {
	list, err := ParseCertificates(certificates)
	if err != nil {
		return nil
	}
	var prints []string
	for _, certificate := range list {
		sum := fmt.Sprintf("% X", sha256.Sum256(certificate.Raw))
		prints = append(prints, strings.ReplaceAll(sum, " ", ":"))
	}
	return prints
}
