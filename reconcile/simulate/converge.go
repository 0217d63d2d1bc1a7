package simulate

import "quorate.dev/quorate/reconcile/decide"

// Step is one pass of a path.
type Step struct {
	Decision decide.Decision
	// Writes by their names; those of the action first, then the status.
	Writes []string
	// Died: the pass did not get to its end.
	Died bool
}

// Converge repeats passes, a tick after each, until one says Done or Block, at most that many.
func (w *World) Converge(most int) []Step { return w.converge(most, NoCrash, w.Pass) }

// ConvergeDying is Converge in which the pass that does the n-th write dies right after it. The
// next one goes on.
func (w *World) ConvergeDying(most, n int) []Step { return w.converge(most, n, w.Pass) }

// ConvergeFailing is Converge in which the write after the n-th fails without having changed
// anything, and its pass ends.
func (w *World) ConvergeFailing(most, n int) []Step { return w.converge(most, n, w.PassFailing) }

func (w *World) converge(most, n int, pass func(int) (decide.Decision, []string)) []Step {
	var steps []Step
	for len(steps) < most {
		d, writes := pass(n)
		disturbed := n != NoCrash && len(writes) >= n
		steps = append(steps, Step{Decision: d, Writes: writes, Died: disturbed})
		switch {
		case disturbed:
			n, pass = NoCrash, w.Pass
		case d.Verdict == decide.Done || d.Verdict == decide.Block:
			return steps
		case n != NoCrash:
			n -= len(writes)
		}
		w.Tick()
	}
	return steps
}
