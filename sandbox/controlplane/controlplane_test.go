package controlplane

import (
	"testing"

	"quorate.dev/quorate/sandbox/golden"
	"quorate.dev/quorate/sandbox/pki"
)

func TestSpec(t *testing.T) {
	spec, err := Spec(Config{
		Dir: "/state/control-plane", Cgroup: "/group/control-plane",
		Kubernetes: "/cache/kubernetes", Etcd: "/cache/etcd", CoreDNS: "/cache/coredns",
		Certificates: pki.Store{Dir: t.TempDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "control-plane.txt", spec.String())
}
