package etcd

import (
	"errors"
	"maps"
	"sync"
	"time"
)

// soon is the least time that a member has after most others have answered that was silent just now, and whose pod is
// not ready.
const soon = 100 * time.Millisecond

// lull is how long a member counts as silent just now. Then it has all its time again: it may be well and far away.
const lull = 2 * time.Second

var errNotSoon = errors.New("no answer soon after the others")

// silence remembers which pods had all their time and did not answer, by UID, and when that was.
type silence struct {
	mu    sync.Mutex
	since map[string]time.Time
}

func (s *silence) justNow(pod string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	since, silent := s.since[pod]
	return silent && time.Since(since) < lull
}

func (s *silence) note(pod string, silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.since, pod); !silent {
		return
	}
	if s.since == nil {
		s.since = map[string]time.Time{}
	}
	maps.DeleteFunc(s.since, func(_ string, since time.Time) bool { return time.Since(since) >= lull })
	s.since[pod] = time.Now()
}
