package reconcile

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"quorate.dev/quorate/reconcile/report"
)

// inFlight tracks clusters that take longer than one turn, for example because etcd accepts connections but does not
// respond. Passes do not wait for these clusters, and skip them until they are done. A cluster is never processed by
// two passes at the same time, and each pass uses a newer list than the previous one.
type inFlight struct {
	// done receives a value when a slow cluster is done.
	done chan struct{}

	mu sync.Mutex
	// begun holds all clusters that passes of this run have started to process. busy holds those that are still being
	// processed.
	begun, busy map[string]bool
	// slow holds the clusters that have taken longer than a turn at least once. Passes do not wait for them.
	slow map[string]bool
	// late holds the entries of slow clusters that have finished but have not been taken. cut holds the entries created
	// after the run was stopped.
	late, cut []report.Cluster
	all       sync.WaitGroup
}

func newInFlight() *inFlight {
	return &inFlight{done: make(chan struct{}, 1), begun: map[string]bool{}, busy: map[string]bool{},
		slow: map[string]bool{}}
}

// each calls do for all clusters in order, except clusters that are busy or were busy when they were listed. It returns
// the entries created within one turn.
func (s *inFlight) each(
	ctx context.Context, clusters []Cluster, wereBusy map[string]bool, do func(Cluster) report.Cluster,
) []report.Cluster {
	quick, slow := s.begin(clusters, wereBusy)
	entries, over := []report.Cluster{}, false
	late := func(entry report.Cluster) { s.keep(ctx, entry) }
	inTime := func(entry report.Cluster) {
		if over {
			late(entry)
		} else {
			entries = append(entries, entry)
		}
	}
	run := func(clusters []Cluster, made func(report.Cluster)) (rest func()) {
		return inTurn(len(clusters), func(i int) {
			started := time.Now()
			entry := do(clusters[i])
			s.mu.Lock()
			defer s.mu.Unlock()
			s.slow[entry.Key()] = s.slow[entry.Key()] || time.Since(started) > turn
			delete(s.busy, entry.Key())
			made(entry)
		})
	}
	s.all.Go(func() { run(slow, late)() })
	rest := run(quick, inTime)
	s.all.Go(rest)
	s.mu.Lock()
	defer s.mu.Unlock()
	over = true
	return entries
}

// begin returns the clusters that are not busy: quick clusters, which the pass waits for, and slow clusters, which it
// does not wait for.
func (s *inFlight) begin(clusters []Cluster, wereBusy map[string]bool) (quick, slow []Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range clusters {
		key := keyOf(c)
		switch {
		case s.busy[key] || wereBusy[key]:
			continue
		case s.slow[key]:
			slow = append(slow, c)
		default:
			quick = append(quick, c)
		}
		s.begun[key], s.busy[key] = true, true
	}
	return quick, slow
}

// keep stores the entry of a slow cluster until it is taken.
func (s *inFlight) keep(ctx context.Context, entry report.Cluster) {
	if ctx.Err() != nil {
		s.cut = append(s.cut, entry)
	} else {
		s.late = append(s.late, entry)
	}
	select {
	case s.done <- struct{}{}:
	default:
	}
}

// take returns the entries of the slow clusters that have finished since the last call.
func (s *inFlight) take() []report.Cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := s.late
	s.late = nil
	return late
}

// forget discards all state of clusters that no longer exist.
func (s *inFlight) forget(gone func(cluster string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	idle := func(cluster string, _ bool) bool { return gone(cluster) && !s.busy[cluster] }
	maps.DeleteFunc(s.begun, idle)
	maps.DeleteFunc(s.slow, idle)
}

// rest waits for all clusters in flight to finish.
func (s *inFlight) rest() { s.all.Wait() }

// interrupted returns the entries created after the run was stopped. Call rest first.
func (s *inFlight) interrupted() []report.Cluster { return s.cut }

// areBusy returns the clusters that are being processed.
func (s *inFlight) areBusy() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.busy)
}

// isNew reports whether this run has not yet started to process the cluster.
func (s *inFlight) isNew(cluster string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.begun[cluster]
}

// underway reports whether any clusters are still being processed or any entries of slow clusters have not been taken.
func (s *inFlight) underway() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.busy)+len(s.late) > 0
}

// tells reports whether a report contains all busy clusters.
func (s *inFlight) tells(rep report.Report) bool {
	told := keysOf(rep)
	for key := range s.areBusy() {
		if !told[key] {
			return false
		}
	}
	return true
}

// carried returns the report of a pass, with earlier entries added for clusters that are still being processed and,
// after a partial pass, for clusters that the pass did not cover.
func (s *inFlight) carried(rep, before report.Report, all bool) report.Report {
	told, busy := keysOf(rep), s.areBusy()
	rep.Clusters = slices.Clip(rep.Clusters) // do not modify the report of the pass
	for _, c := range before.Clusters {
		if key := c.Key(); (busy[key] || !all) && !told[key] {
			rep.Clusters = append(rep.Clusters, c)
		}
	}
	slices.SortFunc(rep.Clusters, byKey)
	return rep
}

func keyOf(c Cluster) string {
	namespace, name := c.Identity()
	return report.Cluster{Namespace: namespace, Name: name}.Key()
}
