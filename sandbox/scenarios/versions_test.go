package scenarios

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// oftenSnapshots makes etcd discard old log entries early, because 3.7 cannot read entries written by 3.5.
const oftenSnapshots = "etcd: {snapshotCount: 100}"

// TestEtcdUpgrade upgrades and downgrades a cluster through the minor versions while a client writes. Skipping a minor
// version is rejected.
func TestEtcdUpgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("3.6.16", three, oftenSnapshots)
	w.converge()
	for _, s := range []step{
		{"Downgrade 3.6 to 3.5 with a loss", testLossInDowngrade},
		{"SkipMinorRefused", func(t *testing.T, w *world) { testSkipMinor(t, w, "3.5.35", "3.7.3") }},
		{"3.5 to 3.6", func(t *testing.T, w *world) { w.rollTo("3.6.16", oftenSnapshots) }},
		{"3.6 to 3.7", func(t *testing.T, w *world) { w.rollTo("3.7.3", oftenSnapshots) }},
		{"SkipMinorDownRefused", func(t *testing.T, w *world) { testSkipMinor(t, w, "3.7.3", "3.5.35") }},
		{"DowngradeTakenBack", testDowngradeTakenBack},
		{"Downgrade 3.7 to 3.6", func(t *testing.T, w *world) { w.rollTo("3.6.16", oftenSnapshots) }},
		{"3.6 to 3.7 again", func(t *testing.T, w *world) { w.rollTo("3.7.3", oftenSnapshots) }},
	} {
		if !t.Run(s.name, func(t *testing.T) { s.test(t, w.as(t)) }) {
			return // each step continues where the previous step ended
		}
	}
}

// testLossInDowngrade loses a member and its volume while a downgrade is enabled. Because no member can join during a
// downgrade, the downgrade is canceled until the member has been replaced.
func testLossInDowngrade(t *testing.T, w *world) {
	members, volumes := w.memberIDs("a"), w.volumeUIDs("a")
	w.declare("3.5.35", three, oftenSnapshots)
	m := w.member("a", 0)
	// Enable the downgrade, as Quorate is about to do. etcd rejects the request until it has raised its cluster
	// version, some seconds after the bootstrap.
	eventually(t, "etcd enables the downgrade", func() error {
		ctx, cancel := m.ctx()
		defer cancel()
		_, err := m.Downgrade(ctx, clientv3.DowngradeEnable, "3.5")
		return err
	})
	w.loseVolume("a-1")
	w.converge("--timeout", "150s").requireRule(t, "a", "Converged")
	w.requireOneCluster("a", 3)
	w.requireSame(members, volumes, "a-1")
	w.requireVersion("3.5.35")
	for _, action := range []string{"CancelDowngrade", "EnableDowngrade"} {
		if n := w.toldOf(action); n != 1 {
			t.Errorf("%s was done %d times", action, n)
		}
	}
}

// testDowngradeTakenBack reverts a downgrade in git after one member has been downgraded. That member is upgraded
// again, and etcd cancels the downgrade.
func testDowngradeTakenBack(t *testing.T, w *world) {
	id, history := w.requireOneCluster("a", 3), w.watchWrites(3)
	w.declare("3.6.16", three, oftenSnapshots)
	w.killAtFirst("delete", "pods")
	w.declare("3.7.3", three, oftenSnapshots)
	w.converge().requireRule(t, "a", "Converged")
	history.end()
	if now := w.requireOneCluster("a", 3); now != id {
		t.Errorf("cluster %s became cluster %s", id, now)
	}
	w.requireVersion("3.7.3")
	for ordinal := range 3 {
		m := w.member("a", ordinal)
		ctx, cancel := m.ctx()
		answer, err := m.Status(ctx, m.endpoint)
		cancel()
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
		} else if answer.DowngradeInfo.GetEnabled() {
			t.Errorf("%s is still downgraded to %s", m.name, answer.DowngradeInfo.GetTargetVersion())
		}
	}
}

// TestUpgradeWithOldLog checks the upgrade of 3.6 members whose logs still contain entries written by 3.5, because the
// members have not taken a snapshot. A 3.7 member would not start with such a log. The upgrade must either be blocked
// before any pod is recreated, or succeed.
func TestUpgradeWithOldLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("3.5.35", three)
	w.converge()
	w.rollTo("3.6.16")
	pods := w.podUIDs("a")
	w.declare("3.7.3", three)
	r := w.run("--until-converged", "--timeout", "60s")
	if r.code == exitDone {
		w.requireVersion("3.7.3")
		return
	}
	r.requireCode(t, exitBlocked)
	if now := w.podUIDs("a"); !maps.Equal(now, pods) {
		t.Errorf("pods before %v, after %v", pods, now)
	}
}

