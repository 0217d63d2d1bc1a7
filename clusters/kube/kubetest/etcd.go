package kubetest

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"quorate.dev/quorate/internal/procgroup/procgrouptest"
)

// Etcd is the etcd of an API server: one member, named default.
type Etcd struct {
	// URL is the client URL, and PeerURL is the peer URL.
	URL, PeerURL string

	program, log string
	process      *process
}

func startEtcd(t owner, etcds, dir string) *Etcd {
	t.Helper()
	programs, err := filepath.Glob(filepath.Join(etcds, "etcd-*/etcd"))
	if err != nil || len(programs) == 0 {
		t.Fatalf("no etcd-VERSION/etcd in %s: %v", etcds, err)
	}
	e := &Etcd{
		URL: "http://" + procgrouptest.Address(), PeerURL: "http://" + procgrouptest.Address(),
		program: slices.Max(programs), log: filepath.Join(dir, "etcd.log"),
	}
	e.run(t, "--data-dir="+filepath.Join(dir, "etcd"), "--initial-advertise-peer-urls="+e.PeerURL,
		"--initial-cluster=default="+e.PeerURL)
	return e
}

// Run starts etcd, initially or after it was stopped, at the same address. The flags specify the data.
func (e *Etcd) Run(t *testing.T, flags ...string) {
	t.Helper()
	e.run(t, flags...)
}

func (e *Etcd) run(t owner, flags ...string) {
	t.Helper()
	e.process = run(t, e.log, exec.Command(e.program, append([]string{
		"--unsafe-no-fsync", "--listen-client-urls=" + e.URL, "--advertise-client-urls=" + e.URL,
		"--listen-peer-urls=" + e.PeerURL,
	}, flags...)...))
}

// Stop stops etcd and waits until it has exited.
func (e *Etcd) Stop(t *testing.T) {
	t.Helper()
	e.process.stop(t)
}
