package scenarios

import (
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
)

const (
	// noSuchVersion has no image, and there is no registry to pull it from.
	noSuchVersion = "3.6.99"
	// crashingVersion has an image in which etcd is replaced with a program that exits immediately; see loadCrashing.
	crashingVersion = "3.6.98"
)

func (w *world) loadCrashing() {
	w.t.Helper()
	if err := w.command("load", "gcr.io/etcd-development/etcd:v"+crashingVersion+"="+binary("quorate")); err != nil {
		w.t.Fatal(err)
	}
}

// TestRollouts changes settings that require a restart, and reverts some of them.
func TestRollouts(t *testing.T) {
	t.Parallel()
	walk(t,
		step{"RollOptions", testRollOptions},
		step{"RevertMidRoll", testRevertMidRoll},
		step{"BadImageAndRevert", testBadImage},
		step{"BadProgramAndRevert", testBadProgram},
		step{"CrashInAHaltedRollout", testCrashInAHaltedRollout},
	)
}

// testRollOptions declares a different option, which members adopt one at a time.
func testRollOptions(t *testing.T, w *world) {
	pods, volumes := w.podUIDs("a"), w.volumeUIDs("a")
	history := w.watchWrites(3)
	w.declare(modern, three, otherOptions)
	other := "sha256:" + strings.Repeat("0", 64)
	refused := w.runFrom(outside, "run", "--until-converged", patientWithEtcd, "--approve", "plan="+other).requireCode(t, exitBlocked)
	if !refused.says(other+" was approved") || len(refused.acted("a")) > 0 {
		t.Errorf("%s", refused)
	}
	w.runFrom(outside, "run", "--until-converged", patientWithEtcd, "--approve", "never-restart").requireCode(t, exitBlocked).requireRule(t, "a", "NotApproved")
	w.convergeAsApproved().requireRule(t, "a", "Converged")
	history.end()
	w.requireOneCluster("a", 3)
	for ordinal := range 3 {
		m := w.member("a", ordinal)
		ctx, cancel := m.ctx()
		defer cancel()
		if err := transaction(ctx, m, 200); err != nil {
			t.Errorf("a-%d does not accept 200 operations in a transaction: %v", ordinal, err)
		}
	}
	for pod, uid := range w.podUIDs("a") {
		if uid == pods[pod] {
			t.Errorf("%s was not recreated", pod)
		}
	}
	if now := w.volumeUIDs("a"); !maps.Equal(now, volumes) {
		t.Errorf("volumes before %v, after %v", volumes, now)
	}
	w.requireQuiet("a")
	w.declare(modern, three)
	w.converge()
}

// testRevertMidRoll reverts a change in git after one member has adopted it.
func testRevertMidRoll(t *testing.T, w *world) {
	want, pods := w.snapshot(), w.podUIDs("a")
	history := w.watchWrites(3)
	w.declare(modern, three, otherOptions)
	w.killAtFirst("delete", "pods")
	w.declare(modern, three)
	w.converge()
	history.end()
	w.requireOneCluster("a", 3)
	if wrong := difference(want, w.snapshot()); wrong != "" {
		t.Errorf("not as before: %s", wrong)
	}
	if n := changed(pods, w.podUIDs("a")); n != 1 {
		t.Errorf("%d pods were recreated, want the pod that had the change", n)
	}
	w.requireQuiet("a")
}

// changed returns the number of entries that have changed.
func changed(before, after map[string]string) int {
	n := 0
	for name := range before {
		if after[name] != before[name] {
			n++
		}
	}
	return n
}

// testBadImage checks that a rollout to a version without an image stops at the first member, and that reverting it in
// git repairs the member.
func testBadImage(t *testing.T, w *world) {
	w.breakOneMember(t, noSuchVersion, "20s", func() {})
}

// testBadProgram checks that a rollout to a version that crashes at each start also stops at the first member. That
// member is not replaced, no matter how often it crashes, because its data is intact. Because it does not respond, the
// next minor version is not rolled out.
func testBadProgram(t *testing.T, w *world) {
	w.loadCrashing()
	w.breakOneMember(t, crashingVersion, "80s", func() {
		w.declare("3.7.3", three)
		r := w.run("--until-converged", "--timeout", patience.String()).requireCode(t, exitBlocked).requireRule(t, "a", "MemberFailing")
		if !r.says("etcd 3.7.3 is not rolled out while a member is not responding") {
			t.Errorf("it does not explain why the next minor version is not rolled out:\n%s", r)
		}
	})
}

