package scenarios

import (
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"

	"quorate.dev/quorate/sandbox/scenarios/faultproxy"
)

// TestTwoPassesAtOnce pauses a pass in the middle of bootstrapping. A second pass must name the holder of the lease
// without changing anything. Then both passes must succeed.
func TestTwoPassesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository.push(map[string]string{"a.yaml": declaration("a", modern, three)})
	proxy := w.newProxy()
	var once sync.Once
	reached, release := make(chan struct{}), make(chan struct{})
	proxy.Break(func(r faultproxy.Request) faultproxy.Fault {
		if r.Resource == "statefulsets" && r.Write > 0 {
			once.Do(func() { close(reached) })
			return faultproxy.Pause(release)
		}
		return nil
	})
	first := w.start(through(proxy), "run", "--until-converged", "--timeout", patience.String())
	<-reached
	before := w.snapshot()
	second := w.run().requireCode(t, exitLocked)
	if holder := fmt.Sprintf("process %d ", first.command.Process.Pid); !second.says(holder) {
		t.Errorf("the second pass does not report that %sholds the lease:\n%s", holder, second)
	}
	if touched := difference(before, w.snapshot()); touched != "" {
		t.Errorf("the second pass touched objects that the first works on: %s", touched)
	}
	close(release)
	first.wait().requireCode(t, exitDone)
	w.requireOneCluster("a", 3)
	w.converge()
	w.requireQuiet("a")
}

// TestManyPassesAtOnce starts several passes at the same moment. The result must be one cluster, regardless of which
// pass gets the lease.
func TestManyPassesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository.push(map[string]string{"a.yaml": declaration("a", modern, three)})
	var passes []*process
	for range 3 {
		passes = append(passes, w.start(outside, "run", "--until-converged", "--timeout", patience.String()))
	}
	for _, p := range passes {
		if r := p.wait(); r.code != exitDone && r.code != exitLocked {
			t.Errorf("a concurrent pass failed:\n%s", r)
		}
	}
	w.converge()
	w.requireOneCluster("a", 3)
	w.requireQuiet("a")
}

// TestStalledPassWakesLate stops a pass in the middle of bootstrapping until another pass has taken its lease and
// finished. Anything that the first pass does afterwards must be harmless.
func TestStalledPassWakesLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository.push(map[string]string{"a.yaml": declaration("a", modern, three)})
	proxy := w.newProxy()
	started, stopped := make(chan *process, 1), make(chan struct{})
	proxy.Break(faultproxy.AtWrite(3, faultproxy.DropAnswer(func() { (<-started).pause(); close(stopped) })))
	first := w.start(through(proxy), "run", setting("kubernetes.leaseDuration", "2s"))
	started <- first
	<-stopped
	w.convergeFrom(outside, setting("kubernetes.leaseDuration", "2s"))
	id, pods := w.requireOneCluster("a", 3), w.podUIDs("a")
	first.resume()
	first.wait()
	w.converge()
	if got := w.requireOneCluster("a", 3); got != id {
		t.Errorf("cluster %s became cluster %s", id, got)
	}
	if now := w.podUIDs("a"); !maps.Equal(now, pods) {
		t.Errorf("pods before %v, after %v", pods, now)
	}
	w.requireQuiet("a")
}

// TestLateWriteUndoesNothing stops a pass and delays its next write until another pass has taken its lease,
// repaired the cluster and added a member. The late write targets an outdated StatefulSet: the new member must
// keep its pod.
func TestLateWriteUndoesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare(modern, plain, three)
	w.converge()
	w.disturb(disturbance{"scaled by hand", statefulSets, "a", `{"spec":{"replicas":2}}`})
	proxy := w.newProxy()
	var once sync.Once
	reached, release := make(chan struct{}), make(chan struct{})
	proxy.Break(func(r faultproxy.Request) faultproxy.Fault {
		if r.Resource == "statefulsets" && r.Write > 0 {
			once.Do(func() { close(reached) })
			return faultproxy.Pause(release)
		}
		return nil
	})
	first := w.start(through(proxy), "run", setting("kubernetes.leaseDuration", "2s"))
	<-reached
	first.pause()
	w.converge(setting("kubernetes.leaseDuration", "2s"))
	w.declare(modern, plain, "replicas: 4")
	w.converge(setting("kubernetes.leaseDuration", "2s"))
	pods := w.podUIDs("a")
	close(release)
	eventually(t, "the answer to what was written late", func() error {
		for _, r := range proxy.Writes() {
			if r.Resource == "statefulsets" && r.Status != http.StatusConflict {
				return fmt.Errorf("%s", r)
			}
		}
		return nil
	})
	first.resume()
	if r := first.wait(); r.code != exitDone && r.code != exitLocked {
		t.Errorf("what came late is an error:\n%s", r)
	}
	for _, r := range proxy.Writes() {
		if r.Status < http.StatusBadRequest && r.Resource != "leases" && r.Resource != "events" {
			t.Errorf("the pass that lost its lease has written: %s", r)
		}
	}
	if now := w.podUIDs("a"); !maps.Equal(now, pods) {
		t.Errorf("pods before %v, after %v", pods, now)
	}
	w.requireOneCluster("a", 4)
	w.requireQuiet("a")
}
