package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAdoptionOfStatefulSet adopts a hand-written StatefulSet without TLS while applications write, as described in
// docs/how-to/adopt-a-cluster.md: the replicas join, leave again, and join once more; then the old members leave, one
// commit at a time. The cluster ID and every acknowledged write are kept, and the old cluster's objects are not
// written.
func TestAdoptionOfStatefulSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, members := w.startOld()
	before := w.foreignVersions()
	history := w.watchWritesToBoth()

	w.adopt(id, "", "Holding")
	w.requireVoters("a", 6)
	w.adopt(id, ", abandon: true", "Holding")
	w.requireOneCluster("old", 3)
	w.adopt(id, "", "Holding")
	if now := w.foreignVersions(); !slices.Equal(now, before) {
		t.Errorf("objects of the old cluster were written: %v, before: %v", now, before)
	}
	for i := range members {
		rule := "Holding"
		if i == len(members)-1 {
			rule = "Converged"
		}
		w.adopt(id, release(members[:i+1]), rule)
	}
	history.end()
	if now := w.status("a").ClusterID; strings.TrimLeft(now, "0") != strings.TrimLeft(id, "0") {
		t.Errorf("cluster %s became cluster %s", id, now)
	}
	w.requireSize(3)
	w.declare(modern, three, "tls: {mode: Disabled}")
	w.converge()
	w.requireQuiet("a")
}

// BenchmarkAdoption measures how long applications wait for a write during an adoption. It compares the time in which
// three replicas join with the time in which the same cluster then scales from three to six and back.
func BenchmarkAdoption(b *testing.B) {
	w := newWorld(b)
	id, members := w.startOld()
	history := w.watchWritesToBoth()
	start := time.Now()
	w.adopt(id, "", "Holding")
	joined := time.Since(start)
	w.adopt(id, release(members), "Converged")
	figure("adopt_write_gap_ms", float64(history.end().longest.Milliseconds()), "ms")
	start = time.Now()
	for _, size := range []string{"replicas: 6", three} {
		w.declare(modern, size, "tls: {mode: Disabled}")
		w.converge()
	}
	figure("adopt_join_ratio", joined.Seconds()/time.Since(start).Seconds(), "ratio")
}

// startOld starts the cluster to adopt, and returns its ID and its members' IDs.
func (w *world) startOld() (id string, members []string) {
	w.t.Helper()
	w.apply(oldThree)
	id = w.requireOneCluster("old", 3)
	w.waitForClusterVersion("old-0")
	return id, w.listedIDs("old")
}

// adopt declares that cluster a adopts cluster old, with more fields of spec.adopt, and runs passes until the given rule
// reports that nothing is left to do.
func (w *world) adopt(id, more, rule string) {
	w.t.Helper()
	w.declare(modern, three, "tls: {mode: Disabled}", fmt.Sprintf("adopt: {clusterID: %q, endpoints: [%s]%s}", id,
		strings.Join(w.endpointsOf("old", 3), ", "), more))
	w.convergeFrom(outside, w.allowsAdoption()...).requireRule(w.t, "a", rule)
}

// release returns the field that releases members. Unquoted IDs may be numbers in YAML.
func release(members []string) string {
	return fmt.Sprintf(`, release: ["%s"]`, strings.Join(members, `", "`))
}

// watchWritesToBoth starts applications that know the members of both clusters.
func (w *world) watchWritesToBoth() *history {
	w.t.Helper()
	return w.watchWritesBy(func() (*clientv3.Client, error) {
		return w.applicationOf(slices.Concat(w.endpointsOf("old", 3), w.endpointsOf("a", 3)), nil)
	})
}

// oldThree is bareThree under another name.
var oldThree = strings.NewReplacer("name: a}", "name: old}", "etcd: a}", "etcd: old}", "serviceName: a\n", "serviceName: old\n",
	"a-0", "old-0", "a-1", "old-1", "a-2", "old-2", ".a:", ".old:").Replace(bareThree)

// endpointsOf returns the client URLs of a cluster's members without TLS.
func (w *world) endpointsOf(cluster string, n int) []string {
	var urls []string
	for ordinal := range n {
		urls = append(urls, fmt.Sprintf("http://%s-%d.%[1]s.%[3]s.svc:2379", cluster, ordinal, w.namespace))
	}
	return urls
}

// allowsAdoption returns the configuration that allows the adoption of clusters in the namespace.
func (w *world) allowsAdoption() []string {
	policy := map[string]any{"adoptions": []string{"old-*.old." + w.namespace + ".svc:2379"}}
	return []string{configFlag(map[string]any{"sourceDefaults": map[string]any{"policy": policy}})}
}

// listedIDs returns the IDs of a cluster's members, as etcdctl prints them.
func (w *world) listedIDs(cluster string) []string {
	w.t.Helper()
	list, err := w.member(cluster, 0).MemberList(w.ctx())
	if err != nil {
		w.t.Fatal(err)
	}
	var ids []string
	for _, m := range list.Members {
		ids = append(ids, fmt.Sprintf("%x", m.ID))
	}
	return ids
}

// foreignVersions returns the generations and owners of the old cluster's objects, which change if Quorate or
// another tool writes them.
func (w *world) foreignVersions() []string {
	w.t.Helper()
	set, err := w.kube.AppsV1().StatefulSets(w.namespace).Get(w.ctx(), "old", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	service, err := w.kube.CoreV1().Services(w.namespace).Get(w.ctx(), "old", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	versions := []string{fmt.Sprint(set.UID, set.Generation), fmt.Sprint(service.UID, service.ResourceVersion)}
	for ordinal := range 3 {
		pod := w.pod(fmt.Sprint("old-", ordinal))
		versions = append(versions, fmt.Sprint(pod.UID, pod.Generation, pod.Status.ContainerStatuses[0].RestartCount))
		for _, field := range pod.ManagedFields {
			versions = append(versions, field.Manager)
		}
	}
	return versions
}

// requireVoters fails unless a cluster has the given number of voters, and all respond.
func (w *world) requireVoters(cluster string, n int) {
	w.t.Helper()
	list, err := w.member(cluster, 0).MemberList(w.ctx())
	if err != nil {
		w.t.Fatal(err)
	}
	voters := 0
	for _, m := range list.Members {
		if !m.IsLearner {
			voters++
		}
	}
	if voters != n {
		w.t.Errorf("%d voters, want %d: %v", voters, n, list.Members)
	}
}
