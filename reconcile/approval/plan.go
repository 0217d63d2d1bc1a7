package approval

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/road"
)

// Plan approves the roads of a plan that a person has seen: of each cluster its actions, one after the other, but that
// those of one kind in a row may change places, as may those by which members join; and none of a cluster that had
// none. An action that has become needless is left out. Whatever else differs is refused, and so is all that comes
// after an open end. At every step, the whole spec is compared with the planned one.
type Plan struct {
	mu    sync.Mutex
	roads map[string]*way
}

// way is what is left of a road.
type way struct {
	steps []road.Step
	// token tells the cluster from another one of its name; empty if it is yet to be founded.
	token string
	// declared is the state that the plan was made for.
	declared decide.Declared
}

// Of approves the roads of a plan.
func Of(plan report.Report) *Plan {
	p := &Plan{roads: map[string]*way{}}
	for _, c := range plan.Clusters {
		if c.Road == nil || len(c.Road.Steps) == 0 {
			continue
		}
		w := &way{token: c.State.Record.Token, declared: c.State.Declared}
		for _, step := range c.Road.Steps {
			if !notes(step.Action) {
				w.steps = append(w.steps, step)
			}
		}
		p.roads[c.Key()] = w
	}
	return p
}

// notes reports whether an action writes down what is so already, or readies what comes next. How often that is needed
// depends on how soon pods start and volumes go, and who leads by then, which no plan can know.
func notes(a decide.Action) bool {
	switch a.(type) { //nolint:gochecksumtype // no other one does
	case decide.ApplyObjects, decide.Seal, decide.MoveLeader:
		return true
	}
	return false
}

// Refuses says what is not on the road.
func (p *Plan) Refuses(cluster string, s decide.State, a decide.Action) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch w := p.roads[cluster]; {
	case w == nil:
		return "the plan that was approved does nothing with this cluster: make a new one, and have that approved"
	case w.token != "" && s.Record.Token != "" && s.Record.Token != w.token:
		return "the plan that was approved is about another cluster of this name, which is gone: make a new one, " +
			"and have that approved"
	case s.Declared.Digest != w.declared.Digest:
		return "the spec has changed since the plan was approved: make a new plan, and have that approved"
	case !reflect.DeepEqual(s.Declared, w.declared):
		return "what is declared beside the spec, or follows from it such as the default quota, has changed since the plan " +
			"was approved: make a new plan, and have that approved"
	case notes(a), w.find(road.What(s, a)) >= 0:
		return ""
	case len(w.steps) == 0:
		return "nothing more was in the plan that was approved: make a new one, and have that approved"
	default:
		return fmt.Sprintf("the plan that was approved goes on with %s: make a new one, and have that approved",
			w.steps[0].What)
	}
}

// Taken goes on behind an action.
func (p *Plan) Taken(cluster string, s decide.State, a decide.Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.roads[cluster]
	if w == nil || notes(a) {
		return
	}
	at := w.find(road.What(s, a))
	if at < 0 {
		return
	}
	if at < w.alike() { // which of several pods restarts first, or how soon members join, no plan can know
		w.steps = slices.Delete(w.steps, at, at+1)
		return
	}
	w.steps = w.steps[at+1:]
}

// find is the index of an action on the way; negative if it is not there.
func (w *way) find(what string) int {
	return slices.IndexFunc(w.steps, func(step road.Step) bool { return step.What == what })
}

// alike is how many actions of one kind come next, one after the other.
func (w *way) alike() int {
	for i, step := range w.steps {
		if kindOf(step.Action) != kindOf(w.steps[0].Action) {
			return i
		}
	}
	return len(w.steps)
}

// kindOf is that of an action; one and the same for those by which members join: a second learner is added once the
// first has started, or once that is a voter, whichever comes first.
func kindOf(a decide.Action) string {
	switch a.(type) { //nolint:gochecksumtype // no other one does
	case decide.AddLearner, decide.PromoteLearner:
		return "Join"
	}
	return decide.KindOf(a)
}
