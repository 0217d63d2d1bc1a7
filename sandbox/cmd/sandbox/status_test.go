//go:build linux

package main

import (
	"strings"
	"testing"

	"quorate.dev/quorate/sandbox"
	"quorate.dev/quorate/sandbox/golden"
	"quorate.dev/quorate/sandbox/machine"
)

func TestPrintStatus(t *testing.T) {
	var text strings.Builder
	err := printStatus(&text, sandbox.Status{
		Name: "quorate", Kubeconfig: "/state/kubeconfig", Logs: "/state/*/log", Memory: 700 << 20,
		Versions: map[string]string{"kubernetes": "v1.36.3", "containerd": "v2.4.2"},
		Images:   []string{"example.test/etcd:v1", "example.test/etcd:v2"},
		Machines: []sandbox.MachineStatus{
			{Name: "control-plane", Running: true, Ready: true, Processes: []machine.ProcessStatus{
				{Name: "kube-apiserver", PID: 17},
				{Name: "kube-scheduler", PID: 90, Restarts: 2, LastExit: "exit status 1"},
				{Name: "objects", Done: true},
			}},
			{Name: "node-1", Running: true, Reason: "it has not registered", Processes: []machine.ProcessStatus{
				{Name: "containerd", Restarts: 7, LastExit: "signal: killed"},
				{Name: "kubelet", Waiting: "done:///images"},
			}},
			{Name: "node-2", Reason: "it is not running"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "status.txt", text.String())
}

func TestParseImage(t *testing.T) {
	reference, program, err := parseImage("quorate.dev/quorate:dev=bin/quorate")
	if err != nil || reference != "quorate.dev/quorate:dev" || program != "bin/quorate" {
		t.Errorf("parsed as %q, %q (%v)", reference, program, err)
	}
	if _, _, err := parseImage("quorate.dev/quorate:dev"); err == nil {
		t.Error("an empty image is accepted")
	}
}

func TestEveryCommandSaysWhatItDoes(t *testing.T) {
	for _, cmd := range command().Commands() {
		if !cmd.Hidden && cmd.Short == "" {
			t.Errorf("%s prints nothing", cmd.Name())
		}
	}
}
