package reconcile

import (
	"context"
	"errors"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/steps"
)

// list lists the clusters and reports the phase List.
func (r *Reconciler) list(ctx context.Context, desired Desired, wanted func(key string) bool) (Observed, error) {
	defer steps.Begin(r.Steps, steps.List)()
	return r.Live.Observe(ctx, desired, wanted)
}

// observe observes a cluster and reports the phase Observe.
func (r *Reconciler) observe(ctx context.Context, c Cluster) (decide.State, error) {
	defer steps.Begin(r.Steps, steps.Observe)()
	return c.State(ctx)
}

// decide makes the decision for a cluster and reports the phase Decide.
func (r *Reconciler) decide(state decide.State) decide.Decision {
	defer steps.Begin(r.Steps, steps.Decide)()
	return decide.Decide(state)
}

// tell reports on a cluster and reports the phase Report.
func (r *Reconciler) tell(
	ctx context.Context, c Cluster, entry report.Cluster, source SourceStatus,
) ([]report.News, error) {
	defer steps.Begin(r.Steps, steps.Report)()
	return tell(ctx, c, entry, source)
}

// act executes an action and reports the phase Act.
func (r *Reconciler) act(ctx context.Context, c Cluster, action decide.Action) (report.Outcome, error) {
	defer steps.Begin(r.Steps, steps.Act)()
	outcome, err := act(ctx, c, action)
	if r.Steps != nil && errors.Is(err, ErrLocked) {
		r.Steps.LeaseConflict()
	}
	return outcome, err
}
