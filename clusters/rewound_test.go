package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
)

// TestRewoundSourceIsTreatedAsUnread checks that a source whose revision does not descend from its applied revision is
// treated as unread, with all its declarations. Other sources are not affected.
func TestRewoundSourceIsTreatedAsUnread(t *testing.T) {
	follows := func(yes bool, err error) func(context.Context, string) (bool, error) {
		return func(_ context.Context, before string) (bool, error) {
			if before != "main@sha1:1" {
				t.Errorf("asked about %s", before)
			}
			return yes, err
		}
	}
	const fleet, shop = "https://host/fleet.git", "https://host/shop.git"
	const refused = "b c unread: main@sha1:2 of https://host/fleet.git is rejected: "
	for _, test := range []struct {
		name    string
		follows func(context.Context, string) (bool, error)
		signed  bool
		// namespaces are the namespaces in which fleet may declare clusters.
		namespaces []string
		// with modifies the existing cluster ns/a, which fleet declared at main@sha1:1.
		with func(*v1alpha1.EtcdCluster)
		// declares is the list of clusters that fleet declares, ns/a by default.
		declares string
		want     string
	}{
		{name: "descends from the applied revision", follows: follows(true, nil), want: "a b c"},
		{name: "does not descend", follows: follows(false, nil), want: refused + "it does not descend from main@sha1:1, which was applied last. Git was rewound, its history was rewritten, or a different branch or repository was read. " +
			"Push a commit on top of the applied commit, or run once with --allow-non-fast-forward"},
		{name: "does not descend, declares another cluster", follows: follows(false, nil), declares: "ns/d", want: refused + "it does not descend from"},
		{name: "does not descend, declares no clusters", follows: follows(false, nil), declares: " ", want: refused + "it does not descend from"},
		{name: "ancestry is unknown", follows: follows(false, errors.New("the history is incomplete")),
			want: "a b c (cannot tell whether main@sha1:2 of https://host/fleet.git descends from main@sha1:1, which was applied last: the history is incomplete)"},
		{name: "ancestry is unknown, signature is required", follows: follows(false, errors.New("429 Too Many Requests")), signed: true,
			want: refused + "it must be signed, and it is not known whether it descends from main@sha1:1, which was applied last: 429 Too Many Requests. " +
				"Provide the full history, or run once with --allow-non-fast-forward"},
		{name: "revision no longer exists", follows: follows(false, fmt.Errorf("%w: it does not exist", reconcile.ErrGone)),
			want: refused + "the source no longer contains this revision, so it is not known whether it descends from main@sha1:1, which was applied last. The next pass reads the revision that replaced it"},
		{name: "ancestry is not checked", want: "a b c"},
		{name: "declared cluster has no recorded source", follows: follows(false, nil), with: func(c *v1alpha1.EtcdCluster) { c.Status.DeclaredSource = "" },
			want: refused + "it does not descend from"},
		{name: "undeclared cluster has no recorded source", follows: follows(false, nil), declares: "ns/d",
			with: func(c *v1alpha1.EtcdCluster) { c.Status.DeclaredSource = "" }, want: "d b c"},
		{name: "previously declared at a different path", follows: follows(false, nil), with: func(c *v1alpha1.EtcdCluster) { c.Status.DeclaredSource = fleet + ",path=x" },
			want: refused + "it does not descend from"},
		{name: "previously declared at a different URL", follows: follows(false, nil), with: func(c *v1alpha1.EtcdCluster) { c.Status.DeclaredSource = "git@host:fleet.git" },
			want: refused + "it does not descend from"},
		{name: "undeclared cluster of a different path", follows: follows(false, nil), declares: "ns/d",
			with: func(c *v1alpha1.EtcdCluster) { c.Status.DeclaredSource = fleet + ",path=x" }, want: "d b c"},
		{name: "recorded revision is not a commit", follows: follows(false, nil), with: func(c *v1alpha1.EtcdCluster) { c.Status.DeclaredRevision = "main@sha1:nonsense" }, want: "a b c"},
		{name: "cluster in a namespace not allowed", follows: follows(false, nil), declares: "ns/d", namespaces: []string{"other"}, want: "d b c"},
		{name: "previously declared by the other source", follows: follows(false, nil), with: func(c *v1alpha1.EtcdCluster) { c.Status.DeclaredSource = shop }, want: "a b c"},
		{name: "recorded revision is ambiguous", follows: follows(false, nil), with: func(c *v1alpha1.EtcdCluster) { c.Status.DeclaredRevision = "main@sha1:1 v2@sha1:7" }, want: "a b c"},
		{name: "orphan, source has a new revision", follows: follows(false, nil), declares: "ns/d", with: func(c *v1alpha1.EtcdCluster) {
			c.Status.DeclaredRevision, c.Status.SourceRevision = "main@sha1:0", "main@sha1:1"
		}, want: refused + "it does not descend from"},
		{name: "orphan, source is at the same revision", follows: follows(false, nil), declares: "ns/d", with: func(c *v1alpha1.EtcdCluster) {
			c.Status.SourceRevision = "main@sha1:2"
		}, want: "d b c"},
	} {
		t.Run(test.name, func(t *testing.T) {
			owned := inventory.ByCluster{}
			custom := &v1alpha1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Labels: objects.Labels("a")}}
			custom.Status.DeclaredSource, custom.Status.DeclaredRevision = fleet, "main@sha1:1"
			if test.with != nil {
				test.with(custom)
			}
			owned.At("ns", "a").Custom = custom
			desired := reconcile.Desired{Sources: []reconcile.SourceState{
				{Name: fleet, Revision: "main@sha1:2", Follows: test.follows, Signed: test.signed, Namespaces: test.namespaces}, {Name: shop, Revision: "other@sha1:2"},
			}}
			for _, declared := range []struct{ source, names, revision string }{{fleet, cmp.Or(test.declares, "ns/a"), "main@sha1:2"}, {shop, "ns/b ns/c", "other@sha1:2"}} {
				for name := range strings.FieldsSeq(declared.names) {
					d := reconcile.Declaration{Source: declared.source, Revision: declared.revision}
					d.Cluster.Namespace, d.Cluster.Name, _ = strings.Cut(name, "/")
					desired.Clusters = append(desired.Clusters, d)
				}
			}
			got := withoutRewound(t.Context(), desired, owned)
			if said := inWordsOf(got); said != test.want && !(strings.HasSuffix(test.want, "from") && strings.HasPrefix(said, test.want)) {
				t.Errorf("got %s", said)
			}
		})
	}
}

