package simulate

import "quorate.dev/quorate/reconcile/decide"

// mostToSettle is how many passes a founding may take, and each change after it.
const mostToSettle = 500

// Settled returns a world in which passes have made of nothing what is declared, and all has gone well: it was
// founded, and then stopped, suspended or deleted if that is declared. It returns what the last of them has decided,
// too: Done, unless what is declared cannot be had. The same declaration always gives the same world.
func Settled(name string, declared decide.Declared) (*World, decide.Decision) {
	founded := declared
	// Git may declare today what it could not be founded from: nobody knows how it began.
	founded.Lifecycle, founded.Suspended, founded.Problems = decide.Running, false, nil
	founded.Restore, founded.Recovery = decide.RestoreSource{}, decide.RecoveryOrder{}
	founded.Orphaned, founded.RenamedFrom, founded.ConfirmedMembers = "", "", nil
	w := New(name, founded, 0)
	if d := w.settle(); d.Verdict != decide.Done {
		return w, d
	}
	w.Declared = declared
	return w, w.settle()
}

// settle repeats passes until one finds nothing left to do, or stops for a person.
func (w *World) settle() (d decide.Decision) {
	for _, step := range w.Converge(mostToSettle) {
		d = step.Decision
	}
	return d
}
