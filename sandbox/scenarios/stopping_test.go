package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestLifecycle stops, deletes and suspends a cluster, and starts it again.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	walk(t,
		step{"TestPauseControl", testPauseControl},
		step{"Stopped", testStopped},
		step{"DeletedRetain", testDeletedRetain},
		step{"DeletedDelete", testDeletedDelete},
	)
}

// testPauseControl: while a cluster is suspended, Kubernetes keeps it running and no pass changes it. Changes
// declared in the meantime are made once it is resumed.
func testPauseControl(t *testing.T, w *world) {
	members := w.memberIDs("a")
	w.declare(modern, "replicas: 4", "suspend: true")
	w.converge().requireRule(t, "a", "Suspended")
	w.deletePod("a-1")
	w.waitForPods("a", 3)
	w.run().requireCode(t, exitDone).requireRule(t, "a", "Suspended")
	w.requireOneCluster("a", 3)
	if now := w.memberIDs("a"); !maps.Equal(now, members) {
		t.Errorf("members before %v, after %v", members, now)
	}
	w.declare(modern, "replicas: 4")
	w.converge().requireRule(t, "a", "Converged")
	w.requireSize(4)
	w.resize(3)
}

// remains returns what is left of a cluster that is not running.
func (w *world) remains() (pods, volumes []string, others []string) {
	w.t.Helper()
	for name := range w.snapshot() {
		others = append(others, name)
	}
	slices.Sort(others)
	return sorted(w.podUIDs("a")), sorted(w.volumeUIDs("a")), others
}

// testStopped: the pods are stopped in order. The volumes and the cluster ID are kept.
func testStopped(t *testing.T, w *world) {
	id, volumes := w.requireOneCluster("a", 3), w.volumeUIDs("a")
	want := w.snapshot()
	w.member("a", 0).put("stopped", "not lost")
	w.declare(modern, three, "lifecycle: Stopped")
	w.convergeAsPlanned().requireRule(t, "a", "Stop")
	if pods, _, _ := w.remains(); len(pods) > 0 {
		t.Errorf("pods %v run on", pods)
	}
	if now := w.volumeUIDs("a"); !maps.Equal(now, volumes) {
		t.Errorf("volumes before %v, after %v", volumes, now)
	}
	w.requireCondition("a", "Stalled", "False", "")
	if s := w.status("a"); s.ClusterID != id || s.ReadyReplicas != 0 {
		t.Errorf("status says %+v", s)
	}
	w.run("--detailed-exitcode").requireCode(t, exitDone).requireRule(t, "a", "Stop")
	w.requireBack(t, id, "stopped", "not lost")
	if now := w.volumeUIDs("a"); !maps.Equal(now, volumes) {
		t.Errorf("volumes before %v, after %v", volumes, now)
	}
	if wrong := difference(want, w.snapshot()); wrong != "" {
		t.Errorf("not as before: %s", wrong)
	}
}

// testDeletedRetain: everything except the volumes is deleted. Declared again, the cluster comes back with its
// data.
func testDeletedRetain(t *testing.T, w *world) {
	id, volumes := w.requireOneCluster("a", 3), w.volumeUIDs("a")
	w.member("a", 0).put("retained", "yes")
	w.requireDeleted(t, "lifecycle: Deleted")
	if now := w.volumeUIDs("a"); !maps.Equal(now, volumes) {
		t.Errorf("volumes before %v, after %v", volumes, now)
	}
	w.requireBack(t, id, "retained", "yes")
	if now := w.volumeUIDs("a"); !maps.Equal(now, volumes) {
		t.Errorf("volumes before %v, after %v", volumes, now)
	}
}

// testDeletedDelete: the volumes are deleted, too. Declared again, it is a new, empty cluster.
func testDeletedDelete(t *testing.T, w *world) {
	id := w.requireOneCluster("a", 3)
	w.member("a", 0).put("retained", "no")
	w.requireDeleted(t, "lifecycle: Deleted", "storage: {retention: Delete}")
	eventually(t, "the volumes go", func() error {
		if left := w.volumeUIDs("a"); len(left) > 0 {
			return fmt.Errorf("still there: %v", left)
		}
		return nil
	})
	w.declare(modern, three)
	w.converge().requireRule(t, "a", "Converged")
	if got := w.requireOneCluster("a", 3); got == id {
		t.Errorf("cluster %s is back without its data", id)
	}
	if got := w.member("a", 1).get("retained"); got != "" {
		t.Errorf("the new cluster reads %q", got)
	}
	w.requireSize(3)
	w.requireQuiet("a")
}

// requireDeleted declares the cluster deleted, and fails unless nothing is left except its custom resource and
// possibly its volumes.
func (w *world) requireDeleted(t *testing.T, spec ...string) {
	t.Helper()
	w.declare(modern, append([]string{three}, spec...)...)
	w.convergeAsPlanned().requireRule(t, "a", "NothingRuns")
	pods, _, others := w.remains()
	if len(pods) > 0 || strings.Join(others, ", ") != "EtcdCluster a" {
		t.Errorf("pods %v and %v are left", pods, others)
	}
	w.run("--detailed-exitcode").requireCode(t, exitDone).requireRule(t, "a", "NothingRuns")
}

// requireBack declares the cluster running, and fails unless it is the same cluster, with that key.
func (w *world) requireBack(t *testing.T, id, key, value string) {
	t.Helper()
	w.declare(modern, three)
	w.convergeAsPlanned().requireRule(t, "a", "Converged")
	if got := w.requireOneCluster("a", 3); got != id {
		t.Errorf("cluster %s came back as cluster %s", id, got)
	}
	if got := w.member("a", 1).get(key); got != value {
		t.Errorf("the data came back as %q", got)
	}
	w.requireQuiet("a")
}
