package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSums checks that the checksums have the format of sha256sum, and that changed, missing and added files are
// reported.
func TestSums(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("b", "two")
	write("a", "one")
	if err := writeSums(dir); err != nil {
		t.Fatal(err)
	}
	if got, want := readFile(t, filepath.Join(dir, sumsFile)), fmt.Sprintf("%x  a\n%x  b\n", sha256.Sum256([]byte("one")), sha256.Sum256([]byte("two"))); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	write(sumsFile+".minisig", "signed")
	if err := checkSums(dir); err != nil {
		t.Error(err)
	}
	write("a", "1")
	write("c", "three")
	if err := os.Remove(filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	err := checkSums(dir)
	for _, want := range []string{"no file matches the listed checksum: " + fmt.Sprintf("%x  a", sha256.Sum256([]byte("one"))), "  b", "does not list this file: ", "  c"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
