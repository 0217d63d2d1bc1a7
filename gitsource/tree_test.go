package gitsource

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	gitobject "github.com/go-git/go-git/v5/plumbing/object"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/refs"
)

// TestLinksAreNotFollowed checks that symbolic links and submodules are not followed. They are reported as problems if
// they are below the path, and as an error if the path names a link or a submodule.
func TestLinksAreNotFollowed(t *testing.T) {
	r := newRepository(t)
	r.Write("secret/a.yaml", gittest.ClusterNamed("secret"))
	r.Write("apps/a.yaml", gittest.ClusterNamed("a"))
	for link, target := range map[string]string{"apps/file.yaml": "../secret/a.yaml", "apps/dir": "../secret", "link": "apps", "apps/etc": "/etc"} {
		if err := os.Symlink(target, filepath.Join(r.Dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	head := r.Commit()
	r.Git("update-index", "--add", "--cacheinfo", "160000,"+head+",apps/module")
	r.Git("commit", "--quiet", "--message=x")

	desired, err := Fetch(t.Context(), Options{Location: r.Dir, Options: manifests.Options{Path: "apps"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range desired.Problems {
		got = append(got, p.String())
	}
	want := "apps/dir: is a symbolic link, which is not followed\napps/etc: is a symbolic link, which is not followed\n" +
		"apps/file.yaml: is a symbolic link, which is not followed\napps/module: is a submodule, which is not followed"
	if strings.Join(got, "\n") != want {
		t.Errorf("problems\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	wantError(t, Options{Location: r.Dir, Options: manifests.Options{Path: "link"}}, ErrSource, "link is a symbolic link, not a directory")
	wantError(t, Options{Location: r.Dir, Options: manifests.Options{Path: "apps/module"}}, ErrSource, "apps/module is a submodule, not a directory")

	plain := t.TempDir()
	if err := os.CopyFS(filepath.Join(plain, "x"), os.DirFS(filepath.Join(r.Dir, "secret"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("x", filepath.Join(plain, "link")); err != nil {
		t.Fatal(err)
	}
	wantError(t, Options{Location: plain, Options: manifests.Options{Path: "link"}}, ErrSource, "link is a symbolic link, not a directory")
}

// TestKustomizeFollowsNoLinks checks that kustomizations cannot follow links either.
func TestKustomizeFollowsNoLinks(t *testing.T) {
	r := newRepository(t)
	r.Write("apps/kustomization.yaml", "resources: [a.yaml, dir]\n")
	r.Write("secret/a.yaml", gittest.ClusterNamed("secret"))
	r.Write("secret/kustomization.yaml", "resources: [a.yaml]\n")
	for link, target := range map[string]string{"apps/a.yaml": "../secret/a.yaml", "apps/dir": "../secret"} {
		if err := os.Symlink(target, filepath.Join(r.Dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	r.Commit()
	desired, err := Fetch(t.Context(), Options{Location: r.Dir, Options: manifests.Options{Path: "apps"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(desired.Clusters) > 0 || len(desired.Problems) != 2 {
		t.Errorf("clusters %v, problems %v", desired.Clusters, desired.Problems)
	}
}

func TestTreeImplementsFS(t *testing.T) {
	r := newRepository(t)
	r.Write("a/b/c.yaml", "x")
	r.Write("a/d.yaml", "")
	r.Write("e f.yaml", "y")
	r.Commit()
	repo := mustOpen(t, r.Dir)
	files, _, err := openCommit(repo.Storer, refs.Revision{Commit: r.Git("rev-parse", "HEAD")}, Options{Location: r.Dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(files, "a/b/c.yaml", "a/d.yaml", "e f.yaml"); err != nil {
		t.Error(err)
	}
}

// unusual lists names that git can store but that a file system, a terminal or a report may not accept.
var unusual = []string{
	"..", ".", "a/b", "/etc", `a\b`, "a\nb", "Icon\r", "\x1b[31m", "caf\xe9", "\xff", ".git", ".GIT", "git~1", "GIT~1", ".git. ",
	".git::$INDEX_ALLOCATION", "a\u200cb", strings.Repeat("long", 2000),
}

// withEntries commits the root, or its directory dir, with additional entries, and returns the commit.
func (r *repository) withEntries(t *testing.T, dir string, added ...gitobject.TreeEntry) string {
	t.Helper()
	repo := mustOpen(t, r.Dir)
	commit, err := repo.CommitObject(plumbing.NewHash(r.Git("rev-parse", "HEAD")))
	if err != nil {
		t.Fatal(err)
	}
	tree := func(of string, added ...gitobject.TreeEntry) plumbing.Hash {
		read, err := repo.TreeObject(plumbing.NewHash(r.Git("rev-parse", of)))
		if err != nil {
			t.Fatal(err)
		}
		read.Entries = append(slices.DeleteFunc(read.Entries, func(e gitobject.TreeEntry) bool { return e.Name == added[0].Name }), added...)
		sort.Sort(gitobject.TreeEntrySorter(read.Entries))
		return store(t, repo, read)
	}
	if dir != "." {
		added = []gitobject.TreeEntry{{Name: dir, Mode: filemode.Dir, Hash: tree("HEAD:"+dir, added...)}}
	}
	commit.TreeHash = tree("HEAD^{tree}", added...)
	return store(t, repo, commit).String()
}

// TestUnusualFileNamesMatterOnlyIfRead checks that an unusual name matters only if a file with that name would be read.
func TestUnusualFileNamesMatterOnlyIfRead(t *testing.T) {
	r := newRepository(t)
	r.Write("apps/a.yaml", gittest.ClusterNamed("a"))
	r.Write("kustomized/kustomization.yaml", "resources: [../apps/a.yaml]\n")
	r.Commit()
	file, directory := plumbing.NewHash(r.Git("rev-parse", "HEAD:apps/a.yaml")), plumbing.NewHash(r.Git("rev-parse", "HEAD:apps"))
	read := func(path, dir string, added ...gitobject.TreeEntry) Desired {
		o := Options{Location: r.Dir, Options: manifests.Options{Path: path}}
		o.Selector.Commit = r.withEntries(t, dir, added...)
		return fetched(t, new(Reader), o)
	}
	var files, directories []gitobject.TreeEntry
	for _, name := range unusual {
		files = append(files, gitobject.TreeEntry{Name: name, Mode: filemode.Regular, Hash: file})
		directories = append(directories, gitobject.TreeEntry{Name: name, Mode: filemode.Dir, Hash: directory})
	}
	for path, dir := range map[string]string{"apps": ".", "kustomized": "kustomized"} {
		wantClusters(t, read(path, dir, files...), "a")
		wantClusters(t, read(path, dir, directories...), "a")
	}
	wantClusters(t, read("apps", "apps", files...), "a")

	for _, mattering := range []func(name string) gitobject.TreeEntry{
		func(name string) gitobject.TreeEntry {
			return gitobject.TreeEntry{Name: name + ".yaml", Mode: filemode.Regular, Hash: file}
		},
		func(name string) gitobject.TreeEntry {
			return gitobject.TreeEntry{Name: "x.yml" + name, Mode: filemode.Regular, Hash: file}
		},
		func(name string) gitobject.TreeEntry {
			return gitobject.TreeEntry{Name: name, Mode: filemode.Dir, Hash: directory}
		},
		func(name string) gitobject.TreeEntry {
			return gitobject.TreeEntry{Name: name, Mode: filemode.Symlink, Hash: file}
		},
	} {
		var added []gitobject.TreeEntry
		want := map[string]bool{}
		for _, name := range []string{"a/b", `a\b`, "a\nb", "Icon\r", "\x1b[31m", "caf\xe9", "\xff", "a\u200cb"} {
			added = append(added, mattering(name))
			want["apps: contains "+strconv.Quote(mattering(name).Name)+", which has an unsupported name; rename it"] = true
		}
		got := read("apps", "apps", added...)
		for _, p := range got.Problems {
			if !want[p.String()] {
				t.Errorf("%q", p)
			}
		}
		if len(got.Problems) != len(want) || len(got.Clusters) != 1 {
			t.Errorf("clusters %d, problems %d, want %d", len(got.Clusters), len(got.Problems), len(want))
		}
		if got := read("apps", "apps", mattering(strings.Repeat("long", 2000))); len(got.Problems) != 1 || len(got.Problems[0].Message) > 400 {
			t.Errorf("problems %q", got.Problems)
		}
	}
}

// TestUnusualFileNamesInPlainDirectory checks that unusual names in a directory that is not a repository are treated
// the same way.
func TestUnusualFileNamesInPlainDirectory(t *testing.T) {
	dir := t.TempDir()
	gittest.MustWrite(t, filepath.Join(dir, "a.yaml"), gittest.ClusterNamed("a"))
	for _, name := range []string{`a\b`, "Icon\r", "caf\xe9", "git~1", ".git"} {
		gittest.MustWrite(t, filepath.Join(dir, name), "x")
		if name == ".git" { // in a subdirectory, as file managers leave it
			if err := errors.Join(os.Remove(filepath.Join(dir, name)), os.MkdirAll(filepath.Join(dir, "below", name), 0o700)); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantClusters(t, fetched(t, new(Reader), Options{Location: dir}), "a")
	gittest.MustWrite(t, filepath.Join(dir, "caf\xe9.yaml"), "x")
	got := fetched(t, new(Reader), Options{Location: dir})
	if len(got.Problems) != 1 || got.Problems[0].String() != `.: contains "caf\xe9.yaml", which has an unsupported name; rename it` {
		t.Errorf("problems %q", got.Problems)
	}
}