// TestVersion rolls out a different patch version of the same minor version, and then rolls back, under load.
func TestVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const other = "3.6.15"
	w.makePatch(modern, other)
	w.declare(other, three)
	w.converge()
	w.requireVersion(other)
	w.rollTo(modern)
	w.rollTo(other)
}

// makePatch loads an etcd image that differs from another version's image only in the version that it reports.
func (w *world) makePatch(version, patch string) {
	w.t.Helper()
	tools := w.t.TempDir()
	if err := w.command("build", "--tools", tools); err != nil {
		w.t.Fatal(err)
	}
	program, err := os.ReadFile(filepath.Join(tools, "etcd-"+version, "etcd"))
	if err != nil {
		w.t.Fatal(err)
	}
	made := filepath.Join(tools, "etcd")
	if err := os.WriteFile(made, bytes.ReplaceAll(program, []byte(version), []byte(patch)), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := w.command("load", "gcr.io/etcd-development/etcd:v"+patch+"="+made); err != nil {
		w.t.Fatal(err)
	}
}

// rollTo declares the given version while applications write. Every pod must be recreated exactly once, and nothing
// else may change.
func (w *world) rollTo(version string, spec ...string) {
	w.t.Helper()
	id, pods, volumes := w.requireOneCluster("a", 3), w.podUIDs("a"), w.volumeUIDs("a")
	history := w.watchWrites(3)
	w.declare(version, append([]string{three}, spec...)...)
	w.convergeAsPlanned().requireRule(w.t, "a", "Converged")
	history.end()
	if now := w.requireOneCluster("a", 3); now != id {
		w.t.Errorf("cluster %s became cluster %s", id, now)
	}
	if now := w.volumeUIDs("a"); !maps.Equal(now, volumes) {
		w.t.Errorf("volumes before %v, after %v", volumes, now)
	}
	for pod, uid := range w.podUIDs("a") {
		if uid == pods[pod] {
			w.t.Errorf("%s was not recreated", pod)
		}
	}
	w.requireVersion(version)
	w.requireQuiet("a")
}

// requireVersion checks the version of each member.
func (w *world) requireVersion(version string) {
	w.t.Helper()
	for ordinal := range 3 {
		m := w.member("a", ordinal)
		ctx, cancel := m.ctx()
		answer, err := m.Status(ctx, m.endpoint)
		cancel()
		if err != nil {
			w.t.Errorf("%s: %v", m.name, err)
		} else if answer.Version != version {
			w.t.Errorf("%s runs %s, want %s", m.name, answer.Version, version)
		}
	}
	if got := w.status("a").Version; got != version {
		w.t.Errorf("the status has version %s, want %s", got, version)
	}
	if n := w.restarts("a"); n > 0 {
		w.t.Errorf("containers were restarted %d times", n)
	}
}

// testSkipMinor checks that a version that cannot be reached in one step is rejected before anything restarts, and that
// the message names the step to take.
func testSkipMinor(t *testing.T, w *world, from, to string) {
	pods, template := w.podUIDs("a"), w.snapshot()["StatefulSet a"]
	w.declare(to, three, oftenSnapshots)
	r := w.run("--until-converged", "--timeout", "20s").requireCode(t, exitBlocked).requireRule(t, "a", "VersionRefused")
	if said := r.cluster("a").Decision.Message; !strings.Contains(said, "3.6") {
		t.Errorf("it does not report which step to take: %s", said)
	}
	w.requireCondition("a", "Stalled", "True", "VersionRefused")
	if now := w.podUIDs("a"); !maps.Equal(now, pods) {
		t.Errorf("pods before %v, after %v", pods, now)
	}
	if now := w.snapshot()["StatefulSet a"]; now != template {
		t.Errorf("the StatefulSet was changed: %s", difference(map[string]string{"it": template}, map[string]string{"it": now}))
	}
	w.declare(from, three, oftenSnapshots)
	w.converge().requireRule(t, "a", "Converged")
	w.requireCondition("a", "Stalled", "False", "")
	if now := w.podUIDs("a"); fmt.Sprint(now) != fmt.Sprint(pods) {
		t.Errorf("pods before %v, after %v", pods, now)
	}
}
