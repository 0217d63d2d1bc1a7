package reconcile

import (
	"sync/atomic"
	"time"
)

const (
	// heartbeat is the longest time that a run waits without a sign of life.
	heartbeat = 10 * time.Second
	// stuck is the time without a sign of life after which a run counts as stuck. It is longer than any operation
	// with a deadline.
	stuck = 5 * time.Minute
)

// health is the health of a run, for concurrent readers.
type health struct {
	// last is the time of the last sign of life, in nanoseconds since 1970; 0 before the run begins.
	last atomic.Int64
	// complete is set once a pass over all has finished. observed is set if the last one could list the live side, and
	// so could all passes over some clusters since.
	complete, observed atomic.Bool
}

func (p *health) beat() { p.last.Store(time.Now().UnixNano()) }

// note records the result of a pass: whether it covered all clusters, whether sources were still being read, and
// whether something could not be listed. A pass over some clusters does not list the others, so it cannot show that
// everything works again.
func (p *health) note(all, reading, unseen bool) {
	if all || unseen {
		p.observed.Store(!unseen)
	}
	if all && !reading && !unseen {
		p.complete.Store(true)
	}
}

// Alive reports whether the run has given a sign of life within the last five minutes.
func (r *Reconciler) Alive() bool { return time.Since(time.Unix(0, r.health.last.Load())) < stuck }

// Ready reports whether a loop has looked at every cluster, and could list the live side the last time.
func (r *Reconciler) Ready() bool { return r.health.complete.Load() && r.health.observed.Load() }
