package pki

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// Fingerprint is the SHA-256 fingerprint of a certificate in PEM, as "openssl x509 -noout
// -fingerprint -sha256" prints it; empty if there is not exactly one.
func Fingerprint(certificate []byte) string {
	if list := Fingerprints(certificate); len(list) == 1 {
		return list[0]
	}
	return ""
}

// Fingerprints are those of all certificates in PEM; none if they cannot be read.
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
