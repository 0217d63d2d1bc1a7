package scenarios

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

// versions lists the etcd versions to test. modern is the version for scenarios that do not depend on the version.
var versions = []string{"3.5.35", "3.6.16", "3.7.3"}

const modern = "3.6.16"

// versionsToTest returns the versions, or only the version QUORATE_ETCD_VERSION. It is for scenarios in which all
// versions must behave in the same way.
func versionsToTest(t *testing.T) []string {
	t.Helper()
	only := os.Getenv("QUORATE_ETCD_VERSION")
	switch {
	case only == "":
		return versions
	case !slices.Contains(versions, only):
		t.Fatalf("QUORATE_ETCD_VERSION=%s is not one of %q", only, versions)
	}
	return []string{only}
}

const (
	plain = "tls: {mode: Disabled}"
	one   = "replicas: 1"
	three = "replicas: 3"
)

// TestFounding pushes a declaration of each kind of cluster and checks that the cluster runs.
func TestFounding(t *testing.T) {
	for _, version := range versionsToTest(t) {
		for _, size := range []int{1, 3} {
			for _, mode := range []string{"Managed", "Disabled"} {
				t.Run(fmt.Sprintf("%s/%d/%s", version, size, mode), func(t *testing.T) {
					t.Parallel()
					testFounding(t, version, size, mode)
				})
			}
		}
	}
}

func testFounding(t *testing.T, version string, size int, mode string) {
	w := newWorld(t)
	commit := w.repository.push(map[string]string{"a.yaml": declaration("a", version, fmt.Sprintf("replicas: %d", size), "tls: {mode: "+mode+"}")})
	r := w.converge()
	if want := "main@sha1:" + commit; r.report.Revision != want {
		t.Errorf("the report is about revision %q, want %q", r.report.Revision, want)
	}
	r.requireRule(t, "a", "Converged")
	w.requireCondition("a", "Ready", "True", "Converged")
	id := w.requireOneCluster("a", size)
	if got := w.status("a"); got.ClusterID != id || got.Version != version {
		t.Errorf("the status has cluster %s of version %s, etcd is cluster %s of version %s", got.ClusterID, got.Version, id, version)
	}
	m := w.member("a", size-1)
	m.put("founded", version)
	if got := m.get("founded"); got != version {
		t.Errorf("wrote %q, read %q", version, got)
	}
	if mode == "Managed" {
		requireTLS(t, w, "a")
	}
}
