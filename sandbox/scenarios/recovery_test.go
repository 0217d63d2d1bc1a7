package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRecovery deletes the pods and the data of members while applications write. Members that lose their pod come
// back, and members that lose their data are replaced.
func TestRecovery(t *testing.T) {
	t.Parallel()
	walk(t,
		step{"3-del-1-pod", func(t *testing.T, w *world) { testDeletedPods(t, w, 1) }},
		step{"3-del-2-pods", func(t *testing.T, w *world) { testDeletedPods(t, w, 2) }},
		step{"3-del-3-pods", func(t *testing.T, w *world) { testDeletedPods(t, w, 3) }},
		step{"TestOneMemberRecovery", testOneMemberRecovery},
		step{"EachMemberInTurn", testEachMemberInTurn},
		step{"SamePodHostsTheNext", testSamePodHostsTheNext},
		step{"RelabelledVolume", testRelabelledVolume},
		step{"3-corrupt-1-mem", testCorruptMember},
		step{"RecreatedClaim", testRecreatedClaim},
		step{"AllClaimsDeleted", testAllClaimsDeleted},
	)
}

// testDeletedPods checks that deleted pods, including the leader's, come back on their own as the same members.
func testDeletedPods(t *testing.T, w *world, n int) {
	members, volumes := w.memberIDs("a"), w.volumeUIDs("a")
	pods := []string{w.status("a").Leader}
	for _, m := range w.status("a").Members {
		if m.Name != pods[0] {
			pods = append(pods, m.Name)
		}
	}
	history := w.watchWrites(3)
	for _, pod := range pods[:n] {
		w.deletePod(pod)
	}
	w.waitForPods("a", 3)
	w.converge().requireRule(t, "a", "Converged")
	history.end()
	w.requireOneCluster("a", 3)
	w.requireSame(members, volumes, "")
}

// requireSame fails unless members and volumes are unchanged, except those of the given pod.
func (w *world) requireSame(members, volumes map[string]string, but string) {
	w.t.Helper()
	nowMembers, nowVolumes := w.memberIDs("a"), w.volumeUIDs("a")
	for name := range members {
		if same := nowMembers[name] == members[name]; same != (name != but) {
			w.t.Errorf("%s was member %s and is member %s", name, members[name], nowMembers[name])
		}
		if same := nowVolumes[name] == volumes[name]; same != (name != but) {
			w.t.Errorf("%s had volume %s and has volume %s", name, volumes[name], nowVolumes[name])
		}
	}
	if len(nowMembers) != len(members) || len(nowVolumes) != len(volumes) {
		w.t.Errorf("members %v and volumes %v, were %v and %v", nowMembers, nowVolumes, members, volumes)
	}
}

// testOneMemberRecovery checks that a member that loses its volume is replaced by a member with the data.
func testOneMemberRecovery(t *testing.T, w *world) {
	w.requireReplaced(t, "a-1", func() { w.loseVolume("a-1") })
}

// testEachMemberInTurn replaces all members in turn, including leaders, until no initial member is left.
func testEachMemberInTurn(t *testing.T, w *world) {
	for ordinal := range 3 {
		pod := fmt.Sprint("a-", ordinal)
		w.requireReplaced(t, pod, func() { w.loseVolume(pod) })
	}
}

// requireReplaced damages a member while applications write, and fails unless the member is replaced and nothing else
// changes.
func (w *world) requireReplaced(t *testing.T, pod string, damage func(), args ...string) {
	t.Helper()
	id, members, volumes, want := w.requireOneCluster("a", 3), w.memberIDs("a"), w.volumeUIDs("a"), w.snapshot()
	w.member("a", 0).put("recovered", pod)
	removed := w.toldOf("RemoveMember")
	history := w.watchWrites(3)
	damage()
	w.converge(args...).requireRule(t, "a", "Converged")
	history.end()
	if n := w.toldOf("RemoveMember") - removed; n != 1 {
		t.Errorf("%s was replaced %d times", pod, n)
	}
	if got := w.requireOneCluster("a", 3); got != id {
		t.Errorf("cluster %s became cluster %s", id, got)
	}
	w.requireSame(members, volumes, pod)
	if wrong := difference(want, w.snapshot()); wrong != "" {
		t.Errorf("not as before: %s", wrong)
	}
	for ordinal := range 3 {
		if got := w.member("a", ordinal).get("recovered"); got != pod {
			t.Errorf("a-%d reads %q", ordinal, got)
		}
	}
	w.requireQuiet("a")
}

