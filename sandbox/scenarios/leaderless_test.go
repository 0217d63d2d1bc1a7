package scenarios

import (
	"maps"
	"slices"
	"syscall"
	"testing"
)

// testLeaderlessScaleIn declares fewer members while the cluster has no quorum, and checks that nothing is removed
// until quorum is restored.
func testLeaderlessScaleIn(t *testing.T, w *world) {
	volumes, members := w.volumeUIDs("a"), w.memberIDs("a")
	for _, pod := range []string{"a-1", "a-2"} {
		w.signal(pod, syscall.SIGSTOP)
	}
	w.declare(modern, one)
	proxy := w.newProxy()
	r := w.runFrom(through(proxy), "run")
	requests := proxy.Requests()
	for _, pod := range []string{"a-1", "a-2"} {
		w.signal(pod, syscall.SIGCONT)
	}
	if rule := r.cluster("a").Decision.Rule; !slices.Contains([]string{"MembershipUnknown", "QuorumLost", "ApplyObjects"}, rule) {
		t.Errorf("without quorum, %s decides:\n%s", rule, r)
	}
	for _, request := range requests {
		if request.Verb == "delete" || request.Verb == "deletecollection" {
			t.Errorf("without quorum: %s", request)
		}
	}
	w.declare(modern, three)
	w.waitForPods("a", 3)
	w.converge()
	w.requireSize(3)
	if now := w.volumeUIDs("a"); !maps.Equal(now, volumes) {
		t.Errorf("volumes before %v, after %v", volumes, now)
	}
	if now := w.memberIDs("a"); !maps.Equal(now, members) {
		t.Errorf("members before %v, after %v", members, now)
	}
	w.resize(1)
	w.resize(3)
}

// memberIDs returns the members' IDs by name, from the status.
func (w *world) memberIDs(cluster string) map[string]string {
	w.t.Helper()
	ids := map[string]string{}
	for _, m := range w.status(cluster).Members {
		ids[m.Name] = m.ID
	}
	return ids
}
