package reconcile

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"
)

// ErrReading is the reason in SourceState.Unread while a source is still being read.
var ErrReading = errors.New("the source is still being read")

// ErrGone means that the ancestry of a revision is unknown because the source no longer contains that revision.
var ErrGone = errors.New("the source no longer has it")

// feed holds the declarations known to a run. A loop reads its sources repeatedly; other runs read them once.
type feed struct {
	desired Desired
	// begun is the time at which the run started to read the sources. late is set if the last pass no longer waited for
	// sources that have never been read.
	begun time.Time
	late  bool
	// known delivers the declarations whenever they have changed.
	known <-chan Desired
	// fresh is set until a full pass has used the current declarations.
	fresh bool
	// asking is set if the last pass could not determine whether the revisions of some sources descend from the
	// revisions applied before. Their ancestry is checked again after a pause, which increases each time.
	asking bool
	pause  time.Duration
	// again is the time at which the ancestry of these sources is checked again.
	again time.Time
	// doubts holds, for each source, the time at which a pass first could not determine its ancestry. A source remains
	// in doubt until a pass accepts it, no matter how often it is read until then and whether those reads succeed.
	doubts map[string]time.Time
	// inDoubt holds the sources whose ancestry the last pass could not determine.
	inDoubt sourceNames
	// doubted is the time since which every pass has found some source in doubt, or zero if the last pass found none.
	doubted time.Time
	// waits is set if the last pass had to skip clusters that could be affected by sources that are in doubt or still
	// being read. Otherwise, skipped holds the clusters of sources in doubt.
	waits   bool
	skipped map[string]bool
	// probes holds one changed cluster of each source in doubt that other sources no longer wait for.
	probes map[string]string
	// unseen is set if the last pass could not list anything, whether or not a retry could succeed.
	unseen bool
	// ready reports whether the last pass was allowed to process a cluster.
	ready func(cluster string) bool
	// declared holds the declarations of each source as last read, by source and cluster. news holds the clusters, as
	// namespace/name, whose changed declarations the queue has not taken yet. Both are nil in a run that reads its
	// sources once.
	declared map[string]Declaration
	news     map[string]bool
	// read holds the sources that have been read at least once.
	read sourceNames
	// untaken holds the changes that have not been covered by a pass in which their source was readable and not
	// refused.
	untaken map[sourceAndCluster]bool
}

// sourceNames is a set of source names.
type sourceNames map[string]bool

// holds reports whether the set contains all sources that are currently readable.
func (names sourceNames) holds(d Desired) bool {
	return !slices.ContainsFunc(d.Sources, func(p SourceState) bool { return p.Unread == nil && !names[p.Name] })
}

func (names sourceNames) add(d Desired) {
	for _, p := range d.Sources {
		if p.Unread == nil {
			names[p.Name] = true
		}
	}
}

// sourceAndCluster identifies a declaration that a source has changed or removed.
type sourceAndCluster struct{ source, cluster string }

// begin starts a run. It starts reading all sources, and returns as soon as the first declarations are known.
func (r *Reconciler) begin(ctx context.Context, read func(context.Context, func(Desired))) *feed {
	if r.inFlight = newInFlight(); r.failed == nil {
		r.failed = map[string]bool{}
	}
	known, begun := make(chan Desired, 1), time.Now()
	go read(ctx, func(d Desired) {
		select {
		case <-known: // discard an outdated value
		default:
		}
		known <- d
	})
	return &feed{desired: <-known, begun: begun, known: known, fresh: true, pause: firstPause,
		doubts: map[string]time.Time{}}
}

// firstPause is the pause between the first and the second check of the ancestry of sources.
const firstPause = time.Second / 2

// once reads all sources once.
func (r *Reconciler) once(ctx context.Context, tell func(Desired)) {
	d := r.Source.Fetch(ctx, tell)
	r.fetched(d)
	tell(d)
}

func (r *Reconciler) fetched(d Desired) {
	r.Log.Debug("fetched", "revision", d.Revision, "signer", d.Signer, "clusters", len(d.Clusters), "problems",
		len(d.Problems))
}

// reading reports whether some sources are still being read or their ancestry is not known yet.
func (in *feed) reading() bool { return in.asking || in.desired.reading() }

// sees records whether a pass could list the clusters, and returns the declarations that the pass uses.
func (in *feed) sees(observed Observed, err error) Desired {
	in.unseen = err != nil
	switch {
	case !in.unseen:
		return in.doubt(observed.Desired)
	case errors.As(err, &SetupError{}):
		in.asking = false // retrying would fail, too
	}
	return in.desired
}

