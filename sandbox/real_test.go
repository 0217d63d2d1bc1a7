//go:build linux

package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"quorate.dev/quorate/sandbox"
)

// TestSandbox tests a real sandbox from creation to removal. It requires root. Its steps build on each other, so it
// stops at the first step that fails.
func TestSandbox(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts real clusters")
	}
	if os.Geteuid() != 0 {
		t.Skip("it needs root")
	}
	s := start(t)
	for _, step := range []struct {
		name string
		do   func(*testing.T)
	}{
		{"a killed up leaves nothing behind that down does not remove", s.killedUp},
		{"up brings a ready node", s.up},
		{"up again changes nothing", s.upAgain},
		{"exec is in the place of a pod", s.exec},
		{"a pod that is not root writes to its volume", s.volume},
		{"a loaded program runs, and can be replaced", s.load},
		{"a killed node is repaired", s.repair},
		{"one of three nodes is lost and comes back", s.nodes},
		{"down leaves nothing of it, though its programs were killed", s.down},
	} {
		if !t.Run(step.name, step.do) {
			return
		}
	}
}

// subject is the sandbox under test, with its command line.
type subject struct {
	binary string
	*sandbox.Sandbox
	// These are the host's state before the test.
	interfaces []net.Interface
	hostHad    map[string]bool // for each path in elsewhere, whether it existed
}

func start(t *testing.T) *subject {
	t.Helper()
	opened, err := sandbox.Named("selftest")
	if err != nil {
		t.Fatal(err)
	}
	s := &subject{binary: filepath.Join(t.TempDir(), "sandbox"), Sandbox: opened}
	// With the flags of "make build", because with other flags, Go compiles all dependencies again.
	build := exec.Command("go", "build", "-trimpath", "-o", s.binary, "./cmd/sandbox")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, output)
	}
	s.must(t, "down") // clean up after earlier runs of this test
	t.Cleanup(func() { s.must(t, "down") })
	s.hostHad = map[string]bool{}
	for _, path := range elsewhere {
		_, err := os.Lstat(path)
		s.hostHad[path] = err == nil
	}
	if s.interfaces, err = net.Interfaces(); err != nil {
		t.Fatal(err)
	}
	return s
}

// command returns a command, not yet started, that runs the sandbox program.
func (s *subject) command(args ...string) *exec.Cmd {
	return exec.Command(s.binary, append([]string{"--name", s.Name}, args...)...)
}

// must runs the sandbox program and returns its standard output.
func (s *subject) must(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, s.command(args...))
}

func (s *subject) kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(s.Dir(), "tools", "kubectl"), append([]string{"--kubeconfig", s.Kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	return run(t, cmd)
}

func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var problems bytes.Buffer
	cmd.Stderr = &problems
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, output, problems.String())
	}
	return string(output)
}

func (s *subject) status(t *testing.T) sandbox.Status {
	t.Helper()
	var status sandbox.Status
	if err := json.Unmarshal([]byte(s.must(t, "status", "-o", "json")), &status); err != nil {
		t.Fatal(err)
	}
	return status
}

// until waits up to a minute for holds to return true.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !holds() {
		if ctx.Err() != nil {
			t.Fatalf("not so after a minute: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *subject) killedUp(t *testing.T) {
	up := s.command("up")
	up.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the node has processes", func() bool { return len(s.traces(t).processes) > 8 })
	if err := up.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = up.Wait() // it was killed, so Wait returns an error
	s.must(t, "down")
	s.isGone(t, s.traces(t))
}

func (s *subject) up(t *testing.T) {
	s.must(t, "up")
	status := s.status(t)
	if !status.Up || len(status.Machines) != 2 || status.Memory == 0 {
		t.Errorf("status is %+v", status)
	}
	if path := strings.TrimSpace(s.must(t, "kubeconfig")); path != s.Kubeconfig() || path != status.Kubeconfig {
		t.Errorf("kubeconfig is %s, want %s", path, s.Kubeconfig())
	}
	if inside := s.must(t, "kubeconfig", "--inside", "--print"); !strings.Contains(inside, "server: https://10.88.0.1:6443\n") {
		t.Errorf("the kubeconfig for inside is\n%s", inside)
	}
	now, err := net.Interfaces()
	if err != nil || !slices.EqualFunc(now, s.interfaces, func(a, b net.Interface) bool { return a.Name == b.Name }) {
		t.Errorf("the host's network interfaces are %v (%v), were %v", now, err, s.interfaces)
	}
}

func (s *subject) upAgain(t *testing.T) {
	before := s.status(t)
	s.must(t, "up")
	after := s.status(t)
	for i, m := range before.Machines {
		if after.Machines[i].PID != m.PID {
			t.Errorf("%s was started again", m.Name)
		}
	}
}

func (s *subject) exec(t *testing.T) {
	service := s.must(t, "exec", "--", "getent", "hosts", "probe-server.kube-system")
	if !strings.Contains(service, "probe-server.kube-system.svc.cluster.local") {
		t.Errorf("cluster DNS returns %q", service)
	}
	if nodes := s.must(t, "exec", "--", "kubectl", "get", "nodes", "-o", "name"); nodes != "node/node-1\n" {
		t.Errorf("kubectl inside prints %q", nodes)
	}
	cmd := s.command("exec", "--", "sh", "-c", "cat; exit 7")
	cmd.Stdin = strings.NewReader("through")
	output, err := cmd.Output()
	var exit *exec.ExitError
	if string(output) != "through" || !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("output %q, error %v; want the input, and exit status 7", output, err)
	}
	resolver, err := os.ReadFile("/etc/resolv.conf")
	if err != nil || strings.Contains(string(resolver), "10.88.0.1") {
		t.Errorf("the host's own resolv.conf was changed: %s (%v)", resolver, err)
	}
}
