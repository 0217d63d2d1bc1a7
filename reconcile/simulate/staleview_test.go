package simulate_test

import (
	"fmt"
	"slices"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// inTheMiddle returns the worlds at every moment after a change, manual action or fault in a running cluster.
func inTheMiddle(t *testing.T) map[string][]place {
	t.Helper()
	changes := slices.Clone(changesOf)
	changes = append(changes, "fault kill-pod=a-1", "fault strand=a-1", "fault node-down=a-2", "person remove-member=a-1", "person add-learner=a-3", "person delete=(ConfigMap a-members)")
	if testing.Short() {
		changes = changes[:3]
	}
	places := map[string][]place{}
	for _, change := range changes {
		places[change] = momentsOf(change, 0)
	}
	return places
}

// TestEverySight checks that Quorate's writes do not lose recoverable data if, at any moment, one pass has an
// incomplete or outdated view. In a thorough run, two passes have such views, in all combinations.
func TestEverySight(t *testing.T) {
	var found table
	t.Run("all", func(t *testing.T) {
		for change, places := range inTheMiddle(t) {
			t.Run(change, func(t *testing.T) {
				t.Parallel()
				for i, p := range places {
					for j, glimpse := range glimpses(3) {
						if taken(i + j) {
							found.goesOn(p, glimpse)
						}
						for _, other := range glimpses(3) {
							if thorough() {
								found.goesOn(p, glimpse, other)
							}
						}
					}
				}
			})
		}
	})
	found.report(t)
}

// TestEverySightAfterADeed checks the same for an incomplete or outdated view shortly after a manual action or a fault.
func TestEverySightAfterADeed(t *testing.T) {
	var found table
	t.Run("all", func(t *testing.T) {
		for _, replicas := range []int{1, 3} {
			p := begin(fmt.Sprintf("cluster a replicas=%d seed=1", replicas)).after("pass 3")
			acts := deeds(replicas)
			for n := range replicas {
				acts = append(acts, faultsTo(n)...)
			}
			t.Run(fmt.Sprintf("%d replicas", replicas), func(t *testing.T) {
				t.Parallel()
				for i, a := range acts {
					for j, glimpse := range glimpses(replicas) {
						if taken(i + j) {
							found.goesOn(p, a, glimpse)
						}
						if taken(i + j + 1) {
							found.goesOn(p, a, act{do: "pass 1"}, glimpse)
						}
					}
				}
			})
		}
	})
	found.report(t)
}

// TestEveryLateDeed checks that writes are safe regardless of events between a decision and its execution, because
// everything that the writes rely on is read again.
func TestEveryLateDeed(t *testing.T) {
	var found table
	t.Run("all", func(t *testing.T) {
		for change, places := range inTheMiddle(t) {
			t.Run(change, func(t *testing.T) {
				t.Parallel()
				for i, p := range places {
					if decide.Decide(p.path.Observe()).Action == nil {
						continue
					}
					for j, a := range between(3) {
						if !taken(i + j) {
							continue
						}
						found.goesOn(p.after("decide", a.do, "act"), act{end: a.end})
						if thorough() {
							found.goesOn(p.after("decide", a.do, "tick 1", "act"), act{end: a.end})
						}
					}
				}
			})
		}
	})
	found.report(t)
}

// between returns possible events between a decision and its execution: manual actions, faults, time, and other passes.
func between(replicas int) []act {
	list := slices.DeleteFunc(deeds(replicas), func(a act) bool { return a.do == "person put-back-record" }) // passes cannot detect this
	list = append(list, act{do: "tick 2"}, act{do: "pass 1"}, act{do: "pass 2"}, act{do: "pass 5"})
	for n := range replicas {
		list = append(list, faultsTo(n)...)
	}
	return append(list, act{do: "set spec hash=h3"})
}
