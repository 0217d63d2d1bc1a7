package reconcile

import (
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

const (
	// backOff is the pause before a failed cluster is processed again. It doubles with each failure, up to
	// longestBackOff.
	backOff, longestBackOff = time.Second, time.Minute
	// slots is the number of groups in which a loop processes healthy clusters. Processing a large group requires
	// listing all clusters.
	slots = 4
	// inARow is the number of times that the same action may be executed on a cluster in a row before the loop assumes
	// that something reverts it, such as an admission webhook or another controller. Actions that are further apart
	// than forgotten, which is longer than the longest pause, do not count as consecutive.
	inARow, forgotten = 10, 2 * longestBackOff
	// longestUnseen is the maximum time by which a run that is not a loop postpones full passes because they take a
	// long time.
	longestUnseen = time.Minute
)

// Intervals specifies how often a loop processes clusters and reads sources if nothing has changed.
type Intervals struct {
	// Git is the pause between two reads of a source.
	Git time.Duration
	// Resync is the time until the next full pass. It is extended if full passes take a long time.
	Resync time.Duration
	// Etcd is the minimum time before an unchanged cluster with nothing left to do is processed again, other than in a
	// full pass.
	Etcd time.Duration
	// Lease is how long a loop skips a cluster that another process has locked, unless the cluster changes.
	Lease time.Duration
}

// Loop repeats passes until ctx is done, and returns the last result for each cluster. It processes a cluster if the
// cluster or its declaration has changed or something is left to do, and otherwise at the given intervals. It processes
// a failing cluster at increasing intervals. Other loops may manage the same clusters at the same time.
func (r *Reconciler) Loop(ctx context.Context, often Intervals) report.Report {
	r.loops = true
	changes := r.Live.Changes(ctx)
	in := r.begin(ctx, func(ctx context.Context, tell func(Desired)) {
		r.Source.Follow(ctx, often.Git, func(d Desired) {
			r.fetched(d)
			tell(d)
		})
	})
	in.declared, in.news = map[string]Declaration{}, map[string]bool{}
	in.read, in.untaken = sourceNames{}, map[sourceAndCluster]bool{}
	in.note(in.desired)
	todo := newQueue(&backoff{Intervals: often, failures: map[string]int{}, did: map[string]lastChange{}})
	rep, _ := r.repeat(ctx, changes, in, todo)
	return rep
}

// backoff determines when a loop processes a cluster again, and how long it waits before the next full pass.
type backoff struct {
	Intervals
	// took is the duration of the last full pass.
	took time.Duration
	// failures counts the consecutive failures of each cluster.
	failures map[string]int
	// did holds the last action on each cluster.
	did map[string]lastChange
	// partial counts the consecutive full passes that could not list everything. If a partial pass encountered the
	// problem first, it is counted as well.
	partial int
}

// lastChange is the last action on a cluster, and how many times in a row it was executed.
type lastChange struct {
	what  string
	at    time.Time
	times int
}

// resync returns the time between a full pass, whose duration is took, and the next one.
func (r *backoff) resync(took time.Duration) time.Duration {
	if r == nil {
		return max(resync, min(share*took, longestUnseen))
	}
	r.took = took
	return max(r.Resync, share*took)
}

// listingBackoff returns the maximum time until the next full pass. As long as full passes cannot list everything, the
// time increases, because each of them lists everything else again.
func (r *backoff) listingBackoff(unobserved bool) time.Duration {
	if !unobserved {
		r.partial = 0
		return math.MaxInt64
	}
	r.partial++
	return min(backOff<<min(r.partial-1, 10), longestBackOff)
}

func (r *backoff) failing(cluster string) bool { return r != nil && r.failures[cluster] > 0 }

// note records the action on a cluster if it changed something.
func (r *backoff) note(c report.Cluster) {
	if c.Outcome == nil || !c.Outcome.Changed {
		return
	}
	d := lastChange{c.Decision.Rule + " " + c.Outcome.Detail, time.Now(), 1}
	if last := r.did[c.Key()]; last.what == d.what && d.at.Sub(last.at) < forgotten {
		d.times += last.times
	}
	r.did[c.Key()] = d
}

// revertedTimes returns how many times more than inARow an action was recently executed in a row. A positive number
// means that something keeps reverting the action.
func (r *backoff) revertedTimes(cluster string) int {
	if r == nil || time.Since(r.did[cluster].at) >= forgotten {
		return 0
	}
	return max(r.did[cluster].times-inARow, 0)
}

// after returns the time until a cluster with this result is processed again if nothing changes first. alone reports
// whether it is then processed individually, without a full pass.
func (r *backoff) after(c report.Cluster) (pause time.Duration, alone bool) {
	if r == nil {
		return soonest(c), c.Pending() || c.Error != ""
	}
	r.note(c)
	inVain, undone := c.Outcome != nil && !c.Outcome.Changed, r.revertedTimes(c.Key())
	switch {
	case c.Error != "" || inVain:
		r.failures[c.Key()]++
	case c.Outcome != nil && undone > 0:
		r.failures[c.Key()] = undone
	default:
		delete(r.failures, c.Key())
	}
	times := r.failures[c.Key()]
	switch {
	case c.Error == "" && inVain && times == 1:
		return again, true
	case times > 0:
		return jitter(2 * min(backOff<<min(times-1, 10), longestBackOff) / 3), true
	case lockedElsewhere(c):
		return jitter(r.Lease), true
	case c.Pending():
		return soonest(c), true
	}
	return r.idle(), true
}

// idle returns the time until a cluster with nothing left to do is processed again. It groups such clusters, and
// returns a longer time if full passes take a long time.
func (r *backoff) idle() time.Duration {
	least := max(r.Etcd, share*r.took)
	slot := max(least/slots, 1)
	now := time.Now()
	due := now.Add(jitter(least) + slot)
	return max(due.Truncate(slot).Sub(now), least)
}

// jitter returns d plus a random duration of up to half of d.
func jitter(d time.Duration) time.Duration { return d + rand.N(max(d/2, 1)) }

// lockedElsewhere reports whether a cluster is skipped because another process is acting on it.
func lockedElsewhere(c report.Cluster) bool {
	return c.Decision.Rule == decide.LockedElsewhere && c.Decision.Verdict == decide.Wait
}

// passed updates the health of a loop after a pass. After a full pass, it discards all state of clusters that no longer
// exist. It keeps the state of clusters in namespaces that could not be listed.
func (r *Reconciler) passed(
	todo *queue, in *feed, rep report.Report, acted map[string]*report.Outcome, all bool,
) {
	unseen := in.unseen || rep.Unobserved
	if r.health.note(all, in.waits, unseen); !all || in.unseen {
		return
	}
	known := knownOf(rep)
	gone := func(cluster string) bool {
		namespace, _, _ := strings.Cut(cluster, "/")
		return !known[cluster] && !rep.MayOmit(namespace)
	}
	r.inFlight.forget(gone)
	in.forget(gone)
	maps.DeleteFunc(acted, func(cluster string, _ *report.Outcome) bool { return gone(cluster) })
	maps.DeleteFunc(r.failed, func(cluster string, _ bool) bool { return gone(cluster) })
	maps.DeleteFunc(todo.changed, func(cluster string, _ bool) bool { return gone(cluster) })
	maps.DeleteFunc(todo.backoff.failures, func(cluster string, _ int) bool { return gone(cluster) })
	maps.DeleteFunc(todo.backoff.did, func(cluster string, _ lastChange) bool { return gone(cluster) })
	r.said.Range(func(about, _ any) bool {
		if subject, _, _ := strings.Cut(about.(string), " "); strings.Contains(subject, "/") && gone(subject) {
			r.said.Delete(about)
		}
		return true
	})
}
