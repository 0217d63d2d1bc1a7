package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

func nodeNamed(name string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, "topology.topolvm.io/node": name, corev1.LabelTopologyZone: "z1",
	}}}
}

// volumeOn returns a volume with the given node affinity terms.
func volumeOn(terms ...corev1.NodeSelectorTerm) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}
	volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	return volume
}

func in(key string, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}}}
}

func TestOutOfReach(t *testing.T) {
	field := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}
	notReady := nodeNamed("n1")
	notReady.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	both := in(corev1.LabelHostname, "n1")
	both.MatchExpressions = append(both.MatchExpressions, in(corev1.LabelTopologyZone, "z1").MatchExpressions...)
	tests := []struct {
		name  string
		terms []corev1.NodeSelectorTerm
		nodes []corev1.Node
		want  string
	}{
		{name: "node exists", terms: []corev1.NodeSelectorTerm{in(corev1.LabelHostname, "n1")}, nodes: []corev1.Node{nodeNamed("n2"), nodeNamed("n1")}},
		{name: "node exists but is not ready", terms: []corev1.NodeSelectorTerm{in(corev1.LabelHostname, "n1")}, nodes: []corev1.Node{notReady}},
		{
			name: "node no longer exists", terms: []corev1.NodeSelectorTerm{in(corev1.LabelHostname, "n1")}, nodes: []corev1.Node{nodeNamed("n2")},
			want: "its volume pvc-1 belongs to node n1, which no longer exists",
		},
		{name: "node selected by name no longer exists", terms: []corev1.NodeSelectorTerm{field}, nodes: []corev1.Node{nodeNamed("n2")}, want: "its volume pvc-1 belongs to node n1, which no longer exists"},
		{name: "node selected by name exists", terms: []corev1.NodeSelectorTerm{field}, nodes: []corev1.Node{nodeNamed("n1")}},
		{
			name: "node selected by driver label no longer exists", terms: []corev1.NodeSelectorTerm{in("topology.topolvm.io/node", "n1")}, nodes: []corev1.Node{nodeNamed("n2")},
			want: "its volume pvc-1 belongs to node n1, which no longer exists",
		},
		{name: "node of an existing zone no longer exists", terms: []corev1.NodeSelectorTerm{both}, nodes: []corev1.Node{nodeNamed("n2")}, want: "its volume pvc-1 belongs to node n1, which no longer exists"},
		{
			name: "none of several nodes exists", terms: []corev1.NodeSelectorTerm{in(corev1.LabelHostname, "n1"), in(corev1.LabelHostname, "n2")}, nodes: []corev1.Node{nodeNamed("n3")},
			want: "its volume pvc-1 belongs to nodes n1, n2, which no longer exist",
		},
		{name: "one of several nodes exists", terms: []corev1.NodeSelectorTerm{in(corev1.LabelHostname, "n1"), in(corev1.LabelHostname, "n2")}, nodes: []corev1.Node{nodeNamed("n2")}},
		{name: "zone currently has no nodes", terms: []corev1.NodeSelectorTerm{in(corev1.LabelTopologyZone, "z2")}, nodes: []corev1.Node{nodeNamed("n1")}},
		{name: "one node or any node of a zone", terms: []corev1.NodeSelectorTerm{in(corev1.LabelHostname, "n1"), in(corev1.LabelTopologyZone, "z2")}, nodes: []corev1.Node{nodeNamed("n2")}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := outOfReach(volumeOn(test.terms...), test.nodes)
			if err != nil || got != test.want {
				t.Errorf("got %q %v, want %q", got, err, test.want)
			}
		})
	}
}

// storageServer is an API server that contains claims and at most one volume. It can deny all requests, and it records
// them.
type storageServer struct {
	volume *corev1.PersistentVolume
	claim  *corev1.PersistentVolumeClaim
	claims []*corev1.PersistentVolumeClaim // the claims of the other replicas
	nodes  *corev1.NodeList
	refuse bool
	asked  []string
}

