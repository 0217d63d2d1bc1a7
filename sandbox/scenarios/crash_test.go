package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/sandbox/scenarios/faultproxy"
)

// stage is an operation on cluster a. It starts in the final state of the previous stage. The first stage starts in the
// final state of the last stage.
type stage struct {
	name string
	// spec is the declared spec.
	spec []string
	// damage, if not nil, damages the cluster before quorate runs.
	damage func(*world)
	// members and volumes are the final numbers of members and volumes.
	members, volumes int
}

const otherOptions = `etcd: {options: {max-txn-ops: "256"}}`

var (
	resizing = []stage{
		{name: "ScaleUp", spec: []string{plain, "replicas: 4"}, members: 4, volumes: 4},
		{name: "ScaleDown", spec: []string{plain, three}, members: 3, volumes: 3},
	}
	rolling = []stage{
		{name: "Roll", spec: []string{plain, three, otherOptions}, members: 3, volumes: 3},
		{name: "RollBack", spec: []string{plain, three}, members: 3, volumes: 3},
	}
	replacing = []stage{
		{name: "Replace", spec: []string{plain, three}, damage: func(w *world) { w.emptyVolumes("a-1") }, members: 3, volumes: 3},
	}
	stopping = []stage{
		{name: "Stop", spec: []string{plain, three, "lifecycle: Stopped"}, volumes: 3},
		{name: "Start", spec: []string{plain, three}, members: 3, volumes: 3},
	}
	deleting = []stage{
		{name: "Delete", spec: []string{plain, three, "lifecycle: Deleted"}, volumes: 3},
		{name: "Undelete", spec: []string{plain, three}, members: 3, volumes: 3},
	}
)

// TestCrashAtEveryWrite kills quorate right after each write of each operation, including calls that change etcd. Each
// run continues where the previous run was killed, and is killed after its own first write. The cluster must reach the
// same state as an undisturbed cluster. The clusters do not use TLS, so that the proxy can see the calls to etcd. The
// simulated paths (converge crash=after-each) complement this test: they repeat the rest of each operation once for
// every write, with one crash at that write.
func TestCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	for name, stages := range map[string][]stage{"Resize": resizing, "Roll": rolling, "Replace": replacing, "Stop": stopping, "Delete": deleting} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testBroken(t, stages, sure, func(w *world, proxy *faultproxy.Proxy, undisturbed []write) []string {
				return w.killAfterEach(proxy, slices.DeleteFunc(slices.Clone(undisturbed), func(w write) bool {
					return !changesCluster(w.what)
				}))
			})
		})
	}
}

// TestEtcdCallsFail cuts the connection to etcd at each call that changes etcd, either before or after the call takes
// effect. The same run must continue and reach the final state of an undisturbed run.
func TestEtcdCallsFail(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func() faultproxy.Fault{
		"call lost":   func() faultproxy.Fault { return faultproxy.Once(faultproxy.Refuse()) },
		"answer lost": func() faultproxy.Fault { return faultproxy.DropSuccess(1, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, stages := range [][]stage{resizing, replacing, rolling} {
				testBroken(t, stages, changesEtcd, func(w *world, proxy *faultproxy.Proxy, _ []write) []string {
					return w.breakEach(proxy, fault)
				})
			}
		})
	}
}

// changesCluster reports whether a write changes the cluster or its declared or reported state. Leases and events do
// not count, because later runs do not depend on them.
func changesCluster(what string) bool {
	return !strings.Contains(what, " leases ") && !strings.Contains(what, " events")
}

// changesEtcd reports whether the write is a call that changes etcd and that every run makes. Transfers of leadership
// do not count, because they happen only if the member is the leader.
func changesEtcd(w write) bool { return strings.HasPrefix(w.what, "call etcd") && sure(w) }

// sure reports whether the write changes the cluster and every run makes it.
func sure(w write) bool { return w.sure() && changesCluster(w.what) }

// testBroken takes a cluster through the stages, first undisturbed and then with broken writes. run returns the writes
// that it has broken, which must include all required writes of the undisturbed run.
func testBroken(t *testing.T, stages []stage, required func(write) bool, run func(*world, *faultproxy.Proxy, []write) []string) {
	w, want, points := undisturbed(t, stages)
	for i, s := range stages {
		t.Run(s.name, func(t *testing.T) {
			w := w.as(t)
			s.begin(w)
			broken := run(w, w.newEtcdProxy(), points[i])
			s.requireEnd(w)
			if wrong := difference(want[i], w.snapshot()); wrong != "" {
				t.Errorf("not like an undisturbed cluster: %s", wrong)
			}
			for _, write := range points[i] {
				if required(write) && !slices.Contains(broken, write.what) {
					t.Errorf("%s was not broken, only %q", write, broken)
				}
			}
		})
	}
}