// TestHistoriesAreSearchedInParallel checks that slow searches in the histories of many sources take as long as the
// slowest one, and that their results do not depend on which one ends first.
func TestHistoriesAreSearchedInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owned, desired, want := inventory.ByCluster{}, reconcile.Desired{}, ""
		for i := range 10 {
			name := fmt.Sprintf("https://host/%d.git", i)
			custom := &v1alpha1.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint(i), Labels: objects.Labels(fmt.Sprint(i))}}
			custom.Status.DeclaredSource, custom.Status.DeclaredRevision = name, "main@sha1:1"
			owned.At("ns", custom.Name).Custom = custom
			desired.Sources = append(desired.Sources, reconcile.SourceState{Name: name, Revision: "main@sha1:2", Follows: func(context.Context, string) (bool, error) {
				time.Sleep(time.Duration(10-i) * time.Second)
				return false, errors.New("no route")
			}})
			want += fmt.Sprintf("(cannot tell whether main@sha1:2 of %s descends from main@sha1:1, which was applied last: no route) ", name)
		}
		begun := time.Now()
		got := inWordsOf(withoutRewound(t.Context(), desired, owned))
		if took := time.Since(begun); took != 10*time.Second || got+" " != want {
			t.Errorf("after %s, got %s", took, got)
		}
	})
}

// inWordsOf describes the declared clusters, the sources that could not be read, and the warnings.
func inWordsOf(desired reconcile.Desired) string {
	var words []string
	for _, d := range desired.Clusters {
		words = append(words, d.Cluster.Name)
	}
	if err := desired.Failure(); err != nil {
		words = append(words, "unread:", err.Error())
	}
	for _, w := range desired.Warnings {
		words = append(words, fmt.Sprintf("(%s)", w))
	}
	return strings.Join(words, " ")
}
