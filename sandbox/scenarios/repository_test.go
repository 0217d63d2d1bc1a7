package scenarios

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"quorate.dev/quorate/sandbox/gitserver"
)

// repository is a bare git repository with a clone from which tests push to it.
type repository struct {
	t    testing.TB
	bare string
	work string
}

func newRepository(t testing.TB) *repository {
	t.Helper()
	dir := t.TempDir()
	r := &repository{t: t, bare: filepath.Join(dir, "clusters.git"), work: filepath.Join(dir, "work")}
	r.git(dir, "init", "--quiet", "--bare", "--initial-branch=main", r.bare)
	r.git(dir, "init", "--quiet", "--initial-branch=main", r.work)
	r.git(r.work, "remote", "add", "origin", r.bare)
	return r
}

// push replaces the content of the repository with the given files, by path, and returns the commit.
func (r *repository) push(files map[string]string) string {
	r.t.Helper()
	r.git(r.work, "rm", "-r", "--quiet", "--ignore-unmatch", ".")
	for path, text := range files {
		path = filepath.Join(r.work, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	r.git(r.work, "add", "--all")
	r.git(r.work, "commit", "--quiet", "--allow-empty", "--message", "declare clusters")
	r.git(r.work, "push", "--quiet", "origin", "HEAD:main")
	return strings.TrimSpace(r.git(r.work, "rev-parse", "HEAD"))
}

func (r *repository) git(dir string, args ...string) string {
	r.t.Helper()
	command := exec.Command("git", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=scenario", "GIT_AUTHOR_EMAIL=scenario@localhost",
		"GIT_COMMITTER_NAME=scenario", "GIT_COMMITTER_EMAIL=scenario@localhost")
	out, err := command.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// serve serves the repository with git's own smart HTTP server, and returns its URL.
func (r *repository) serve() (url string, server *httptest.Server) {
	r.t.Helper()
	handler, err := gitserver.Handler(filepath.Dir(r.bare))
	if err != nil {
		r.t.Fatal(err)
	}
	server = httptest.NewServer(handler)
	r.t.Cleanup(server.Close)
	return fmt.Sprintf("%s/%s", server.URL, filepath.Base(r.bare)), server
}

// sparseWorktree creates a linked worktree of main, with no files checked out, in a clone that borrows all of its
// objects. It returns the worktree's directory.
func (r *repository) sparseWorktree() string {
	r.t.Helper()
	dir := r.t.TempDir()
	shared, linked := filepath.Join(dir, "shared"), filepath.Join(dir, "linked")
	r.git(dir, "clone", "--quiet", "--mirror", "--shared", r.bare, shared)
	r.git(shared, "worktree", "add", "--quiet", linked, "main")
	r.git(linked, "sparse-checkout", "set", "nowhere")
	return linked
}

// declaration returns an EtcdCluster manifest. Each line of spec is indented under spec.
func declaration(name, version string, spec ...string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: etcd.quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata:\n  name: %s\nspec:\n  version: %s\n", name, version)
	for _, line := range spec {
		fmt.Fprintf(&text, "  %s\n", strings.ReplaceAll(line, "\n", "\n  "))
	}
	return text.String()
}

// declare makes cluster a the only content of the repository.
func (w *world) declare(version string, spec ...string) {
	w.t.Helper()
	w.repository.push(map[string]string{"a.yaml": declaration("a", version, spec...)})
}
