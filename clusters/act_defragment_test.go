package clusters

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"quorate.dev/quorate/reconcile/decide"
)

// TestDefragment checks that a member is defragmented only if the current state still allows it, at most once per
// action, and that a failure is reported in the outcome, so that the status records it.
func TestDefragment(t *testing.T) {
	done := "etcd: Defragment a-1: from 0.0Mi to 0.0Mi in "
	for name, test := range map[string]struct {
		id      decide.ID
		change  func(*life)
		want    string // the beginning of the outcome's detail
		failure string // part of the outcome's failure
		asked   int32
	}{
		"follower":               {2, nil, done, "", 1},
		"leader":                 {1, nil, "not yet: the member is the leader", "", 0},
		"member that has left":   {7, nil, "not yet: etcd no longer lists the member", "", 0},
		"another member stopped": {2, func(l *life) { l.etcd.running[2].stop() }, "not yet: not all members are known to be healthy", "", 0},
		"another member is a learner": {2, func(l *life) {
			l.etcd.mu.Lock()
			defer l.etcd.mu.Unlock()
			l.etcd.members[2].IsLearner = true
		}, "not yet: not all members are known to be healthy", "", 0},
		"already being defragmented": {2, func(l *life) { l.etcd.running[1].readsHang.Store(true) },
			"etcd: not yet: defragment member 2: it does not respond to reads", "", 0},
		"rejected": {2, func(l *life) {
			l.etcd.running[1].defragment = func(context.Context) error {
				return status.Error(codes.Unknown, "no space left on device")
			}
		}, "etcd: defragment member 2: ", "no space left on device", 1},
		"too slow": {2, func(l *life) {
			l.etcd.running[1].defragment = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		}, "etcd: defragment member 2: ", "the pass has ended", 1},
		"different cluster": {2, func(l *life) { l.etcd.clusterID = 0xc2 }, "etcd: not yet: ", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			l.old.etcd.Timeout = 300 * time.Millisecond
			c := l.seen(l.old)
			if why := c.state.RefuseDefragmentation(2); why != "" {
				t.Fatal(why)
			}
			if test.change != nil {
				test.change(l)
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, errors.New("the pass has ended"))
			defer cancel()
			outcome, err := c.defragment(ctx, decide.Defragment{ID: test.id, Name: "a-1"})
			asked := int32(0)
			for _, m := range l.etcd.running {
				asked += m.defragmented.Load()
			}
			if err != nil || !strings.HasPrefix(outcome.Detail, test.want) || asked != test.asked ||
				outcome.Changed != (asked > 0) || (outcome.Failure == "") != (test.failure == "") ||
				!strings.Contains(outcome.Failure, test.failure) {
				t.Errorf("%+v, %v, asked %d times", outcome, err, asked)
			}
		})
	}
}
