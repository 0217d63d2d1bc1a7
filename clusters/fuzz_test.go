package clusters

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/kube/kubetest"
	"quorate.dev/quorate/clusters/schema"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// FuzzReadBack puts an arbitrary custom resource and an arbitrary ConfigMap into one namespace, as a user with write
// access could. Whatever they contain, a pass over that cluster ends without a panic, and the decision and warnings for
// a cluster in a different namespace stay the same.
func FuzzReadBack(f *testing.F) {
	const record = `{"metadata": {"name": "x-members", "labels": {"app.kubernetes.io/managed-by": "quorate", "etcd.quorate.dev/cluster": "x"}}, "data": {"record.yaml": %q}}`
	for _, custom := range []string{
		`{}`, `[]`, `{"spec": 7}`, `{"metadata": {"labels": {"app.kubernetes.io/managed-by": "quorate"}}, "spec": {"version": "3.6.16", "replicas": -1}}`,
		`{"metadata": {"labels": {"app.kubernetes.io/managed-by": "quorate"}}, "spec": {"version": "3.6.16"}, "status": {"declaredSource": "good", "sourceRevision": "main@sha1:0",
			"conditions": [{"type": "Orphaned", "status": "True", "message": "main@sha1:1 no longer declares it; it may now be good/a"}], "members": [{"name": "x-0", "id": "zz"}], "replicas": 2147483647}}`,
		`{"metadata": {"annotations": {"etcd.quorate.dev/confirm-new-cluster": ",,"}}, "spec": {"storage": {"size": "1e1.5"}, "lifecycle": "Deleted"}}`,
	} {
		for _, text := range []string{"", "members:\n- ordinal: 99999999999\n", "clusterID: zz\nmembers: [{ordinal: 0, mode: Founding}]\n"} {
			f.Add([]byte(custom), fmt.Appendf(nil, record, text))
		}
	}
	kinds := strings.Fields("configmaps secrets services poddisruptionbudgets networkpolicies statefulsets pods persistentvolumeclaims cronjobs jobs leases etcdclusters nodes events")
	var lists atomic.Pointer[map[string][]any]
	client, err := kube.New(kubetest.Answering(f, func(w http.ResponseWriter, r *http.Request) {
		kind := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		w.Header().Set("Content-Type", "application/json")
		if slices.Contains(kinds, kind) && r.Method == http.MethodGet {
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{}, "items": append([]any{}, (*lists.Load())[kind]...)})
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`))
	}))
	if err != nil {
		f.Fatal(err)
	}
	look := func(t *testing.T, custom, configMap map[string]any) string {
		lists.Store(&map[string][]any{"etcdclusters": {custom}, "configmaps": {configMap}})
		return lookAtBoth(t, New(client, Options{}))
	}
	f.Fuzz(func(t *testing.T, custom, configMap []byte) {
		var objects [2]map[string]any
		for i, text := range [][]byte{custom, configMap} {
			if json.Unmarshal(text, &objects[i]) != nil || objects[i] == nil {
				t.Skip("no object: the API server keeps none such")
			}
			metadata, _ := objects[i]["metadata"].(map[string]any)
			if metadata == nil {
				metadata = map[string]any{}
			}
			metadata["namespace"], objects[i]["metadata"] = "evil", metadata
		}
		objects[0]["apiVersion"], objects[0]["kind"] = "etcd.quorate.dev/v1alpha1", "EtcdCluster"
		objects[0]["metadata"].(map[string]any)["name"] = "x"
		start := time.Now()
		got := look(t, objects[0], objects[1])
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %s", took)
		}
		if want := look(t, map[string]any{"metadata": map[string]any{"namespace": "evil", "name": "x"}}, map[string]any{}); got != want {
			t.Errorf("the result for another cluster is\n%s\nwant\n%s", got, want)
		}
	})
}

// lookAtBoth observes the clusters of two tenants and returns the decision and warnings for the second.
func lookAtBoth(t *testing.T, l *Live) (good string) {
	desired := reconcile.Desired{Sources: []reconcile.SourceState{
		{Name: "evil", Revision: "main@sha1:1", Namespaces: reconcile.Namespaces{"evil"}}, {Name: "good", Revision: "main@sha1:2", Namespaces: reconcile.Namespaces{"good"}},
	}}
	for _, name := range []string{"evil/x", "good/a"} {
		d := declaredInFull(t, name)
		d.Source = d.Cluster.Namespace
		desired.Clusters = append(desired.Clusters, d)
	}
	seen, err := l.Observe(t.Context(), desired, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range seen.Clusters {
		namespace, name := c.Identity()
		state, err := c.State(t.Context())
		entry := report.Cluster{Namespace: namespace, Name: name, State: state, Warnings: c.Warnings()}
		if err == nil {
			entry.Decision = decide.Decide(state)
		}
		_, _ = c.Report(t.Context(), entry, reconcile.SourceStatus{Source: namespace, Revision: "main@sha1:2"}) // the server rejects it
		if namespace == "good" {
			good += fmt.Sprintf("%s: %s %q %v %v\n", name, entry.Decision, entry.Warnings, err, seen.Removals)
		}
	}
	if !strings.Contains(good, "Bootstrap") {
		t.Fatalf("the untouched cluster is not bootstrapped: %s", good)
	}
	return good
}

// declaredInFull returns a cluster as a source declares it, with all defaults.
func declaredInFull(t *testing.T, cluster string) (d reconcile.Declaration) {
	namespace, name, _ := strings.Cut(cluster, "/")
	text := fmt.Sprintf(`{"apiVersion": "etcd.quorate.dev/v1alpha1", "kind": "EtcdCluster", "metadata": {"name": %q, "namespace": %q}, "spec": {"version": "3.6.16"}}`, name, namespace)
	var full map[string]any
	for _, object := range []*map[string]any{&d.Applied, &full} {
		if err := json.Unmarshal([]byte(text), object); err != nil {
			t.Fatal(err)
		}
	}
	if err := schema.Default(full); err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(full, &d.Cluster); err != nil {
		t.Fatal(err)
	}
	return d
}
