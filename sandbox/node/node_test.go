package node

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"

	"quorate.dev/quorate/sandbox/golden"
	"quorate.dev/quorate/sandbox/layout"
	"quorate.dev/quorate/sandbox/machine"
	"quorate.dev/quorate/sandbox/pki"
)

func spec(t *testing.T, n layout.Node) machine.Spec {
	t.Helper()
	spec, err := Spec(Config{
		Node: n, Dir: "/state/" + n.Name(), Cgroup: "/group/" + n.Name(),
		Kubernetes: "/cache/kubernetes", Containerd: "/cache/containerd",
		ImageCache: "/cache/images", Images: []string{"etcd.tar", "pause.tar"}, LoadedImages: "/state/images",
		Certificates: pki.Store{Dir: t.TempDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestSpec(t *testing.T) {
	golden.Compare(t, "node-2.txt", spec(t, 2).String())
}

func TestFilesAreWellFormed(t *testing.T) {
	files := spec(t, 1).Files
	var kubelet struct{ Kind string }
	if err := yaml.Unmarshal([]byte(files[layout.Config+"/kubelet.yaml"]), &kubelet); err != nil || kubelet.Kind != "KubeletConfiguration" {
		t.Errorf("kubelet.yaml is of kind %q (%v)", kubelet.Kind, err)
	}
	if network := files[cniDir+"/10-sandbox.conflist"]; !json.Valid([]byte(network)) {
		t.Errorf("the network's configuration is not JSON:\n%s", network)
	}
}