// breakOneMember declares a version that does not run, calls then while one member is down, and reverts the version.
func (w *world) breakOneMember(t *testing.T, version, timeout string, then func()) {
	want, pods, volumes, members := w.snapshot(), w.podUIDs("a"), w.volumeUIDs("a"), w.memberIDs("a")
	history := w.watchWrites(3)
	w.declare(version, three)
	r := w.run("--until-converged", "--timeout", timeout)
	if r.code != exitBlocked && r.code != exitNotConverged {
		t.Errorf("exit code %d:\n%s", r.code, r)
	}
	if n := changed(pods, w.podUIDs("a")); n != 1 {
		t.Errorf("%d pods were recreated, want only the first", n)
	}
	broken := ""
	for _, pod := range w.pods("a") {
		if !ready(pod) {
			broken = pod.Name
		}
	}
	if said := r.cluster("a").Decision.Message; broken == "" || !strings.Contains(said, broken) {
		t.Errorf("%q is broken, and the pass reports: %s", broken, said)
	}
	then()
	w.declare(modern, three)
	w.converge().requireRule(t, "a", "Converged")
	history.end()
	w.requireOneCluster("a", 3)
	if n := changed(pods, w.podUIDs("a")); n != 1 {
		t.Errorf("%d pods were recreated in the end, want only the first", n)
	}
	if now := w.volumeUIDs("a"); !maps.Equal(now, volumes) {
		t.Errorf("volumes before %v, after %v", volumes, now)
	}
	if now := w.memberIDs("a"); !maps.Equal(now, members) {
		t.Errorf("members before %v, after %v", members, now)
	}
	if wrong := difference(want, w.snapshot()); wrong != "" {
		t.Errorf("not as before: %s", wrong)
	}
}

// testCrashInAHaltedRollout crashes a healthy member with the old spec while a rollout is halted. The member restarts
// on its own, unchanged, and quorum is restored. It does not adopt the change that halted the rollout.
func testCrashInAHaltedRollout(t *testing.T, w *world) {
	pods := w.podUIDs("a")
	w.declare(crashingVersion, three)
	broken, good := "", ""
	eventually(t, "the rollout comes to a halt at one member", func() error {
		w.run("--until-converged", "--timeout", "10s")
		broken, good = "", ""
		now := w.podUIDs("a")
		for name, uid := range now {
			if uid != pods[name] {
				broken = name
			} else {
				good = max(good, name)
			}
		}
		if broken == "" || changed(pods, now) != 1 {
			return fmt.Errorf("%v, before %v", now, pods)
		}
		if seen := w.pod(broken).Status.ContainerStatuses; len(seen) == 0 || seen[0].RestartCount == 0 {
			return fmt.Errorf("%s has not crashed yet", broken)
		}
		return nil
	})
	pods = w.podUIDs("a")
	w.crashUntilBackOff(good)
	if r := w.run(); r.cluster("a").Decision.Verdict == "Act" {
		t.Errorf("%s has crashed, and %s stops the rollout:\n%s", good, broken, r)
	}
	eventually(t, good+" comes up again", func() error {
		if pod := w.pod(good); !ready(*pod) {
			return fmt.Errorf("%s", describePod(*pod))
		}
		return nil
	})
	if now := w.podUIDs("a"); !maps.Equal(now, pods) {
		t.Errorf("pods before %v, after %v", pods, now)
	}
	w.declare(modern, three)
	w.converge().requireRule(t, "a", "Converged")
	w.requireOneCluster("a", 3)
}

// crashUntilBackOff repeatedly kills etcd in a pod until the kubelet delays its restart.
func (w *world) crashUntilBackOff(pod string) {
	w.t.Helper()
	ended := map[string]bool{}
	eventually(w.t, pod+" crashes", func() error {
		container := w.pod(pod).Status.ContainerStatuses[0]
		if state := container.State.Waiting; state != nil && state.Reason == "CrashLoopBackOff" {
			return nil
		}
		if container.State.Running != nil && !ended[container.ContainerID] {
			w.signal(pod, syscall.SIGABRT)
			ended[container.ContainerID] = true
		}
		return fmt.Errorf("%s", describePod(*w.pod(pod)))
	})
}

// TestFoundingBroken checks that a cluster that cannot be bootstrapped as declared is bootstrapped once its declaration
// has been corrected.
func TestFoundingBroken(t *testing.T) {
	t.Parallel()
	newWorld(t).loadCrashing()
	for name, broken := range map[string]string{
		"BadImage":   declaration("a", noSuchVersion, three),
		"BadProgram": declaration("a", crashingVersion, three),
		"NoPlace":    declaration("a", modern, three, unschedulable),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.repository.push(map[string]string{"a.yaml": broken})
			if r := w.run("--until-converged", "--timeout", "8s"); r.code != exitBlocked && r.code != exitNotConverged {
				t.Errorf("exit code %d:\n%s", r.code, r)
			}
			w.declare(modern, three)
			w.converge().requireRule(t, "a", "Converged")
			w.requireSize(3)

			w.requireQuiet("a")
		})
	}
}
