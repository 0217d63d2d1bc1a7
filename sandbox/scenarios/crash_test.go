package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/sandbox/scenarios/faultproxy"
)

// stage is one operation on cluster a. It begins in the state in which the previous stage ended. The first stage begins
// in the final state of the last.
type stage struct {
	name string
	// spec is the declared spec.
	spec []string
	// damage, if not nil, damages the cluster before quorate runs.
	damage func(*world)
	// members and volumes are the final numbers.
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

// TestCrashAtEveryWrite kills quorate right after each write of each operation in turn, including calls that
// change etcd. The next run must end in the same state as an undisturbed run. The clusters have no TLS, so that
// the proxy can see calls to etcd. TestKillAfterEveryWrite does the same for leases and events.
func TestCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	for name, stages := range map[string][]stage{"Resize": resizing, "Roll": rolling, "Replace": replacing, "Stop": stopping, "Delete": deleting} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testBroken(t, stages, changesCluster, func(w *world, proxy *faultproxy.Proxy, last write) {
				w.killAfter(proxy, last)
				w.converge()
			})
		})
	}
}

// TestEtcdCallsFail cuts the connection to etcd at each call that changes it, before and after the call takes
// effect. The same run must continue to the end state of an undisturbed run.
func TestEtcdCallsFail(t *testing.T) {
	t.Parallel()
	ofEtcd := func(w write) bool { return strings.HasPrefix(w.what, "call etcd") }
	for name, fault := range map[string]func(int) faultproxy.Fault{
		"call lost":   func(int) faultproxy.Fault { return faultproxy.Once(faultproxy.Refuse()) },
		"answer lost": func(n int) faultproxy.Fault { return faultproxy.DropSuccess(n, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, stages := range [][]stage{resizing, replacing, rolling} {
				testBroken(t, stages, ofEtcd, func(w *world, proxy *faultproxy.Proxy, call write) {
					proxy.Break(call.on(fault(call.nth)))
					w.convergeFrom(through(proxy))
				})
			}
		})
	}
}

// changesCluster reports whether a write changes the cluster or its declared or reported state, unlike leases and
// events, on which no later run depends.
func changesCluster(w write) bool {
	return !strings.Contains(w.what, " leases ") && !strings.Contains(w.what, " events")
}

// testBroken takes a cluster through the stages, first undisturbed, and then repeatedly until each of the
// chosen writes of each stage has been broken once.
func testBroken(t *testing.T, stages []stage, chosen func(write) bool, run func(*world, *faultproxy.Proxy, write)) {
	w, want, points := undisturbed(t, stages)
	for round, left := 0, true; left; round++ {
		left = false
		for i, s := range stages {
			writes := slices.DeleteFunc(slices.Clone(points[i]), func(w write) bool { return !chosen(w) })
			if round >= len(writes) {
				s.begin(w)
				w.converge()
				continue
			}
			left = true
			ok := t.Run(fmt.Sprintf("%s/%s", s.name, writes[round]), func(t *testing.T) {
				w := w.as(t)
				s.begin(w)
				run(w, w.newEtcdProxy(), writes[round])
				s.requireEnd(w)
				if wrong := difference(want[i], w.snapshot()); wrong != "" {
					t.Errorf("not like an undisturbed cluster: %s", wrong)
				}
			})
			if !ok { // do not report this cluster's failure again and again
				w = w.clusterAfter(t, stages[:i+1])
			}
		}
	}
}

// undisturbed takes a new cluster through the stages, and returns the final state and the writes of each.
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

// clusterBefore bootstraps a cluster in the final state of the last stage.
func (w *world) clusterBefore(stages []stage) {
	w.t.Helper()
	w.declare(modern, stages[len(stages)-1].spec...)
	w.converge()
}

// clusterAfter bootstraps another cluster and takes it through these stages.
func (w *world) clusterAfter(t *testing.T, stages []stage) *world {
	t.Helper()
	w = newWorld(t)
	w.declare(modern, plain, three)
	w.converge()
	for _, s := range stages {
		s.begin(w)
		w.converge()
	}
	return w
}

func (s stage) begin(w *world) {
	w.t.Helper()
	if s.damage != nil {
		s.damage(w)
	}
	w.declare(modern, s.spec...)
}

// requireEnd fails unless the stage has reached its end state.
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

// loseVolume deletes the volume of a pod, and the pod, which otherwise blocks the deletion.
func (w *world) loseVolume(pod string) {
	w.t.Helper()
	if err := w.kube.CoreV1().PersistentVolumeClaims(w.namespace).Delete(w.ctx(), "data-"+pod, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.deletePod(pod)
}

// emptyVolumes deletes the volumes of pods and waits until Kubernetes has created new pods on new volumes. From
// then on, quorate's repair does not depend on timing.
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
