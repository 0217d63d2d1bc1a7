package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/kube/kubetest"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
)

// listServer is an API server that contains only the custom resources of some clusters.
type listServer struct {
	t *testing.T

	mu       sync.Mutex
	clusters []string
	// forbids is the resource that may not be listed, and fails is the resource whose listing fails.
	forbids, fails string
	asked          []string // resource?selectors
}

func (l *listServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	label, field := r.URL.Query().Get("labelSelector"), r.URL.Query().Get("fieldSelector")
	l.asked = append(l.asked, resource+"?"+label+field)
	w.Header().Set("Content-Type", "application/json")
	status := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure}
	switch resource {
	case l.forbids:
		status.Reason, status.Code = metav1.StatusReasonForbidden, http.StatusForbidden
	case l.fails:
		status.Reason, status.Code = metav1.StatusReasonInternalError, http.StatusInternalServerError
	}
	if status.Code != 0 {
		w.WriteHeader(int(status.Code))
		_ = json.NewEncoder(w).Encode(status)
		return
	}
	items := []any{}
	for _, name := range l.clusters {
		if resource == "etcdclusters" && (field == "" || field == "metadata.name="+name) {
			items = append(items, map[string]any{"apiVersion": "etcd.quorate.dev/v1alpha1", "kind": "EtcdCluster",
				"metadata": map[string]any{"name": name, "namespace": "ns", "uid": "u-" + name}, "spec": map[string]any{"lifecycle": "Stopped"}})
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{}, "items": items})
}

// observed runs a pass over the wanted clusters. It returns the observed clusters and the requests that the pass sent.
func (l *listServer) observed(live *Live, wanted ...string) (names, asked []string) {
	l.t.Helper()
	l.asked = nil
	only := func(cluster string) bool { return slices.Contains(wanted, cluster) }
	if wanted == nil {
		only = nil
	}
	seen, err := live.Observe(l.t.Context(), reconcile.Desired{Live: true, Unread: reconcile.ErrNotAsked}, only)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, c := range seen.Clusters {
		_, name := c.Identity()
		if why := c.(*cluster).unseen; why != nil {
			name += ": " + why.Error()
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, l.asked
}

func servedLists(t *testing.T, clusters ...string) (*listServer, *Live) {
	l := &listServer{t: t, clusters: clusters}
	client, err := kube.New(kubetest.Answering(t, l.ServeHTTP))
	if err != nil {
		t.Fatal(err)
	}
	return l, New(client, Options{})
}

// TestListWanted checks that a pass over some clusters requests only the objects of these clusters and reuses the last
// listing of the others.
func TestListWanted(t *testing.T) {
	l, live := servedLists(t, "a", "b")
	if names, asked := l.observed(live); !slices.Equal(names, []string{"a", "b"}) || !slices.Contains(asked, "etcdclusters?") {
		t.Errorf("%q by %q", names, asked)
	}
	l.clusters = []string{"a", "c"}
	names, asked := l.observed(live, "ns/a")
	if !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("%q", names)
	}
	for _, one := range asked {
		if one != "etcdclusters?metadata.name=a" && !strings.HasSuffix(one, "managed-by=quorate,etcd.quorate.dev/cluster=a") && one != "nodes?" {
			t.Errorf("asked for %s", one)
		}
	}
	if names, _ := l.observed(live, "ns/b"); !slices.Equal(names, []string{"a"}) {
		t.Errorf("after b was deleted: %q", names)
	}
	if names, asked := l.observed(live, "ns/none"); !slices.Equal(names, []string{"a"}) || len(asked) > 1 {
		t.Errorf("%q by %q", names, asked)
	}
	if names, _ := l.observed(live); !slices.Equal(names, []string{"a", "c"}) {
		t.Errorf("%q", names)
	}
}

// TestUnmanagedObjectsAreNotListed checks that no unmanaged objects are listed, except custom resources and nodes, so
// that their number does not affect a pass.
func TestUnmanagedObjectsAreNotListed(t *testing.T) {
	l, live := servedLists(t, "a")
	_, asked := l.observed(live)
	_, again := l.observed(live, "ns/a")
	ours := 0
	for _, one := range append(asked, again...) {
		resource, selector, _ := strings.Cut(one, "?")
		switch {
		case strings.HasPrefix(selector, "app.kubernetes.io/managed-by=quorate"):
			ours++
		case resource != "etcdclusters" && resource != "nodes":
			t.Errorf("listed %s", one)
		}
	}
	if ours < 2*10 {
		t.Errorf("%d lists have the selector: %q, %q", ours, asked, again)
	}
}

// TestListWantedFails checks that the state of a cluster is unknown if its objects cannot be listed. The cluster is not
// treated as deleted, and other clusters are not affected.
func TestListWantedFails(t *testing.T) {
	l, live := servedLists(t, "a", "b")
	l.observed(live)
	l.fails = "pods"
	names, _ := l.observed(live, "ns/a")
	if len(names) != 2 || !strings.HasPrefix(names[0], "a: list its objects: list Pods: ") || names[1] != "b" {
		t.Errorf("%q", names)
	}
	if names, _ := l.observed(live, "ns/b"); len(names) != 2 || names[0] == "a" || !strings.HasPrefix(names[1], "b: ") {
		t.Errorf("%q", names)
	}
	l.fails = ""
	if names, _ := l.observed(live, "ns/a"); len(names) != 2 || names[0] != "a" || names[1] == "b" {
		t.Errorf("%q", names)
	}
	if names, _ := l.observed(live, "ns/b"); !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("%q", names)
	}
}

