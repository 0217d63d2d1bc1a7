package cache

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

func blob(content string) plumbing.EncodedObject {
	object := &plumbing.MemoryObject{}
	object.SetType(plumbing.BlobObject)
	_, _ = object.Write([]byte(content))
	return object
}

func objectsOf(contents ...string) *Objects {
	objects := newObjects()
	for _, c := range contents {
		objects.add(blob(c))
	}
	return objects
}

// TestEveryByteCounts checks that every returned object still hashes to its name if any byte of an entry changes, or if
// the entry is truncated anywhere.
func TestEveryByteCounts(t *testing.T) {
	d, err := Open(filepath.Join(t.TempDir(), "cache"))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Store("x", objectsOf("one", "two\n", "")); err != nil {
		t.Fatal(err)
	}
	name := d.entry("x")
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		other := bytes.Clone(good)
		other[i] ^= 1 << (i % 8)
		for _, content := range [][]byte{good[:i], other} {
			objects, err := decode(bytes.NewReader(content))
			if err != nil {
				continue
			}
			for hash, object := range objects.byHash {
				whole := object.(*plumbing.MemoryObject)
				r, _ := whole.Reader()
				var kept bytes.Buffer
				if _, err := kept.ReadFrom(r); err != nil || plumbing.ComputeHash(whole.Type(), kept.Bytes()) != hash {
					t.Errorf("%s does not hash to its name", hash)
				}
			}
			if bytes.Equal(content, other) {
				t.Errorf("byte %d does not count", i)
			}
		}
	}
}

func TestCacheReportsMiss(t *testing.T) {
	objects := objectsOf("a")
	if _, err := objects.EncodedObject(plumbing.BlobObject, blob("a").Hash()); err != nil || objects.Missed() {
		t.Errorf("%v, %v", err, objects.Missed())
	}
	if _, err := objects.EncodedObject(plumbing.TagObject, blob("a").Hash()); err == nil || objects.Missed() {
		t.Errorf("%v, %v: it is there, and no tag", err, objects.Missed())
	}
	if _, err := objects.EncodedObjectSize(blob("b").Hash()); err == nil || !objects.Missed() {
		t.Errorf("%v, %v", err, objects.Missed())
	}
}

// TestOldEntriesAreRemoved checks that the least recently used entries and abandoned files are removed. Files that do
// not belong to the cache are kept.
func TestOldEntriesAreRemoved(t *testing.T) {
	d, err := Open(filepath.Join(t.TempDir(), "cache"))
	if err != nil {
		t.Fatal(err)
	}
	age := func(name string, by time.Duration) {
		if err := os.Chtimes(name, time.Now().Add(-by), time.Now().Add(-by)); err != nil {
			t.Fatal(err)
		}
	}
	file := func(name string, by time.Duration) string {
		name = filepath.Join(d.path, name)
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		age(name, by)
		return name
	}
	begun, given := file(".1"+suffix, time.Minute), file(".2"+suffix, 2*abandoned)
	foreign := file("README", 1000*abandoned)
	for i := range maxEntries {
		file(fmt.Sprintf("%d%s", i, suffix), time.Duration(i+1)*time.Hour)
	}
	oldest, second := filepath.Join(d.path, fmt.Sprintf("%d%s", maxEntries-1, suffix)), filepath.Join(d.path, fmt.Sprintf("%d%s", maxEntries-2, suffix))
	if err := d.Store("x", objectsOf("x")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{begun: true, given: false, foreign: true, oldest: false, second: true, d.entry("x"): true} {
		if _, err := os.Stat(name); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", name, err, want)
		}
	}
	age(second, 0) // as Touch does
	if err := d.Store("y", objectsOf("y")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(second); err != nil {
		t.Error(err)
	}
}

func TestCacheEntriesArePrivate(t *testing.T) {
	d, err := Open(filepath.Join(t.TempDir(), "cache"))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Store("https://example.com/x.git", objectsOf("x")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{d.path: 0o700, d.entry("https://example.com/x.git"): 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want || strings.Contains(name, "example") {
			t.Errorf("%v, %v; want %v", info, err, want)
		}
	}
}

// TestTouch checks that touching an entry renews its time and keeps its content.
func TestTouch(t *testing.T) {
	d, err := Open(filepath.Join(t.TempDir(), "cache"))
	if err != nil {
		t.Fatal(err)
	}
	d.Touch("x") // the entry does not exist yet
	if err := d.Store("x", objectsOf("x")); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(d.entry("x"))
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(d.entry("x"), old, old); err != nil {
		t.Fatal(err)
	}
	d.Touch("x")
	info, err := os.Stat(d.entry("x"))
	if err != nil || time.Since(info.ModTime()) > time.Minute {
		t.Errorf("%v, error %v", info, err)
	}
	if after, err := os.ReadFile(d.entry("x")); err != nil || !bytes.Equal(after, before) {
		t.Errorf("it holds %q, and held %q, error %v", after, before, err)
	}
}
