package gitsource

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quorate.dev/quorate/gitsource/gittest"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/refs"
)

// repository is a real repository, created with git.
type repository struct{ *gittest.Repository }

func newRepository(t testing.TB, args ...string) *repository {
	t.Helper()
	return &repository{gittest.NewRepository(t, args...)}
}

func revisions(t *testing.T) (r *repository, commits map[string]string) {
	t.Helper()
	made, commits := gittest.Revisions(t)
	return &repository{made}, commits
}

const secret = gittest.Secret

func TestFetchSelectsRevision(t *testing.T) {
	r, commits := revisions(t)
	reluctant := r.Serve()
	for where, location := range map[string]string{"local": r.Dir, "http": reluctant} {
		for name, c := range map[string]struct {
			o        Options
			cluster  string
			revision string
		}{
			"HEAD":            {Options{}, "main", "main@sha1:" + commits["main"]},
			"branch":          {Options{Selector: refs.Selector{Branch: "main"}}, "main", "main@sha1:" + commits["main"]},
			"branch with /":   {Options{Selector: refs.Selector{Branch: "feature/x"}}, "feature", "feature/x@sha1:" + commits["feature"]},
			"tag":             {Options{Selector: refs.Selector{Tag: "light"}}, "tagged", "light@sha1:" + commits["tagged"]},
			"annotated tag":   {Options{Selector: refs.Selector{Tag: "v1.0.0"}}, "tagged", "v1.0.0@sha1:" + commits["tagged"]},
			"tag of a tag":    {Options{Selector: refs.Selector{Tag: "again"}}, "tagged", "again@sha1:" + commits["tagged"]},
			"range":           {Options{Selector: refs.Selector{SemVer: "~1"}}, "tagged", "v1.0.0@sha1:" + commits["tagged"]},
			"full name":       {Options{Selector: refs.Selector{Name: "refs/pull/420/head"}}, "pull", "refs/pull/420/head@sha1:" + commits["pull"]},
			"commit at a tip": {Options{Selector: refs.Selector{Commit: commits["feature"]}}, "feature", "sha1:" + commits["feature"]},
			"commit below":    {Options{Selector: refs.Selector{Commit: strings.ToUpper(commits["old"])}}, "old", "sha1:" + commits["old"]},
		} {
			t.Run(where+"/"+name, func(t *testing.T) {
				c.o.Location = location
				desired, err := Fetch(t.Context(), c.o)
				if err != nil {
					t.Fatal(err)
				}
				if got := desired.Revision.String(); got != c.revision {
					t.Errorf("revision %s, want %s", got, c.revision)
				}
				if got, want := fmt.Sprint(desired.Revision.Committed), r.Git("log", "-1", "--format=%ct", desired.Revision.Commit); got != want {
					t.Errorf("committed at %s, want %s", got, want)
				}
				wantClusters(t, desired, c.cluster)
			})
		}
	}
}

func wantClusters(t *testing.T, desired Desired, names ...string) {
	t.Helper()
	var got []string
	for _, c := range desired.Clusters {
		got = append(got, c.Cluster.Name)
	}
	if strings.Join(got, " ") != strings.Join(names, " ") || len(desired.Problems) > 0 {
		t.Errorf("clusters %q, problems %v; want %q", got, desired.Problems, names)
	}
}

func TestMissingRevisionIsReported(t *testing.T) {
	r, _ := revisions(t)
	for where, location := range map[string]string{"local": r.Dir, "http": r.Serve()} {
		for name, c := range map[string]struct {
			o    Options
			want string
		}{
			"branch":        {Options{Selector: refs.Selector{Branch: "nope"}}, `branch "nope" not found`},
			"tag as branch": {Options{Selector: refs.Selector{Branch: "v1.0.0"}}, `branch "v1.0.0" not found`},
			"tag":           {Options{Selector: refs.Selector{Tag: "nope"}}, `tag "nope" not found`},
			"range":         {Options{Selector: refs.Selector{SemVer: ">1"}}, `tag in the range ">1" not found`},
			"full name":     {Options{Selector: refs.Selector{Name: "refs/pull/1/head"}}, `reference "refs/pull/1/head" not found`},
			"tag of a tree": {Options{Selector: refs.Selector{Tag: "tree"}}, "points to a tree, not to a commit"},
			"commit":        {Options{Selector: refs.Selector{Commit: strings.Repeat("0123", 10)}}, "does not have the commit " + strings.Repeat("0123", 10)},
			"path":          {Options{Options: manifests.Options{Path: "apps"}}, "path apps does not exist"},
		} {
			t.Run(where+"/"+name, func(t *testing.T) {
				c.o.Location = location
				wantError(t, c.o, ErrSource, c.want)
			})
		}
	}
}

// TestMissingPathIsReported checks that a missing path is distinguished from other errors. The error names the revision
// and the missing part of the path.
func TestMissingPathIsReported(t *testing.T) {
	r, _ := revisions(t)
	head := r.Git("rev-parse", "HEAD")
	for where, location := range map[string]string{"local": r.Dir, "remote": r.Serve()} {
		_, err := Fetch(t.Context(), Options{Location: location, Options: manifests.Options{Path: "apps/etcd"}})
		var missing MissingPathError
		if !errors.As(err, &missing) || missing.Path != "apps" || missing.Revision.Commit != head {
			t.Errorf("%s: %v", where, err)
		}
		if _, err := Fetch(t.Context(), Options{Location: location, Selector: refs.Selector{Branch: "nope"}}); errors.As(err, &missing) {
			t.Errorf("%s: %v", where, err)
		}
	}
	dir := t.TempDir()
	var missing MissingPathError
	if _, err := Fetch(t.Context(), Options{Location: dir, Options: manifests.Options{Path: "apps"}}); !errors.As(err, &missing) || missing.Revision != (refs.Revision{}) || !strings.HasSuffix(err.Error(), ": path apps does not exist") {
		t.Errorf("of a directory: %v", err)
	}
	gone := filepath.Join(dir, "gone")
	if _, err := Fetch(t.Context(), Options{Location: gone}); errors.As(err, &missing) || strings.Count(err.Error(), "gone") != 1 {
		t.Errorf("of nothing: %v", err)
	}
}

