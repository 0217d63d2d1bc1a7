package reconcile

import (
	"context"
	"time"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

const (
	// resync is the longest time between two passes of one run, in case a change went unseen.
	resync = 5 * time.Second
	// pace is the shortest time between the starts of two passes that wait: changes come in bursts.
	pace = 100 * time.Millisecond
	// again is when to try once more what changed nothing: etcd refuses some things until it is
	// ready for them.
	again = 200 * time.Millisecond
)

// UntilConverged repeats passes over one revision until every cluster is done or blocked, or ctx is
// done. It waits for changes, not for time, and no cluster waits for another, or for a place that
// has no say in it. The report is that of the last pass over each cluster; converged says whether
// something was left to do. What failed in passing is tried again, so only the failures of the last
// passes count.
func (r *Reconciler) UntilConverged(ctx context.Context) (rep report.Report, converged bool) {
	changes := r.Live.Changes(ctx)
	in := r.begin(ctx, func(c report.Cluster) time.Duration {
		return recheck(report.Report{Clusters: []report.Cluster{c}})
	})
	acted := map[string]*report.Outcome{}
	for {
		earliest := time.Now().Add(pace)
		in.look()
		next := r.pass(ctx, in, nil)
		remember(acted, next)
		if ctx.Err() != nil {
			return r.ended(rep, next, acted), false
		}
		rep = r.stragglers.carried(next, rep)
		next.Clusters = append(next.Clusters, r.takeLate(&rep, acted)...)
		if !in.reading() && r.hasConverged(&rep, acted) {
			recall(acted, &rep)
			return rep, true
		}
		if longest := recheck(next); longest > 0 && !r.wait(ctx, in, changes, earliest, longest) {
			return r.ended(rep, report.Report{}, acted), false
		}
	}
}

// hasConverged reports whether no cluster has anything left to do. One that is being looked at, as
// it may be all the time, had nothing when it was last looked at, and has nothing now.
func (r *Reconciler) hasConverged(rep *report.Report, acted map[string]*report.Outcome) bool {
	if !settled(*rep) || !r.stragglers.tells(*rep) {
		return false
	}
	r.stragglers.rest()
	r.takeLate(rep, acted)
	return settled(*rep)
}

// takeLate adds to a report what has become of stragglers, and returns it.
func (r *Reconciler) takeLate(rep *report.Report, acted map[string]*report.Outcome) []report.Cluster {
	late := *rep
	if late.Clusters = r.stragglers.take(); len(late.Clusters) == 0 {
		return nil
	}
	r.seen(late)
	remember(acted, late)
	replace(rep, late)
	return late.Clusters
}

// ended is the report of a run that was told to stop: that of the passes before, with what the last
// one has finished with, if there were any.
func (r *Reconciler) ended(rep, last report.Report, acted map[string]*report.Outcome) report.Report {
	if rep.Clusters == nil {
		rep, last = last, report.Report{}
	}
	r.stragglers.rest()
	r.takeLate(&rep, acted)
	last.Clusters = append(last.Clusters, r.stragglers.cutShort()...)
	remember(acted, last)
	replaceFinished(&rep, last)
	recall(acted, &rep)
	return rep
}

// settled reports whether no further pass would do anything.
func settled(rep report.Report) bool {
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

// recheck is the time until the next pass, if nothing changes before.
func recheck(rep report.Report) time.Duration {
	soonest := resync
	if rep.Unobserved {
		soonest = time.Second
	}
	for _, c := range rep.Clusters {
		switch {
		case c.Error != "":
			soonest = min(soonest, time.Second)
		case c.Outcome != nil && c.Outcome.Changed && c.Decision.Verdict == decide.Act:
			return 0
		case c.Decision.Verdict == decide.Act:
			soonest = min(soonest, again)
		case c.Decision.Recheck > 0:
			soonest = min(soonest, c.Decision.Recheck)
		}
	}
	return soonest
}

// wait waits for a change, for more to be known of what is declared, for a straggler, or for that
// long, but after a change not shorter than until earliest; false if ctx is done first.
func (r *Reconciler) wait(
	ctx context.Context, in *intake, changes <-chan struct{}, earliest time.Time, longest time.Duration,
) bool {
	timer := time.NewTimer(min(longest, in.patience()))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-changes:
	case d := <-in.known:
		in.take(d)
	case <-r.stragglers.done:
	case <-timer.C:
	}
	timer.Reset(time.Until(earliest))
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// remember keeps the last change made to each cluster in this run.
func remember(acted map[string]*report.Outcome, rep report.Report) {
	for _, c := range rep.Clusters {
		if c.Outcome != nil && c.Outcome.Changed {
			acted[c.Key()] = c.Outcome
		}
	}
}

// recall puts the last change of the run beside each cluster that the last pass left alone.
func recall(acted map[string]*report.Outcome, rep *report.Report) {
	for i, c := range rep.Clusters {
		if c.Outcome == nil {
			rep.Clusters[i].Outcome = acted[c.Key()]
		}
	}
}