// toldOf returns the number of EtcdCluster events whose note contains what.
func (w *world) toldOf(what string) int {
	w.t.Helper()
	events, err := w.kube.EventsV1().Events(w.namespace).List(w.ctx(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	n := 0
	for _, e := range events.Items {
		if e.Regarding.Kind == "EtcdCluster" && strings.Contains(e.Note, what) {
			n++
		}
	}
	return n
}

// testCorruptMember damages a member's log, so that the member stays down. The member is replaced once it has been
// unresponsive for the declared time.
func testCorruptMember(t *testing.T, w *world) {
	const patienceInGit = "replaceAfter: 10s"
	w.declare(modern, three, patienceInGit)
	w.converge()
	w.requireReplaced(t, "a-2", func() { w.corrupt(2, "wal/*.wal") })
	w.declare(modern, three)
	w.converge()
}

// TestPVCMemberCrashLoopSelfHeal damages a member's database, so that the member crashes at each start and is then
// replaced. A member that crashes because of its options would not be replaced.
func TestPVCMemberCrashLoopSelfHeal(t *testing.T) {
	t.Parallel()
	w := runningCluster(t)
	w.requireReplaced(t, "a-1", func() {
		w.corrupt(1, "snap/db")
		w.untilCrashed("a-1", 4)
	}, "--timeout", "150s")
}

// untilCrashed waits until etcd in a pod has crashed the given number of times, and checks that passes do not replace
// the member before that.
func (w *world) untilCrashed(pod string, times int32) {
	w.t.Helper()
	members := w.memberIDs("a")
	for n := int32(1); n < times; n++ {
		eventually(w.t, fmt.Sprintf("%s crashes %d times", pod, n), func() error {
			if s := w.pod(pod).Status.ContainerStatuses; len(s) == 0 || s[0].RestartCount < n {
				return fmt.Errorf("%s", describePod(*w.pod(pod)))
			}
			return nil
		})
		if n > 2 {
			continue // further crashes may occur between the check and the pass
		}
		if r := w.run(); r.cluster("a").Decision.Verdict != "Wait" {
			w.t.Errorf("after %d crashes:\n%s", n, r)
		}
	}
	if now := w.memberIDs("a"); len(members) == 3 && now[pod] != members[pod] {
		w.t.Errorf("%s was replaced too early", pod)
	}
}

// corrupt overwrites a member's data files after their first few bytes, and kills etcd immediately.
func (w *world) corrupt(ordinal int, pattern string) {
	w.t.Helper()
	dir, err := w.dataDir(ordinal)
	if err != nil {
		w.t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(files) == 0 {
		w.t.Fatalf("no files %s in %s: %v", pattern, dir, err)
	}
	pod := fmt.Sprint("a-", ordinal)
	w.signal(pod, syscall.SIGSTOP)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		copy(content[min(8, len(content)):], slices.Repeat([]byte("damage"), 4096))
		if err := os.WriteFile(file, content, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	w.signal(pod, syscall.SIGKILL)
}

// TestPodThatWaitsForEver checks that a pod is recreated if its claim was deleted and recreated after the pod was
// scheduled, because the pod can then never use the new claim. In practice, this is a race within milliseconds, so the
// test instead creates a pod that is already assigned to a node.
func TestPodThatWaitsForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare(modern, plain, three)
	w.converge()
	pod, err := w.kube.CoreV1().Pods(w.namespace).Get(w.ctx(), "a-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	orphan := metav1.DeletePropagationOrphan
	if err := w.kube.AppsV1().StatefulSets(w.namespace).Delete(w.ctx(), "a", metav1.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
		t.Fatal(err)
	}
	w.loseVolume("a-1")
	eventually(t, "neither pod nor volume", func() error {
		if pods, volumes := w.podUIDs("a"), w.volumeUIDs("a"); len(pods) != 2 || len(volumes) != 2 {
			return fmt.Errorf("pods %v, volumes %v", pods, volumes)
		}
		return nil
	})
	pod.ObjectMeta = metav1.ObjectMeta{Name: pod.Name, Labels: pod.Labels, Annotations: pod.Annotations}
	pod.Status = corev1.PodStatus{}
	if _, err := w.kube.CoreV1().Pods(w.namespace).Create(w.ctx(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.converge().requireRule(t, "a", "Converged")
	w.requireOneCluster("a", 3)
	if w.toldOf("can never get its volume") == 0 {
		t.Error("a pod that waits forever was not reported")
	}
}
