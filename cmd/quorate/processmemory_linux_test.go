package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"quorate.dev/quorate/gitsource/manifests/confined/confinedtest"
)

const stranger = 65532

// asStranger returns a command that runs as a user other than root.
func asStranger(t *testing.T, program string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	out := &bytes.Buffer{}
	c := exec.CommandContext(t.Context(), program, args...)
	c.Env, c.Dir, c.Stdout, c.Stderr = []string{runsMain + "=1"}, "/", out, out
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	return c, out
}

// TestProcessMemoryIsHiddenFromChildren checks that the memory of a running process belongs to root, not to the
// process's user, so that child processes cannot read it. The process must still be able to start child processes.
func TestProcessMemoryIsHiddenFromChildren(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("running as another user requires root")
	}
	program := confinedtest.ForEverybody(t)
	owner, fetcher := make(chan uint32, 1), make(chan string, 1)
	var process *os.Process
	started := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-started
		info, err := os.Stat(fmt.Sprintf("/proc/%d/mem", process.Pid))
		if err != nil {
			t.Error(err)
		} else if len(owner) == 0 {
			owner <- info.Sys().(*syscall.Stat_t).Uid
			fetcher <- fetcherOf(t, process.Pid)
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	c, out := asStranger(t, program, "validate", "--source", server.URL+"/x.git")
	c.Env = append(c.Env, "KUBECONFIG=/secret", "QUORATE_GIT_PASSWORD=secret", "TMPDIR="+filepath.Dir(program))
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	process = c.Process
	close(started)
	_ = c.Wait() // fails, because the server has no repository
	select {
	case uid := <-owner:
		if uid != 0 {
			t.Errorf("the memory of the process belongs to user %d", uid)
		}
		// The process that contacts the server has neither this process's privileges nor its secrets.
		if said := <-fetcher; said != "memory of user 0, NoNewPrivs 1, Seccomp 2, knows nothing" {
			t.Errorf("the process that fetches has %s", said)
		}
	default:
		t.Errorf("the server was not asked: %s", out)
	}
	dir := filepath.Join(filepath.Dir(program), "source")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(hostileCluster), 0o644); err != nil {
		t.Fatal(err)
	}
	c, out = asStranger(t, program, "validate", "--source", dir)
	if err := c.Run(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// fetcherOf describes the child process of parent that fetches a source.
func fetcherOf(t *testing.T, parent int) string {
	t.Helper()
	children, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Error(err)
	}
	for _, name := range children {
		status, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", parent)) {
			continue
		}
		dir := filepath.Dir(name)
		info, infoErr := os.Stat(filepath.Join(dir, "mem"))
		environment, environmentErr := os.ReadFile(filepath.Join(dir, "environ"))
		if err := errors.Join(infoErr, environmentErr); err != nil {
			return err.Error()
		}
		knows := "nothing"
		if strings.Contains(string(environment), "secret") {
			knows = string(environment)
		}
		field := func(name string) string {
			_, rest, _ := strings.Cut(string(status), "\n"+name+":\t")
			value, _, _ := strings.Cut(rest, "\n")
			return value
		}
		return fmt.Sprintf("memory of user %d, NoNewPrivs %s, Seccomp %s, knows %s", info.Sys().(*syscall.Stat_t).Uid, field("NoNewPrivs"), field("Seccomp"), knows)
	}
	return "no process of its own"
}
