package simulate_test

import (
	"fmt"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/simulate"
)

// momentsOfDowngrade returns the worlds before each pass of a downgrade from 3.6 to 3.5.
func momentsOfDowngrade(t *testing.T) []*simulate.World {
	w := formed(t, 3)
	w.Declared.Version = "3.5.35"
	var worlds []*simulate.World
	for range w.Clone().Converge(patienceOfTests) {
		worlds = append(worlds, w.Clone())
		w.Pass(simulate.NoCrash)
		w.Tick()
	}
	return worlds
}

// TestMemberLostDuringDowngradeIsReplaced checks that a member lost at any moment of a downgrade is replaced, and that
// the downgrade completes. If it was the only member with the older version, a Block names the version to declare
// first.
func TestMemberLostDuringDowngradeIsReplaced(t *testing.T) {
	for n, start := range momentsOfDowngrade(t) {
		for member := range 3 {
			name := fmt.Sprintf("a-%d is lost before pass %d", member, n+1)
			w := start.Clone()
			w.LoseVolume(member)
			d := endOf(w)
			if d.Rule == "ScaleUp" && strings.Contains(d.Message, "members older than 3.6 cannot join this cluster. Declare etcd 3.6.16") {
				w.Declared.Version = "3.6.16"
				endOf(w)
				w.Declared.Version = "3.5.35"
				d = endOf(w)
			}
			if d.Verdict != decide.Done || !isWhole(w) || w.CommonVersion() != "3.5" {
				t.Errorf("%s: it ends at %s, whole %t: %s", name, w.CommonVersion(), isWhole(w), d)
			}
			for _, fault := range w.Violations() {
				t.Errorf("%s: %s", name, fault)
			}
		}
	}
}

// TestRevertAlwaysCancelsDowngrade checks that a downgrade is canceled, and that the cluster ends up matching the spec,
// if a member is lost at any moment of the downgrade and the declared version is then reverted.
func TestRevertAlwaysCancelsDowngrade(t *testing.T) {
	for n, start := range momentsOfDowngrade(t) {
		for member := range 3 {
			for passes := range 6 {
				w := start.Clone()
				w.LoseVolume(member)
				for range passes {
					w.Pass(simulate.NoCrash)
					w.Tick()
				}
				w.Declared.Version = "3.6.16"
				d := endOf(w)
				if s := w.Observe(); d.Verdict != decide.Done || !isWhole(w) || s.Membership.Downgrade != "" || w.CommonVersion() != "3.6" {
					t.Errorf("a-%d is lost before pass %d, reverted %d passes later: it ends at %s, whole %t, downgrade %q: %s", member, n+1, passes,
						w.CommonVersion(), isWhole(w), s.Membership.Downgrade, d)
				}
			}
		}
	}
}

// endOf runs passes until they converge, and returns the last decision.
func endOf(w *simulate.World) decide.Decision {
	steps := w.Converge(patienceOfTests)
	return steps[len(steps)-1].Decision
}