// TestListWantedDetectsRevokedRight checks that a revoked right is not mistaken for missing objects: everything is
// listed again, and the hidden kinds are reported.
func TestListWantedDetectsRevokedRight(t *testing.T) {
	l, live := servedLists(t, "a", "b")
	l.observed(live)
	l.forbids = "cronjobs"
	if _, asked := l.observed(live, "ns/a"); !slices.Contains(asked, "etcdclusters?") || live.last.Load().hiddenIn("ns").Backups == nil {
		t.Errorf("asked for %q, hidden %+v", asked, live.last.Load().hidden)
	}
}

// TestManyWantedClustersUseOneList checks that all clusters are listed together if many are wanted, because this is
// cheaper than listing each cluster.
func TestManyWantedClustersUseOneList(t *testing.T) {
	var clusters, wanted []string
	for _, letter := range "abcdefghijklmnopqrst" {
		clusters, wanted = append(clusters, string(letter)), append(wanted, "ns/"+string(letter))
	}
	l, live := servedLists(t, clusters...)
	l.observed(live)
	if _, asked := l.observed(live, wanted...); !slices.Contains(asked, "etcdclusters?") {
		t.Errorf("asked for %q", asked)
	}
}

// TestFullListDropsUnwantedObjects checks that the objects of unwanted clusters are dropped if all clusters are listed
// together, and that these clusters are still reported as before.
func TestFullListDropsUnwantedObjects(t *testing.T) {
	f := newQuietFleet(t, 2)
	live := New(f.client, Options{Timeout: time.Minute})
	defer func() { f.check(live.Close(context.Background())) }()
	first := func(cluster string) bool { return cluster == "ns-0/c00000" }
	listed, err := live.listAll(t.Context(), f.desired, first)
	f.check(err)
	for key, one := range listed.inventory {
		if one.Pods != 3 || one.Claims != 3 || one.Record == "" || one.Custom == nil {
			t.Errorf("%s: %+v", key, one)
		}
		if _, err := one.Open(); (err == nil) != first(key.String()) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// TestStragglerKeepsCopyOfListing checks that a cluster that is still being observed has its own copy of its listing,
// because the observation adds to the listing while later passes read it.
func TestStragglerKeepsCopyOfListing(t *testing.T) {
	f := newQuietFleet(t, 2)
	live := New(f.client, Options{Timeout: time.Minute})
	defer func() { f.check(live.Close(context.Background())) }()
	seen, err := live.Observe(t.Context(), f.desired, nil)
	f.check(err)
	listed := live.last.Load().inventory
	before := map[inventory.Key]inventory.Listed{}
	for k, l := range listed {
		before[k] = *l
	}
	for _, one := range seen.Clusters {
		c := one.(*cluster)
		if _, err := c.State(t.Context()); err != nil || len(c.own.Pods) != 3 {
			t.Fatalf("%d pods: %v", len(c.own.Pods), err)
		}
		c.own.Objects["Secret/found-later"], c.own.Lease, c.own.Custom = nil, &coordinationv1.Lease{}, nil
		if k := c.target.Key(); !reflect.DeepEqual(*listed[k], before[k]) {
			t.Errorf("%+v, before it was %+v", *listed[k], before[k])
		}
	}
}

// TestObservedClusterNeedsNewListing checks that a later pass that does not want a cluster cannot observe it again,
// because the first observation has consumed its listed objects. The later pass reports the cluster as before and does
// not treat it as deleted.
func TestObservedClusterNeedsNewListing(t *testing.T) {
	f := newQuietFleet(t, 1)
	live := New(f.client, Options{Timeout: time.Minute})
	defer func() { f.check(live.Close(context.Background())) }()
	none := func(string) bool { return false }
	for _, test := range []struct {
		wanted func(string) bool
		want   string
	}{{nil, ""}, {none, "observe ns-0/c00000: the listed objects of the cluster are no longer kept; list the clusters again"}, {nil, ""}} {
		seen, err := live.Observe(t.Context(), f.desired, test.wanted)
		f.check(err)
		c := seen.Clusters[0].(*cluster)
		state, err := c.State(t.Context())
		said := ""
		if err != nil {
			said = err.Error()
		}
		if said != test.want || c.target.Empty || c.Custom() == nil || (err == nil) != (decide.Decide(state).Rule == decide.Converged) {
			t.Errorf("got %q, want %q; %+v", said, test.want, decide.Decide(state))
		}
		c.Leave(false)
	}
}

// TestObservingDoesNotWriteIdentity checks that observing a cluster does not write its identity, because a pass that
// no longer waits for the cluster reads the identity concurrently. The race detector would report such a write.
func TestObservingDoesNotWriteIdentity(t *testing.T) {
	f := newQuietFleet(t, 1)
	live := New(f.client, Options{Timeout: time.Minute})
	defer func() { f.check(live.Close(context.Background())) }()
	seen, err := live.Observe(t.Context(), f.desired, nil)
	f.check(err)
	c := seen.Clusters[0]
	var looks sync.WaitGroup
	looks.Go(func() {
		if _, err := c.State(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if namespace, name := c.Identity(); namespace != "ns-0" || name != "c00000" {
		t.Errorf("%s/%s", namespace, name)
	}
	looks.Wait()
	if c.(*cluster).target.Cluster.Spec.Etcd.Quota.IsZero() {
		t.Error("the cluster has no quota")
	}
}

// unpackable is a ConfigMap that cannot be unpacked.
type unpackable struct{ corev1.ConfigMap }

func (u *unpackable) Unmarshal([]byte) error { return errors.New("no") }

// TestUnpackableObjectMakesStateUnknown checks that the state of a cluster is unknown if one of its objects cannot be
// unpacked.
func TestUnpackableObjectMakesStateUnknown(t *testing.T) {
	_, live := servedLists(t, "a")
	if _, err := live.list(t.Context(), nil, nil); err != nil { // sets the server's time
		t.Fatal(err)
	}
	sorter := inventory.NewSorter(inventory.AnyCluster)
	object := &unpackable{corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-members", Labels: objects.Labels("a")}}}
	if err := sorter.Take(object); err != nil {
		t.Fatal(err)
	}
	target := targets.Target{Cluster: v1alpha1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}}
	c := live.newCluster(target, sorter.Listed().At("ns", "a"), nil)
	if _, err := c.State(t.Context()); err == nil || err.Error() != "observe ns/a: unpack a listed unpackable: no" {
		t.Error(err)
	}
}

// TestDialAfterLeaveReturnsError checks that a connection that is kept for the next pass gets an error if it redials
// after Leave.
func TestDialAfterLeaveReturnsError(t *testing.T) {
	_, live := servedLists(t, "a")
	seen, err := live.Observe(t.Context(), reconcile.Desired{Live: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := seen.Clusters[0].(*cluster)
	dial := c.dialer()
	c.Leave(true)
	if _, err := dial(t.Context(), "a-0"); err == nil || err.Error() != "pod a-0 no longer exists" {
		t.Error(err)
	}
}
