package gitsource

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"testing/fstest"

	gitobject "github.com/go-git/go-git/v5/plumbing/object"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/refs"
)

// Symbolic links and submodules are not followed: below the path they are problems, and the
// path itself does not lead through them.
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

// A kustomization does not see through links either.
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

func TestTreeIsAFileSystem(t *testing.T) {
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

// Git can store names that are no names of files. Nothing below such a tree is read.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{"..", ".", "a/b", `a\b`, "a\nb.yaml", "\x1b[31m.yaml", "\xff.yaml", ".git", ".GIT", "git~1", "GIT~1", ".git. ", ".git::$INDEX_ALLOCATION", "a\u200cb"} {
		r := newRepository(t)
		r.Declare("a")
		repo := mustOpen(t, r.Dir)
		head, err := repo.Head()
		if err != nil {
			t.Fatal(err)
		}
		commit, err := repo.CommitObject(head.Hash())
		if err != nil {
			t.Fatal(err)
		}
		tree, err := commit.Tree()
		if err != nil {
			t.Fatal(err)
		}
		hostile := gitobject.Tree{Entries: append(tree.Entries, gitobject.TreeEntry{Name: name, Mode: tree.Entries[0].Mode, Hash: tree.Entries[0].Hash})}
		sort.Sort(gitobject.TreeEntrySorter(hostile.Entries))
		commit.TreeHash = store(t, repo, &hostile)
		wantError(t, Options{Location: r.Dir, Selector: refs.Selector{Commit: store(t, repo, commit).String()}}, ErrSource, fmt.Sprintf("holds %q, which is no name of a file", name))
	}
}
