package simulate

import "quorate.dev/quorate/reconcile/decide"

// Step is one pass of a road.
type Step struct {
	Decision decide.Decision
	// Writes by their names; those of the action first, then the status.
	Writes []string
	// Died: the pass did not get to its end.
	Died bool
}

// Converge repeats passes, a tick after each, until one says Done or Block, at most that many.
func (w *World) Converge(most int) []Step { return w.ConvergeDying(most, NoCrash) }

// ConvergeDying is Converge in which the pass that does the n-th write dies right after it. The next one goes on.
func (w *World) ConvergeDying(most, n int) []Step {
	var steps []Step
	for len(steps) < most {
		d, writes := w.Pass(n)
		died := n != NoCrash && len(writes) == n
		steps = append(steps, Step{Decision: d, Writes: writes, Died: died})
		switch {
		case died:
			n = NoCrash
		case d.Verdict == decide.Done || d.Verdict == decide.Block:
			return steps
		case n != NoCrash:
			n -= len(writes)
		}
		w.Tick()
	}
	return steps
}
