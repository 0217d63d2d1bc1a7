package reconcile

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"
)

// ErrReading is in SourceState.Unread while a source is still being read.
var ErrReading = errors.New("it is still being read")

// ErrGone is returned if a revision's ancestry is unknown because the source no longer has that revision.
var ErrGone = errors.New("the source no longer has it")

// feed holds what a run knows about the declarations. A run reads its sources once, and a loop reads them repeatedly.
type feed struct {
	desired Desired
	// known delivers the declarations whenever they have changed.
	known <-chan Desired
	// fresh is set until a pass over all has used the current declarations.
	fresh bool
	// asking is set if the last pass did not know yet whether the revisions of some sources follow what was applied
	// before. These sources are asked about again after a pause, which grows.
	asking bool
	pause  time.Duration
	// again is when these sources are asked about again.
	again time.Time
	// unseen is set if the last pass could not list anything, whether or not another pass could.
	unseen bool
	// ready reports which clusters the last pass was allowed to look at.
	ready func(cluster string) bool
	// declared holds what each source declared when it was last read, by source and cluster, and news holds the
	// clusters, as namespace/name, whose declarations have changed since. Both are nil in a run that reads once.
	declared map[string]Declaration
	news     map[string]bool
	// read are the sources that have been read at least once.
	read sourceNames
	// untaken are changes that no pass has covered yet while their source counted.
	untaken map[sourceAndCluster]bool
}

// sourceNames are names of sources.
type sourceNames map[string]bool

// holds reports whether all sources that are readable now are in the set.
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

// sourceAndCluster is a changed declaration of a cluster by a source, or its removal.
type sourceAndCluster struct{ source, cluster string }

// begin starts a run. It reads all sources, and returns as soon as something is known that does not depend on the
// remaining sources.
func (r *Reconciler) begin(ctx context.Context, read func(context.Context, func(Desired))) *feed {
	if r.inFlight = newInFlight(); r.failed == nil {
		r.failed = map[string]bool{}
	}
	known := make(chan Desired, 1)
	go read(ctx, func(d Desired) {
		select {
		case <-known: // discard an outdated value
		default:
		}
		known <- d
	})
	return &feed{desired: <-known, known: known, fresh: true, pause: firstPause}
}

// firstPause is the pause before sources are asked about for the first time.
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

// reading reports whether more will be known about some sources.
func (in *feed) reading() bool { return in.asking || in.desired.reading() }

// sees records whether a pass was able to list, and returns the declarations that the pass has seen.
func (in *feed) sees(observed Observed, err error) Desired {
	in.unseen = err != nil
	switch {
	case !in.unseen:
		return observed.Desired
	case errors.As(err, &SetupError{}):
		in.asking = false // another pass would fail too
	}
	return in.desired
}

// passed records what a pass over some clusters has found out about the declarations. It returns which clusters the
// pass may look at: those whose declarations are known and cannot be changed by sources that are still being read.
func (in *feed) passed(d Desired, about func(cluster string) bool) (ready func(cluster string) bool) {
	in.fresh = false
	in.asking = d.asks(in.desired) || in.asking && in.unseen
	in.ready = func(string) bool { return true }
	if d.reading() {
		clusters := map[string]bool{}
		for _, cluster := range d.Ready() {
			clusters[cluster] = true
		}
		in.ready = func(cluster string) bool { return clusters[cluster] }
	}
	for c := range in.untaken {
		switch state, given := d.State(c.source); {
		case in.unseen || given && state.Unread != nil || !in.ready(c.cluster):
		case about(c.cluster):
			delete(in.untaken, c)
		default:
			in.news[c.cluster] = true
		}
	}
	return in.ready
}

// look receives new declarations, without waiting.
func (in *feed) look() {
	select {
	case d := <-in.known:
		in.take(d)
	default:
	}
}

// take stores the current declarations. In a loop, this does not require a pass over all, unless sources were still
// being read before, or a source is readable for the first time.
func (in *feed) take(d Desired) {
	in.fresh = in.fresh || in.declared == nil || in.desired.reading() || !in.read.holds(d)
	in.desired, in.pause, in.again = d, firstPause, time.Time{}
	in.note(d)
	in.retryChanged(d)
}

// retryChanged makes the next pass cover one cluster of each source whose declarations changed while the source did not
// count. That pass determines whether it counts now.
func (in *feed) retryChanged(d Desired) {
	probed := map[string]bool{}
	for c := range in.untaken {
		if state, given := d.State(c.source); given && state.Unread == nil && !probed[c.source] {
			probed[c.source], in.news[c.cluster] = true, true
		}
	}
}

// note records the clusters whose declarations have changed. The declarations of a source that cannot be read are
// unknown, and count as unchanged until it can be read.
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

func (in *feed) change(c Declaration) {
	in.news[c.key()] = true
	in.untaken[sourceAndCluster{c.Source, c.key()}] = true
}

// askAgain returns when to ask again about the sources whose ancestry is not known yet, or zero if there are none. The
// pause doubles each time, up to the longest time between two passes; passes for other reasons do not affect it.
func (in *feed) askAgain() time.Time {
	if !in.asking {
		return time.Time{}
	}
	if now := time.Now(); !now.Before(in.again) {
		in.again, in.pause = now.Add(in.pause), min(2*in.pause, resync)
	}
	return in.again
}

// asks reports whether the pass does not know yet, for some source that has been read, whether its revision follows
// what was applied. read is the desired state before the pass.
func (d Desired) asks(read Desired) bool {
	return slices.ContainsFunc(d.Sources, func(p SourceState) bool {
		if !errors.Is(p.Unread, ErrReading) {
			return false
		}
		was, _ := read.State(p.Name)
		return !errors.Is(was.Unread, ErrReading)
	})
}

func (d Desired) reading() bool { return errors.Is(d.Failure(), ErrReading) }

// Ready returns the clusters, as namespace/name, that are declared by sources that have been read and that no unread
// source can affect. An unread source affects its own namespaces and, because the declarations of a source belong
// together, those of every source that shares a namespace with it.
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

// awaited returns the names of the sources that are still being read, and of those that share a namespace with an
// awaited source.
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

// overlap reports whether a namespace is in both.
func (n Namespaces) overlap(other Namespaces) bool {
	return len(n) == 0 || slices.ContainsFunc(n, other.Allow)
}
