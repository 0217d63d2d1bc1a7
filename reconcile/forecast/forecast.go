// Package forecast predicts the actions that passes will execute on a cluster, and the states of etcd between the
// actions. It applies the same rules as passes to a world simulated from the observed state.
package forecast

import (
	"slices"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/simulate"
)

// Assumed lists the assumptions of a forecast.
const Assumed = "pods start, images can be pulled, backups and restores succeed, and nothing else changes the cluster"

const (
	// most is the maximum number of passes in a forecast.
	most = 2000
	// patience is the maximum number of passes in one wait: more than half an hour of simulated time. A wait that has
	// not ended by then requires manual action.
	patience = 200
)

// Forecast is the predicted future of a cluster.
type Forecast struct {
	// Steps are the actions in order; the first is the action of the next pass.
	Steps []Step
	// End is the decision after the last action: Done, Block, or Wait for an external event. The message describes a
	// simulated world, unless Steps is empty or the rule is Recover.
	End decide.Decision
	// Open is set if the actions after the last step are unknown.
	Open bool
	// Start is the current state of etcd.
	Start Quorum

	// unasked is set if pods are ready but etcd did not return its member list, so the state of etcd is unknown.
	unasked bool
}

// Step is an action, with the states of the cluster until the next action.
type Step struct {
	Rule   string
	Action decide.Action
	// What describes the action. It contains only names, because future objects do not have IDs yet.
	What string
	// Before is the state of etcd when the action is decided. Lowest is the state in which the fewest voters may fail.
	// After is the state when the next action is decided.
	Before, Lowest, After Quorum
	// Restarts, Starts and Stops are the names of the pods that are recreated, created, and removed.
	Restarts, Starts, Stops []string
	// Creates and Deletes are the replicas whose volumes are created or deleted.
	Creates, Deletes []string
	// Discards describes the data that the action discards even though volumes are kept. It may be empty.
	Discards string
}

// Of returns the forecast for a cluster in state s. It is empty if nothing is left to do.
func Of(s decide.State) Forecast {
	s.LockHolder = "" // assume that the other process stops acting
	d := decide.Decide(s)
	forecast := Forecast{End: d, Start: quorumOf(s, Quorum{})}
	if d.Verdict != decide.Act && d.Verdict != decide.Wait {
		return forecast
	}
	ready := func(r decide.Replica) bool { return r.Pod == decide.PodReady }
	forecast.unasked = !s.Membership.Known && slices.ContainsFunc(s.Replicas, ready)
	if s.Objects.RunsReplicas > decide.MaxOrdinals { // it was scaled manually, and has too many pods to simulate
		forecast.open(s, d)
		return forecast
	}
	w := simulate.From(s, 0)
	seen := w.Observe()
	if !alike(s, d, decide.Decide(seen)) { // the observed state cannot be simulated, so only the first step is certain
		forecast.open(s, d)
		return forecast
	}
	forecast.follow(w, seen)
	return forecast
}

// open marks the forecast as open, with at most the first step known.
func (r *Forecast) open(s decide.State, d decide.Decision) {
	r.Open = true
	if d.Action != nil {
		r.Steps = []Step{newStep(s, d, r.Start)}
	}
}

// alike reports whether two decisions about a cluster are the same apart from IDs.
func alike(s decide.State, a, b decide.Decision) bool {
	if a.Rule != b.Rule || a.Verdict != b.Verdict {
		return false
	}
	return a.Action == nil || s.DescribeAction(a.Action) == s.DescribeAction(b.Action)
}

// follow runs simulated passes until nothing is left to do, a pass blocks, a wait takes too long, or only the requested
// recovery is left, which this run must not carry out.
func (r *Forecast) follow(w *simulate.World, seen decide.State) {
	at, waited := quorumOf(seen, r.Start), 0
	for range most {
		d, _ := w.Pass(simulate.NoCrash)
		if inVain := d.Verdict == decide.Block && r.End.Verdict == decide.Wait && r.End.Rule == d.Rule; !inVain {
			r.End = d
		}
		switch d.Verdict {
		case decide.Done, decide.Block:
			return
		case decide.Wait:
			if waited++; waited > patience {
				return
			}
		case decide.Act:
			waited = 0
			r.Steps = append(r.Steps, newStep(seen, d, at))
		}
		refused := seen.RefusedRecovery()
		ends := refused != "" && decide.Decide(w.Observe()).Verdict != decide.Act
		if !ends {
			w.Tick()
		}
		now := w.Observe()
		at = quorumOf(now, at)
		if n := len(r.Steps); n > 0 {
			r.Steps[n-1].watch(seen, now, at)
		}
		if ends {
			r.End = decide.Decision{Rule: decide.Recover, Verdict: decide.Block, Message: refused}
			return
		}
		seen = now
	}
	r.Open = true
}
