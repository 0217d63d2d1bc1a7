package clusters

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/kube/kubetest"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
)

// A source that is split by path is one source where a cluster may have got another name: what is
// there of one part keeps the other from founding while it is not known.
func TestNothingIsFoundedBesideTheUnlisted(t *testing.T) {
	l := listing{inventory: inventory{}, unlisted: map[string]error{"ns1": errors.New("forbidden")}}
	d := declare("ns2/a", "3.6.16")
	d.Source = "https://g/repo,path=y"
	desired := l.marked(reconcile.Desired{
		Clusters: []reconcile.Declaration{d},
		Sources: []reconcile.Place{
			{Name: "https://g/repo,path=x", Revision: "main@sha1:9", Namespaces: reconcile.Namespaces{"ns1"}},
			{Name: "https://g/repo,path=y", Revision: "main@sha1:9", Namespaces: reconcile.Namespaces{"ns2"}},
		},
	})
	targets, _ := targetsOf(desired, l.inventory)
	if err := l.unseen(targets[0], desired); err == nil || !strings.Contains(err.Error(), "nothing is founded") {
		t.Errorf("error %v", err)
	}
}

// Without the right to list NetworkPolicies, only clusters that declare one are not looked at.
func TestPoliciesMayBeHidden(t *testing.T) {
	client, err := kube.New(kubetest.Answering(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/networkpolicies") {
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "no right to"})
			return
		}
		_, _ = w.Write([]byte(`{"kind":"List","apiVersion":"v1","metadata":{},"items":[]}`))
	}))
	if err != nil {
		t.Fatal(err)
	}
	listed, err := New(client, Options{}).list(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var plain, guarded target
	guarded.cluster.Spec.NetworkPolicy = &v1alpha1.NetworkPolicySpec{}
	if err := listed.unseen(plain, reconcile.Desired{}); err != nil {
		t.Errorf("a cluster without a policy: %v", err)
	}
	if err := listed.unseen(guarded, reconcile.Desired{}); err == nil || !strings.Contains(err.Error(), "look at its NetworkPolicy: list NetworkPolicies: ") {
		t.Errorf("a cluster with a policy: %v", err)
	}
}

// Whoever may write to a namespace does not speak for a source that may declare nothing there.
func TestSourcesAreBelievedWhereTheyMayDeclare(t *testing.T) {
	desired := reconcile.Desired{Sources: []reconcile.Place{
		{Name: "https://g/shop,path=a", Namespaces: reconcile.Namespaces{"shop"}},
		{Name: "https://g/shop,path=b", Namespaces: reconcile.Namespaces{"shop", "shop-2"}},
		{Name: "https://g/bank", Namespaces: reconcile.Namespaces{"bank"}},
		{Name: "https://g/all"},
	}}
	for _, test := range []struct {
		source   string
		believed bool
	}{
		{"https://g/bank", false},
		{"https://g/bank,branch=next", false}, // known by its location
		{"https://g/shop,path=a", false},
		{"https://g/shop,path=b", true},
		{"https://g/shop", true},
		{"https://g/all", true},
		{"https://g/of-another-run", true},
		{"", true},
	} {
		i := inventory{}
		own := i.at("shop-2", "a")
		own.custom = &v1alpha1.EtcdCluster{}
		own.custom.Status.DeclaredSource, own.custom.Status.SourceRevision = test.source, "main@sha1:dead"
		i.disbelieve(desired)
		if got := own.custom.Status.SourceRevision != ""; got != test.believed {
			t.Errorf("%q: believed %t, want %t", test.source, got, test.believed)
		}
	}
}
