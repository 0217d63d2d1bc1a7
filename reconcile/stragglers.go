package reconcile

import (
	"maps"
	"slices"
	"sync"
	"time"

	"quorate.dev/quorate/reconcile/report"
)

// stragglers are the clusters that take longer than their turn, as where etcd takes connections and does not answer. Passes do not wait for them, and
// leave each out until it is done: whatever is done for one cluster is done one thing at a time.
type stragglers struct {
	mu sync.Mutex
	// begun are all that passes of this run have started on, and busy those of them that are not done.
	begun, busy map[string]bool
	// slow are those that took longer than a turn when they were last looked at: no pass waits for them at all.
	slow map[string]bool
	// late are the entries of those that are done, but for what some pass has taken in.
	late []report.Cluster
	// done has something in it once another pass is worth it because of them.
	done chan struct{}
	all  sync.WaitGroup
}

func newStragglers() *stragglers {
	return &stragglers{begun: map[string]bool{}, busy: map[string]bool{}, slow: map[string]bool{}, done: make(chan struct{}, 1)}
}

// each does something for all clusters that are not busy, in turn. It returns the entries that were made within a turn, and those of earlier passes that
// are news. The others come with later passes, or with the rest.
func (s *stragglers) each(clusters []Cluster, do func(Cluster) report.Cluster) []report.Cluster {
	entries, quick, slow := s.begin(clusters)
	over := false
	run := func(clusters []Cluster, waited *bool) (rest func()) {
		return inTurn(len(clusters), func(i int) {
			started := time.Now()
			entry := do(clusters[i])
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.busy, entry.Key())
			s.slow[entry.Key()] = time.Since(started) > turn
			if *waited {
				s.late = append(s.late, entry)
				time.AfterFunc(recheck(report.Report{Clusters: []report.Cluster{entry}}), s.wake)
			} else {
				entries[entry.Key()] = entry
			}
		})
	}
	never := true
	s.all.Go(func() { run(slow, &never)() })
	rest := run(quick, &over)
	s.all.Go(rest)
	s.mu.Lock()
	defer s.mu.Unlock()
	over = true
	return slices.AppendSeq([]report.Cluster{}, maps.Values(entries))
}

// begin parts the clusters that are not busy by whether a pass waits for them, and takes in what is news.
func (s *stragglers) begin(clusters []Cluster) (news map[string]report.Cluster, quick, slow []Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	news = map[string]report.Cluster{}
	for _, entry := range s.late {
		news[entry.Key()] = entry
	}
	s.late = nil
	for _, c := range clusters {
		key := keyOf(c)
		switch {
		case s.busy[key]:
			continue
		case s.slow[key]:
			slow = append(slow, c)
		default:
			quick = append(quick, c)
		}
		s.begun[key], s.busy[key] = true, true
	}
	return news, quick, slow
}

// isNew reports whether no pass of this run has started on a cluster.
func (s *stragglers) isNew(cluster string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.begun[cluster]
}

func (s *stragglers) wake() {
	select {
	case s.done <- struct{}{}:
	default:
	}
}

// underway reports whether some are not done yet, or no pass has taken in what became of them.
func (s *stragglers) underway() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.busy)+len(s.late) > 0
}

// carried is the report of a pass, with what an earlier one says of the clusters that are not done yet.
func (s *stragglers) carried(rep, before report.Report) report.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := keysOf(rep)
	for _, c := range before.Clusters {
		if key := c.Key(); s.busy[key] && !told[key] {
			rep.Clusters = append(rep.Clusters, c)
		}
	}
	slices.SortFunc(rep.Clusters, byKey)
	return rep
}

// rest waits for all that are not done yet, and returns what has become of them.
func (s *stragglers) rest() []report.Cluster {
	s.all.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	late := s.late
	s.late = nil
	return late
}

func keyOf(c Cluster) string {
	namespace, name := c.Identity()
	return report.Cluster{Namespace: namespace, Name: name}.Key()
}