func (s *storageServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked = append(s.asked, r.URL.Path)
	var body any = s.volume
	named := func(claim *corev1.PersistentVolumeClaim) bool {
		return strings.HasSuffix(r.URL.Path, "/persistentvolumeclaims/"+claim.Name)
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case s.refuse:
		w.WriteHeader(http.StatusForbidden)
		body = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReasonForbidden, Message: "persistentvolumes is forbidden"}
	case strings.HasSuffix(r.URL.Path, "/nodes") && s.nodes != nil:
		body = s.nodes
	case strings.HasSuffix(r.URL.Path, "/pods"):
		body = corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	case slices.ContainsFunc(s.claims, named):
		body = s.claims[slices.IndexFunc(s.claims, named)]
	case strings.Contains(r.URL.Path, "/persistentvolumeclaims/") && s.claim != nil:
		body = s.claim
	case s.volume == nil:
		w.WriteHeader(http.StatusNotFound)
		body = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: 404, Reason: metav1.StatusReasonNotFound}
	}
	_ = json.NewEncoder(w).Encode(body)
}

// clientOf returns a client for an API server that uses handler.
func clientOf(t *testing.T, handler http.Handler) *kube.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{clusters: [{name: c, cluster: {server: "` + server.URL + `"}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := kube.Config(kube.Kubeconfig{File: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	client, err := kube.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// claimed returns the claim of a-1 with the given UID.
func claimed(uid types.UID) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: "data-a-1", Namespace: "b", UID: uid},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pvc-1"},
	}
}

// TestFindStranded checks that a member whose volume was lost with its node is detected, because its pod would wait
// for that node forever (hard case H46).
func TestFindStranded(t *testing.T) {
	local := volumeOn(in(corev1.LabelHostname, "n1"))
	pending := func() *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a-1"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	}
	const gone = "its volume pvc-1 belongs to node n1, which no longer exists"
	tests := []struct {
		name     string
		server   storageServer
		pod      *corev1.Pod
		change   func(c *cluster, claim *corev1.PersistentVolumeClaim)
		nodesErr error
		want     string
		message  string
		asked    int
	}{
		{name: "pod waits for a deleted node", server: storageServer{volume: local}, pod: pending(), want: gone, asked: 1},
		{name: "no pod and a deleted node", server: storageServer{volume: local}, want: gone, asked: 1},
		{name: "PersistentVolume was deleted", server: storageServer{claim: claimed("v1")}, pod: pending(), want: "its volume pvc-1 has been deleted", asked: 2},
		{name: "claim and PersistentVolume were deleted", pod: pending(), asked: 2},
		{name: "claim was replaced after listing", server: storageServer{claim: claimed("v2")}, pod: pending(), asked: 2},
		{name: "claim is being deleted", pod: pending(), change: func(_ *cluster, claim *corev1.PersistentVolumeClaim) {
			claim.DeletionTimestamp = &metav1.Time{}
		}},
		{name: "claim is in phase Lost", server: storageServer{volume: local, claim: claimed("v1")}, pod: pending(), asked: 2, want: "its volume pvc-1 has been deleted", change: func(_ *cluster, claim *corev1.PersistentVolumeClaim) {
			claim.Status.Phase = corev1.ClaimLost
		}},
		{name: "PersistentVolume is usable on any node", server: storageServer{volume: &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}}, pod: pending(), asked: 1},
		{name: "PersistentVolume cannot be read", server: storageServer{refuse: true}, pod: pending(), asked: 1,
			message: "cannot tell whether its volume is still reachable: read PersistentVolume pvc-1: persistentvolumes is forbidden"},
		{name: "nodes cannot be listed", server: storageServer{volume: local}, pod: pending(), nodesErr: errors.New("list Nodes: forbidden"), asked: 1,
			message: "cannot tell whether its volume is still reachable: list Nodes: forbidden"},
		{name: "pod has a node", server: storageServer{volume: local}, pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a-1"}, Spec: corev1.PodSpec{NodeName: "n1"}}},
		{name: "claim is not bound yet", pod: pending(), change: func(_ *cluster, claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeName = "" }},
		{name: "member is not recorded", pod: pending(), change: func(c *cluster, _ *corev1.PersistentVolumeClaim) { c.state.Record.Members = nil }},
		{name: "cluster is stopped", change: func(c *cluster, _ *corev1.PersistentVolumeClaim) {
			c.target.Cluster.Spec.Lifecycle = v1alpha1.LifecycleStopped
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			claim := claimed("v1")
			c := &cluster{live: &Live{kube: clientOf(t, &test.server)}, own: &inventory.Cluster{Claims: []*corev1.PersistentVolumeClaim{claim}}}
			c.target.Cluster.Name, c.target.Cluster.Spec.Lifecycle = "a", v1alpha1.LifecycleRunning
			c.nodes = func() ([]corev1.Node, error) { return []corev1.Node{nodeNamed("n2")}, test.nodesErr }
			if test.pod != nil {
				c.own.Pods = []*corev1.Pod{test.pod}
			}
			c.state = decide.State{Name: "a", Replicas: c.replicas(), Record: decide.Record{Members: []decide.RecordedMember{{Ordinal: 1, Mode: decide.Sealed}}}}
			if test.change != nil {
				test.change(c, claim)
			}
			c.findStranded(context.Background())
			got := c.state.Replica(1)
			if got.Stranded != test.want || !strings.HasPrefix(got.PodMessage, test.message) || len(test.server.asked) != test.asked {
				t.Errorf("got %q, message %q, asked for %q", got.Stranded, got.PodMessage, test.server.asked)
			}
			if test.asked > 0 && test.server.asked[0] != "/api/v1/persistentvolumes/pvc-1" {
				t.Errorf("asked for %q", test.server.asked)
			}
		})
	}
}

// TestFindUnbound checks that a pod counts as waiting forever if it has a node but its claim has no volume. Lists that
// were read at different times are not sufficient evidence.
func TestFindUnbound(t *testing.T) {
	claim := func(uid types.UID, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
		c := claimed(uid)
		c.Status.Phase = phase
		return c
	}
	for _, test := range []struct {
		name      string
		node      string
		phase     decide.PodPhase
		claim     *corev1.PersistentVolumeClaim
		now       *corev1.PersistentVolumeClaim
		want      bool
		wantAsked int
	}{
		{"claim stays unbound", "n1", decide.PodPending, claim("v1", corev1.ClaimPending), claim("v1", corev1.ClaimPending), true, 1},
		{"claim was bound after listing", "n1", decide.PodPending, claim("v1", corev1.ClaimPending), claim("v1", corev1.ClaimBound), false, 1},
		{"claim was recreated after listing", "n1", decide.PodPending, claim("v1", corev1.ClaimPending), claim("v2", corev1.ClaimPending), false, 1},
		{"claim was deleted after listing", "n1", decide.PodPending, claim("v1", corev1.ClaimPending), nil, false, 1},
		{"pod has no node yet", "", decide.PodPending, claim("v1", corev1.ClaimPending), nil, false, 0},
		{"claim is bound, pod is pending", "n1", decide.PodPending, claim("v1", corev1.ClaimBound), nil, false, 0},
		{"pod is running", "n1", decide.PodReady, claim("v1", corev1.ClaimPending), nil, false, 0},
		{"claim is missing", "n1", decide.PodPending, nil, nil, false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := &storageServer{claim: test.now}
			own := &inventory.Cluster{Pods: []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a-1"}, Spec: corev1.PodSpec{NodeName: test.node}}}}
			if test.claim != nil {
				own.Claims = append(own.Claims, test.claim)
			}
			c := &cluster{
				live: &Live{kube: clientOf(t, server)}, own: own, target: targets.Target{Cluster: v1alpha1.EtcdCluster{}},
				state: decide.State{Name: "a", Replicas: []decide.Replica{{Ordinal: 1, Pod: test.phase}}},
			}
			if err := c.findUnbound(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := c.state.Replicas[0].PodUnbound; got != test.want || len(server.asked) != test.wantAsked {
				t.Errorf("got %t after asking %q", got, server.asked)
			}
		})
	}
}