// killAfterEach runs quorate repeatedly until a run converges. It kills each run after its first write that is in
// undisturbed, and removes this write from the list. It returns the writes after which it has killed a run.
func (w *world) killAfterEach(proxy *faultproxy.Proxy, undisturbed []write) []string {
	w.t.Helper()
	var lock sync.Mutex
	var writes []string
	left := map[string]int{}
	for _, write := range undisturbed {
		left[write.what]++
	}
	counts := func(what string) bool {
		lock.Lock()
		defer lock.Unlock()
		return left[what] > 0
	}
	for range len(undisturbed) + 1 {
		r := w.killAt(proxy, func(killed func(n int) faultproxy.Fault) faultproxy.Script {
			kill := killed(1)
			return func(r faultproxy.Request) faultproxy.Fault {
				what := whatIsWritten(r)
				if r.Write == 0 || !counts(what) {
					return nil
				}
				return kill.Then(func() {
					lock.Lock()
					defer lock.Unlock()
					writes = append(writes, what)
					left[what]--
				})
			}
		})
		if r.code == exitDone {
			return writes
		}
		r.requireCode(w.t, exitKilled)
	}
	w.t.Fatalf("no run converges; killed after %q", writes)
	return nil
}

// breakEach runs quorate until it converges, and breaks each distinct call that changes etcd once. It returns the calls
// that it has broken.
func (w *world) breakEach(proxy *faultproxy.Proxy, fault func() faultproxy.Fault) []string {
	w.t.Helper()
	var lock sync.Mutex
	var calls []string
	faults := map[string]faultproxy.Fault{}
	proxy.Break(func(r faultproxy.Request) faultproxy.Fault {
		what := whatIsWritten(r)
		if r.Write == 0 || !strings.HasPrefix(what, "call etcd") {
			return nil
		}
		lock.Lock()
		defer lock.Unlock()
		if faults[what] == nil {
			faults[what] = fault().Then(func() {
				lock.Lock()
				defer lock.Unlock()
				calls = append(calls, what)
			})
		}
		return faults[what]
	})
	w.convergeFrom(through(proxy))
	return calls
}

// undisturbed takes a new cluster through the stages and returns the final state and the writes of each stage.
func undisturbed(t *testing.T, stages []stage) (w *world, want []map[string]string, points [][]write) {
	t.Helper()
	w = newWorld(t)
	w.clusterBefore(stages)
	proxy := w.newEtcdProxy()
	for _, s := range stages {
		s.begin(w)
		proxy.Break(nil)
		w.convergeFrom(through(proxy))
		s.requireEnd(w)
		want, points = append(want, w.snapshot()), append(points, written(proxy))
		t.Logf("%s writes %v", s.name, points[len(points)-1])
	}
	return w, want, points
}

// clusterBefore bootstraps a cluster with the spec of the last stage.
func (w *world) clusterBefore(stages []stage) {
	w.t.Helper()
	w.declare(modern, stages[len(stages)-1].spec...)
	w.converge()
}

func (s stage) begin(w *world) {
	w.t.Helper()
	if s.damage != nil {
		s.damage(w)
	}
	w.declare(modern, s.spec...)
}

// requireEnd fails the test unless the stage has reached its final state.
func (s stage) requireEnd(w *world) {
	w.t.Helper()
	if s.members > 0 {
		w.requireOneCluster("a", s.members)
	}
	eventually(w.t, "no more pods and volumes than wanted", func() error {
		if pods, volumes := len(w.pods("a")), len(w.volumeUIDs("a")); pods != s.members || volumes != s.volumes {
			return fmt.Errorf("%d pods and %d volumes, want %d and %d", pods, volumes, s.members, s.volumes)
		}
		return nil
	})
}

// newEtcdProxy starts a proxy that also sees calls to etcd.
func (w *world) newEtcdProxy() *faultproxy.Proxy {
	w.t.Helper()
	proxy := w.newProxy()
	proxy.WatchEtcd(w.dialPod)
	return proxy
}

// loseVolume deletes the volume of a pod together with the pod, which would otherwise block the deletion.
func (w *world) loseVolume(pod string) {
	w.t.Helper()
	if err := w.kube.CoreV1().PersistentVolumeClaims(w.namespace).Delete(w.ctx(), "data-"+pod, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.deletePod(pod)
}

// emptyVolumes deletes the volumes of pods and waits until Kubernetes has created new pods with new volumes. After
// that, quorate's repair does not depend on timing.
func (w *world) emptyVolumes(pods ...string) {
	w.t.Helper()
	volumesBefore, podsBefore := w.volumeUIDs("a"), w.podUIDs("a")
	for _, pod := range pods {
		w.loseVolume(pod)
	}
	for _, pod := range pods {
		eventually(w.t, "a new pod on a new volume", func() error {
			claim, err := w.kube.CoreV1().PersistentVolumeClaims(w.namespace).Get(w.ctx(), "data-"+pod, metav1.GetOptions{})
			if err != nil {
				return err
			}
			now, err := w.kube.CoreV1().Pods(w.namespace).Get(w.ctx(), pod, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if string(claim.UID) == volumesBefore[pod] || claim.Status.Phase != corev1.ClaimBound ||
				string(now.UID) == podsBefore[pod] || now.Status.PodIP == "" {
				return fmt.Errorf("claim %s is %s, pod %s is %s", claim.UID, claim.Status.Phase, now.UID, now.Status.Phase)
			}
			return nil
		})
	}
}
