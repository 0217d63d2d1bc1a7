package reconcile

import (
	"maps"
	"time"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// share limits the time that a run spends on periodic full passes to 1/share of its total time.
const share = 20

// mostRechecks limits how many waiting clusters a run processes again per second, whether or not they have changed,
// because the objects of a cluster with starting pods change several times a second. If a thousand clusters are being
// bootstrapped, each of them is processed every twenty seconds. A single waiting cluster is processed whenever it
// changes.
const mostRechecks = 50

// queue determines when a run processes each cluster.
type queue struct {
	// backoff is nil except in a loop. Without it, finished clusters are processed only in full passes.
	backoff *backoff
	// known holds the clusters found by the last full pass, whether or not it processed them, and the clusters declared
	// since then.
	known map[string]bool
	// changed holds the clusters that have changed since they were last processed. The value is set if the declaration
	// may have changed.
	changed map[string]bool
	// due is the time at which each cluster must be processed individually if it does not change first.
	due map[string]time.Time
	// waiting holds the clusters whose last verdict was Wait, and the time until which they are not processed again
	// even if they change.
	waiting map[string]time.Time
	// all is the time of the next full pass, which covers changes that were missed.
	all time.Time
}

func newQueue(r *backoff) *queue {
	return &queue{backoff: r, known: map[string]bool{}, changed: map[string]bool{}, due: map[string]time.Time{},
		waiting: map[string]time.Time{}}
}

// takeDue returns the clusters that need a pass now, if any. all reports whether the pass must cover all clusters.
func (a *queue) takeDue(changes Changes, in *feed, busy map[string]bool) (wanted map[string]bool, all bool) {
	all = in.fresh || !time.Now().Before(a.all)
	a.takeNews(in)
	if changes != nil {
		changed, unseen := changes.Take()
		for cluster, declaration := range changed {
			// If something reverts our changes to the custom resource, every revert and every write of ours looks like
			// a new declaration.
			a.change(cluster, declaration && a.backoff.revertedTimes(cluster) == 0)
		}
		all = all || unseen
	}
	if all {
		return nil, true
	}
	return a.wanted(busy), false
}

// takeNews marks clusters with changed declarations.
func (a *queue) takeNews(in *feed) {
	for cluster := range in.news {
		a.known[cluster] = true
		a.change(cluster, true)
	}
	clear(in.news)
}

// change marks a cluster as changed. declaration is set if its declaration may have changed.
func (a *queue) change(cluster string, declaration bool) {
	if !a.counts(cluster) {
		return // full passes find new clusters; the number of unknown names is not limited
	}
	a.changed[cluster] = a.changed[cluster] || declaration
	if declaration && a.backoff != nil {
		delete(a.due, cluster) // regardless of earlier failures
		delete(a.backoff.failures, cluster)
	}
}

// wanted returns the clusters that have changed or are due, and that are not being processed.
func (a *queue) wanted(busy map[string]bool) map[string]bool {
	now, wanted := time.Now(), map[string]bool{}
	for cluster := range a.changed {
		if !busy[cluster] && !now.Before(a.earliest(cluster)) {
			wanted[cluster] = a.counts(cluster)
		}
	}
	for cluster, due := range a.due {
		wanted[cluster] = wanted[cluster] || !busy[cluster] && !now.Before(due)
	}
	for cluster, is := range wanted {
		if !is {
			delete(wanted, cluster)
		}
	}
	return wanted
}

// counts reports whether changes to a cluster are processed. A run that is not a loop ignores unknown clusters.
func (a *queue) counts(cluster string) bool { return a.known[cluster] || a.backoff != nil }

// earliest returns the time from which a changed cluster may be processed again. A changed declaration never waits,
// even if the cluster is being processed with its previous declaration when it changes.
func (a *queue) earliest(cluster string) time.Time {
	if a.changed[cluster] {
		return time.Time{}
	}
	if a.backoff.failing(cluster) {
		return a.due[cluster]
	}
	return a.waiting[cluster]
}

// end records the results of a pass, and when clusters are due again. The pass covered the wanted clusters or, if all
// is set, all clusters. took is its duration. A cluster that is missing from the report no longer exists or is still
// being processed.
func (a *queue) end(
	in *feed, rep report.Report, wanted, busy map[string]bool, all bool, took time.Duration,
) {
	now := time.Now()
	for cluster := range wanted {
		delete(a.changed, cluster)
		delete(a.due, cluster)
	}
	if rep.Error != "" && len(rep.Clusters)+len(rep.Others) == 0 && !rep.Unobserved {
		// Nothing could be observed: the next full pass must process these clusters.
		a.all = now.Add(resync)
		return
	}
	if all {
		a.all = now.Add(a.backoff.resync(took))
		a.known = knownOf(rep)
		clear(a.due)
		clear(a.waiting)
	}
	a.holdBack(in, wanted, busy, all)
	if partly := a.backoff != nil && len(rep.Clusters)+len(rep.Others) > 0; rep.Unobserved && !partly {
		a.all = now.Add(unobserved)
	} else if partly && (all || rep.Unobserved && a.backoff.partial == 0) {
		a.all = now.Add(min(time.Until(a.all), a.backoff.listingBackoff(rep.Unobserved)))
	}
	for _, c := range rep.Clusters {
		delete(a.changed, c.Key())
	}
	a.reschedule(rep.Clusters)
	for _, cluster := range in.probes {
		a.due[cluster] = in.askAgain()
	}
	a.takeNews(in)
}

// holdBack postpones clusters that a pass had to skip because their declarations are not known yet. They wait until the
// feed reports that their source has been read, or until the ancestry of the source is checked again. A cluster that is
// still being processed remains marked as changed, because it was observed before the change.
func (a *queue) holdBack(in *feed, wanted, busy map[string]bool, all bool) {
	if all {
		maps.DeleteFunc(a.changed, func(cluster string, _ bool) bool { return !in.ready(cluster) && !busy[cluster] })
	}
	if a.backoff != nil && all && in.waits && in.desired.reading() && !in.late {
		a.all = earlier(a.all, in.begun.Add(readPatience))
	}
	if !in.asking {
		return
	}
	again := in.askAgain()
	if a.backoff == nil || all && in.waits {
		a.all = earlier(a.all, again)
		return
	}
	if all {
		wanted = in.skipped
	}
	for cluster := range wanted {
		if !in.ready(cluster) {
			a.due[cluster] = again
		}
	}
}

// earlier returns the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// reschedule records the results for clusters and the times at which they are due again.
func (a *queue) reschedule(entries []report.Cluster) {
	now := time.Now()
	for _, c := range entries {
		if delete(a.waiting, c.Key()); c.Error == "" && c.Decision.Verdict == decide.Wait {
			a.waiting[c.Key()] = now
		}
	}
	each := time.Duration(len(a.waiting)) * time.Second / mostRechecks
	for _, c := range entries {
		after, due := a.backoff.after(c)
		if _, waits := a.waiting[c.Key()]; waits {
			a.waiting[c.Key()] = now.Add(each)
			after = max(after, each)
		}
		if due {
			a.due[c.Key()] = now.Add(after)
		}
	}
}

// late records the results of slow clusters that have finished.
func (a *queue) late(entries []report.Cluster) {
	for _, c := range entries {
		a.known[c.Key()] = true
	}
	a.reschedule(entries)
}

// lookAtAll makes a full pass due immediately.
func (a *queue) lookAtAll() { a.all = time.Now() }

// pause returns the time until a full pass, or a cluster that is not being processed, is due.
func (a *queue) pause(busy map[string]bool) time.Duration {
	next := a.all
	for cluster, due := range a.due {
		if !busy[cluster] && due.Before(next) {
			next = due
		}
	}
	for cluster := range a.changed {
		earliest := a.earliest(cluster)
		if a.counts(cluster) && !busy[cluster] && earliest.Before(next) {
			next = earliest
		}
	}
	return time.Until(next)
}
