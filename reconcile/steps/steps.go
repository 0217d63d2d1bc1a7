// Package steps names what a run does while it does it: passes, clusters, phases and actions. Whoever watches a run is
// told of each, and of what it has come to; metrics and traces are fed from here.
package steps

import "context"

// Kind of a step. Each is within one of those before it, but that a fetch may be within nothing.
type Kind string

// Kinds of steps.
const (
	// Run is all of a run that ends by itself.
	Run Kind = "run"
	// Pass is one pass over clusters. One that takes longer than its turn goes on after the pass has ended.
	Pass Kind = "pass"
	// Cluster is what a pass does for one cluster.
	Cluster Kind = "cluster"
	// Phase is a part of a pass or of what is done for a cluster.
	Phase Kind = "phase"
	// Action is what is carried out for a cluster.
	Action Kind = "action"
)

// Phases by name.
const (
	// Fetch is reading one source, and waiting for its turn. A loop does it between passes.
	Fetch = "fetch"
	// List is finding out which clusters there are.
	List = "list"
	// Observe is asking Kubernetes and etcd about one cluster.
	Observe = "observe"
	// Decide is deciding about it.
	Decide = "decide"
	// Act is carrying out the action for it.
	Act = "act"
	// Report is telling of it in its custom resource.
	Report = "report"
)

// Phases are all phases, in their order.
func Phases() []string { return []string{Fetch, List, Observe, Decide, Act, Report} }

// Step is what begins.
type Step struct {
	Kind Kind
	// Name of a run, by its command; of a phase; or of an action, by its kind. There are few.
	Name string
	// Kubernetes is the name of the Kubernetes cluster that a run is about, where there are several.
	Kubernetes string
	// Namespace and Cluster say which cluster it is, of what is done for one.
	Namespace, Cluster string
	// Source that is fetched, as reports call it.
	Source string
	// Detail of an action.
	Detail string
}

// Outcomes of steps. That of a run or a pass is the result of its report, of which OK, Error and Locked are three.
const (
	// OK is that it was done.
	OK = "ok"
	// Unchanged is an action that has changed nothing.
	Unchanged = "unchanged"
	// Locked is that another process has the lease of the cluster.
	Locked = "locked"
	// Error is that it failed.
	Error = "error"
)

// End is what a step has come to.
type End struct {
	// Outcome is one of few words.
	Outcome string
	// Error says why it failed.
	Error string
	// Rule and Verdict are what was decided about a cluster; empty if nothing was.
	Rule, Verdict string
	// Revision that was fetched, or that a pass was about; empty if it is not known.
	Revision string
	// Clusters are how many a pass tells of.
	Clusters int
}

// Hook is told of steps, by many goroutines at once. It is waited for, so it waits for nobody.
type Hook interface {
	// Begin tells that a step begins, within the one that ctx is of. What is done in it gets the context that is
	// returned. The function is called once, when the step has ended.
	Begin(ctx context.Context, s Step) (within context.Context, end func(End))
}

// Do does a step, and tells the hook of it unless that is nil. A step that panics ends, too.
func Do(ctx context.Context, h Hook, s Step, do func(context.Context) End) {
	if h == nil {
		do(ctx)
		return
	}
	within, end := h.Begin(ctx, s)
	come := End{Outcome: Error, Error: "it panicked"} // unless do returns
	defer func() { end(come) }()
	come = do(within)
}

// All tells several hooks, those that are not nil; it is nil if none is left.
func All(hooks ...Hook) Hook {
	var list all
	for _, h := range hooks {
		if h != nil {
			list = append(list, h)
		}
	}
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return list
}

// all are several hooks.
type all []Hook

// Begin implements Hook. What begins first ends last.
func (a all) Begin(ctx context.Context, s Step) (context.Context, func(End)) {
	ends := make([]func(End), len(a))
	for i, h := range a {
		ctx, ends[i] = h.Begin(ctx, s)
	}
	return ctx, func(e End) {
		for i := range ends {
			ends[len(ends)-1-i](e)
		}
	}
}
