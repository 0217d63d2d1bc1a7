package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// memoryGroup is a control group with a memory limit. If dir is empty, there is no control group, and flags limit the
// processes instead.
type memoryGroup struct {
	dir, procs, kills string
	bytes             int64
	// program is the program to run in the group, or empty for the test binary.
	program string
}

// named makes the group run the test binary under the given name. Its child processes get the same name.
func (g memoryGroup) named(t *testing.T, name string) memoryGroup {
	t.Helper()
	self, err := os.Executable()
	g.program = filepath.Join(t.TempDir(), name)
	if err := errors.Join(err, os.Symlink(self, g.program)); err != nil {
		t.Fatal(err)
	}
	return g
}

// newMemoryGroup creates a control group, version 2 or 1, if this machine allows it.
func newMemoryGroup(t *testing.T, bytes int64) memoryGroup {
	t.Helper()
	for _, version := range []struct{ parent, limit, swap, kills string }{
		{"/sys/fs/cgroup", "memory.max", "memory.swap.max", "memory.events"},
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control"},
	} {
		g := memoryGroup{dir: filepath.Join(version.parent, fmt.Sprintf("quorate-test-%d", os.Getpid())), bytes: bytes}
		g.procs, g.kills = filepath.Join(g.dir, "cgroup.procs"), filepath.Join(g.dir, version.kills)
		if err := os.Mkdir(g.dir, 0o755); err != nil {
			continue
		}
		if _, err := os.Stat(g.kills); err != nil { // the directory is not a control group
			os.Remove(g.dir)
			continue
		}
		if err := os.WriteFile(filepath.Join(g.dir, version.limit), []byte(strconv.FormatInt(bytes, 10)), 0o600); err != nil {
			os.Remove(g.dir)
			continue
		}
		_ = os.WriteFile(filepath.Join(g.dir, version.swap), []byte(strconv.FormatInt(bytes, 10)), 0o600) // if swap is counted
		t.Cleanup(func() { g.remove(t) })
		return g
	}
	t.Logf("no control group with a bound on memory can be made here, which takes root and a writable /sys/fs/cgroup: "+
		"the flags of %d MiB are given instead, and of all processes only the largest is measured", bytes>>20)
	return memoryGroup{bytes: bytes}
}

// remove removes the control group after its last process has ended.
func (g memoryGroup) remove(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; {
		err := os.Remove(g.dir)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

var killed = regexp.MustCompile(`(?m)^oom_kill (\d+)$`)

// oomKills returns how many processes in the group were killed because of the memory limit.
func (g memoryGroup) oomKills(t *testing.T) int {
	t.Helper()
	content, err := os.ReadFile(g.kills)
	found := killed.FindSubmatch(content)
	if err != nil || found == nil {
		t.Fatalf("%s: %v\n%s", g.kills, err, content)
	}
	n, _ := strconv.Atoi(string(found[1]))
	return n
}

// quorate runs a command line in the group. It fails the test if the memory is insufficient.
func (g memoryGroup) quorate(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `echo $$ > "$0" && exec "$@"`, g.procs, cmp.Or(g.program, self))
	if g.dir == "" {
		cmd = exec.CommandContext(t.Context(), self)
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", hasMemory, g.bytes))
	}
	cmd.Args = append(cmd.Args, args...)
	cmd.Env = append(append(os.Environ(), cmd.Env...), runsMain+"=1")
	before := 0
	if g.dir != "" {
		before = g.oomKills(t)
	}
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	out = both.String()
	if g.dir != "" && g.oomKills(t) > before {
		t.Errorf("a process was killed because of the memory limit: %.500s", out)
	}
	if g.dir == "" && peakOf(cmd.ProcessState) > g.bytes*3/4 {
		t.Errorf("a process takes more than %d MiB: %.500s", g.bytes*3/4>>20, out)
	}
	return cmd.ProcessState.ExitCode(), out
}

const (
	// runsMain makes the test binary run as quorate.
	runsMain = "QUORATE_TEST_RUNS_MAIN"
	// hasMemory is the memory limit, in bytes, that quorate detects if runsMain is set.
	hasMemory = "QUORATE_TEST_MEMORY"
)

// TestContainerMemoryDeterminesLimits checks that the container's memory determines limits that are not set by flags.
func TestContainerMemoryDeterminesLimits(t *testing.T) {
	g := newMemoryGroup(t, 128<<20)
	if g.dir == "" {
		t.Skip("a control group requires root and a writable /sys/fs/cgroup")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), bytes.Repeat([]byte("#\n"), 600<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	small := fmt.Sprintf("a.yaml: is larger than %d MiB; to allow more, raise limits.bytes", budgetWithin(128<<20).limits.Files.FileBytes>>20)
	if code, out := g.quorate(t, "validate", "--source", dir); code != exitInvalid || !strings.Contains(out, small) {
		t.Errorf("exit code %d, want %s:\n%s", code, small, out)
	}
	if code, out := g.quorate(t, "validate", "--source", dir+",max-total-bytes=16Mi"); code != exitOK {
		t.Errorf("with flags: exit code %d:\n%s", code, out)
	}
}
