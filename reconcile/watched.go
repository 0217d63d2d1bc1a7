package reconcile

import (
	"context"
	"errors"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/steps"
)

// pass runs one pass as a step.
func (r *Reconciler) pass(ctx context.Context, in *intake, wanted func(key string) bool) (rep report.Report) {
	steps.Do(ctx, r.Steps, steps.Step{Kind: steps.Pass}, func(ctx context.Context) steps.End {
		rep = r.passOver(ctx, in, wanted)
		return EndOf(rep)
	})
	return rep
}

// EndOf returns the end of the step of a pass or run with this report.
func EndOf(rep report.Report) steps.End {
	return steps.End{Outcome: string(rep.Result()), Error: rep.Error, Revision: rep.Revision,
		Clusters: len(rep.Clusters)}
}

// cluster reconciles one cluster as a step.
func (r *Reconciler) cluster(ctx context.Context, c Cluster, source SourceState) (entry report.Cluster) {
	s := steps.Step{Kind: steps.Cluster}
	s.Namespace, s.Cluster = c.Identity()
	steps.Do(ctx, r.Steps, s, func(ctx context.Context) steps.End {
		entry = r.reconcile(ctx, c, source)
		e := steps.End{Outcome: steps.OK, Error: entry.Error, Rule: entry.Decision.Rule,
			Verdict: string(entry.Decision.Verdict)}
		switch {
		case entry.Error != "":
			e.Outcome = steps.Error
		case lockedElsewhere(entry):
			e.Outcome = steps.Locked
		}
		return e
	})
	return entry
}

// phase runs a phase as a step.
func (r *Reconciler) phase(ctx context.Context, name string, do func(context.Context) error) (err error) {
	steps.Do(ctx, r.Steps, steps.Step{Kind: steps.Phase, Name: name}, func(ctx context.Context) steps.End {
		err = do(ctx)
		return came(err)
	})
	return err
}

// list lists the clusters.
func (r *Reconciler) list(
	ctx context.Context, desired Desired, wanted func(key string) bool,
) (observed Observed, err error) {
	_ = r.phase(ctx, steps.List, func(ctx context.Context) error {
		observed, err = r.Live.Observe(ctx, desired, wanted)
		return errors.Join(err, observed.Unlisted)
	})
	return observed, err
}

// observe observes one cluster.
func (r *Reconciler) observe(ctx context.Context, c Cluster) (state decide.State, err error) {
	err = r.phase(ctx, steps.Observe, func(ctx context.Context) (err error) {
		state, err = c.State(ctx)
		return err
	})
	return state, err
}

// decide decides for one cluster.
func (r *Reconciler) decide(ctx context.Context, state decide.State) (d decide.Decision) {
	_ = r.phase(ctx, steps.Decide, func(context.Context) error {
		d = decide.Decide(state)
		return nil
	})
	return d
}

// tell makes one cluster report.
func (r *Reconciler) tell(
	ctx context.Context, c Cluster, entry report.Cluster, source SourceState,
) (news []report.News, err error) {
	err = r.phase(ctx, steps.Report, func(ctx context.Context) (err error) {
		news, err = tell(ctx, c, entry, source)
		return err
	})
	return news, err
}

// came returns the end of a step that may have failed.
func came(err error) steps.End {
	switch {
	case err == nil:
		return steps.End{Outcome: steps.OK}
	case errors.Is(err, ErrLocked):
		return steps.End{Outcome: steps.Locked}
	}
	return steps.End{Outcome: steps.Error, Error: oneLine(err)}
}

// act executes an action in its phase.
func (r *Reconciler) act(ctx context.Context, c Cluster, action decide.Action) (outcome report.Outcome, err error) {
	s := steps.Step{Kind: steps.Action, Name: decide.KindOf(action), Detail: action.String()}
	s.Namespace, s.Cluster = c.Identity()
	err = r.phase(ctx, steps.Act, func(ctx context.Context) error {
		steps.Do(ctx, r.Steps, s, func(ctx context.Context) steps.End {
			outcome, err = act(ctx, c, action)
			e := came(err)
			if err == nil && !outcome.Changed {
				e.Outcome = steps.Unchanged
			}
			return e
		})
		return err
	})
	return outcome, err
}
