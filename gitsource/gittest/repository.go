// Package gittest creates git repositories and servers for tests, and the transports to reach them: ssh, TLS, proxies
// and GitHub Apps.
package gittest

import (
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Secret is the password used throughout this package. Errors and logs must not contain it.
const Secret = "hunter2-and-more"

// Repository is a real repository, created with git.
type Repository struct {
	T   testing.TB
	Dir string
}

// NewRepository creates a repository without commits. args are additional arguments for git init.
func NewRepository(t testing.TB, args ...string) *Repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r := &Repository{T: t, Dir: t.TempDir()}
	r.Git(append([]string{"init", "--quiet", "--initial-branch=main"}, args...)...)
	return r
}

// Git runs a git command and returns its output.
func (r *Repository) Git(args ...string) string {
	r.T.Helper()
	cmd := exec.CommandContext(r.T.Context(), "git", args...)
	cmd.Dir = r.Dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.Dir, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.T.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return strings.TrimSpace(string(out))
}

// MkTree stores a tree with the given entries, and returns its hash.
func (r *Repository) MkTree(lines string) string {
	r.T.Helper()
	cmd := exec.CommandContext(r.T.Context(), "git", "mktree")
	cmd.Dir, cmd.Stdin = r.Dir, strings.NewReader(lines)
	out, err := cmd.Output()
	if err != nil {
		r.T.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// Write writes a file into the worktree.
func (r *Repository) Write(name, content string) {
	r.T.Helper()
	file := filepath.Join(r.Dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.T.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		r.T.Fatal(err)
	}
}

// Declare replaces cluster.yaml with the declaration of the named cluster, commits the worktree, and returns the
// commit.
func (r *Repository) Declare(name string) string {
	r.T.Helper()
	r.Write("cluster.yaml", ClusterNamed(name))
	return r.Commit()
}

// Commit commits the whole worktree and returns the commit.
func (r *Repository) Commit() string {
	r.T.Helper()
	r.Git("add", "--all")
	r.Git("commit", "--quiet", "--allow-empty", "--message=x")
	return r.Git("rev-parse", "HEAD")
}

// ClusterNamed returns the declaration of a cluster.
func ClusterNamed(name string) string {
	return "apiVersion: etcd.quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata:\n  name: " + name +
		"\nspec:\n  version: 3.6.5\n"
}

// Handler returns git's own smart HTTP server.
func (r *Repository) Handler() http.Handler {
	return &cgi.Handler{
		Path: filepath.Join(r.Git("--exec-path"), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + r.Dir, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + r.Dir, "GIT_CONFIG_NOSYSTEM=1"},
	}
}

// Serve serves the repository on loopback and returns its URL.
func (r *Repository) Serve() string {
	r.T.Helper()
	server := httptest.NewServer(r.Handler())
	r.T.Cleanup(server.Close)
	return server.URL + "/.git"
}

// Revisions returns a repository with a revision of every kind. The cluster in each revision is named after the
// revision.
func Revisions(t *testing.T) (r *Repository, commits map[string]string) {
	t.Helper()
	r = NewRepository(t)
	commits = map[string]string{"old": r.Declare("old"), "tagged": r.Declare("tagged")}
	r.Git("tag", "light")
	r.Git("tag", "--annotate", "--message=x", "v1.0.0")
	r.Git("tag", "--annotate", "--message=x", "again", "v1.0.0")
	r.Git("tag", "--annotate", "--message=x", "tree", "HEAD^{tree}")
	commits["main"] = r.Declare("main")
	r.Git("checkout", "--quiet", "-b", "feature/x", "v1.0.0")
	commits["feature"] = r.Declare("feature")
	r.Git("checkout", "--quiet", "--detach")
	commits["pull"] = r.Declare("pull")
	r.Git("update-ref", "refs/pull/420/head", "HEAD")
	r.Git("checkout", "--quiet", "main")
	return r, commits
}
