package scenarios

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quorate.dev/quorate/sandbox/scenarios/faultproxy"
)

// passLimit is the maximum duration of a pass on a busy machine, regardless of the API server's behavior.
const passLimit = 150 * time.Second

// faults lists API server faults, each with the number of tests that run in parallel. TestFirstAttemptsFail covers the
// other status codes.
var faults = []struct {
	name   string
	fault  faultproxy.Fault
	atOnce int
}{
	{"500", faultproxy.Answer(http.StatusInternalServerError), 3},
	{"hang", faultproxy.Hang(), 8}, // most of the time is spent waiting
	{"answer lost", faultproxy.DropAnswer(nil), 3},
}

// unschedulable prevents the cluster's pods from being scheduled. Tests of a pass's requests to Kubernetes do not need
// pods.
const unschedulable = "pod: {nodeSelector: {nowhere: here}}"

// TestAPIServerFaults breaks each request of a bootstrap pass in turn, with each fault. The pass must end in bounded
// time, with success or an error that explains the failure. The next pass must create all missing objects.
func TestAPIServerFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository.push(map[string]string{"a.yaml": declaration("a", modern, three, unschedulable)})
	proxy := w.newProxy()
	w.runUntilWaiting(through(proxy)).requireCode(t, exitNotConverged)
	requests := ofFirstPass(proxy)
	want := w.snapshot()
	t.Logf("a founding pass makes %d requests", requests)

	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			forEach(requests, f.atOnce, func(index int) { testFaultOfFounding(t, f.name, index+1, f.fault, want) })
		})
	}
}

// ofFirstPass returns the number of requests in the first pass. A run that continues after the first pass watches for
// changes.
func ofFirstPass(proxy *faultproxy.Proxy) int {
	requests := proxy.Requests()
	if i := slices.IndexFunc(requests, func(r faultproxy.Request) bool { return r.Verb == "watch" }); i >= 0 {
		return i
	}
	return len(requests)
}

func testFaultOfFounding(t *testing.T, name string, index int, fault faultproxy.Fault, want map[string]string) {
	w := newWorld(t)
	w.repository.push(map[string]string{"a.yaml": declaration("a", modern, three, unschedulable)})
	proxy := w.newProxy()
	proxy.Break(faultproxy.At(index, fault))
	r := w.runUntilWaiting(through(proxy), setting("kubernetes.leaseDuration", "1s"))
	what := fmt.Sprintf("%s at request %d", name, index)
	if requests := proxy.Requests(); len(requests) >= index {
		what = fmt.Sprintf("%s at %s", name, requests[index-1])
	}
	requireGoodEnd(t, what, r)
	if second := w.untilNothingToAdd(); second.code != exitNotConverged {
		d := second.cluster("a").Decision
		t.Errorf("%s: the next pass does not continue: exit code %d after %s, %s: %s\n%s", what, second.code, second.took, d.Rule, d.Message, second)
	}
	if wrong := difference(want, w.snapshot()); wrong != "" {
		t.Errorf("%s: after the next pass: %s", what, wrong)
	}
}

// untilNothingToAdd runs passes until the cluster is only waiting for its pods.
func (w *world) untilNothingToAdd() (r result) {
	_ = poll(w.ctx(), patience, func() error {
		r = w.runUntilWaiting(outside, setting("kubernetes.leaseDuration", "1s"))
		if rule := r.cluster("a").Decision.Rule; r.code != exitNotConverged || rule != "WaitForFormation" {
			return fmt.Errorf("exit code %d, rule %s", r.code, rule)
		}
		return nil
	})
	return r
}

// requireGoodEnd fails the test unless the run ended in bounded time, without a stack trace, and with success or an
// error that explains the failure.
func requireGoodEnd(t *testing.T, what string, r result) {
	t.Helper()
	said := r.report.Error != "" || r.cluster("a").Error != "" || strings.Contains(r.stderr, "rror")
	switch {
	case r.took > passLimit:
		t.Errorf("%s: the pass took %s:\n%s", what, r.took, r)
	case strings.Contains(r.stderr, "goroutine "):
		t.Errorf("%s: the pass crashed:\n%s", what, r)
	case r.code == exitError && !said:
		t.Errorf("%s: the pass failed without a reason:\n%s", what, r)
	case r.code != exitDone && r.code != exitError && r.code != exitLocked && r.code != exitNotConverged:
		t.Errorf("%s: exit code %d:\n%s", what, r.code, r)
	}
}

// testFaultsOfQuietPass breaks each request of a pass that finds nothing to do. The faults must not cause the pass to
// write.
func testFaultsOfQuietPass(t *testing.T, w *world) {
	proxy := w.newProxy()
	w.runFrom(through(proxy), "run").requireCode(t, exitDone)
	requests := len(proxy.Requests())
	id, pods := w.requireOneCluster("a", 3), w.podUIDs("a")
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			w := w.as(t)
			forEach(requests, f.atOnce, func(index int) { w.breakQuietPass(t, f.name, index+1, f.fault) })
			w.converge().requireRule(t, "a", "Converged")
		})
	}
	if got, now := w.requireOneCluster("a", 3), w.podUIDs("a"); got != id || fmt.Sprint(now) != fmt.Sprint(pods) {
		t.Errorf("cluster %s with pods %v became cluster %s with pods %v", id, pods, got, now)
	}
}

func (w *world) breakQuietPass(t *testing.T, name string, index int, fault faultproxy.Fault) {
	proxy := w.newProxy()
	proxy.Break(faultproxy.At(index, fault))
	r := w.runFrom(through(proxy), "run", setting("kubernetes.leaseDuration", "1s"))
	what := fmt.Sprintf("%s at request %d", name, index)
	if requests := proxy.Requests(); len(requests) >= index {
		what = fmt.Sprintf("%s at %s", name, requests[index-1])
	}
	requireGoodEnd(t, what, r)
	requireOnlyTold(t, proxy)
}

// TestFirstAttemptsFail bootstraps a cluster while the first attempt of every request fails.
func TestFirstAttemptsFail(t *testing.T) {
	t.Parallel()
	for _, code := range []int{http.StatusConflict, http.StatusTooManyRequests, http.StatusInternalServerError} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.repository.push(map[string]string{"a.yaml": declaration("a", modern, three)})
			proxy := w.newProxy()
			proxy.Break(faultproxy.FirstOfEach(faultproxy.Answer(code)))
			eventually(t, "a cluster, all the same", func() error {
				r := w.runFrom(through(proxy), "run", "--until-converged", "--timeout", "60s", setting("kubernetes.leaseDuration", "3s"))
				if r.code != exitDone {
					return fmt.Errorf("exit code %d", r.code)
				}
				return nil
			})
			w.requireOneCluster("a", 3)
			w.requireQuiet("a")
		})
	}
}

// forEach calls do with 0 to n-1, with at most atOnce calls in parallel.
func forEach(n, atOnce int, do func(int)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	group.Wait()
}
