package scenarios

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestLifecycle stops, deletes and suspends a cluster, and starts it again.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	walk(t,
		step{"TestPauseControl", testPauseControl},
		step{"Stopped", testStopped},
		step{"DeletedRetain", testDeletedRetain},
		step{"DeletedDelete", testDeletedDelete},
		step{"VolumesWithOldData", testVolumesWithOldData},
	)
}

// testPauseControl checks that, while a cluster is suspended, Kubernetes keeps it running and passes do not change it.
// Changes declared during the suspension are made once the cluster is resumed.
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

// remains returns the remaining pods, volumes and other objects of a cluster that is not running.
func (w *world) remains() (pods, volumes []string, others []string) {
	w.t.Helper()
	for name := range w.snapshot() {
		others = append(others, name)
	}
	slices.Sort(others)
	return sorted(w.podUIDs("a")), sorted(w.volumeUIDs("a")), others
}

// testStopped checks that pods are stopped in order, and that volumes and the cluster ID are kept.
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
		t.Errorf("the status has %+v", s)
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

// testDeletedRetain checks that everything except the volumes is deleted, and that the cluster comes back with its data
// when it is declared again.
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

// testDeletedDelete checks that volumes are deleted as well. If declared again, the cluster is new and empty.
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

// testVolumesWithOldData deletes a cluster and its claims, and gives the same persistent volumes to a new cluster,
// whose members start on the old data. These members are not sealed, clients cannot reach them, and the volumes are
// kept. The old cluster comes back once its data is confirmed by deleting the record.
func testVolumesWithOldData(t *testing.T, w *world) {
	id := w.requireOneCluster("a", 3)
	w.member("a", 0).put("old", "data")
	var volumes []string
	for _, claim := range w.list(claims) {
		volume, _, _ := unstructured.NestedString(claim.Object, "spec", "volumeName")
		volumes = append(volumes, volume)
	}
	w.setReclaimPolicy("Retain", volumes...)
	w.requireDeleted(t, "lifecycle: Deleted", "storage: {retention: Delete}")
	w.kubectl(append([]string{"wait", "pv", "--for=jsonpath={.status.phase}=Released", "--timeout=60s"}, volumes...)...)
	w.kubectl(append([]string{"patch", "pv", "--patch", `{"spec":{"claimRef":{"uid":null,"resourceVersion":null}}}`}, volumes...)...)

	w.declare(modern, three)
	w.run("--until-converged", "--timeout", "60s").requireCode(t, exitBlocked).requireRule(t, "a", "ClusterIDMismatch")
	w.waitForPods("a", 3) // the run may have ended before all pods started
	eventually(t, "all members respond", func() error {
		if r := w.run().requireCode(t, exitBlocked); !r.says("a-0, a-1 and a-2 started on data that existed before") {
			return errors.New(r.String())
		}
		return nil
	})
	if service, err := w.object(services, "a-client"); err != nil || service.Object["spec"].(map[string]any)["selector"] != nil {
		t.Errorf("clients reach the old data: %v, %v", service, err)
	}
	if got := w.status("a").ClusterID; got != "" {
		t.Errorf("the status has cluster %s", got)
	}

	kept := w.volumeUIDs("a")
	w.disturb(disturbance{"record deleted", configMaps, "a-members", `{"data":{"record.yaml":null}}`})
	w.requireBack(t, id, "old", "data")
	if now := w.volumeUIDs("a"); !maps.Equal(now, kept) {
		t.Errorf("volumes before %v, after %v", kept, now)
	}
	w.setReclaimPolicy("Delete", volumes...)
}

// requireDeleted declares the cluster deleted, and fails unless only its custom resource and possibly its volumes
// remain.
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

// requireBack declares the cluster running, and fails unless it is the same cluster, with the given key and value.
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
