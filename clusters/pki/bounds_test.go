package pki_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/pki"
)

// TestLongPEM: a Secret holds up to a mebibyte, and reading that much as certificates, or as one
// key, takes a processor minutes.
func TestLongPEM(t *testing.T) {
	const block = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"
	start := time.Now()
	_, err := pki.ParseCertificates(bytes.Repeat([]byte(block), 1<<20/len(block)))
	if err == nil || !strings.Contains(err.Error(), "longer than 64 KiB") {
		t.Errorf("got %v", err)
	}
	t.Logf("took %s", time.Since(start))
}
