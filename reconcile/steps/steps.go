// Package steps defines the steps of a run: passes, clusters, phases and actions. A hook is called for each step and
// its outcome; metrics are based on it.
package steps

import "context"

// Kind is the kind of a step. Each kind is nested in those before it, except that a fetch may be at the top level.
type Kind string

// Kinds of steps.
const (
	// Run is a whole run that ends by itself.
	Run Kind = "run"
	// Pass is one pass over clusters. A cluster that takes longer than its turn continues after the pass has ended.
	Pass Kind = "pass"
	// Cluster is the work of a pass for one cluster.
	Cluster Kind = "cluster"
	// Phase is a part of a pass, or of the work for a cluster.
	Phase Kind = "phase"
	// Action is an action on a cluster.
	Action Kind = "action"
)

// Phases by name.
const (
	// Fetch is reading one source, including the wait for its turn. A loop does it between passes.
	Fetch = "fetch"
	// List is listing the clusters.
	List = "list"
	// Observe is observing one cluster through Kubernetes and etcd.
	Observe = "observe"
	// Decide is deciding for one cluster.
	Decide = "decide"
	// Act is executing its action.
	Act = "act"
	// Report is reporting in its custom resource.
	Report = "report"
)

// Phases returns all phases, in order.
func Phases() []string { return []string{Fetch, List, Observe, Decide, Act, Report} }

// Step describes a step when it begins.
type Step struct {
	Kind Kind
	// Name is the command of a run, the name of a phase, or the kind of an action. There are few names.
	Name string
	// Kubernetes is the name of the Kubernetes cluster of a run, if there are several.
	Kubernetes string
	// Namespace and Cluster identify the cluster of a step, if it is about one.
	Namespace, Cluster string
	// Source is the label of the source that is fetched.
	Source string
	// Detail describes an action.
	Detail string
}

// Outcomes of steps. The outcome of a run or a pass is the result of its report, which includes OK, Error and Locked.
const (
	// OK means that the step succeeded.
	OK = "ok"
	// Unchanged means that an action has changed nothing.
	Unchanged = "unchanged"
	// Locked means that another process holds the lease of the cluster.
	Locked = "locked"
	// Error means that the step failed.
	Error = "error"
)

// End is the result of a step.
type End struct {
	// Outcome is one of a few words.
	Outcome string
	// Error is why it failed.
	Error string
	// Rule and Verdict are those of the decision about a cluster; empty if there was none.
	Rule, Verdict string
	// Revision is the revision that was fetched or that a pass used; empty if it is unknown.
	Revision string
	// Clusters is the number of clusters in a pass's report.
	Clusters int
}

// Hook is called for steps, concurrently. Steps wait for it, so it must not block.
type Hook interface {
	// Begin is called when a step begins, within the step of ctx. The returned context is used within the step. end is
	// called once, when the step has ended.
	Begin(ctx context.Context, s Step) (within context.Context, end func(End))
}

// Do runs a step, and reports it to the hook unless that is nil. A step that panics also ends.
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

// All combines several hooks, ignoring nil; it returns nil if none is left.
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

// all is a list of hooks.
type all []Hook

// Begin implements Hook. The first hook to begin is the last to end.
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
