package etcd

import (
	"errors"
	"maps"
	"sync"
	"time"
)

// soon is the least time that a member has after most others have answered that was silent just now, and whose pod is
// not ready, or that was removed just now.
const soon = 100 * time.Millisecond

// lull is how long something counts as just now. Then a member has all its time again: it may be well and far away.
const lull = 2 * time.Second

var errNotSoon = errors.New("no answer soon after the others")

// pods are remembered by UID, each with when it was noted.
type pods struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// justNow reports whether a pod was noted a moment ago.
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
