package gittree

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/memory"

	"quorate.dev/quorate/gitsource/pack"
)

func put(t testing.TB, store storer.EncodedObjectStorer, kind plumbing.ObjectType, content string) plumbing.Hash {
	t.Helper()
	object := &plumbing.MemoryObject{}
	object.SetType(kind)
	if _, err := object.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	hash, err := store.SetEncodedObject(object)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func line(mode, name string, hash plumbing.Hash) string {
	return mode + " " + name + "\x00" + string(hash[:])
}

// TestMalformedTreesAreRejected checks that a tree that git would not write is rejected with an error that contains its
// path.
func TestMalformedTreesAreRejected(t *testing.T) {
	store := memory.NewStorage()
	blob := put(t, store, plumbing.BlobObject, "x")
	for _, c := range []struct{ name, tree, want string }{
		{"twice", line("100644", "a", blob) + line("100644", "a", blob), `contains "apps/a" twice`},
		{"a file and a directory", line("100644", "a", blob) + line("40000", "a", blob), `contains "apps/a" twice`},
		{"no name", line("100644", "", blob), "malformed tree: empty filename"},
		{"truncated", line("100644", "a", blob)[:20], "malformed tree: truncated object id"},
		{"no mode", " a\x00" + string(blob[:]), "malformed tree: malformed mode"},
		{"huge", strings.Repeat(line("100644", "a", blob), maxTreeBytes/28+1), "has too many entries: its listing is larger than 4 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			apps := put(t, store, plumbing.TreeObject, c.tree)
			tree := newTree(store, put(t, store, plumbing.TreeObject, line("40000", "apps", apps)))
			for _, err := range []error{second(fs.ReadDir(tree, "apps")), second(fs.ReadFile(tree, "apps/a"))} {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %s", err, c.want)
				}
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

func TestSubmodulesAndLinksAreNotFiles(t *testing.T) {
	store := memory.NewStorage()
	blob := put(t, store, plumbing.BlobObject, "../secret")
	tree := newTree(store, put(t, store, plumbing.TreeObject,
		line("160000", "module", blob)+line("10000", "pipe", blob)+line("120000", "link", blob)))
	for name, kind := range map[string]fs.FileMode{"module": fs.ModeIrregular, "pipe": fs.ModeIrregular, "link": fs.ModeSymlink} {
		info, err := fs.Stat(tree, name)
		if err != nil || info.Mode().Type() != kind {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		if _, err := fs.ReadFile(tree, name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
		if _, err := fs.ReadFile(tree, name+"/x"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: error %v", name, err)
		}
		if _, err := tree.ReadLink(name); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestDeepTreesAreBounded checks that deeply nested directories can be read, and that the number of listed entries is
// limited if every directory contains the same subdirectory twice.
func TestDeepTreesAreBounded(t *testing.T) {
	store := memory.NewStorage()
	hash := put(t, store, plumbing.TreeObject, line("100644", "file", put(t, store, plumbing.BlobObject, "x")))
	const depth = 500
	for range depth {
		hash = put(t, store, plumbing.TreeObject, line("40000", "a", hash)+line("40000", "b", hash))
	}
	tree := newTree(store, hash)
	content, err := fs.ReadFile(tree, strings.Repeat("a/", depth)+"file")
	if err != nil || string(content) != "x" {
		t.Errorf("%q, %v", content, err)
	}
	if entries, err := fs.ReadDir(tree, "b/a/b"); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
	tree.root.objects.maxShown = 1000
	refused := 0
	err = fs.WalkDir(tree, ".", func(_ string, _ fs.DirEntry, err error) error {
		if err != nil {
			refused++
		}
		return nil
	})
	const want = "is not read: more than 1000 files and directories have been listed; name a smaller path"
	if _, listError := fs.ReadDir(tree, "."); err != nil || refused == 0 || refused > 2*1000 || listError == nil || listError.Error() != want {
		t.Errorf("%v, %d directories are refused, and then %v", err, refused, listError)
	}
}

// tooLarge is a store that leaves out files because of their size.
type tooLarge struct{ *memory.Storage }

func (tooLarge) EncodedObjectSize(plumbing.Hash) (int64, error) { return 0, pack.ErrTooLarge }

func TestFilteredFileCountsAsTooLarge(t *testing.T) {
	store := memory.NewStorage()
	tree := newTree(tooLarge{store}, put(t, store, plumbing.TreeObject, line("100644", "a", plumbing.Hash{1})))
	info, err := fs.Stat(tree, "a")
	if err != nil || info.Size() != math.MaxInt64 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestImplausibleCommitTimesAreIgnored checks that a commit's time is used only if it is plausible.
func TestImplausibleCommitTimesAreIgnored(t *testing.T) {
	store := memory.NewStorage()
	tree := put(t, store, plumbing.TreeObject, "").String()
	for committer, want := range map[string]int64{
		"committer a <a@example.com> 1793534400 +0100": 1793534400, "committer a <a@example.com> 253402300799 +0000": 253402300799,
		"committer a <a@example.com> 253402300800 +0000": 0, "committer a <a@example.com> -1 +0000": 0, "committer a <a@example.com> 9223372036854775807 +0000": 0,
		"committer a <a@example.com> x +0000": 0, "committer a": 0, "author a <a@example.com> 1793534400 +0000": 0,
	} {
		_, got, err := Open(store, put(t, store, plumbing.CommitObject, "tree "+tree+"\n"+committer+"\n\nx\n"))
		if err != nil || got.Committed != want {
			t.Errorf("%q: %d, %v; want %d", committer, got.Committed, err, want)
		}
	}
}

func TestTagsResolveToCommits(t *testing.T) {
	store := memory.NewStorage()
	commit := put(t, store, plumbing.CommitObject, "tree "+put(t, store, plumbing.TreeObject, "").String()+"\n\nx\n")
	tag := func(kind string, hash plumbing.Hash) plumbing.Hash {
		return put(t, store, plumbing.TagObject, fmt.Sprintf("object %s\ntype %s\ntag v\x1b[31m1\ntagger a <a@example.com> 0 +0000\n\nx\n", hash, kind))
	}
	tags := []plumbing.Hash{tag("commit", commit)}
	for range 11 {
		tags = append(tags, tag("tag", tags[len(tags)-1]))
	}
	if _, got, err := Open(store, tags[9]); err != nil || got.Hash != commit {
		t.Errorf("%s, %v; want %s", got.Hash, err, commit)
	}
	for want, hash := range map[string]plumbing.Hash{
		"tags of tags are nested more than 10 deep":              tags[11],
		`the tag "v\x1b[31m1" points to a blob, not to a commit`: tag("blob", commit),
		"object not found": tag("commit", plumbing.Hash{1}),
	} {
		if _, _, err := Open(store, hash); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// FuzzTree checks that reading any tree returns either a valid directory or an error.
func FuzzTree(f *testing.F) {
	hash := plumbing.Hash{1}
	f.Add([]byte(line("100644", "a.yaml", hash) + line("40000", "b", hash)))
	f.Add([]byte(line("120000", "..", hash)))
	f.Add([]byte(line("100644", ".git", hash)[:15]))
	f.Add([]byte(line("7777777777777777", "a", hash)))
	f.Fuzz(func(t *testing.T, content []byte) {
		store := memory.NewStorage()
		tree := newTree(store, put(t, store, plumbing.TreeObject, string(content)))
		entries, err := fs.ReadDir(tree, ".")
		if err != nil {
			return
		}
		for _, e := range entries {
			if !fs.ValidPath(e.Name()) || strings.Contains(e.Name(), "/") || e.Name() == "." {
				if _, err := fs.ReadFile(tree, e.Name()); err == nil {
					t.Errorf("%q was opened", e.Name())
				}
				continue
			}
			info, err := fs.Stat(tree, e.Name())
			if err != nil || info.Name() != e.Name() || info.Mode().Type() != e.Type() {
				t.Errorf("%q: %v, %v", e.Name(), info, err)
			}
		}
	})
}
