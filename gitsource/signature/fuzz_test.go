package signature

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

var signedCases = []string{"commit_ssh_ed25519", "commit_ssh_ecdsa", "commit_pgp_pgp", "tag_ed25519", "tag_pgp"}

func verifyCase(keys Keys, name string, object []byte, now time.Time) (Signer, error) {
	if kind, signer, _ := strings.Cut(name, "_"); kind == "tag" {
		return keys.Tag(object, "v1.0.0-"+signer, now)
	}
	return keys.Commit(object, now)
}

// meaning returns everything that matters in a signed object: the signed content, and the signature without its armor
// and without the unsigned parts of a PGP signature, which must be ignored. Two objects with the same meaning have the
// same signature.
func meaning(t testing.TB, name string, object []byte) string {
	t.Helper()
	parsed, err := parseCommit(object)
	if strings.HasPrefix(name, "tag") {
		var tag tagObject
		tag, err = parseTag(object)
		parsed = tag.signed
	}
	if err != nil {
		t.Fatalf("verified, but not parsed: %v", err)
	}
	if block, _ := pem.Decode(parsed.signature); block != nil && strings.HasPrefix(block.Type, "SSH") {
		return fmt.Sprintf("%q %q", parsed.payload, block.Bytes)
	}
	signature, _, err := readPGP(parsed.signature)
	if err != nil {
		t.Fatalf("verified, but not read: %v", err)
	}
	said := fmt.Sprintf("%q %q", parsed.payload, signature.HashSuffix)
	for _, number := range []interface{ Bytes() []byte }{signature.EdDSASigR, signature.EdDSASigS, signature.RSASignature} {
		if number != nil {
			said += fmt.Sprintf(" %q", number.Bytes())
		}
	}
	return said
}

// TestEveryBit checks that verification fails if any bit of a signed object is flipped, except for bits of the armor
// that have no effect.
func TestEveryBit(t *testing.T) {
	for _, name := range signedCases {
		t.Run(name, func(t *testing.T) {
			object, keys, now := genuine(t, name)
			if _, err := verifyCase(keys, name, object, now); err != nil {
				t.Fatal(err)
			}
			want := meaning(t, name, object)
			from, to := bytes.Index(object, []byte("-----BEGIN")), bytes.Index(object, []byte("-----END"))
			survived := 0
			for i := range object {
				for bit := range 8 {
					changed := bytes.Clone(object)
					changed[i] ^= 1 << bit
					if _, err := verifyCase(keys, name, changed, now); err != nil {
						continue
					}
					survived++
					if i < from || i > to {
						t.Errorf("byte %d, bit %d, outside of the signature, is changed and verifies:\n%q", i, bit, changed)
					}
					if meaning(t, name, changed) != want {
						t.Errorf("byte %d, bit %d, is changed and verifies:\n%q", i, bit, changed)
					}
				}
			}
			t.Logf("%d of %d changes mean nothing", survived, 8*len(object))
		})
	}
}

// FuzzVerify checks, for any object, that nothing panics, that only signed content verifies, and that go-git, which
// reads the files, reads an unambiguous object in the same way.
func FuzzVerify(f *testing.F) {
	for _, archive := range readCases(f) {
		f.Add([]byte(fileIn(archive, "object")))
	}
	signed := map[string]bool{}
	_, keys, now := genuine(f, "commit_pgp_pgp")
	for name := range readCases(f) {
		object := []byte(fileIn(readArchive(f, filepath.Join(archivesDir, name+".txtar")), "object"))
		if _, err := verifyCase(keys, name, object, now); err == nil {
			signed[meaning(f, name, object)] = true
		}
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		for _, name := range []string{"commit", "tag_pgp", "tag_ed25519"} {
			if _, err := verifyCase(keys, name, object, now); err == nil && !signed[meaning(t, name, object)] {
				t.Errorf("forged: %q", object)
			}
		}
		checkReadAlike(t, object)
	})
}

// checkReadAlike checks that go-git and this package read the same tree from a commit, and the same name and target from a tag.
func checkReadAlike(t *testing.T, raw []byte) {
	t.Helper()
	stored := &plumbing.MemoryObject{}
	if _, err := stored.Write(raw); err != nil {
		t.Fatal(err)
	}
	if _, err := parseCommit(raw); err == nil {
		stored.SetType(plumbing.CommitObject)
		var commit object.Commit
		if err := commit.Decode(stored); err != nil || !bytes.HasPrefix(raw, []byte("tree "+commit.TreeHash.String()+"\n")) {
			t.Errorf("go-git reads the tree %s, %v in %q", commit.TreeHash, err, raw)
		}
	}
	if tag, err := parseTag(raw); err == nil {
		stored.SetType(plumbing.TagObject)
		var read object.Tag
		if err := read.Decode(stored); err != nil || read.Target.String() != tag.target || read.Name != tag.name {
			t.Errorf("go-git reads a tag %s of %s, %v in %q", read.Name, read.Target, err, raw)
		}
	}
}

// FuzzKeys checks, for any key file, that nothing panics, and that keys or an error are returned.
func FuzzKeys(f *testing.F) {
	for _, file := range readArchive(f, filepath.Join(archivesDir, "keys.txtar")).Files {
		f.Add(file.Name, file.Data)
	}
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		var keys Keys
		if err := keys.parse(name, content); err == nil && keys.Empty() {
			t.Errorf("no keys in %s: %q", name, content)
		}
	})
}
