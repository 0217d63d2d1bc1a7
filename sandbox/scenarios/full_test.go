package scenarios

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestFullDatabase fills a database up to its quota. A member that is lost during the NOSPACE alarm is replaced. The
// only rollout that proceeds is one that raises the quota. With onNoSpace: Recover, passes end the alarm once there is
// room, after a larger quota or after a defragmentation.
func TestFullDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare(modern, three, "etcd: {quota: 100Mi}")
	w.converge()
	w.fill()
	lost, others := w.besideAlarm()
	pods, members, volumes := w.podUIDs("a"), w.memberIDs("a"), w.volumeUIDs("a")
	w.loseVolume(lost)
	w.declare(modern, three, "etcd: {quota: 100Mi, snapshotCount: 5000}")
	if r := w.runAlarmed(); !r.says("during a NOSPACE alarm, only a larger etcd.quota is rolled out") {
		t.Errorf("it does not explain why the rollout waits:\n%s", r)
	}
	w.requireOneCluster("a", 3)
	w.requireSame(members, volumes, lost)
	for now := w.podUIDs("a"); len(others) > 0; others = others[1:] {
		if now[others[0]] != pods[others[0]] {
			t.Errorf("pods before %v, after %v", pods, now)
		}
	}

	pods = w.podUIDs("a")
	w.declare(modern, three, "etcd: {quota: 200Mi, snapshotCount: 5000, onNoSpace: Recover}")
	w.recoversSpace()
	if now := w.podUIDs("a"); changed(pods, now) != 3 {
		t.Errorf("the larger quota is not rolled out: pods before %v, after %v", pods, now)
	}

	pods = w.podUIDs("a")
	w.fill()
	w.compact()
	w.recoversSpace()
	w.requireSmall(64)
	if now := w.podUIDs("a"); changed(pods, now) > 0 {
		t.Errorf("pods before %v, after %v", pods, now)
	}
}

// recoversSpace checks that passes end the NOSPACE alarm, and that etcd then accepts writes.
func (w *world) recoversSpace() {
	w.t.Helper()
	if r := w.converge().requireRule(w.t, "a", "Converged"); len(r.cluster("a").Warnings) > 0 {
		w.t.Errorf("warnings remain: %q", r.cluster("a").Warnings)
	}
	w.member("a", 0).put("writable", "again")
}

// compact deletes keys and compacts the history until every member reports that most of its database is unused. A member
// does so only with the next write.
func (w *world) compact() {
	w.t.Helper()
	m := w.member("a", 0)
	n := 0
	eventually(w.t, "every member has unused space", func() error {
		ctx, cancel := m.ctx()
		defer cancel()
		deleted, err := m.Delete(ctx, fmt.Sprint("large-", n))
		if err != nil {
			return err
		}
		n++
		_, err = m.Compact(ctx, deleted.Header.Revision, clientv3.WithCompactPhysical())
		for ordinal := range 3 {
			member := w.member("a", ordinal)
			if s, failed := member.Status(ctx, member.endpoint); failed != nil || s.DbSizeInUse > 64<<20 {
				err = errors.Join(err, failed, fmt.Errorf("%s: %+v", member.name, s))
			}
		}
		return err
	})
}

// besideAlarm waits for the alarm, and returns a member to lose and the remaining members. The member that has raised
// the alarm must remain, because quorate disarms the alarm of a removed member, and no other alarm would be raised
// until the next write.
func (w *world) besideAlarm() (string, []string) {
	w.t.Helper()
	var alarmed string
	m := w.member("a", 0)
	eventually(w.t, "etcd lists the alarm", func() error {
		ctx, cancel := m.ctx()
		defer cancel()
		list, err := m.AlarmList(ctx)
		if err != nil {
			return err
		}
		if len(list.Alarms) == 0 {
			return errors.New("no alarm")
		}
		for name, id := range w.memberIDs("a") {
			if id == strconv.FormatUint(list.Alarms[0].MemberID, 16) {
				alarmed = name
			}
		}
		return nil
	})
	if alarmed == "a-1" {
		return "a-2", []string{"a-0", "a-1"}
	}
	return "a-1", []string{"a-0", "a-2"}
}

// fill writes data until etcd rejects writes with NOSPACE.
func (w *world) fill() {
	w.t.Helper()
	m := w.member("a", 0)
	large := strings.Repeat("x", 1<<20)
	eventually(w.t, "etcd raises NOSPACE", func() error {
		for n := range 20 {
			ctx, cancel := m.ctx()
			_, err := m.Put(ctx, fmt.Sprint("large-", n), large)
			cancel()
			if err != nil {
				if errors.Is(err, rpctypes.ErrNoSpace) {
					return nil
				}
				return err
			}
		}
		return errors.New("etcd takes more")
	})
}

// runAlarmed runs passes until only the alarm remains, and fails the test unless the report contains the alarm as a
// warning.
func (w *world) runAlarmed() result {
	w.t.Helper()
	r := w.run("--until-converged", "--timeout", patience.String()).requireCode(w.t, exitBlocked).requireRule(w.t, "a", "AlarmRaised")
	if !slices.ContainsFunc(r.cluster("a").Warnings, func(warning string) bool {
		return strings.Contains(warning, "has a NOSPACE alarm: etcd rejects writes")
	}) {
		w.t.Errorf("the alarm is not a warning, but %q", r.cluster("a").Warnings)
	}
	return r
}
