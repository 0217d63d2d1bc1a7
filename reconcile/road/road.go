// Package road foretells what passes will do to a cluster: the actions that follow one another, and what etcd goes
// through meanwhile. It decides by the rules that passes go by, in a world made from what was observed; there is no
// second list of steps.
package road

import (
	"slices"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/simulate"
)

// Assumed is what a road takes for granted.
const Assumed = "pods come up, images can be pulled, backups and restores succeed, and nobody else acts meanwhile"

const (
	// most is how many passes a road is followed for.
	most = 2000
	// patience is how many passes one wait may take: more than half an hour of the simulated world, after which a wait
	// that nothing has ended is for a person.
	patience = 200
)

// Road is what lies before a cluster.
type Road struct {
	// Steps are the actions, one after the other; the first is that of the next pass.
	Steps []Step
	// End is what is decided when no action follows any more: Done; Block; or Wait, for what only the world can end.
	// Its message is about a world that is made up, unless there are no steps.
	End decide.Decision
	// Open: the road goes on beyond its last step, nobody knows where to.
	Open bool
	// Start is where etcd stands now.
	Start Standing

	// unasked: pods are ready, and etcd gave no list, so nobody knows where it stands.
	unasked bool
}

// Step is one action, and what the cluster goes through until the next one.
type Step struct {
	Rule   string
	Action decide.Action
	// What the action does, by names alone: what is yet to come has no IDs.
	What string
	// Before is where etcd stands when the action is decided on, Lowest where fewest voters could fail, and After
	// when the next action is decided on.
	Before, Lowest, After Standing
	// Restarts, Starts and Stops are the pods, by name, that are recreated, new, and gone.
	Restarts, Starts, Stops []string
	// Creates and Deletes are the replicas whose volume is new, or deleted.
	Creates, Deletes []string
}

// Ahead returns the road from a state. It is empty where nothing is to be done.
func Ahead(s decide.State) Road {
	s.LockHolder = "" // nobody else acts meanwhile
	d := decide.Decide(s)
	road := Road{End: d, Start: standing(s, Standing{})}
	if d.Verdict != decide.Act && d.Verdict != decide.Wait {
		return road
	}
	ready := func(r decide.Replica) bool { return r.Pod == decide.PodReady }
	road.unasked = !s.Membership.Known && slices.ContainsFunc(s.Replicas, ready)
	if s.Objects.RunsReplicas > decide.MaxOrdinals { // somebody has scaled it: it is not followed pod by pod
		road.open(s, d)
		return road
	}
	w := simulate.From(s, 0)
	seen := w.Observe()
	if !alike(s, d, decide.Decide(seen)) { // what was observed cannot be made up: only the first step is certain
		road.open(s, d)
		return road
	}
	road.follow(w, seen)
	return road
}

// open makes it a road of which at most the first step is known.
func (r *Road) open(s decide.State, d decide.Decision) {
	r.Open = true
	if d.Action != nil {
		r.Steps = []Step{newStep(s, d, r.Start)}
	}
}

// alike reports whether two decisions of a cluster are the same but for IDs.
func alike(s decide.State, a, b decide.Decision) bool {
	if a.Rule != b.Rule || a.Verdict != b.Verdict {
		return false
	}
	return a.Action == nil || What(s, a.Action) == What(s, b.Action)
}

// follow passes until nothing is left to do, or nothing moves any more.
func (r *Road) follow(w *simulate.World, seen decide.State) {
	at, waited := standing(seen, r.Start), 0
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
		w.Tick()
		now := w.Observe()
		at = standing(now, at)
		if n := len(r.Steps); n > 0 {
			r.Steps[n-1].watch(seen, now, at)
		}
		seen = now
	}
	r.Open = true
}
