package etcd

import (
	"errors"
	"maps"
	"sync"
	"time"
)

// soon is the minimum time that some members still get once most other members have responded: unready members that
// recently failed to respond, and members that were recently removed.
const soon = 100 * time.Millisecond

// lull is how long an event counts as recent. After that, a member gets its full timeout again, because it may be
// healthy but far away.
const lull = 2 * time.Second

var errNotSoon = errors.New("no response shortly after the other members responded")

// pods maps pod UIDs to the times when the pods were noted.
type pods struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// justNow reports whether the pod was noted less than lull ago.
func (s *pods) justNow(pod string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, noted := s.since[pod]
	return noted && time.Since(since) < lull
}

func (s *pods) note(pod string, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.since, pod); !is {
		return
	}
	if s.since == nil {
		s.since = map[string]time.Time{}
	}
	maps.DeleteFunc(s.since, func(_ string, since time.Time) bool { return time.Since(since) >= lull })
	s.since[pod] = time.Now()
}
