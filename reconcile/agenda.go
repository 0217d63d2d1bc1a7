package reconcile

import (
	"maps"
	"time"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// share bounds what a run spends on passes over all clusters that nothing has called for: one part in so
// many of its time.
const share = 20

// mostRechecks bounds how many clusters in a second a run looks at again of those that wait, whether they have changed
// or not: something of one whose pods start changes several times a second. Of a thousand that are being founded,
// each is then looked at every twenty seconds; one alone, whenever it changes.
const mostRechecks = 50

// agenda says when a run looks at which cluster.
type agenda struct {
	// rhythm is that of a loop; nil in a run that ends, which looks at what is done only with all the others.
	rhythm *rhythm
	// known are the clusters that the last pass over all has found, looked at or not, and those that have been declared
	// since.
	known map[string]bool
	// changed are those that have changed since they were looked at, and whether their declaration may have.
	changed map[string]bool
	// due is when each cluster that is looked at by itself is, if it does not change before.
	due map[string]time.Time
	// waiting are those that had to wait when they were last looked at, and until when they are left alone even if they
	// change.
	waiting map[string]time.Time
	// all is when all of them are, in case a change went unseen.
	all time.Time
}

func newAgenda(r *rhythm) *agenda {
	return &agenda{rhythm: r, known: map[string]bool{}, changed: map[string]bool{}, due: map[string]time.Time{},
		waiting: map[string]time.Time{}}
}

// next returns the clusters that a pass is worth it for now, which may be none; all says that the pass is to
// be about every one.
func (a *agenda) next(changes Changes, in *intake, busy map[string]bool) (wanted map[string]bool, all bool) {
	all = in.fresh || !time.Now().Before(a.all)
	a.takeNews(in)
	if changes != nil {
		changed, unseen := changes.Take()
		for cluster, declaration := range changed {
			// Whoever undoes what is done to a custom resource changes it each time, as doing it does.
			a.change(cluster, declaration && a.rhythm.undone(cluster) == 0)
		}
		all = all || unseen
	}
	if all {
		return nil, true
	}
	return a.wanted(busy), false
}

// takeNews notes of which clusters something else is declared.
func (a *agenda) takeNews(in *intake) {
	for cluster := range in.news {
		a.known[cluster] = true
		a.change(cluster, true)
	}
	clear(in.news)
}

// change notes that a cluster has changed, and whether its declaration may have.
func (a *agenda) change(cluster string, declaration bool) {
	if !a.counts(cluster) {
		return // a pass over all sees what is new; and what is not there may have any number of names
	}
	a.changed[cluster] = a.changed[cluster] || declaration
	if declaration && a.rhythm != nil {
		delete(a.due, cluster) // whatever it has failed with before
		delete(a.rhythm.failures, cluster)
	}
}

// wanted are the clusters that have changed, or are due, and are not being looked at.
func (a *agenda) wanted(busy map[string]bool) map[string]bool {
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

// counts reports whether a cluster is looked at by itself if it changes: a run that ends looks for none that its last
// pass over all has not found.
func (a *agenda) counts(cluster string) bool { return a.known[cluster] || a.rhythm != nil }

// earliest is when a cluster that has changed may be looked at again. What is declared waits for nothing, also if it
// was while the cluster was looked at as it had been declared before.
func (a *agenda) earliest(cluster string) time.Time {
	if a.changed[cluster] {
		return time.Time{}
	}
	if a.rhythm.failing(cluster) {
		return a.due[cluster]
	}
	return a.waiting[cluster]
}

// end notes what a pass about these clusters, or all, that took so long has found, and when to look again. One
// that is not in its report is gone, or still being looked at.
func (a *agenda) end(
	in *intake, rep report.Report, wanted, busy map[string]bool, all bool, took time.Duration,
) {
	now := time.Now()
	for cluster := range wanted {
		delete(a.changed, cluster)
		delete(a.due, cluster)
	}
	if rep.Error != "" && len(rep.Clusters)+len(rep.Others) == 0 && !rep.Unobserved {
		// Nothing could be seen: what was to be done is to be done still, by the next pass over all.
		a.all = now.Add(resync)
		return
	}
	if all {
		a.all = now.Add(a.rhythm.resync(took))
		a.known = knownOf(rep)
		clear(a.due)
		clear(a.waiting)
	}
	a.await(in, wanted, busy, all)
	if partly := a.rhythm != nil && len(rep.Clusters)+len(rep.Others) > 0; rep.Unobserved && !partly {
		a.all = now.Add(unobserved)
	} else if partly && (all || rep.Unobserved && a.rhythm.partial == 0) {
		a.all = now.Add(min(time.Until(a.all), a.rhythm.partly(rep.Unobserved)))
	}
	for _, c := range rep.Clusters {
		delete(a.changed, c.Key())
	}
	a.looked(rep.Clusters)
	a.takeNews(in)
}

// await has those clusters wait that a pass could not be about, since it is not known yet what is declared of them:
// for their source to be read, of which intake tells, or for it to be asked again. One that is being looked at may
// still be then, and that look is older than what has changed: it stays changed.
func (a *agenda) await(in *intake, wanted, busy map[string]bool, all bool) {
	if all {
		maps.DeleteFunc(a.changed, func(cluster string, _ bool) bool { return !in.ready(cluster) && !busy[cluster] })
	}
	if !in.asking {
		return
	}
	again := in.askAgain()
	if all || a.rhythm == nil {
		a.all = earlier(a.all, again)
		return
	}
	for cluster := range wanted {
		if !in.ready(cluster) {
			a.due[cluster] = again
		}
	}
}

// earlier is the earlier one of two times.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// looked notes what was found of clusters, and when each is due again.
func (a *agenda) looked(entries []report.Cluster) {
	now := time.Now()
	for _, c := range entries {
		if delete(a.waiting, c.Key()); c.Error == "" && c.Decision.Verdict == decide.Wait {
			a.waiting[c.Key()] = now
		}
	}
	each := time.Duration(len(a.waiting)) * time.Second / mostRechecks
	for _, c := range entries {
		after, due := a.rhythm.after(c)
		if _, waits := a.waiting[c.Key()]; waits {
			a.waiting[c.Key()] = now.Add(each)
			after = max(after, each)
		}
		if due {
			a.due[c.Key()] = now.Add(after)
		}
	}
}

// late notes what was found of clusters that took longer.
func (a *agenda) late(entries []report.Cluster) {
	for _, c := range entries {
		a.known[c.Key()] = true
	}
	a.looked(entries)
}

// lookAtAll has the next pass look at all clusters, at once.
func (a *agenda) lookAtAll() { a.all = time.Now() }

// pause is the time until something is due that is not being looked at.
func (a *agenda) pause(busy map[string]bool) time.Duration {
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
