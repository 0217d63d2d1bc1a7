package clusters

import (
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/kube/kubetest"
	"quorate.dev/quorate/reconcile"
)

// TestNew checks that the limits of a run are passed to the code that enforces them.
func TestNew(t *testing.T) {
	one := 1
	l := New(nil, Options{MaxDeletions: &one, Timeout: 3 * time.Second})
	if l.deletions.Most == nil || *l.deletions.Most != one || l.etcd.Timeout != 3*time.Second {
		t.Errorf("deletions %v, timeout %s", l.deletions.Most, l.etcd.Timeout)
	}
}

// TestUndeclaredQuotaIsSetOnObserve checks that a quota that is not declared is determined before any decision, because
// pods are created with it.
func TestUndeclaredQuotaIsSetOnObserve(t *testing.T) {
	client, err := kube.New(kubetest.Answering(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"List","apiVersion":"v1","metadata":{},"items":[]}`))
	}))
	if err != nil {
		t.Fatal(err)
	}
	d := reconcile.Declaration{Source: "https://g/repo"}
	d.Cluster.Namespace, d.Cluster.Name = "ns", "a"
	d.Cluster.Spec.Storage.Size = resource.MustParse("1Gi")
	observed, err := New(client, Options{}).Observe(t.Context(), reconcile.Desired{
		Clusters: []reconcile.Declaration{d}, Sources: []reconcile.SourceState{{Name: d.Source, Revision: "main@sha1:9"}},
	}, nil)
	if err != nil || len(observed.Clusters) != 1 {
		t.Fatalf("%+v, %v", observed, err)
	}
	state, err := observed.Clusters[0].State(t.Context())
	if quota := state.Declared.Quota; quota != 512<<20 {
		t.Errorf("%d, %v", quota, err)
	}
}
