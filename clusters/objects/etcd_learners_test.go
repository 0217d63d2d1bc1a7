package objects

import (
	"slices"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/etcdversion"
	"quorate.dev/quorate/reconcile/decide"
)

// TestRealEtcdAddsTwoLearners scales a cluster from three to five members through two concurrent learners, with the
// files that this package writes for such a cluster. The second learner is added once the first has published its name.
// The first is then restarted. If etcd allows only one learner, it must reject the second.
func TestRealEtcdAddsTwoLearners(t *testing.T) {
	for text, binary := range etcdBinaries(t) {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			w := foundedWorld(t, text, binary, decide.FoundingToken("f00d", text))
			w.addLearner(3) // after bootstrap, etcd rejects new members for five seconds
			begun := time.Now()
			if !w.version().AtLeast(etcdversion.Must("3.6.0")) {
				_, err := w.ask(0, "/v3/cluster/member/add", w.learner(4))
				if err == nil || !strings.Contains(err.Error(), "too many learner members") {
					t.Fatalf("etcd %s accepts a second learner, although no file allows it: %v", text, err)
				}
				return
			}
			w.joins(3)
			w.start(3) // if started together, each learner would wait until requests to the other time out
			w.eventually("a-3 says its name", func() bool { return slices.ContainsFunc(w.believes(0), isNamed(PodName("a", 3))) })
			w.addLearner(4)
			w.in.Record = w.in.Record.With(decide.RecordedMember{Ordinal: 3, Mode: decide.Sealed})
			w.stop(3)
			w.start(3) // it can start with a list other than the one it joined with
			w.joins(4)
			w.start(4)
			for _, n := range []int{3, 4} {
				w.promote(n)
			}
			for _, n := range []int{3, 4} {
				w.waitReady(n)
			}
			t.Logf("etcd %s: 3 to 5 in %s", text, time.Since(begun).Round(10*time.Millisecond))
			w.agree(5)
			w.in.Record = sealedRecord(w.in.Record)
			for n := range 5 { // each member replays its log
				w.stop(n)
				w.start(n)
				w.waitReady(n)
			}
			w.agree(5)
		})
	}
}

// TestRealEtcdLearnerLimitsMustMatch shows why all members must have the same limit at all times: a member that allows
// one learner rejects a second learner that the other members have accepted.
func TestRealEtcdLearnerLimitsMustMatch(t *testing.T) {
	for text, binary := range etcdBinaries(t) {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			if !mustParse(t, text).AtLeast(etcdversion.Must("3.6.0")) {
				t.Skip("it accepts one learner")
			}
			w := foundedWorld(t, text, binary, decide.FoundingToken("f00d", text))
			w.stop(2)
			w.in.Record.Token = "f00d"
			w.start(2)
			w.waitReady(2)
			w.addLearner(3)
			w.addLearner(4)
			w.eventually("the members differ", func() bool { return len(w.believes(2)) == 4 && len(w.believes(1)) == 5 })
		})
	}
}

// foundedWorld bootstraps a cluster of three members without TLS, with the given token.
func foundedWorld(t *testing.T, version, binary, token string) *world {
	c := threeMembers(t, version)
	c.Spec.TLS.Mode = v1alpha1.TLSDisabled
	w := newWorld(t, c, binary)
	w.in.Record.Token = token
	w.found()
	return w
}

func sealedRecord(r decide.Record) decide.Record {
	for _, m := range r.Members {
		m.Mode = decide.Sealed
		r = r.With(m)
	}
	return r
}

func (w *world) learner(n int) map[string]any {
	return map[string]any{"peerURLs": []string{PeerURL(w.in.Cluster, n)}, "isLearner": true}
}

func (w *world) addLearner(n int) {
	w.eventually("add "+PodName("a", n), func() bool {
		_, err := w.ask(0, "/v3/cluster/member/add", w.learner(n))
		return err == nil
	})
}

// joins updates the peers to all listed members, and records the given ordinals as joining.
func (w *world) joins(ordinals ...int) {
	w.in.Peers = map[string][]string{}
	for n := range len(w.in.Record.Members) + len(ordinals) {
		w.in.Peers[PodName("a", n)] = []string{PeerURL(w.in.Cluster, n)}
	}
	for _, n := range ordinals {
		w.in.Record = w.in.Record.With(decide.RecordedMember{Ordinal: n, Mode: decide.Joining})
	}
}

func (w *world) promote(n int) {
	w.eventually("promote "+PodName("a", n), func() bool {
		_, err := w.ask(0, "/v3/cluster/member/promote", map[string]any{"ID": w.list()[PeerURL(w.in.Cluster, n)]})
		return err == nil
	})
}

// believes returns a member's own member list, or nil if it does not respond.
func (w *world) believes(n int) []any {
	answer, err := w.ask(n, "/v3/cluster/member/list", map[string]any{"linearizable": false})
	if err != nil {
		return nil
	}
	members, _ := answer["members"].([]any)
	return members
}

func isNamed(name string) func(any) bool {
	return func(m any) bool { fields, _ := m.(map[string]any); return fields["name"] == name }
}

// agree waits until each of n members lists n voters.
func (w *world) agree(n int) {
	w.Helper()
	isLearner := func(m any) bool { fields, _ := m.(map[string]any); return fields["isLearner"] != nil }
	for i := range n {
		w.eventually(PodName("a", i)+" lists all as voters", func() bool {
			members := w.believes(i)
			return len(members) == n && !slices.ContainsFunc(members, isLearner)
		})
	}
}
