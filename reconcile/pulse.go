package reconcile

import (
	"sync/atomic"
	"time"
)

const (
	// heartbeat is the longest time that a run waits without a sign of life.
	heartbeat = 10 * time.Second
	// stuck is how long a run may be without one. It is more than anything takes that has a deadline.
	stuck = 5 * time.Minute
)

// pulse says how a run is doing, to whoever asks meanwhile.
type pulse struct {
	// last is when it last gave a sign of life, in nanoseconds since 1970; 0 before it begins.
	last atomic.Int64
	// complete: a pass over all has been made. observed: the last one could list what there is on the live side, and
	// so could those about some clusters since.
	complete, observed atomic.Bool
}

func (p *pulse) beat() { p.last.Store(time.Now().UnixNano()) }

// note notes what a pass has come to: whether it was about all, while no source was read any more, and whether
// something could not be listed. One about some clusters lists no others, so it cannot tell that all is well again.
func (p *pulse) note(all, reading, unseen bool) {
	if all || unseen {
		p.observed.Store(!unseen)
	}
	if all && !reading && !unseen {
		p.complete.Store(true)
	}
}

// Alive reports whether the run goes on: it has given a sign of life within five minutes.
func (r *Reconciler) Alive() bool { return time.Since(time.Unix(0, r.pulse.last.Load())) < stuck }

// Ready reports whether a loop has looked at every cluster, and could list what there is the last time.
func (r *Reconciler) Ready() bool { return r.pulse.complete.Load() && r.pulse.observed.Load() }
