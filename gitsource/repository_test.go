package gitsource

import (
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
)

// repository is a real one, made with git.
type repository struct {
	t   testing.TB
	dir string
}

func newRepository(t testing.TB, args ...string) *repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r := &repository{t: t, dir: t.TempDir()}
	r.git(append([]string{"init", "--quiet", "--initial-branch=main"}, args...)...)
	return r
}

// git runs a command of git and returns what it prints.
func (r *repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir = r.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return strings.TrimSpace(string(out))
}

// mktree stores a tree and returns its hash.
func (r *repository) mktree(lines string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", "mktree")
	cmd.Dir, cmd.Stdin = r.dir, strings.NewReader(lines)
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func (r *repository) write(name, content string) {
	r.t.Helper()
	file := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// declare writes and commits the cluster of that name, alone in the tree, and returns the
// commit.
func (r *repository) declare(name string) string {
	r.t.Helper()
	r.write("cluster.yaml", clusterNamed(name))
	return r.commit()
}

func (r *repository) commit() string {
	r.t.Helper()
	r.git("add", "--all")
	r.git("commit", "--quiet", "--allow-empty", "--message=x")
	return r.git("rev-parse", "HEAD")
}

func clusterNamed(name string) string {
	return "apiVersion: etcd.quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata:\n  name: " + name + "\nspec:\n  version: 3.6.5\n"
}

// gitServer is git's own smart HTTP server.
func (r *repository) gitServer() http.Handler {
	return &cgi.Handler{
		Path: filepath.Join(r.git("--exec-path"), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + r.dir, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + r.dir, "GIT_CONFIG_NOSYSTEM=1"},
	}
}

// serve serves the repository on loopback and returns its URL.
func (r *repository) serve() string {
	r.t.Helper()
	server := httptest.NewServer(r.gitServer())
	r.t.Cleanup(server.Close)
	return server.URL + "/.git"
}

func mustOpen(t *testing.T, dir string) *git.Repository {
	t.Helper()
	repo, err := git.PlainOpen(dir)
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

// store puts an object into a repository, as it is.
func store(t *testing.T, repo *git.Repository, o interface {
	Encode(plumbing.EncodedObject) error
}) plumbing.Hash {
	t.Helper()
	encoded := repo.Storer.NewEncodedObject()
	if err := o.Encode(encoded); err != nil {
		t.Fatal(err)
	}
	hash, err := repo.Storer.SetEncodedObject(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}
