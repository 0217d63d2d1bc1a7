package simulate

import "quorate.dev/quorate/reconcile/decide"

// mostToSettle is the maximum number of passes for a bootstrap, and for each later change.
const mostToSettle = 500

// Settled returns a world in which passes have created the declared cluster without faults. They have bootstrapped the
// cluster and then, if declared, stopped, suspended or deleted it. Settled also returns the last decision, which is
// Done unless the declared state is unreachable. The same declaration always produces the same world.
func Settled(name string, declared decide.Declared) (*World, decide.Decision) {
	founded := declared
	// A cluster may not be able to bootstrap in the declared state.
	founded.Lifecycle, founded.Suspended, founded.Problems = decide.Running, false, nil
	founded.Restore, founded.Recovery = decide.RestoreSource{}, decide.RecoveryOrder{}
	founded.Orphaned, founded.RenamedFrom, founded.ConfirmedMembers = "", "", ""
	w := New(name, founded, 0)
	if d := w.settle(); d.Verdict != decide.Done {
		return w, d
	}
	w.Declared = declared
	return w, w.settle()
}

// settle repeats passes until nothing is left to do or a pass blocks.
func (w *World) settle() (d decide.Decision) {
	for _, step := range w.Converge(mostToSettle) {
		d = step.Decision
	}
	return d
}
