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
	// unobserved is when to try once more to observe anything.
	unobserved = time.Second
)

// UntilConverged repeats passes over one revision until every cluster is done or blocked, or ctx is
// done. It waits for changes, not for time, and no cluster waits for another, or for a place that
// has no say in it. Passes in between look only at the clusters that have changed or have something left to
// do; the last one looks at all. The report is that of the last pass over each cluster; converged says
// whether something was left to do. What failed in passing is tried again, so only the failures of the last
// passes count.
func (r *Reconciler) UntilConverged(ctx context.Context) (rep report.Report, converged bool) {
	changes := r.Live.Changes(ctx)
	return r.repeat(ctx, changes, r.begin(ctx, r.once), newAgenda(nil))
}

// repeat repeats passes as the agenda says: until every cluster is done or blocked, unless it is that of a loop,
// or until ctx is done.
func (r *Reconciler) repeat(
	ctx context.Context, changes Changes, in *intake, todo *agenda,
) (rep report.Report, converged bool) {
	acted := map[string]*report.Outcome{}
	for {
		began := time.Now()
		r.pulse.beat()
		in.look()
		late := r.takeLate(&rep, acted)
		todo.late(late)
		wanted, all := todo.next(changes, in, r.stragglers.areBusy())
		passes := all || len(wanted) > 0
		if passes {
			next := r.pass(ctx, in, only(wanted))
			remember(acted, next)
			if ctx.Err() != nil {
				return r.ended(rep, next, acted), false
			}
			rep = r.stragglers.carried(next, rep, all)
			todo.end(in, next, wanted, r.stragglers.areBusy(), all, time.Since(began))
		}
		switch {
		case passes && todo.rhythm != nil:
			r.passed(todo, in, rep, acted, all)
		case todo.rhythm != nil || !passes && len(late) == 0: // there is no news
		case in.reading() || !r.hasConverged(&rep, acted, todo):
		case all:
			recall(acted, &rep)
			return rep, true
		default:
			todo.lookAtAll()
		}
		if longest := todo.pause(r.stragglers.areBusy()); longest > 0 &&
			!r.wait(ctx, in, changes, began.Add(pace), longest) {
			return r.ended(rep, report.Report{}, acted), false
		}
	}
}

// only returns whether a cluster is one of these; nil for all.
func only(clusters map[string]bool) func(cluster string) bool {
	if clusters == nil {
		return nil
	}
	return func(cluster string) bool { return clusters[cluster] }
}

// hasConverged reports whether no cluster has anything left to do. One that is being looked at, as
// it may be all the time, had nothing when it was last looked at, and has nothing now.
func (r *Reconciler) hasConverged(rep *report.Report, acted map[string]*report.Outcome, todo *agenda) bool {
	if !settled(*rep) || !r.stragglers.tells(*rep) {
		return false
	}
	r.stragglers.rest()
	todo.late(r.takeLate(rep, acted))
	return settled(*rep)
}

// takeLate adds to a report what has become of stragglers, and returns it.
func (r *Reconciler) takeLate(rep *report.Report, acted map[string]*report.Outcome) []report.Cluster {
	late := *rep
	if late.Clusters = r.stragglers.take(); len(late.Clusters) == 0 {
		return nil
	}
	r.seen(late, 0)
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
	after := resync
	if rep.Unobserved {
		after = unobserved
	}
	for _, c := range rep.Clusters {
		after = min(after, soonest(c))
	}
	return after
}

// soonest is the time after which a cluster is looked at again, if nothing changes before.
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

// wait waits for a change, for more to be known of what is declared, for a straggler, or for that
// long, but after a change not shorter than until earliest; false if ctx is done first.
func (r *Reconciler) wait(
	ctx context.Context, in *intake, changes Changes, earliest time.Time, longest time.Duration,
) bool {
	timer := time.NewTimer(min(longest, heartbeat))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-woken(changes):
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

// woken is the channel of changes, if there can be any.
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

// recall puts the last change of the run beside each cluster that the last pass left alone.
func recall(acted map[string]*report.Outcome, rep *report.Report) {
	for i, c := range rep.Clusters {
		if c.Outcome == nil {
			rep.Clusters[i].Outcome = acted[c.Key()]
		}
	}
}
