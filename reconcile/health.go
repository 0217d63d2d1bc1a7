package reconcile

import (
	"sync/atomic"
	"time"
)

const (
	// heartbeat is the maximum time that a run waits without a sign of life.
	heartbeat = 10 * time.Second
	// stuck is the time without a sign of life after which a run counts as stuck. It is longer than any operation
	// with a deadline.
	stuck = 5 * time.Minute
)

// health is the health of a run, for concurrent readers.
type health struct {
	// last is the time of the last sign of life, in nanoseconds since 1970; 0 before the run begins.
	last atomic.Int64
	// complete is set once a full pass has listed everything while no source was still being read. observed is set if
	// the last full pass and all partial passes since then could list everything.
	complete, observed atomic.Bool
}

func (p *health) beat() { p.last.Store(time.Now().UnixNano()) }

// note records the result of a pass. all is set if it covered all clusters, reading if sources were still being read,
// and unseen if something could not be listed. A successful partial pass does not show that everything can be listed
// again, because it does not list the other clusters.
func (p *health) note(all, reading, unseen bool) {
	if all || unseen {
		p.observed.Store(!unseen)
	}
	if all && !reading && !unseen {
		p.complete.Store(true)
	}
}

// Alive reports whether the run has made progress within the last five minutes.
func (r *Reconciler) Alive() bool { return time.Since(time.Unix(0, r.health.last.Load())) < stuck }

// Ready reports whether a loop has completed a full pass, and could list everything the last time.
func (r *Reconciler) Ready() bool { return r.health.complete.Load() && r.health.observed.Load() }
