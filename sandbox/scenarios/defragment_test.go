package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// defragments declares defragmentation of databases with at least 32 MiB of unused space.
const defragments = "etcd: {defragmentation: {minFree: 32Mi}}"

// TestDefragmentation checks that members with much unused space are defragmented one at a time while applications
// write, and that no pod restarts. A request in git is carried out once.
func TestDefragmentation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare(modern, three)
	w.converge()
	w.requireQuiet("a")
	w.fragment(64)
	pods := w.podUIDs("a")
	writes := w.watchWrites(3)
	w.declare(modern, three, defragments)
	w.converge()
	if gap := writes.end().longest; gap >= answerTimeout {
		t.Errorf("no write for %s", gap)
	}
	w.requireSmall(32)
	if now := w.podUIDs("a"); changed(pods, now) > 0 {
		t.Errorf("pods before %v, after %v", pods, now)
	}
	events, err := w.describeEvents()
	if err != nil || strings.Count(events, "etcd: Defragment a-") != 3 {
		t.Errorf("%v, events:\n%s", err, events)
	}
	w.requireOneCluster("a", 3)

	before := w.status("a")
	annotated := "name: a\n  annotations: {etcd.quorate.dev/defragment: once}"
	w.repository.push(map[string]string{"a.yaml": strings.Replace(declaration("a", modern, three, defragments), "name: a", annotated, 1)})
	w.converge()
	after := w.status("a")
	if after.Defragmentation.Request != "once" || !after.Defragmentation.Completed {
		t.Errorf("the request is not completed: %+v", after.Defragmentation)
	}
	for _, m := range after.Members {
		if !m.DefragmentedAt.After(before.member(m.Name).DefragmentedAt.Time) {
			t.Errorf("%s was not defragmented again: %s", m.Name, m.DefragmentedAt)
		}
	}
	w.requireQuiet("a")
	w.deleteAll()
}

// BenchmarkDefragmentation measures how long applications cannot write while the followers, and then the leader, are
// defragmented, and while a pass compares the members' data. Each member has 256 MiB of unused space.
func BenchmarkDefragmentation(b *testing.B) {
	w := newWorld(b)
	w.declare(modern, three, "etcd: {quota: 2Gi}")
	w.converge()
	w.fragment(256)
	w.declare(modern, three, "etcd: {quota: 2Gi, defragmentation: {minFree: 32Mi}}")
	passes := func(until func() bool) interruption {
		writes := w.watchWrites(3)
		for start := time.Now(); !until(); {
			if time.Since(start) > patience {
				b.Fatal("no progress")
			}
			w.run()
		}
		return writes.end()
	}
	defragmented := func(least int) func() bool {
		return func() bool {
			n := 0
			for _, m := range w.status("a").Members {
				if !m.DefragmentedAt.IsZero() {
					n++
				}
			}
			return n >= least
		}
	}
	follower, leader := passes(defragmented(2)), passes(defragmented(3))
	figure("gap_defrag_follower_ms", float64(follower.longest.Milliseconds()), "ms")
	figure("defrag_follower_failed_writes", float64(follower.failed), "writes")
	figure("gap_defrag_leader_ms", float64(leader.longest.Milliseconds()), "ms")
	w.requireSmall(64)
	w.compareAgain()
	before := w.comparedAt()
	compared := passes(func() bool { return w.comparedAt().After(before) })
	figure("gap_corruption_check_ms", float64(compared.longest.Milliseconds()), "ms")
	w.deleteAll()
}

// fragment writes and deletes data so that each member's database has the given number of MiB of unused space.
func (w *world) fragment(mebibytes int) {
	w.t.Helper()
	m := w.member("a", 0)
	ask := func(do func(clientv3.KV) (int64, error)) int64 {
		revision := int64(0)
		eventually(w.t, "etcd accepts a change", func() (err error) {
			revision, err = do(m.Client)
			return err
		})
		return revision
	}
	large := strings.Repeat("x", 1<<20)
	for n := range mebibytes {
		ask(func(kv clientv3.KV) (int64, error) {
			ctx, cancel := m.ctx()
			defer cancel()
			_, err := kv.Put(ctx, fmt.Sprint("large-", n), large)
			return 0, err
		})
	}
	revision := ask(func(kv clientv3.KV) (int64, error) {
		ctx, cancel := m.ctx()
		defer cancel()
		deleted, err := kv.Delete(ctx, "large-", clientv3.WithPrefix())
		if err != nil {
			return 0, err
		}
		return deleted.Header.Revision, nil
	})
	ctx, cancel := m.ctx()
	defer cancel()
	if _, err := m.Compact(ctx, revision, clientv3.WithCompactPhysical()); err != nil {
		w.t.Fatal(err)
	}
	w.eachMember("has unused space", func(s *clientv3.StatusResponse) bool {
		m.put("change", "a member frees pages when it commits its next change")
		return s.DbSize-s.DbSizeInUse >= int64(mebibytes)<<20
	})
}

// requireSmall fails the test unless each member's database file is smaller than the given number of MiB.
func (w *world) requireSmall(mebibytes int64) {
	w.t.Helper()
	w.eachMember(fmt.Sprintf("has a database smaller than %d MiB", mebibytes),
		func(s *clientv3.StatusResponse) bool { return s.DbSize < mebibytes<<20 })
}

// eachMember waits until the status of each of the three members satisfies the condition.
func (w *world) eachMember(what string, is func(*clientv3.StatusResponse) bool) {
	w.t.Helper()
	for ordinal := range 3 {
		m := w.member("a", ordinal)
		eventually(w.t, m.name+" "+what, func() error {
			ctx, cancel := m.ctx()
			defer cancel()
			s, err := m.Status(ctx, m.endpoint)
			if err == nil && !is(s) {
				err = fmt.Errorf("size %d, %d in use", s.DbSize, s.DbSizeInUse)
			}
			return err
		})
	}
}
