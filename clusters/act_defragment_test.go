package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
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
		"follower":                      {2, nil, done, "", 1},
		"leader":                        {1, nil, "not yet: the member is the leader", "", 0},
		"member that has left":          {7, nil, "not yet: etcd no longer lists the member", "", 0},
		"status that drops the attempt": {2, func(l *life) { l.drops = true }, "etcd: not yet: defragment member 2: the custom resource's status does not keep the attempt", "", 0},
		"another member being defragmented": {2, func(l *life) { l.etcd.running[2].readsHang.Store(true) },
			"etcd: not yet: defragment member 2: a-2 does not respond to reads", "", 0},
		"stopped run": {2, func(l *life) {
			l.etcd.running[1].defragment = func(ctx context.Context) error { l.stop(); <-ctx.Done(); return ctx.Err() }
		}, "etcd: no result was reported", decide.Unfinished, 1},
		"another member stopped": {2, func(l *life) { l.etcd.running[2].stop() }, "not yet: not all members are known to be healthy", "", 0},
		"another member is a learner": {2, func(l *life) {
			l.etcd.mu.Lock()
			defer l.etcd.mu.Unlock()
			l.etcd.members[2].IsLearner = true
		}, "not yet: not all members are known to be healthy", "", 0},
		"already being defragmented": {2, func(l *life) { l.etcd.running[1].readsHang.Store(true) },
			"etcd: not yet: defragment member 2: a-1 does not respond to reads", "", 0},
		"rejected": {2, func(l *life) {
			l.etcd.running[1].defragment = func(context.Context) error {
				return status.Error(codes.Unknown, "no space left on device")
			}
		}, "etcd: defragment member 2: ", "no space left on device", 1},
		"too slow": {2, func(l *life) {
			l.etcd.running[1].defragment = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		}, "etcd: defragment member 2: ", "defragment member 2: ", 1},
		"different cluster": {2, func(l *life) { l.etcd.clusterID = 0xc2 }, "etcd: not yet: ", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			l.old.etcd.Timeout = 300 * time.Millisecond
			c := l.seen(l.old)
			if why := c.state.RefuseDefragmentation(2); why != "" {
				t.Fatal(why)
			}
			written := l.keepStatus(c)
			if test.change != nil {
				test.change(l)
			}
			stopped, stop := context.WithCancel(t.Context())
			l.stop = stop
			ctx, cancel := context.WithTimeoutCause(stopped, 3*time.Second, errors.New("the pass has ended"))
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
			if noted := strings.Contains(written.String(), decide.Unfinished); noted != (asked > 0 || l.drops) {
				t.Errorf("attempt recorded: %t; written: %s", noted, written)
			}
		})
	}
}

// keepStatus gives a cluster a custom resource that lists its members, and a fake API server that serves only this
// resource and the Lease. The returned builder collects the status updates.
func (l *life) keepStatus(c *cluster) *strings.Builder {
	custom := &v1alpha1.EtcdCluster{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "u", ResourceVersion: "1"}}
	for _, m := range c.state.Membership.Members {
		custom.Status.Members = append(custom.Status.Members, v1alpha1.MemberStatus{Name: m.Name, ID: m.ID.String(), Role: v1alpha1.RoleVoter, Health: v1alpha1.MemberHealthy})
	}
	c.own.Custom, c.state.Now = custom, time.Now().UTC().Truncate(time.Second)
	var written strings.Builder
	c.live.kube = clientOf(l.T, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		live := custom.DeepCopy()
		w.Header().Set("Content-Type", "application/json")
		if !strings.Contains(r.URL.Path, "etcdclusters") {
			lease := c.lease.lease.DeepCopy()
			lease.TypeMeta = metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}
			_ = json.NewEncoder(w).Encode(lease)
			return
		}
		if r.Method != http.MethodPatch {
			_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": live.APIVersion, "kind": live.Kind + "List", "items": []any{live}})
			return
		}
		body, _ := io.ReadAll(r.Body)
		written.Write(body)
		if !l.drops {
			_ = json.Unmarshal(body, live)
		}
		_ = json.NewEncoder(w).Encode(live)
	}))
	return &written
}
