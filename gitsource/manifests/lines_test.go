package manifests

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"go.yaml.in/yaml/v3"

	"quorate.dev/quorate/clusters/policy"
)

// TestLineOf checks that LineOf returns the line of a field that is checked later. For a missing field, it returns the
// line of the nearest parent or of the object.
func TestLineOf(t *testing.T) {
	tree := fstest.MapFS{"a.yaml": {Data: []byte(`apiVersion: etcd.quorate.dev/v1alpha1
kind: EtcdCluster
metadata:
  name: a
  namespace: ns
spec:
  version: 3.6.16
  etcd:
    options:
      max-wals: "9"
  backup:
    schedule: "@daily"
    to: {volume: {claimName: backups}} # which the options allow
    recipients: # of age
    - age1a
    - age1b
`)}}
	read, err := Read(t.Context(), tree, Options{Policy: policy.Policy{BackupDestinations: policy.Allowed{Limited: true, Patterns: []string{policy.Everything}}}})
	if err != nil || len(read.Problems) > 0 || len(read.Clusters) != 1 {
		t.Fatalf("%+v, %v", read, err)
	}
	for path, want := range map[string]int{"spec.etcd.options.max-wals": 10, "spec.backup.recipients[1]": 16, "spec.backup.recipients[7]": 14,
		"spec.backup.timeZone": 11, "spec.backup.to.volume.claimName": 13, "spec.version": 7, "spec.restore.backup": 1, "": 1, "it is wrong": 1} {
		if got := read.Clusters[0].LineOf(path); got != want {
			t.Errorf("%q is at line %d, want %d", path, got, want)
		}
	}
}

// TestKeptLinesAreBounded checks that not all lines are kept if there are very many fields, because the lines would
// take more space than the cluster.
func TestKeptLinesAreBounded(t *testing.T) {
	var options strings.Builder
	for n := range 10_000 {
		fmt.Fprintf(&options, "      o%d: x\n", n)
	}
	object := yamlObject(t, "spec:\n  etcd:\n    options:\n"+options.String())
	size := 0
	for path := range object.lines() {
		size += len(path)
	}
	if size == 0 || size > mostPaths {
		t.Errorf("%d bytes of paths", size)
	}
}

func yamlObject(t *testing.T, text string) object {
	t.Helper()
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	return object{node: document.Content[0]}
}
