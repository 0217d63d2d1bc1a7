package reconcile

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"quorate.dev/quorate/reconcile/report"
)

// stragglers are the clusters that take longer than their turn, as where etcd takes connections and
// does not answer. Passes do not wait for them, and leave each out until it is done: whatever is
// done for one cluster is done one thing at a time, on a list that is newer than the last thing.
type stragglers struct {
	// done has something in it when one of them is done.
	done chan struct{}

	mu sync.Mutex
	// begun are all that passes of this run have started on, and busy those of them that are not
	// done.
	begun, busy map[string]bool
	// slow are those that have ever taken longer than a turn: no pass waits for them at all.
	slow map[string]bool
	// late are the entries of those that are done and have not been taken, and cut those that were
	// made after the run was told to stop.
	late, cut []report.Cluster
	all       sync.WaitGroup
}

func newStragglers() *stragglers {
	return &stragglers{done: make(chan struct{}, 1), begun: map[string]bool{}, busy: map[string]bool{},
		slow: map[string]bool{}}
}

// each does something for all clusters but those that are busy, or were when they were listed, in
// turn. It returns the entries that were made within a turn.
func (s *stragglers) each(
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

// begin parts the clusters that are not busy by whether a pass waits for them.
func (s *stragglers) begin(clusters []Cluster, wereBusy map[string]bool) (quick, slow []Cluster) {
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

// keep keeps the entry of a straggler until it is taken.
func (s *stragglers) keep(ctx context.Context, entry report.Cluster) {
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

// take returns what has become of stragglers since it was last asked.
func (s *stragglers) take() []report.Cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := s.late
	s.late = nil
	return late
}

// forget keeps nothing of clusters that are not known any more.
func (s *stragglers) forget(known map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := func(cluster string, _ bool) bool { return !known[cluster] && !s.busy[cluster] }
	maps.DeleteFunc(s.begun, gone)
	maps.DeleteFunc(s.slow, gone)
}

// rest waits for all that are not done yet.
func (s *stragglers) rest() { s.all.Wait() }

// cutShort are the entries that were made after the run was told to stop. It must have rested.
func (s *stragglers) cutShort() []report.Cluster { return s.cut }

// areBusy are the clusters that some pass has started on and that are not done.
func (s *stragglers) areBusy() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.busy)
}

// isNew reports whether no pass of this run has started on a cluster.
func (s *stragglers) isNew(cluster string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.begun[cluster]
}

// underway reports whether some are not done yet, or have not been taken.
func (s *stragglers) underway() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.busy)+len(s.late) > 0
}

// tells reports whether a report says something of all that are busy.
func (s *stragglers) tells(rep report.Report) bool {
	told := keysOf(rep)
	for key := range s.areBusy() {
		if !told[key] {
			return false
		}
	}
	return true
}

// carried is the report of a pass, with what an earlier one says of the clusters that are not done
// yet, and of those that the pass was not about, unless it was about all.
func (s *stragglers) carried(rep, before report.Report, all bool) report.Report {
	told, busy := keysOf(rep), s.areBusy()
	rep.Clusters = slices.Clip(rep.Clusters) // the report of the pass stays as it is
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
