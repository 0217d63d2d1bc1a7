package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestResizing resizes a cluster to common sizes while an application writes.
func TestResizing(t *testing.T) {
	t.Parallel()
	walk(t,
		step{"ScaleUp", func(t *testing.T, w *world) { w.resize(4) }},
		step{"ScaleDown", func(t *testing.T, w *world) { w.resize(3); w.resize(1); w.resize(3) }},
		step{"TestResizeCluster3to5", func(t *testing.T, w *world) { w.resize(5) }},
		step{"TestResizeCluster5to3", func(t *testing.T, w *world) { w.resize(3) }},
		step{"NoRoom", testNoRoom},
		step{"RevertMidScale", testRevertMidScale},
		step{"LeaderlessScaleIn", testLeaderlessScaleIn},
	)
}

// TestInterruptedResizing kills quorate in the middle of a resize. The next run must continue to the declared
// size.
func TestInterruptedResizing(t *testing.T) {
	t.Parallel()
	walk(t,
		step{"ScaleInFrom3To1", func(t *testing.T, w *world) { w.resize(1) }},
		step{"ScaleOutFrom1To3", func(t *testing.T, w *world) { w.resize(3) }},
		step{"ScaleInFrom3To1WithPanicFailpoint", func(t *testing.T, w *world) { w.resizeKilled(1) }},
		step{"ScaleOutFrom1To3WithPanicFailpoint", func(t *testing.T, w *world) { w.resizeKilled(3) }},
		step{"ScaleChurn", testScaleChurn},
	)
}

// TestSingleEditJump changes the size by four in one commit.
func TestSingleEditJump(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare(modern, one)
	w.converge()
	w.requireSize(1)
	w.resize(5)
	w.resize(1)
}

// TestEvenSize runs clusters of two and four members. They do not tolerate more failures than clusters of one and three
// members, but are equally correct.
func TestEvenSize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare(modern, "replicas: 2")
	w.converge()
	w.requireSize(2)
	w.resize(4)
	w.declare(modern, "replicas: 2")
	w.runFrom(outside, "plan", patientWithEtcd, "--fail-on", "loses-quorum").requireCode(t, exitDone)
	w.runFrom(outside, "plan", patientWithEtcd, "--fail-on", "loses-quorum,deletes-data").requireCode(t, exitBlocked)
	w.resize(2)
}

// resize declares the given size while applications write, and runs passes until the cluster has that size. The
// applications' data and the cluster ID must be kept.
func (w *world) resize(size int) {
	w.t.Helper()
	w.resizeBy(size, func() { w.convergeAsPlanned().requireRule(w.t, "a", "Converged") })
}

// resizeKilled is like resize, but kills the run after its first change to the StatefulSet, and then starts another
// run.
func (w *world) resizeKilled(size int) {
	w.t.Helper()
	w.resizeBy(size, func() { w.killAtFirst("patch", "statefulsets"); w.converge() })
}

func (w *world) resizeBy(size int, run func()) {
	w.t.Helper()
	id := w.status("a").ClusterID
	history := w.watchWrites(5)
	w.declare(modern, fmt.Sprintf("replicas: %d", size))
	run()
	history.end()
	w.requireSize(size)
	if now := w.status("a").ClusterID; now != id {
		w.t.Errorf("cluster %s became cluster %s", id, now)
	}
}

// requireSize fails unless cluster a consists of members 0 to n-1, without leftovers of other members.
func (w *world) requireSize(n int) {
	w.t.Helper()
	w.requireOneCluster("a", n)
	var names []string
	for ordinal := range n {
		names = append(names, fmt.Sprint("a-", ordinal))
	}
	eventually(w.t, fmt.Sprintf("pods and volumes of %d members", n), func() error {
		if pods, volumes := sorted(w.podUIDs("a")), sorted(w.volumeUIDs("a")); !slices.Equal(pods, names) || !slices.Equal(volumes, names) {
			return fmt.Errorf("pods %v and volumes %v, want %v", pods, volumes, names)
		}
		return nil
	})
	if configured := w.configured(); !slices.Equal(configured, names) {
		w.t.Errorf("got configuration files for %v, want %v", configured, names)
	}
	budget, err := w.kube.PolicyV1().PodDisruptionBudgets(w.namespace).Get(w.ctx(), "a", metav1.GetOptions{})
	if err != nil || budget.Spec.MinAvailable.IntValue() != n/2+1 {
		w.t.Errorf("the budget keeps %v of %d, want %d: %v", budget.Spec.MinAvailable, n, n/2+1, err)
	}
	s := w.status("a")
	if want := fmt.Sprintf("%d/%d", n, n); s.Voters != want || s.Replicas != n || len(s.Members) != n || len(s.Endpoints) != n {
		w.t.Errorf("the status has %s, %d replicas, %d members, %d endpoints, want %s", s.Voters, s.Replicas, len(s.Members), len(s.Endpoints), want)
	}
}

// configured lists the pods that have a configuration file. All of them must be sealed, so that they cannot bootstrap a
// cluster.
func (w *world) configured() []string {
	w.t.Helper()
	record, err := w.object(configMaps, "a-members")
	if err != nil {
		w.t.Fatal(err)
	}
	pods := map[string]bool{}
	data, _ := record.Object["data"].(map[string]any)
	for key, text := range data {
		if !strings.HasPrefix(key, "a-") {
			continue
		}
		ordinal, _, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(key, "a-"), ".yaml"), "-")
		pods["a-"+ordinal] = true
		if !strings.HasPrefix(text.(string), "# Sealed") {
			w.t.Errorf("the configuration %s is not sealed:\n%s", key, text)
		}
	}
	return sorted(pods)
}

func sorted[V any](set map[string]V) []string { return slices.Sorted(maps.Keys(set)) }

// testRevertMidScale declares a different size, first five and then one. It declares three members again after the
// run's first change to the StatefulSet.
func testRevertMidScale(t *testing.T, w *world) {
	want := w.snapshot()
	for _, size := range []int{5, 1} {
		w.resizeBy(3, func() {
			w.declare(modern, fmt.Sprintf("replicas: %d", size))
			w.killAtFirst("patch", "statefulsets")
			w.declare(modern, three)
			w.converge()
		})
		if wrong := difference(want, w.snapshot()); wrong != "" {
			t.Errorf("after %d and back: %s", size, wrong)
		}
	}
	w.requireQuiet("a")
}

// testScaleChurn repeatedly declares a different size before the previous size is reached, and kills each unfinished
// run.
func testScaleChurn(t *testing.T, w *world) {
	w.resizeBy(3, func() {
		for _, size := range []int{5, 2, 4, 1, 5, 3} {
			w.declare(modern, fmt.Sprintf("replicas: %d", size))
			p := w.start(outside, "run", "--until-converged", "--timeout", patience.String(), setting("kubernetes.leaseDuration", "3s"))
			changed := time.AfterFunc(3*time.Second, p.kill)
			if r := p.wait(); r.code != exitDone && r.code != exitKilled {
				t.Errorf("on the way to %d:\n%s", size, r)
			}
			changed.Stop()
		}
		w.converge()
	})
}
