package reconcile

import (
	"context"
	"time"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

const (
	// resync is the usual interval between passes if nothing changes. It covers changes that were missed.
	resync = 5 * time.Second
	// pace is the minimum time between the starts of two passes, because changes come in bursts.
	pace = 100 * time.Millisecond
	// again is the pause before an action that had no effect is repeated. etcd rejects some requests until it is ready
	// for them.
	again = 200 * time.Millisecond
	// unobserved is the pause before the next attempt if nothing could be observed.
	unobserved = time.Second
)

// UntilConverged repeats passes over one revision until every cluster is up to date or blocked, or ctx is done. It
// starts a pass as soon as something changes. Clusters do not wait for other clusters, or for sources that do not
// affect them. Intermediate passes process only clusters that have changed or are not done; the last pass covers all
// clusters. The report contains the last result for each cluster. converged reports whether nothing was left to do.
// Transient failures are retried, so the report contains only the failures of the last passes.
func (r *Reconciler) UntilConverged(ctx context.Context) (rep report.Report, converged bool) {
	changes := r.Live.Changes(ctx)
	return r.repeat(ctx, changes, r.begin(ctx, r.once), newQueue(nil))
}

// repeat runs the passes that the queue requires until ctx is done or, except in a loop, every cluster is up to date or
// blocked.
func (r *Reconciler) repeat(
	ctx context.Context, changes Changes, in *feed, todo *queue,
) (rep report.Report, converged bool) {
	acted := map[string]*report.Outcome{}
	for {
		began := time.Now()
		r.health.beat()
		in.look()
		late := r.takeLate(&rep, acted)
		todo.late(late)
		wanted, all := todo.takeDue(changes, in, r.inFlight.areBusy())
		passes := all || len(wanted) > 0
		if passes {
			next := r.pass(ctx, in, only(wanted))
			remember(acted, next)
			if ctx.Err() != nil {
				return r.ended(rep, next, acted), false
			}
			rep = r.inFlight.carried(next, rep, all)
			todo.end(in, next, wanted, r.inFlight.areBusy(), all, time.Since(began))
		}
		switch {
		case passes && todo.backoff != nil:
			r.passed(todo, in, rep, acted, all)
		case todo.backoff != nil || !passes && len(late) == 0: // nothing has changed
		case in.reading() || !r.hasConverged(&rep, acted, todo):
		case all:
			recall(acted, &rep)
			return rep, true
		default:
			todo.lookAtAll()
		}
		if longest := todo.pause(r.inFlight.areBusy()); longest > 0 &&
			!r.wait(ctx, in, changes, began.Add(pace), longest) {
			return r.ended(rep, report.Report{}, acted), false
		}
	}
}

// only returns a function that reports whether a cluster is in the set. It returns nil if clusters is nil, which means
// all clusters.
func only(clusters map[string]bool) func(cluster string) bool {
	if clusters == nil {
		return nil
	}
	return func(cluster string) bool { return clusters[cluster] }
}

// hasConverged reports whether nothing is left to do for any cluster. If that is the case according to the last
// results, it waits for clusters that are still being processed, and checks their new results as well.
func (r *Reconciler) hasConverged(rep *report.Report, acted map[string]*report.Outcome, todo *queue) bool {
	if !converged(*rep) || !r.inFlight.tells(*rep) {
		return false
	}
	r.inFlight.rest()
	todo.late(r.takeLate(rep, acted))
	return converged(*rep)
}

// takeLate adds the slow clusters that have finished to a report, and returns their entries.
func (r *Reconciler) takeLate(rep *report.Report, acted map[string]*report.Outcome) []report.Cluster {
	late := *rep
	if late.Clusters = r.inFlight.take(); len(late.Clusters) == 0 {
		return nil
	}
	r.seen(late, 0)
	remember(acted, late)
	replace(rep, late)
	return late.Clusters
}

// ended returns the report of a stopped run: the report of the earlier passes, updated with the clusters that the last
// pass finished.
func (r *Reconciler) ended(rep, last report.Report, acted map[string]*report.Outcome) report.Report {
	if rep.Clusters == nil {
		rep, last = last, report.Report{}
	}
	r.inFlight.rest()
	r.takeLate(&rep, acted)
	last.Clusters = append(last.Clusters, r.inFlight.interrupted()...)
	remember(acted, last)
	replaceFinished(&rep, last)
	recall(acted, &rep)
	return rep
}

// converged reports whether another pass would have nothing to do.
func converged(rep report.Report) bool {
	if rep.Unobserved {
		return false
	}
	for _, c := range rep.Clusters {
		if c.Pending() || c.Error != "" {
			return false
		}
	}
	return true
}

// recheck returns the time until the next pass if nothing changes first.
func recheck(rep report.Report) time.Duration {
	after := resync
	if rep.Unobserved {
		after = unobserved
	}
	for _, c := range rep.Clusters {
		after = min(after, soonest(c))
	}
	return after
}

// soonest returns the time until a cluster is processed again if nothing changes first.
func soonest(c report.Cluster) time.Duration {
	switch {
	case c.Error != "":
		return time.Second
	case c.Outcome != nil && c.Outcome.Changed && c.Decision.Verdict == decide.Act:
		return 0
	case c.Decision.Verdict == decide.Act:
		return again
	case c.Decision.Recheck > 0:
		return min(resync, c.Decision.Recheck)
	}
	return resync
}

// wait waits until something changes, new declarations arrive, a slow cluster finishes, or longest has passed. It does
// not return before earliest. It returns false if ctx is done first.
func (r *Reconciler) wait(
	ctx context.Context, in *feed, changes Changes, earliest time.Time, longest time.Duration,
) bool {
	timer := time.NewTimer(min(longest, heartbeat))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-woken(changes):
	case d := <-in.known:
		in.take(d)
	case <-r.inFlight.done:
	case <-timer.C:
	}
	timer.Reset(time.Until(earliest))
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// woken returns the channel that signals changes, or nil if changes are not tracked.
func woken(changes Changes) <-chan struct{} {
	if changes == nil {
		return nil
	}
	return changes.Woken()
}

// remember keeps the last change made to each cluster in this run.
func remember(acted map[string]*report.Outcome, rep report.Report) {
	for _, c := range rep.Clusters {
		if c.Outcome != nil && c.Outcome.Changed {
			acted[c.Key()] = c.Outcome
		}
	}
}

// recall adds the last change made to each cluster in this run, unless the last pass acted on that cluster.
func recall(acted map[string]*report.Outcome, rep *report.Report) {
	for i, c := range rep.Clusters {
		if c.Outcome == nil {
			rep.Clusters[i].Outcome = acted[c.Key()]
		}
	}
}
