package reconcile

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"
)

// ErrReading is why a Place is Unread that is still being read.
var ErrReading = errors.New("it is still being read")

// ErrGone is why it cannot be told whether a revision follows another that its source no longer has.
var ErrGone = errors.New("the source no longer has it")

// intake is what a run knows so far of what is declared. Its places are read once in a run, and again and again
// in a loop.
type intake struct {
	desired Desired
	// known brings what is known each time that it is more, or something else.
	known <-chan Desired
	// fresh: no pass over all has been made yet with what is known.
	fresh bool
	// asking: of some places, the last pass did not know yet whether their revision follows what
	// was applied before. It is looked for again after a pause, which grows.
	asking bool
	pause  time.Duration
	// again is when they are asked again.
	again time.Time
	// unseen: the last pass could not list anything, whether another one may or not.
	unseen bool
	// ready reports which clusters the last pass might look at.
	ready func(cluster string) bool
	// declared is what each place declared when it could last be read, by source and cluster, and news are the
	// clusters, as namespace/name, of which that has changed since. They are nil in a run that reads once.
	declared map[string]Declaration
	news     map[string]bool
	// read are the places that could be read at least once.
	read places
	// untaken is what was news, and no pass has been about yet while its source counted.
	untaken map[change]bool
}

// places are names of places.
type places map[string]bool

// holds reports whether all places that can be read now are among these.
func (names places) holds(d Desired) bool {
	return !slices.ContainsFunc(d.Sources, func(p Place) bool { return p.Unread == nil && !names[p.Name] })
}

func (names places) add(d Desired) {
	for _, p := range d.Sources {
		if p.Unread == nil {
			names[p.Name] = true
		}
	}
}

// change is that a source declares something else of a cluster, which may be nothing.
type change struct{ source, cluster string }

// begin begins a run. It reads all places, and returns as soon as something is known that need not
// wait for the others.
func (r *Reconciler) begin(ctx context.Context, read func(context.Context, func(Desired))) *intake {
	if r.stragglers = newStragglers(); r.failed == nil {
		r.failed = map[string]bool{}
	}
	known := make(chan Desired, 1)
	go read(ctx, func(d Desired) {
		select {
		case <-known: // what nobody has taken is of no use any more
		default:
		}
		known <- d
	})
	return &intake{desired: <-known, known: known, fresh: true, pause: firstPause}
}

// firstPause is that before a place is asked again for the first time.
const firstPause = time.Second / 2

// once reads all places once.
func (r *Reconciler) once(ctx context.Context, tell func(Desired)) {
	d := r.Source.Fetch(ctx, tell)
	r.fetched(d)
	tell(d)
}

func (r *Reconciler) fetched(d Desired) {
	r.Log.Debug("fetched", "revision", d.Revision, "signer", d.Signer, "clusters", len(d.Clusters), "problems",
		len(d.Problems))
}

// reading reports whether there is more to be known of some places.
func (in *intake) reading() bool { return in.asking || in.desired.reading() }

// sees notes whether a pass could list anything, and returns what is declared by what it has seen.
func (in *intake) sees(observed Observed, err error) Desired {
	in.unseen = err != nil
	switch {
	case !in.unseen:
		return observed.Desired
	case errors.As(err, &SetupError{}):
		in.asking = false // no further pass is better off
	}
	return in.desired
}

// passed notes what a pass about some clusters has found out about what is declared, and returns which ones it may look
// at: those of which it is known what is declared, whatever may come.
func (in *intake) passed(d Desired, about func(cluster string) bool) (ready func(cluster string) bool) {
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
		switch place, given := d.Place(c.source); {
		case in.unseen || given && place.Unread != nil || !in.ready(c.cluster):
		case about(c.cluster):
			delete(in.untaken, c)
		default:
			in.news[c.cluster] = true
		}
	}
	return in.ready
}

// look takes in what has come, without waiting.
func (in *intake) look() {
	select {
	case d := <-in.known:
		in.take(d)
	default:
	}
}

// take takes in what is known now. In a loop it calls for no pass over all, unless something was being read before, or
// could not be read yet, of which nothing was known.
func (in *intake) take(d Desired) {
	in.fresh = in.fresh || in.declared == nil || in.desired.reading() || !in.read.holds(d)
	in.desired, in.pause, in.again = d, firstPause, time.Time{}
	in.note(d)
	in.probe(d)
}

// probe has the next pass be about one cluster of each source that declared something else while it did not count: it
// may now, and such a pass finds out.
func (in *intake) probe(d Desired) {
	probed := map[string]bool{}
	for c := range in.untaken {
		if place, given := d.Place(c.source); given && place.Unread == nil && !probed[c.source] {
			probed[c.source], in.news[c.cluster] = true, true
		}
	}
}

// note notes of which clusters something else is declared than before. What a place declares that cannot be read
// is not known: it counts as unchanged until it can.
func (in *intake) note(d Desired) {
	if in.declared == nil {
		return
	}
	next := map[string]Declaration{}
	for key, c := range in.declared {
		if place, given := d.Place(c.Source); !given || place.Unread != nil {
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

func (in *intake) change(c Declaration) {
	in.news[c.key()] = true
	in.untaken[change{c.Source, c.key()}] = true
}

// askAgain is when places are asked again of which it is not known yet whether they follow; zero if there are none. The
// pause before doubles each time, up to the longest time between two passes; passes about something else in between
// change nothing in it.
func (in *intake) askAgain() time.Time {
	if !in.asking {
		return time.Time{}
	}
	if now := time.Now(); !now.Before(in.again) {
		in.again, in.pause = now.Add(in.pause), min(2*in.pause, resync)
	}
	return in.again
}

// asks reports whether some places are asked about: those of which a pass does not know yet whether they follow, while
// read says that they have been read.
func (d Desired) asks(read Desired) bool {
	return slices.ContainsFunc(d.Sources, func(p Place) bool {
		if !errors.Is(p.Unread, ErrReading) {
			return false
		}
		was, _ := read.Place(p.Name)
		return !errors.Is(was.Unread, ErrReading)
	})
}

func (d Desired) reading() bool { return errors.Is(d.Failure(), ErrReading) }

// Ready are the clusters, as namespace/name, that are declared by places that have been read, where
// no place that is still being read has a say: neither in a namespace of that place nor, since what
// a place declares hangs together, in one of a place that shares a namespace with it.
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

// awaited are the names of the places that are still being read, and of those that share a
// namespace with one of them.
func (d Desired) awaited() []string {
	var awaited []Place
	rest := slices.Clone(d.Sources)
	for found := true; found; {
		found = false
		rest = slices.DeleteFunc(rest, func(p Place) bool {
			waits := errors.Is(p.Unread, ErrReading) ||
				slices.ContainsFunc(awaited, func(a Place) bool { return p.Namespaces.overlap(a.Namespaces) })
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

// overlap reports whether one namespace is in both.
func (n Namespaces) overlap(other Namespaces) bool {
	return len(n) == 0 || slices.ContainsFunc(n, other.Allow)
}
