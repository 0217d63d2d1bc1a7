package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// checking is a spec line that makes the leader compare the members' data every few seconds.
const checking = "etcd: {options: {corrupt-check-time: 2s}}"

// rightValue is the value written by applications. wrongValue is the value that replaces it when data is corrupted.
const (
	rightValue = "what applications have put here"
	wrongValue = "what nobody has ever put herein"
)

// TestDifferingData changes a value in the databases of running members, which then keep serving different data until
// a pass or etcd's own check finds the difference. Whichever member etcd blames, a strict majority determines which data
// is wrong. Without a strict majority, manual action is required.
func TestDifferingData(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare(modern, three)
	w.converge()
	w.putPrecious()
	for _, s := range []step{
		{"found by a pass", testFoundByPass},
		{"found at a restart", testStoppedMember},
		{"the leader's", func(t *testing.T, w *world) { testDifferingMember(t, w, w.status("a").Leader) }},
		{"a follower's", func(t *testing.T, w *world) { testDifferingMember(t, w, w.follower()) }},
		{"one of two", testOneOfTwoDiffers},
	} {
		if !t.Run(s.name, func(t *testing.T) { s.test(t, w.as(t)) }) {
			return
		}
	}
}

// testFoundByPass checks that a pass finds a difference that etcd has not noticed, and replaces the member once there is
// a backup of the right data. Applications can write all the time.
func testFoundByPass(t *testing.T, w *world) {
	w.loadImage()
	s3 := w.serveS3Inside()
	w.createSecrets(s3)
	args := append(s3.allowed(), "--timeout=3m")
	w.declare(modern, three, "backup: {schedule: '@yearly', to: "+s3.destination()+"}")
	w.convergeFrom(outside, args...)
	w.awaitBackup(args, func(backupStatus) bool { return true })

	members, volumes, pod := w.memberIDs("a"), w.volumeUIDs("a"), w.follower()
	history := w.watchWrites(3)
	w.changeValue(pod)
	w.convergeFrom(outside, args...).requireRule(t, "a", "Converged")
	w.requireSame(members, volumes, "") // the last comparison was less than a day ago
	w.compareAgain()
	w.convergeFrom(outside, args...).requireRule(t, "a", "Converged")
	history.end()
	w.requireSame(members, volumes, pod)
	w.requireRight(3)
	byDifference := regexp.MustCompile(`^a-backup-d[0-9a-z]{6}$`)
	w.awaitBackup(args, func(b backupStatus) bool { return byDifference.MatchString(b.Last.Job) })
	w.declare(modern, three)
	w.convergeFrom(outside, args...)
}

// compareAgain makes the last comparison of the members' data look older than a day.
func (w *world) compareAgain() {
	w.t.Helper()
	patch := fmt.Sprintf(`{"status":{"corruptionCheck":{"at":%q}}}`, time.Now().Add(-25*time.Hour).UTC().Format(time.RFC3339))
	_, err := w.objects.Resource(etcdclusters).Namespace(w.namespace).Patch(w.ctx(), "a", types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}, "status")
	if err != nil {
		w.t.Fatal(err)
	}
}

// comparedAt returns the time of the last comparison of the members' data.
func (w *world) comparedAt() time.Time {
	w.t.Helper()
	var got struct{ CorruptionCheck struct{ At time.Time } }
	convert(w.t, w.resource("a").Object["status"], &got)
	return got.CorruptionCheck.At
}

// putPrecious writes the value, followed by enough other data that etcd does not need to rewrite the value's page.
func (w *world) putPrecious() {
	w.t.Helper()
	m := w.member("a", 0)
	m.put("precious", rightValue)
	var more []clientv3.Op
	for n := range 100 {
		more = append(more, clientv3.OpPut(fmt.Sprint("filler-", n), strings.Repeat("x", 256)))
	}
	ctx, cancel := m.ctx()
	defer cancel()
	if _, err := m.Txn(ctx).Then(more...).Commit(); err != nil {
		w.t.Fatal(err)
	}
}

// testStoppedMember checks that a member with the right data is kept even though it refuses to start. The leader's data
// is wrong, which is not detected until the member restarts. Once the leader's volume is deleted manually, the cluster
// recovers. Finally, the test declares that the leader compares the members' data.
func testStoppedMember(t *testing.T, w *world) {
	members, volumes := w.memberIDs("a"), w.volumeUIDs("a")
	wrong, good := w.status("a").Leader, w.follower()
	w.changeValue(wrong)
	w.deletePod(good)
	eventually(t, good+" does not start", func() error {
		r := w.run()
		if rule := r.cluster("a").Decision.Rule; rule != "DataInDoubt" {
			return fmt.Errorf("%s decides:\n%s", rule, r)
		}
		return nil
	})
	r := w.run("--until-converged", "--timeout", "30s").requireCode(t, exitBlocked).requireRule(t, "a", "DataInDoubt")
	if !r.says(good + " does not start because its data differs from a peer's") {
		t.Errorf("it does not report who does not start:\n%s", r)
	}
	w.requireSame(members, volumes, "")

	w.loseVolume(wrong)
	w.converge().requireRule(t, "a", "Converged")
	w.requireRight(3)
	w.requireSame(members, volumes, wrong)
	w.declare(modern, three, checking)
	w.converge()
}

