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
	// again is when to try once more what changed nothing: etcd refuses some things until it is ready for them.
	again = 200 * time.Millisecond
)

// UntilConverged repeats passes over one revision until every cluster is done or blocked, or ctx is done. It waits for
// changes, not for time, and clusters do not wait for places that have no say in them. The report is that of the last pass; converged says whether something was left to do. What failed in
// passing is tried again, so only the failures of the last pass count.
func (r *Reconciler) UntilConverged(ctx context.Context) (rep report.Report, converged bool) {
	changes := r.Live.Changes(ctx)
	in := r.read(ctx)
	acted := map[string]*report.Outcome{}
	for {
		earliest := time.Now().Add(pace)
		in.look()
		next := r.pass(ctx, in, nil)
		remember(acted, next)
		if ctx.Err() != nil && len(rep.Clusters) > 0 {
			replaceFinished(&rep, next)
			recall(acted, &rep)
			return rep, false
		}
		rep = next
		if settled(rep) && !in.reading() {
			recall(acted, &rep)
			return rep, true
		}
		if longest := recheck(rep); longest > 0 && !in.wait(ctx, changes, earliest, longest) {
			recall(acted, &rep)
			return rep, false
		}
	}
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