// passed updates the feed after a pass has listed clusters. ready reports whether the pass may process a cluster: its
// declaration must be known and must not depend on a source that is still being read.
func (in *feed) passed(
	d Desired, clusters []Cluster, about func(cluster string) bool,
) (ready func(cluster string) bool) {
	in.fresh = false
	in.skip(d, clusters)
	for c := range in.untaken {
		switch state, given := d.State(c.source); {
		case !in.unseen && !in.waits && in.inDoubt[c.source]:
			in.probes[c.source] = c.cluster
		case in.unseen || given && state.Unread != nil || !in.ready(c.cluster):
		case about(c.cluster):
			delete(in.untaken, c)
		default:
			in.news[c.cluster] = true
		}
	}
	return in.ready
}

// look takes new declarations, if any, without blocking.
func (in *feed) look() {
	select {
	case d := <-in.known:
		in.take(d)
	default:
	}
}

// take stores new declarations. In a loop, they require a full pass only if sources were still being read before, or if
// a source has become readable for the first time.
func (in *feed) take(d Desired) {
	in.fresh = in.fresh || in.declared == nil || in.desired.reading() || !in.read.holds(d)
	in.desired, in.pause, in.again = d, firstPause, time.Time{}
	in.note(d)
	in.retryChanged(d)
}

// retryChanged adds one cluster per source to the next pass, for each readable source that has unprocessed changes from
// when it was unreadable or refused. That pass determines whether the source is still refused.
func (in *feed) retryChanged(d Desired) {
	probed := map[string]bool{}
	for c := range in.untaken {
		if state, given := d.State(c.source); given && state.Unread == nil && !probed[c.source] {
			probed[c.source], in.news[c.cluster] = true, true
		}
	}
}

// note records the clusters whose declarations have changed. While a source is unreadable, its declarations are unknown
// and count as unchanged.
func (in *feed) note(d Desired) {
	if in.declared == nil {
		return
	}
	next := map[string]Declaration{}
	for key, c := range in.declared {
		if state, given := d.State(c.Source); !given || state.Unread != nil {
			next[key] = c
		}
	}
	for _, c := range d.Clusters {
		key := c.Source + " " + c.key()
		if before, was := in.declared[key]; !was || !reflect.DeepEqual(before.Applied, c.Applied) {
			in.change(c)
		}
		next[key] = c
	}
	for key, c := range in.declared {
		if _, still := next[key]; !still {
			in.change(c)
		}
	}
	in.declared = next
	in.read.add(d)
}

// forget discards changes to clusters that no longer exist and are no longer declared.
func (in *feed) forget(gone func(cluster string) bool) {
	maps.DeleteFunc(in.untaken, func(c sourceAndCluster, _ bool) bool {
		_, declared := in.declared[c.source+" "+c.cluster]
		return !declared && gone(c.cluster)
	})
}

func (in *feed) change(c Declaration) {
	in.news[c.key()] = true
	in.untaken[sourceAndCluster{c.Source, c.key()}] = true
}

// askAgain returns the time at which to check ancestry again, or zero if the ancestry of all sources is known. The
// pause doubles each time, up to resync. Passes that run for other reasons do not affect it.
func (in *feed) askAgain() time.Time {
	if !in.asking {
		return time.Time{}
	}
	if now := time.Now(); !now.Before(in.again) {
		in.again, in.pause = now.Add(in.pause), min(2*in.pause, resync)
	}
	return in.again
}

func (d Desired) reading() bool { return errors.Is(d.Failure(), ErrReading) }

// Ready returns the clusters, as namespace/name, whose sources have been read and that unread sources cannot affect. An
// unread source affects its own namespaces and, because the declarations of a source belong together, the namespaces of
// all sources that share a namespace with it, directly or through other sources.
func (d Desired) Ready() []string {
	var free []string
	awaited := d.awaited()
	for _, c := range d.Clusters {
		if !slices.Contains(awaited, c.Source) {
			free = append(free, c.key())
		}
	}
	return free
}

// awaited returns the names of the sources that are still being read, and of all sources that share a namespace with
// one of them, directly or through other sources.
func (d Desired) awaited() []string {
	var awaited []SourceState
	rest := slices.Clone(d.Sources)
	for found := true; found; {
		found = false
		rest = slices.DeleteFunc(rest, func(p SourceState) bool {
			waits := errors.Is(p.Unread, ErrReading) ||
				slices.ContainsFunc(awaited, func(a SourceState) bool { return p.Namespaces.overlap(a.Namespaces) })
			if waits {
				awaited, found = append(awaited, p), true
			}
			return waits
		})
	}
	var names []string
	for _, p := range awaited {
		names = append(names, p.Name)
	}
	return names
}

// overlap reports whether n and other have a namespace in common.
func (n Namespaces) overlap(other Namespaces) bool {
	return len(n) == 0 || slices.ContainsFunc(n, other.Allow)
}
