package approval

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/report"
)

// Plan approves the forecasts of a reviewed plan. For each cluster, it approves the actions of the forecast in order.
// Only consecutive actions of the same kind, or actions that add or promote members, may be reordered. Actions that are
// no longer necessary are skipped. All other actions are refused, such as actions after the last step of an open-ended
// forecast, and all actions on a cluster without a forecast. At every step, the whole declaration must match the
// planned declaration.
type Plan struct {
	mu    sync.Mutex
	roads map[string]*way
}

// way is the remainder of a forecast.
type way struct {
	steps []forecast.Step
	// token distinguishes the cluster from other clusters with the same name. It is empty before the bootstrap.
	token string
	// declared is the declaration for which the plan was created.
	declared decide.Declared
}

// Of returns a Plan that approves the forecasts in plan.
func Of(plan report.Report) *Plan {
	p := &Plan{roads: map[string]*way{}}
	for _, c := range plan.Clusters {
		if c.Road == nil || len(c.Road.Steps) == 0 {
			continue
		}
		w := &way{token: c.State.Record.Token, declared: c.State.Declared}
		for _, step := range c.Road.Steps {
			if !decide.TraitsOf(step.Action).Unplannable {
				w.steps = append(w.steps, step)
			}
		}
		p.roads[c.Key()] = w
	}
	return p
}

// Refuses returns the reason why the plan does not approve an action, or "" if it does.
func (p *Plan) Refuses(cluster string, s decide.State, a decide.Action) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch w := p.roads[cluster]; {
	case w == nil:
		return "the approved plan has no actions for this cluster: create and approve a new plan"
	case w.token != "" && s.Record.Token != "" && s.Record.Token != w.token:
		return "the approved plan is for a deleted cluster of the same name: create and approve a new plan"
	case s.Declared.Digest != w.declared.Digest:
		return "the spec has changed since the plan was approved: create and approve a new plan"
	case !reflect.DeepEqual(s.Declared, w.declared):
		return "the declaration outside of the spec, or a derived value such as the default quota, has changed since " +
			"the plan was approved: create and approve a new plan"
	case decide.TraitsOf(a).Unplannable, w.find(s.DescribeAction(a)) >= 0:
		return ""
	case len(w.steps) == 0:
		return "the approved plan has no more actions: create and approve a new plan"
	default:
		return fmt.Sprintf("the next action in the approved plan is %s: create and approve a new plan",
			w.steps[0].What)
	}
}

// Taken removes an executed action, and the actions skipped before it, from the remaining forecast.
func (p *Plan) Taken(cluster string, s decide.State, a decide.Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.roads[cluster]
	if w == nil || decide.TraitsOf(a).Unplannable {
		return
	}
	at := w.find(s.DescribeAction(a))
	if at < 0 {
		return
	}
	if at < w.alike() { // a plan cannot predict which pod restarts first, or how soon members join
		w.steps = slices.Delete(w.steps, at, at+1)
		return
	}
	w.steps = w.steps[at+1:]
}

// find returns the index of an action in the forecast, or a negative number if the forecast does not contain it.
func (w *way) find(what string) int {
	return slices.IndexFunc(w.steps, func(step forecast.Step) bool { return step.What == what })
}

// alike returns the number of actions of the same kind at the start of the forecast.
func (w *way) alike() int {
	for i, step := range w.steps {
		if kindOf(step.Action) != kindOf(w.steps[0].Action) {
			return i
		}
	}
	return len(w.steps)
}

// kindOf returns the kind of an action. Actions that add or promote members count as one kind.
func kindOf(a decide.Action) string {
	if decide.TraitsOf(a).Joins {
		return "Join"
	}
	return decide.KindOf(a)
}
