//go:build linux

package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"quorate.dev/quorate/sandbox/cgroup"
)

// TestMain lets the test binary run as init of the machines that tests start.
func TestMain(m *testing.M) {
	if os.Args[0] == argv0 {
		fmt.Fprintln(os.Stderr, Run(os.Args[2]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestStartedMachineIsFound checks that Find finds a machine that has just been started while its init executes itself
// again, and does not treat the machine as ended.
func TestStartedMachineIsFound(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it needs root")
	}
	const group = "/quorate-sandbox-test"
	t.Cleanup(func() {
		if err := cgroup.Remove(group, 10*time.Second); err != nil {
			t.Error(err)
		}
	})
	for i := range 20 {
		spec := Spec{
			Name:    "found",
			Dir:     t.TempDir(),
			Cgroup:  fmt.Sprintf("%s/%d", group, i),
			Network: &Network{Bridge: "pods"},
		}
		startAndFind(t, spec)
	}
}

func startAndFind(t *testing.T, spec Spec) {
	t.Helper()
	m, err := Start(spec, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release()
	defer func() {
		if err := m.Kill(10 * time.Second); err != nil {
			t.Error(err)
		}
	}()
	for {
		found, err := Find(spec.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if found == nil {
			log, err := os.ReadFile(filepath.Join(spec.Dir, "log", "machine.log"))
			t.Fatalf("a machine that was started is not found (%v); its log:\n%s", err, log)
		}
		found.Release()
		if _, err := Processes(spec.Dir); err == nil {
			return // init is running
		}
	}
}
