package clusters

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/kube/kubetest"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
)

// TestUnlistedPathBlocksBootstrap checks that, in a source that is split by path, nothing is bootstrapped in one part
// while the other part cannot be listed. Both parts are one source, so a cluster may have moved between them under a
// new name.
func TestUnlistedPathBlocksBootstrap(t *testing.T) {
	l := listing{inventory: inventory.ByCluster{}, unlisted: map[string]error{"ns1": errors.New("forbidden")}}
	d := reconcile.Declaration{Source: "https://g/repo,path=y"}
	d.Cluster.Namespace, d.Cluster.Name = "ns2", "a"
	desired := l.marked(reconcile.Desired{
		Clusters: []reconcile.Declaration{d},
		Sources: []reconcile.SourceState{
			{Name: "https://g/repo,path=x", Revision: "main@sha1:9", Namespaces: reconcile.Namespaces{"ns1"}},
			{Name: "https://g/repo,path=y", Revision: "main@sha1:9", Namespaces: reconcile.Namespaces{"ns2"}},
		},
	})
	list, _ := targets.Of(desired, l.inventory)
	if err := l.unseen(list[0], desired); err == nil || !strings.Contains(err.Error(), "it is not bootstrapped") {
		t.Errorf("error %v", err)
	}
}

// TestMissingListRights checks that, without the right to list NetworkPolicies, only clusters that declare a
// NetworkPolicy cannot be observed. Without the right to list CronJobs, a cluster is processed without its backups, and
// the missing right is reported.
func TestMissingListRights(t *testing.T) {
	client, err := kube.New(kubetest.Answering(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/networkpolicies") || strings.HasSuffix(r.URL.Path, "/cronjobs") {
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "no right to"})
			return
		}
		_, _ = w.Write([]byte(`{"kind":"List","apiVersion":"v1","metadata":{},"items":[]}`))
	}))
	if err != nil {
		t.Fatal(err)
	}
	listed, err := New(client, Options{}).list(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var plain, guarded, backedUp targets.Target
	backedUp.Cluster.Spec.Backup = &v1alpha1.BackupSpec{}
	guarded.Cluster.Spec.NetworkPolicy = &v1alpha1.NetworkPolicySpec{}
	if err := listed.unseen(plain, reconcile.Desired{}); err != nil {
		t.Errorf("a cluster without a policy: %v", err)
	}
	if err := listed.unseen(guarded, reconcile.Desired{}); err == nil || !strings.Contains(err.Error(), "read its NetworkPolicy: list NetworkPolicies: ") {
		t.Errorf("a cluster with a policy: %v", err)
	}
	if err := listed.unseen(backedUp, reconcile.Desired{}); err != nil {
		t.Errorf("a cluster with backups: %v", err)
	}
	c := &cluster{live: New(client, Options{BackupImage: "quorate:v1"}), target: backedUp, own: &inventory.Cluster{}, hiddenBackups: listed.hiddenIn("").Backups}
	c.findBackups()
	if c.state.Backups.Hidden == "" || len(c.state.Unseen) != 1 || c.backupImage() != "" {
		t.Errorf("%+v, unseen %q", c.state.Backups, c.state.Unseen)
	}
}

// TestUnlistableNamespaceIsReported checks that clusters in a namespace that cannot be listed are not treated as
// deleted.
func TestUnlistableNamespaceIsReported(t *testing.T) {
	forbidding, lists := &listServer{t: t, forbids: "pods"}, &listServer{t: t, clusters: []string{"a"}}
	client, err := kube.New(kubetest.Answering(t, func(w http.ResponseWriter, r *http.Request) {
		server := lists
		if strings.Contains(r.URL.Path, "/namespaces/other/") {
			server = forbidding
		}
		server.ServeHTTP(w, r)
	}))
	if err != nil {
		t.Fatal(err)
	}
	r := &reconcile.Reconciler{Source: nowhere{}, Live: New(client, Options{Namespaces: []string{"ns", "other"}, Reading: true}), Log: slog.New(slog.DiscardHandler), Plan: true}
	if rep := r.Pass(t.Context()); len(rep.Clusters) != 1 || rep.Error == "" || !slices.Equal(rep.UnlistedIn, []string{"other"}) {
		t.Errorf("%d clusters, error %q, unlisted namespaces %q", len(rep.Clusters), rep.Error, rep.UnlistedIn)
	}
}

// nowhere is a source without declarations: the custom resources are the source.
type nowhere struct{ reconcile.Source }

func (nowhere) Fetch(context.Context, func(reconcile.Desired)) reconcile.Desired {
	return reconcile.Desired{Live: true}
}