func wantError(t *testing.T, o Options, is error, want string) {
	t.Helper()
	desired, err := Fetch(t.Context(), o)
	if !errors.Is(err, is) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %v with %q", err, is, want)
	}
	if desired.Clusters != nil || desired.Problems != nil {
		t.Errorf("with an error, nothing is known; got %v", desired)
	}
}

func TestFetchByCommitHash(t *testing.T) {
	r, commits := revisions(t)
	r.Git("config", "uploadpack.allowReachableSHA1InWant", "true")
	o := Options{Location: r.Serve(), Selector: refs.Selector{Commit: commits["old"]}}
	desired, err := Fetch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	wantClusters(t, desired, "old")
}

func TestFetchReadsBareShallowAndPackedRepositories(t *testing.T) {
	r, commits := revisions(t)

	bare := filepath.Join(t.TempDir(), "bare.git")
	r.Git("clone", "--quiet", "--bare", r.Dir, bare)
	shallow := filepath.Join(t.TempDir(), "shallow")
	r.Git("clone", "--quiet", "--depth=1", "file://"+r.Dir, shallow)
	linked := filepath.Join(t.TempDir(), "linked")
	r.Git("worktree", "add", "--quiet", linked, "feature/x")
	packed := newRepository(t)
	packed.Declare("packed")
	packed.Git("gc", "--quiet")
	packed.Git("pack-refs", "--all")

	for location, cluster := range map[string]string{bare: "main", shallow: "main", linked: "feature", packed.Dir: "packed"} {
		desired, err := Fetch(t.Context(), Options{Location: location})
		if err != nil {
			t.Errorf("%s: %v", location, err)
			continue
		}
		wantClusters(t, desired, cluster)
	}

	r.Git("checkout", "--quiet", "--detach", commits["old"])
	for _, location := range []string{r.Dir, r.Serve()} {
		desired, err := Fetch(t.Context(), Options{Location: location})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := desired.Revision.String(), "sha1:"+commits["old"]; got != want {
			t.Errorf("revision %s, want %s", got, want)
		}
		wantClusters(t, desired, "old")
	}
}

// TestWorktreeIsNotRead checks that committed files are read, and that the worktree is not.
func TestWorktreeIsNotRead(t *testing.T) {
	r := newRepository(t)
	r.Declare("committed")
	r.Write("cluster.yaml", gittest.ClusterNamed("changed"))
	r.Write("new.yaml", gittest.ClusterNamed("new"))
	desired, err := Fetch(t.Context(), Options{Location: r.Dir})
	if err != nil {
		t.Fatal(err)
	}
	wantClusters(t, desired, "committed")
}

func TestRepositoryWithoutCommitsIsRefused(t *testing.T) {
	empty := newRepository(t)
	wantError(t, Options{Location: empty.Dir}, ErrSource, "no commit at HEAD")
	wantError(t, Options{Location: empty.Serve()}, ErrSource, "is empty; push a commit")

	elsewhere := newRepository(t)
	elsewhere.Declare("a")
	elsewhere.Git("symbolic-ref", "HEAD", "refs/heads/nowhere")
	wantError(t, Options{Location: elsewhere.Dir}, ErrSource, "no commit at HEAD")
	wantError(t, Options{Location: elsewhere.Serve()}, ErrSource, "no commit at HEAD")
}

func TestSHA256RepositoryIsRefused(t *testing.T) {
	r := newRepository(t, "--object-format=sha256")
	r.Declare("a")
	wantError(t, Options{Location: r.Dir}, ErrSource, `its object format is "sha256": only sha1 is supported`)
	wantError(t, Options{Location: r.Serve()}, ErrSource, "does not respond like a smart HTTP server")
}

func TestPlainDirectoryIsRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(gittest.ClusterNamed("a")), 0o600); err != nil {
		t.Fatal(err)
	}
	desired, err := Fetch(t.Context(), Options{Location: dir})
	if err != nil {
		t.Fatal(err)
	}
	wantClusters(t, desired, "a")
	if got := desired.Revision.String(); got != "directory" || desired.Revision.Committed != 0 {
		t.Errorf("revision %s", got)
	}
	wantError(t, Options{Location: dir, Selector: refs.Selector{Branch: "main"}}, ErrOptions, "is not a repository")
	wantError(t, Options{Location: filepath.Join(dir, "a.yaml")}, ErrSource, "is a file")
	wantError(t, Options{Location: filepath.Join(dir, "b")}, ErrSource, "no such file")
}

func TestFetchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Fetch(ctx, Options{Location: t.TempDir()})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrSource) {
		t.Errorf("error %v", err)
	}
}

// TestPanicWhileReadingReachesCaller checks that a panic while reading a source reaches the caller, which can recover
// from it.
func TestPanicWhileReadingReachesCaller(t *testing.T) {
	defer func() {
		if p := recover(); p != "parser" {
			t.Errorf("recovered %v", p)
		}
	}()
	_, err := within(t.Context(), Options{}, func(context.Context) (int, error) { panic("parser") })
	t.Errorf("no panic, and %v", err)
}
