package etcd

import (
	"errors"
	"maps"
	"sync"
	"time"
)

// soon is the minimum time that certain members get after most other members have responded: unready members that have
// just failed to respond, and members that were just removed.
const soon = 100 * time.Millisecond

// lull is how long an event counts as recent. After that, a member gets its full timeout again: it may be healthy and
// far away.
const lull = 2 * time.Second

var errNotSoon = errors.New("no response shortly after the other members responded")

// pods maps the UIDs of pods to when they were noted.
type pods struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// justNow reports whether a pod was noted less than lull ago.
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
