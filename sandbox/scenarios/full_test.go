package scenarios

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestFullDatabase fills a database up to its quota. A member that is lost under NOSPACE is replaced. Of the
// declared rollouts, only the one that raises the quota proceeds. The alarm is a warning until it is disarmed
// manually.
func TestFullDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare(modern, three, "etcd: {quota: 100Mi}")
	w.converge()
	w.fill()
	pods, members, volumes := w.podUIDs("a"), w.memberIDs("a"), w.volumeUIDs("a")
	w.loseVolume("a-1")
	w.declare(modern, three, "etcd: {quota: 100Mi, snapshotCount: 5000}")
	if r := w.runAlarmed(); !r.says("during a NOSPACE alarm, only a larger etcd.quota is rolled out") {
		t.Errorf("it does not say why the rollout waits:\n%s", r)
	}
	w.requireOneCluster("a", 3)
	w.requireSame(members, volumes, "a-1")
	if now := w.podUIDs("a"); now["a-0"] != pods["a-0"] || now["a-2"] != pods["a-2"] {
		t.Errorf("pods before %v, after %v", pods, now)
	}

	pods = w.podUIDs("a")
	w.declare(modern, three, "etcd: {quota: 200Mi, snapshotCount: 5000}")
	w.runAlarmed()
	if now := w.podUIDs("a"); changed(pods, now) != 3 {
		t.Errorf("the larger quota is not rolled out: pods before %v, after %v", pods, now)
	}
	m := w.member("a", 0)
	ctx, cancel := m.ctx()
	defer cancel()
	if _, err := m.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
	if r := w.converge().requireRule(t, "a", "Converged"); len(r.cluster("a").Warnings) > 0 {
		t.Errorf("there are warnings still: %q", r.cluster("a").Warnings)
	}
	m.put("writable", "again")
}

// fill writes until etcd refuses.
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

// runAlarmed runs passes until nothing is left to do but to end the alarm, and fails unless the report has it as
// a warning.
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
