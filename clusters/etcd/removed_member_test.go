package etcd_test

import (
	"sync/atomic"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// TestRemovedMemberIsNotWaitedFor checks that the observation after a removal does not wait for the removed member,
// which takes a while to stop. If its response arrives in time, it is used.
func TestRemovedMemberIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, binary string) {
		s := form(t, binary, nil, 3)
		clients := newClients(t)
		clients.Timeout = 4 * time.Second
		var removed decide.Member
		var stops atomic.Bool
		proxied := s.proxied(t, 3, func(c call) ([]byte, error) {
			if stops.Load() && c.pod == removed.Name {
				<-t.Context().Done()
			}
			return c.passOn()
		})
		for _, m := range eventually(t, clients, proxied, "three responding members", allAnswer(3)).Membership.Members {
			if !m.Leader {
				removed = m
			}
		}
		intime(t, "remove "+removed.Name, func() error { return clients.RemoveMember(t.Context(), proxied, removed.ID) })
		stops.Store(true)
		var took time.Duration
		for range 3 { // on a busy machine, one observation can take long for other reasons
			start := time.Now()
			answer := clients.Observe(t.Context(), proxied)
			if took = time.Since(start); took < clients.Timeout/8 && allAnswer(2)(answer.Membership) {
				return
			}
		}
		t.Errorf("took %s", took)
	})
}
