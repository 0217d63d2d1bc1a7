//go:build linux

package sandbox

import (
	"os"
	"slices"
	"testing"

	"quorate.dev/quorate/sandbox/cluster"
	"quorate.dev/quorate/sandbox/machine"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{
		"quorate": true, "a": true, "ci-42": true,
		"": false, "-a": false, "a-": false, "A": false, "a/b": false, "..": false, "abcdefghijklmnopqrstuvwxy": false,
	} {
		if got := validName.MatchString(name); got != want {
			t.Errorf("%q is a valid name: %t, want %t", name, got, want)
		}
	}
}

func TestWantedNodes(t *testing.T) {
	for _, c := range []struct{ had, asked, want int }{
		{0, 0, 1}, {0, 3, 3}, {1, 0, 1}, {1, 2, 2}, {3, 0, 3}, {3, 3, 3},
	} {
		got, err := record{Nodes: c.had, Port: 7}.with(c.asked)
		if err != nil || got != (record{Nodes: c.want, Port: 7}) {
			t.Errorf("with %d nodes, asked for %d: %+v (%v), want %d", c.had, c.asked, got, err, c.want)
		}
	}
	for _, c := range []struct{ had, asked int }{{0, 4}, {0, -1}, {3, 2}} {
		if got, err := (record{Nodes: c.had}).with(c.asked); err == nil {
			t.Errorf("with %d nodes, asked for %d: %+v, want an error", c.had, c.asked, got)
		}
	}
}

func TestAncestors(t *testing.T) {
	all := ancestors()
	if all[0] != os.Getpid() || !slices.Contains(all, os.Getppid()) {
		t.Errorf("ancestors are %v, want %d and %d among them", all, os.Getpid(), os.Getppid())
	}
}

func TestGuestsAreKnownByTheirMark(t *testing.T) {
	// /proc shows the environment with which a process was started.
	marked := "PATH=" + os.Getenv("PATH")
	if !(guests{mark: marked}).include(os.Getpid()) {
		t.Errorf("not known by %s", marked)
	}
	for _, mark := range []string{"QUORATE_SANDBOX_DIR=/var/lib/quorate-sandbox/no-such", marked[:len(marked)-1]} {
		if (guests{mark: mark}).include(os.Getpid()) {
			t.Errorf("known by %s", mark)
		}
	}
}

func TestEtcdImagesHavePublicNames(t *testing.T) {
	if got := EtcdImage("v3.6.16"); got != "gcr.io/etcd-development/etcd:v3.6.16" {
		t.Errorf("image is %s", got)
	}
}

func TestStatusOfAMachine(t *testing.T) {
	node := map[string]cluster.NodeStatus{"node-1": {Ready: true}, "node-2": {Reason: "no network"}}
	runs := []machine.ProcessStatus{{Name: "kubelet", PID: 9}, {Name: "images", Done: true}}
	for _, c := range []struct {
		had    MachineStatus
		known  map[string]cluster.NodeStatus
		reason string // why the machine is not ready, or "" if it is ready
	}{
		{MachineStatus{Name: "node-1", Running: true, Processes: runs}, node, ""},
		{MachineStatus{Name: "control-plane", Running: true, Processes: runs}, node, ""},
		{MachineStatus{Name: "node-1"}, node, "it is not running"},
		{MachineStatus{Name: "node-1", Running: true}, nil, "the API server is not responding"},
		{MachineStatus{Name: "node-2", Running: true}, node, "no network"},
		{MachineStatus{Name: "node-3", Running: true}, node, "it has not registered"},
		{MachineStatus{Name: "node-1", Running: true, Processes: []machine.ProcessStatus{{Name: "kubelet"}}}, node, "kubelet is not running"},
		{MachineStatus{Name: "node-1", Running: true, Processes: []machine.ProcessStatus{{Name: "kubelet", Waiting: "x"}}}, node, "kubelet is waiting for x"},
	} {
		got := c.had
		got.judge(c.known)
		if got.Ready != (c.reason == "") || got.Reason != c.reason {
			t.Errorf("%+v is judged ready: %t, %q; want %q", c.had, got.Ready, got.Reason, c.reason)
		}
	}
}
