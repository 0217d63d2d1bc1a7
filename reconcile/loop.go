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
	// backOff is the pause before a failed cluster is looked at again. It doubles each time, up to longestBackOff.
	backOff, longestBackOff = time.Second, time.Minute
	// slots is the number of groups in which a loop looks at healthy clusters: each large group costs a list of all
	// clusters.
	slots = 4
	// inARow is how many times in a row the same action may be done to a cluster before it counts as being reverted
	// each time, for example by an admission webhook or another controller. forgotten is the time after which actions
	// no longer count as consecutive. It is longer than the longest pause.
	inARow, forgotten = 10, 2 * longestBackOff
	// longestUnseen bounds how long a run that ends continues without a pass over all.
	longestUnseen = time.Minute
)

// Intervals specifies how often a loop looks at clusters and sources if nothing has changed.
type Intervals struct {
	// Git is the pause before each source is asked again.
	Git time.Duration
	// Resync is the longest time between two passes over all clusters.
	Resync time.Duration
	// Etcd is the shortest time after which a cluster that has nothing left to do and has not changed is looked at
	// again, except by passes over all.
	Etcd time.Duration
	// Lease is how long a cluster is left alone while another process acts on it.
	Lease time.Duration
}

// Loop repeats passes until ctx is done, and returns the last result for each cluster. It looks at a cluster when the
// cluster or its declaration has changed or something is left to do, and otherwise at the given intervals; a failing
// cluster is looked at after a growing pause. Other loops may handle the same clusters at the same time.
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

// backoff determines the intervals of a loop, and the clusters that deviate from them.
type backoff struct {
	Intervals
	// took is how long the last pass over all took.
	took time.Duration
	// failures counts the consecutive failed looks at each cluster.
	failures map[string]int
	// did is the last action on each cluster.
	did map[string]lastChange
	// partial counts the consecutive passes over all that could not observe everything, including a preceding pass over
	// some clusters that encountered the problem first.
	partial int
}

// lastChange is the last action on a cluster, and how many times in a row.
type lastChange struct {
	what  string
	at    time.Time
	times int
}

// resync returns the time from a pass over all that took that long to the next one.
func (r *backoff) resync(took time.Duration) time.Duration {
	if r == nil {
		return max(resync, min(share*took, longestUnseen))
	}
	r.took = took
	return max(r.Resync, share*took)
}

// listingBackoff returns the longest time to the next pass over all, depending on whether the last one could not
// observe everything. It grows, because every such pass lists all the rest.
func (r *backoff) listingBackoff(unobserved bool) time.Duration {
	if !unobserved {
		r.partial = 0
		return math.MaxInt64
	}
	r.partial++
	return min(backOff<<min(r.partial-1, 10), longestBackOff)
}

func (r *backoff) failing(cluster string) bool { return r != nil && r.failures[cluster] > 0 }

// note records an action on a cluster.
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

// revertedTimes returns by how many times an action was recently repeated beyond inARow, which means that something
// reverts it each time.
func (r *backoff) revertedTimes(cluster string) int {
	if r == nil || time.Since(r.did[cluster].at) >= forgotten {
		return 0
	}
	return max(r.did[cluster].times-inARow, 0)
}

// after returns the time until a cluster with this result is looked at again if nothing changes before, and whether it
// is looked at on its own.
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

// idle returns the time until a cluster that has nothing left to do is looked at again. Such clusters are looked at in
// groups, and less often if it takes longer to look at all of them.
func (r *backoff) idle() time.Duration {
	least := max(r.Etcd, share*r.took)
	slot := max(least/slots, 1)
	now := time.Now()
	due := now.Add(jitter(least) + slot)
	return max(due.Truncate(slot).Sub(now), least)
}

// jitter returns the time plus up to half of it.
func jitter(d time.Duration) time.Duration { return d + rand.N(max(d/2, 1)) }

// lockedElsewhere reports whether a cluster is left alone because another process acts on it.
func lockedElsewhere(c report.Cluster) bool {
	return c.Decision.Rule == decide.LockedElsewhere && c.Decision.Verdict == decide.Wait
}

// passed records what a pass of a loop covered, while some sources may still be being read. After a pass over all, it
// drops all state about clusters that are gone.
func (r *Reconciler) passed(
	todo *queue, in *feed, rep report.Report, acted map[string]*report.Outcome, all bool,
) {
	unseen := in.unseen || rep.Unobserved
	if r.health.note(all, in.reading(), unseen); !all || unseen {
		return
	}
	known := knownOf(rep)
	gone := func(cluster string) bool { return !known[cluster] }
	r.inFlight.forget(known)
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
