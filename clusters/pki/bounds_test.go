package pki_test

import (
	"bytes"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/pki"
)

// TestLongPEMIsRejected checks that long PEM data is rejected. A Secret can contain up to a mebibyte, and certificates
// or a key of that length take minutes to parse.
func TestLongPEMIsRejected(t *testing.T) {
	const block = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"
	start := time.Now()
	_, err := pki.ParseCertificates(bytes.Repeat([]byte(block), 1<<20/len(block)))
	if err == nil || !strings.Contains(err.Error(), "longer than 64 KiB") {
		t.Errorf("got %v", err)
	}
	t.Logf("took %s", time.Since(start))
}

// TestLongKeyIsRejected checks that a long key is rejected. An RSA key of 32 KiB takes most of a minute to parse if it
// omits the precomputed values.
func TestLongKeyIsRejected(t *testing.T) {
	ca, err := pki.NewCA("a", "ns", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	block := &pem.Block{Type: "PRIVATE KEY", Bytes: make([]byte, 8<<10)}
	_, err = pki.ReadCA(pki.Pair{Certificate: ca.Pair().Certificate, Key: pem.EncodeToMemory(block)}, time.Now())
	if err == nil || !strings.Contains(err.Error(), "the key is longer than 4 KiB") {
		t.Errorf("got %v", err)
	}
}
