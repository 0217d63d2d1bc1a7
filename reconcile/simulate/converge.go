package simulate

import "quorate.dev/quorate/reconcile/decide"

// Step is one pass of a path.
type Step struct {
	Decision decide.Decision
	// Writes contains the names of the writes: the action's first, then the status.
	Writes []string
	// Died is true if the pass was interrupted.
	Died bool
}

// Converge repeats passes, with a tick after each, until a pass returns Done or Block. most is the maximum number of
// passes.
func (w *World) Converge(most int) []Step { return w.converge(most, NoCrash, w.Pass) }

// ConvergeDying is like Converge, but the pass that does the n-th write dies right after that write.
func (w *World) ConvergeDying(most, n int) []Step { return w.converge(most, n, w.Pass) }

// ConvergeFailing is like Converge, but the write after the n-th fails without changing anything, which ends its pass.
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
