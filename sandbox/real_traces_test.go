//go:build linux

package sandbox_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"quorate.dev/quorate/sandbox"
	"quorate.dev/quorate/sandbox/machine"
)

// traces contains traces of a sandbox that exists or has existed.
type traces struct {
	processes  []int           // in the sandbox's cgroups, or with its mark
	namespaces map[string]bool // of these processes, except the host's own
}

// elsewhere lists the host directories that a node's programs would write to if they were not confined to their
// machines.
var elsewhere = []string{
	"/run/netns", "/run/containerd", "/run/runc", "/run/cni", "/run/nri", "/run/flexvolume", "/run/kubernetes",
	"/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/lib/volumes", "/var/lib/etcd", "/var/log/pods", "/var/log/containers",
	"/opt/containerd", "/opt/nri", "/etc/cni/net.d", "/etc/kubernetes", "/usr/libexec/kubernetes",
}

func (s *subject) traces(t *testing.T) traces {
	t.Helper()
	found := traces{processes: s.processesIn(t, ""), namespaces: map[string]bool{}}
	for _, pid := range found.processes {
		maps.Copy(found.namespaces, namespaces(pid))
	}
	maps.DeleteFunc(found.namespaces, func(namespace string, _ bool) bool { return namespaces(os.Getpid())[namespace] })
	return found
}

// processesIn returns the PIDs of a machine's processes. If machineName is empty, it returns the PIDs of all
// machines' processes and of commands started by Exec.
func (s *subject) processesIn(t *testing.T, machineName string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	group := filepath.Join("/quorate-sandbox", s.Name, machineName) + "/"
	mark := []byte(machine.Marker + "=" + s.Dir() + "\x00")
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || hasEnded(pid) {
			continue
		}
		groups, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cgroup")) // the process may have ended
		environment, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if bytes.Contains(groups, []byte(group)) || machineName == "" && bytes.Contains(environment, mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// hasEnded reports whether the process is a zombie that its parent has not reaped.
func hasEnded(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && bytes.Contains(stat, []byte(") Z "))
}

func namespaces(pid int) map[string]bool {
	found := map[string]bool{}
	for _, kind := range []string{"net", "mnt", "pid", "uts", "ipc", "cgroup"} {
		if name, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns", kind)); err == nil {
			found[name] = true
		}
	}
	return found
}

func (s *subject) down(t *testing.T) {
	guest := s.command("exec", "--", "sleep", "1000")
	if err := guest.Start(); err != nil {
		t.Fatal(err)
	}
	var before traces
	until(t, "the guest is inside", func() bool {
		before = s.traces(t)
		return len(namespaces(guest.Process.Pid)) > 0 && before.namespaces[netOf(guest.Process.Pid)]
	})
	for _, pid := range s.processesIn(t, "node-1") {
		name, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm")) // the process may have ended
		if n := strings.TrimSpace(string(name)); n == "kubelet" || strings.HasPrefix(n, "containerd") {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Errorf("kill %s: %v", n, err)
			}
		}
	}
	s.must(t, "down")
	_ = guest.Wait() // it was killed, so Wait returns an error
	s.isGone(t, before)
	s.must(t, "down") // again, although nothing is left to remove
}

func netOf(pid int) string {
	name, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns", "net"))
	if err != nil {
		return ""
	}
	return name
}

// isGone fails the test if any earlier or current trace of the sandbox is left.
func (s *subject) isGone(t *testing.T, before traces) {
	t.Helper()
	if now := s.traces(t); len(now.processes) > 0 {
		t.Errorf("processes %v are left", now.processes)
	}
	pids, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range pids {
		pid, _ := strconv.Atoi(filepath.Base(dir)) // the pattern ensures that the name is a number
		if hasEnded(pid) {
			continue
		}
		for namespace := range namespaces(pid) {
			if before.namespaces[namespace] {
				t.Errorf("process %d is still in %s", pid, namespace)
			}
		}
	}
	groups, err := filepath.Glob("/sys/fs/cgroup/*/quorate-sandbox/" + s.Name)
	if err != nil || len(groups) > 0 {
		t.Errorf("cgroups %v are left (%v)", groups, err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || bytes.Contains(mounts, []byte(s.Dir())) {
		t.Errorf("mounts are left (%v):\n%s", err, mounts)
	}
	for _, path := range append([]string{s.Dir()}, elsewhere...) {
		if _, err := os.Lstat(path); err == nil && !s.hostHad[path] {
			t.Errorf("%s is left", path)
		}
	}
	if others, err := os.ReadDir(sandbox.Root); err == nil && len(others) == 0 {
		t.Errorf("%s is left, though it is empty", sandbox.Root)
	}
}
