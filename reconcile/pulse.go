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
	// complete: a pass over all has been made. observed: the last pass has seen something of the live side.
	complete, observed atomic.Bool
}

func (p *pulse) beat() { p.last.Store(time.Now().UnixNano()) }

// note notes what a pass has come to.
func (p *pulse) note(complete, unobserved bool) {
	p.observed.Store(!unobserved)
	if complete && !unobserved {
		p.complete.Store(true)
	}
}

// Alive reports whether the run goes on: it has given a sign of life within five minutes.
func (r *Reconciler) Alive() bool { return time.Since(time.Unix(0, r.pulse.last.Load())) < stuck }

// Ready reports whether a loop has looked at every cluster, and could look at some the last time.
func (r *Reconciler) Ready() bool { return r.pulse.complete.Load() && r.pulse.observed.Load() }