// testDifferingMember checks that, if the data of one of three members differs, only that member is replaced, and the
// replacement has the right data.
func testDifferingMember(t *testing.T, w *world, pod string) {
	w.requireReplaced(t, pod, func() {
		w.changeValue(pod)
		blamed := w.untilBlamed()
		t.Logf("the data of %s are wrong, and etcd blames %s", pod, blamed)
	})
	w.requireRight(3)
}

// testOneOfTwoDiffers checks that nothing is changed while it is unknown which of two members is wrong, until one of
// them is removed manually. The removed member is half of the cluster, so its data is kept until git confirms that the
// other member's data is right.
func testOneOfTwoDiffers(t *testing.T, w *world) {
	w.declare(modern, "replicas: 2", checking)
	w.converge()
	members, volumes := w.memberIDs("a"), w.volumeUIDs("a")
	pod := "a-1" // a follower: etcd blames followers
	if w.status("a").Leader == pod {
		pod = "a-0"
	}
	w.changeValue(pod)
	w.untilBlamed()
	for range 3 {
		r := w.run("--until-converged", "--timeout", "30s").requireRule(t, "a", "DataInDoubt")
		if d := r.cluster("a").Decision; d.Verdict != "Block" || strings.Count(d.Message, ": hash ")+strings.Count(d.Message, ", hash ") != 2 {
			t.Errorf("not both hashes: %s", d.Message)
		}
	}
	w.requireSame(members, volumes, "")

	w.removeByHand(pod)
	r := w.run("--until-converged", "--timeout", "60s").requireCode(t, exitBlocked).requireRule(t, "a", "MembersMissing") // once the other member responds again
	if now := w.volumeUIDs("a"); !maps.Equal(volumes, now) {
		t.Fatalf("volumes before %v, after %v", volumes, now)
	}
	w.confirmMembers(r, "replicas: 2", checking)
	w.converge().requireRule(t, "a", "Converged")
	w.requireRight(2)
}

// removeByHand removes a member manually, as etcdctl would.
func (w *world) removeByHand(pod string) {
	w.t.Helper()
	for ordinal := range 2 {
		m := w.member("a", ordinal)
		if fmt.Sprint("a-", ordinal) == pod {
			continue
		}
		ctx, cancel := m.ctx()
		defer cancel()
		list, err := m.MemberList(ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, entry := range list.Members {
			if entry.Name != pod {
				continue
			}
			if _, err := m.MemberRemove(ctx, entry.ID); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// untilBlamed waits until etcd has found a difference, and returns the members that etcd blames.
func (w *world) untilBlamed() string {
	w.t.Helper()
	var blamed string
	names := map[uint64]string{}
	m := w.member("a", 0)
	eventually(w.t, "etcd raises CORRUPT", func() error {
		ctx, cancel := m.ctx()
		defer cancel()
		list, err := m.MemberList(ctx)
		if err != nil {
			return err
		}
		for _, entry := range list.Members {
			names[entry.ID] = entry.Name
		}
		alarms, err := m.AlarmList(ctx)
		if err != nil {
			return err
		}
		if len(alarms.Alarms) == 0 {
			return errors.New("no alarm")
		}
		blamed = names[alarms.Alarms[0].MemberID]
		return nil
	})
	return blamed
}

// requireRight fails the test unless every member returns the right value.
func (w *world) requireRight(members int) {
	w.t.Helper()
	for ordinal := range members {
		m := w.member("a", ordinal)
		ctx, cancel := m.ctx()
		defer cancel()
		got, err := m.Get(ctx, "precious", clientv3.WithSerializable())
		if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != rightValue {
			w.t.Errorf("a-%d reads %v (%v)", ordinal, got, err)
		}
	}
}

// changeValue changes all copies of the value in a running member's database. bbolt has checksums only for its two meta
// pages, and reads through the page cache, so etcd reads the changed value without detecting an error.
func (w *world) changeValue(pod string) {
	w.t.Helper()
	var ordinal int
	if _, err := fmt.Sscanf(pod, "a-%d", &ordinal); err != nil {
		w.t.Fatal(err)
	}
	dir, err := w.dataDir(ordinal)
	if err != nil {
		w.t.Fatal(err)
	}
	m := w.member("a", ordinal)
	eventually(w.t, pod+" reads another value", func() error {
		if err := w.overwrite(pod, filepath.Join(dir, "snap", "db")); err != nil {
			return err
		}
		ctx, cancel := m.ctx()
		defer cancel()
		got, err := m.Get(ctx, "precious", clientv3.WithSerializable())
		if err == nil && string(got.Kvs[0].Value) != wrongValue {
			err = errors.New("not yet")
		}
		return err
	})
}

// overwrite changes all copies of the value in a database while the pod's etcd process is paused.
func (w *world) overwrite(pod, path string) error {
	w.signal(pod, syscall.SIGSTOP)
	defer w.signal(pod, syscall.SIGCONT)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for at := bytes.Index(content, []byte(rightValue)); at >= 0; at = bytes.Index(content, []byte(rightValue)) {
		copy(content[at:], wrongValue)
		if _, err := file.WriteAt([]byte(wrongValue), int64(at)); err != nil {
			return err
		}
	}
	return nil
}
