package scenarios

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"quorate.dev/quorate/sandbox/scenarios/faultproxy"
)

// testEtcdUnreachable checks that a running cluster that does not respond is never mistaken for a new one.
func testEtcdUnreachable(t *testing.T, w *world) {
	id, pods := w.requireOneCluster("a", 3), w.podUIDs("a")
	for name, fault := range map[string]faultproxy.Fault{
		"refused": faultproxy.Answer(http.StatusServiceUnavailable), "cut": faultproxy.Refuse(),
	} {
		t.Run(name, func(t *testing.T) {
			w := w.as(t)
			proxy := w.newProxy()
			proxy.Break(faultproxy.On("", "pods/portforward", fault))
			r := w.runFrom(through(proxy), "run").requireRule(t, "a", "MembershipUnknown")
			if c := r.cluster("a").Decision; c.Verdict == "Act" || c.Verdict == "Done" {
				t.Errorf("decided %s", c.Verdict)
			}
			requireOnlyTold(t, proxy)
			w.requireCondition("a", "Ready", "Unknown", "MembershipUnknown")
			r = w.runFrom(through(proxy), "run", "--until-converged", "--timeout", "5s")
			if r.code != exitNotConverged {
				t.Errorf("exit code %d, want %d:\n%s", r.code, exitNotConverged, r)
			}
			w.converge()
		})
	}
	if got, now := w.requireOneCluster("a", 3), w.podUIDs("a"); got != id || !maps.Equal(now, pods) {
		t.Errorf("cluster %s with pods %v became cluster %s with pods %v", id, pods, got, now)
	}
}

// testUnreachableAndForgotten also deletes the record and the status: the volumes alone must prevent quorate
// from bootstrapping.
func testUnreachableAndForgotten(t *testing.T, w *world) {
	id, pods := w.requireOneCluster("a", 3), w.podUIDs("a")
	proxy := w.newProxy()
	proxy.Break(faultproxy.On("", "pods/portforward", faultproxy.Answer(http.StatusServiceUnavailable)))
	for _, d := range []disturbance{
		{"record deleted", configMaps, "a-members", ""}, {"resource deleted", etcdclusters, "a", ""}, {"statefulset deleted", statefulSets, "a", ""},
	} {
		w.disturb(d)
		r := w.runFrom(through(proxy), "run")
		if rule := r.cluster("a").Decision.Rule; rule == "Bootstrap" {
			t.Fatalf("%s: a cluster that does not answer is founded again:\n%s", d.name, r)
		}
		if record, err := w.object(configMaps, "a-members"); err == nil && strings.Contains(fmt.Sprint(record.Object["data"]), "initial-cluster-state: new") {
			t.Fatalf("%s: the record could found a second cluster: %v", d.name, record.Object["data"])
		}
	}
	w.converge()
	if got, now := w.requireOneCluster("a", 3), w.podUIDs("a"); got != id || !maps.Equal(now, pods) {
		t.Errorf("cluster %s with pods %v became cluster %s with pods %v", id, pods, got, now)
	}
}

// requireOnlyTold fails if anything except status and events was written.
func requireOnlyTold(t *testing.T, proxy *faultproxy.Proxy) {
	t.Helper()
	for _, write := range proxy.Writes() {
		if write.Resource != "etcdclusters/status" && write.Resource != "events" {
			t.Errorf("nothing had to be changed, but got: %s", write)
		}
	}
}

// hangLimit is the maximum duration of a pass while members accept connections without responding: many times
// the few seconds that it normally takes.
const hangLimit = patience

// testOneMemberHangs stops the process of one member, so that it accepts connections without responding. The other
// members keep serving, and the pass names the unresponsive member.
func testOneMemberHangs(t *testing.T, w *world) {
	other := w.member("a", 0)
	for name, v := range map[string]vantage{"outside": outside, "inside": inside} {
		w.signal("a-1", syscall.SIGSTOP)
		other.waitForQuorum()
		r := w.runFrom(v, "run", setting("etcd.timeout", "5s"))
		w.signal("a-1", syscall.SIGCONT)
		if r.requireCode(t, exitDone); r.took > hangLimit {
			t.Errorf("from %s, the pass took %s", name, r.took)
		}
		if c := r.cluster("a").Decision; c.Verdict != "Wait" || !strings.Contains(c.Message, "a-1") {
			t.Errorf("from %s: decided %s by %s: %s", name, c.Verdict, c.Rule, c.Message)
		}
		if s := w.status("a"); s.member("a-1").Health != "Unreachable" || s.member("a-0").Health != "Healthy" || s.Voters != "2/3" {
			t.Errorf("from %s: the status has %s, %+v", name, s.Voters, s.Members)
		}
		w.waitForPods("a", 3)
		w.converge()
	}
}

// testAllMembersHang stops the processes of all members. The membership is then unknown, and nothing is changed.
func testAllMembersHang(t *testing.T, w *world) {
	id := w.requireOneCluster("a", 3)
	proxy := w.newProxy()
	for name, v := range map[string]vantage{"outside": through(proxy), "inside": inside} {
		proxy.Break(nil)
		for ordinal := range 3 {
			w.signal(fmt.Sprint("a-", ordinal), syscall.SIGSTOP)
		}
		r := w.runFrom(v, "run")
		for ordinal := range 3 {
			w.signal(fmt.Sprint("a-", ordinal), syscall.SIGCONT)
		}
		if r.requireCode(t, exitDone).requireRule(t, "a", "MembershipUnknown"); r.took > hangLimit {
			t.Errorf("from %s, the pass took %s", name, r.took)
		}
		requireOnlyTold(t, proxy)
		w.requireCondition("a", "Ready", "Unknown", "MembershipUnknown")
		w.waitForPods("a", 3)
		w.converge()
	}
	if got := w.requireOneCluster("a", 3); got != id {
		t.Errorf("cluster %s became cluster %s", id, got)
	}
}

// signal sends a signal to etcd in the given pod. The sandbox's nodes and their containers are processes of this
// machine.
func (w *world) signal(pod string, signal syscall.Signal) {
	w.t.Helper()
	_, container, _ := strings.Cut(w.pod(pod).Status.ContainerStatuses[0].ContainerID, "://")
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, path := range groups {
		group, _ := os.ReadFile(path) // the process may have ended
		if !strings.Contains(string(group), container) {
			continue
		}
		process, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			w.t.Fatal(err)
		}
		if err := syscall.Kill(process, signal); err != nil {
			w.t.Fatalf("signal etcd in %s: %v", pod, err)
		}
		return
	}
	w.t.Fatalf("etcd in %s is not among the processes of this machine", pod)
}
