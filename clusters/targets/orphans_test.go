package targets

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// spec returns a spec with the given version.
func spec(version string) v1alpha1.EtcdClusterSpec {
	return v1alpha1.EtcdClusterSpec{Version: version, Lifecycle: v1alpha1.LifecycleRunning}
}

// declare returns a declaration of namespace/name. If what contains a cluster ID after a space, the declaration
// confirms that the cluster is new and exists in addition to the cluster with that ID.
func declare(what, version string) reconcile.Declaration {
	name, beside, _ := strings.Cut(what, " ")
	d := reconcile.Declaration{Cluster: v1alpha1.EtcdCluster{Spec: spec(version)}, Applied: map[string]any{}}
	d.Cluster.Namespace, d.Cluster.Name, _ = strings.Cut(name, "/")
	if beside != "" {
		d.Cluster.Annotations = map[string]string{v1alpha1.AnnotationConfirmNewCluster: beside}
	}
	return d
}

// copies returns the declaration of a cluster that is created with the data of the cluster with the given ID.
func copies(what, version, id string) reconcile.Declaration {
	d := declare(what, version)
	d.Cluster.Spec.Restore = &v1alpha1.RestoreSpec{From: v1alpha1.RestoreSource{Etcd: &v1alpha1.EtcdSource{ClusterID: id}}}
	return d
}

// copiesClaims is like copies, but the data is on the volumes of the stopped cluster.
func copiesClaims(what, version, id string) reconcile.Declaration {
	d := declare(what, version)
	d.Cluster.Spec.Restore = &v1alpha1.RestoreSpec{From: v1alpha1.RestoreSource{Claims: &v1alpha1.ClaimsSource{ClusterID: id}}}
	return d
}

// there adds a live custom resource with the given namespace/name, version and cluster ID. said is the message of its
// Orphaned condition.
func there(i inventory.ByCluster, what, version, id, said string) {
	namespace, name, _ := strings.Cut(what, "/")
	custom := &v1alpha1.EtcdCluster{Spec: spec(version)}
	custom.Namespace, custom.Name, custom.Labels = namespace, name, objects.Labels(name)
	custom.Status.ClusterID = id
	if said != "" {
		meta.SetStatusCondition(&custom.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionOrphaned, Status: metav1.ConditionTrue, Message: said})
	}
	i.At(namespace, name).Custom = custom
}

// adopts returns the declaration of a cluster that adopts the cluster with the given ID.
func adopts(what, version, id string) reconcile.Declaration {
	d := declare(what, version)
	d.Cluster.Spec.Adopt = &v1alpha1.AdoptionSpec{ClusterID: id}
	return d
}

func describeTargets(targets []Target) string {
	var b strings.Builder
	for _, t := range targets {
		fmt.Fprintf(&b, "%s applied=%t", t.Key(), t.Applied != nil)
		for _, fact := range []struct{ name, text string }{{"orphaned", t.Orphaned}, {"held", t.Held}, {"renamed from", t.RenamedFrom}} {
			if fact.text != "" {
				fmt.Fprintf(&b, " %s: %s", fact.name, fact.text)
			}
		}
		if t.Elsewhere {
			b.WriteString(" elsewhere")
		}
		if t.Orphaned == "" && t.Applied == nil && len(t.Problems) > 0 {
			fmt.Fprintf(&b, " problems: %s", strings.Join(t.Problems, ", "))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func first(targets []Target, _ []report.Removal) []Target { return targets }

func TestOrphans(t *testing.T) {
	const old, dropped = "3.5.30", "main@sha1:1 no longer declares it"
	type live struct{ what, version, id, said string }
	tests := []struct {
		name      string
		live      []live
		declared  []reconcile.Declaration
		problems  []report.Problem
		unfetched bool
		// namespaces are the namespaces in which the sources may declare clusters.
		namespaces []string
		want       string
	}{
		{
			name: "declared", live: []live{{"ns/a", old, "c1", ""}}, declared: []reconcile.Declaration{declare("ns/a", "3.6.16")},
			want: "ns/a applied=true\n",
		},
		{
			name: "declared again", live: []live{{"ns/a", old, "c1", dropped}}, declared: []reconcile.Declaration{declare("ns/a", "3.6.16")},
			want: "ns/a applied=true\n",
		},
		{
			name: "no longer declared", live: []live{{"ns/a", old, "c1", ""}},
			want: "ns/a applied=false orphaned: main@sha1:9 no longer declares it\n",
		},
		{
			name: "already orphaned", live: []live{{"ns/a", old, "c1", dropped}},
			want: "ns/a applied=false orphaned: main@sha1:1 no longer declares it\n",
		},
		{
			name: "manifest is invalid", live: []live{{"ns/a", old, "c1", dropped}}, problems: []report.Problem{{Cluster: "ns/a", Message: "spec.versoin: unknown"}},
			want: "ns/a applied=false problems: spec.versoin: unknown\n",
		},
		{
			name: "problem that may affect the cluster", live: []live{{"ns/a", old, "c1", ""}, {"ns/b", old, "c2", dropped}},
			problems: []report.Problem{{File: "x.yaml", Message: "not YAML"}},
			want:     "ns/a applied=false problems: x.yaml: not YAML\nns/b applied=false orphaned: main@sha1:1 no longer declares it\n",
		},
		{
			name: "source not fetched", live: []live{{"ns/a", old, "c1", ""}, {"ns/b", old, "c2", dropped}}, unfetched: true,
			want: "ns/a applied=false\nns/b applied=false orphaned: main@sha1:1 no longer declares it\n",
		},
		{
			name: "one of two sources not fetched", live: []live{{"ns/a", old, "c1", ""}, {"other/b", old, "c2", ""}}, unfetched: true,
			declared: []reconcile.Declaration{declare("ns/a", "3.6.16")},
			want:     "ns/a applied=true\nother/b applied=false\n",
		},
		{
			name: "possibly renamed, one source not fetched", live: []live{{"ns/b", old, "c2", ""}}, unfetched: true,
			declared: []reconcile.Declaration{declare("ns/a", old)},
			want:     "ns/a applied=true renamed from: ns/b (cluster c2)\nns/b applied=false\n",
		},
		{
			name: "in a namespace outside the sources", live: []live{{"ns/a", old, "c1", ""}, {"other/b", old, "c2", ""}},
			namespaces: []string{"ns", "more"},
			want:       "ns/a applied=false orphaned: main@sha1:9 no longer declares it\n",
		},
		{
			name: "renamed and changed", live: []live{{"ns/a", old, "c1", ""}}, declared: []reconcile.Declaration{declare("ns/b", "3.6.16")},
			want: "ns/a applied=false orphaned: main@sha1:9 no longer declares it; it may now be ns/b\nns/b applied=true renamed from: ns/a (cluster c1)\n",
		},
		{
			name: "renamed and copied", live: []live{{"ns/a", old, "c1", ""}}, declared: []reconcile.Declaration{copies("ns/b", "3.6.16", "00c1")},
			want: "ns/a applied=false orphaned: main@sha1:9 no longer declares it\nns/b applied=true\n",
		},
		{
			name: "renamed and copied from its volumes", live: []live{{"ns/a", old, "c1", ""}}, declared: []reconcile.Declaration{copiesClaims("ns/b", "3.6.16", "00c1")},
			want: "ns/a applied=false orphaned: main@sha1:9 no longer declares it\nns/b applied=true\n",
		},
		{
			name: "renamed, but a different cluster is copied", live: []live{{"ns/a", old, "c1", ""}}, declared: []reconcile.Declaration{copies("ns/b", "3.6.16", "c2")},
			want: "ns/a applied=false orphaned: main@sha1:9 no longer declares it; it may now be ns/b\nns/b applied=true renamed from: ns/a (cluster c1)\n",
		},
		{
			name: "renamed and adopted", live: []live{{"ns/a", old, "c1", ""}}, declared: []reconcile.Declaration{adopts("ns/b", "3.6.16", "00c1")},
			want: "ns/a applied=false orphaned: main@sha1:9 no longer declares it\nns/b applied=true\n",
		},
		{
			name: "renamed, but a different cluster is adopted", live: []live{{"ns/a", old, "c1", ""}}, declared: []reconcile.Declaration{adopts("ns/b", "3.6.16", "c2")},
			want: "ns/a applied=false orphaned: main@sha1:9 no longer declares it; it may now be ns/b\nns/b applied=true renamed from: ns/a (cluster c1)\n",
		},
		{
			name: "moved and changed", live: []live{{"ns/a", old, "c1", ""}}, declared: []reconcile.Declaration{declare("new/a", "3.6.16")},
			want: "new/a applied=true renamed from: ns/a (cluster c1)\nns/a applied=false orphaned: main@sha1:9 no longer declares it; it may now be new/a\n",
		},
		{
			name: "renamed at an earlier revision", live: []live{{"ns/a", old, "c1", dropped + "; it may now be ns/b"}}, declared: []reconcile.Declaration{declare("ns/b", "3.6.16")},
			want: "ns/a applied=false orphaned: main@sha1:1 no longer declares it; it may now be ns/b\nns/b applied=true renamed from: ns/a (cluster c1)\n",
		},
		{
			name: "orphaned at an earlier revision", live: []live{{"ns/a", old, "c1", dropped}}, declared: []reconcile.Declaration{declare("ns/b", "3.6.16")},
			want: "ns/a applied=false orphaned: main@sha1:1 no longer declares it\nns/b applied=true\n",
		},
		{
			name: "moved and renamed, spec unchanged", live: []live{{"ns/a", old, "c1", dropped}}, declared: []reconcile.Declaration{declare("new/b", old)},
			want: "new/b applied=true renamed from: ns/a (cluster c1)\nns/a applied=false orphaned: main@sha1:1 no longer declares it; it may now be new/b\n",
		},
		{
			name: "moved, renamed and changed", live: []live{{"ns/a", old, "c1", ""}}, declared: []reconcile.Declaration{declare("new/b", "3.6.16")},
			want: "new/b applied=true\nns/a applied=false orphaned: main@sha1:9 no longer declares it\n",
		},
		{
			name: "new cluster is intentional", live: []live{{"ns/a", old, "c1", ""}, {"ns/b", old, "c2", ""}}, declared: []reconcile.Declaration{declare("ns/c c1, c2", old)},
			want: "ns/a applied=false orphaned: main@sha1:9 no longer declares it\nns/b applied=false orphaned: main@sha1:9 no longer declares it\nns/c applied=true\n",
		},
		{
			name: "new cluster is intentional for one only", live: []live{{"ns/a", old, "c1", ""}, {"ns/b", old, "c2", ""}}, declared: []reconcile.Declaration{declare("ns/c c1", old)},
			want: "ns/a applied=false orphaned: main@sha1:9 no longer declares it\n" +
				"ns/b applied=false orphaned: main@sha1:9 no longer declares it; it may now be ns/c\nns/c applied=true renamed from: ns/b (cluster c2)\n",
		},
		{
			name: "cluster never formed", live: []live{{"ns/a", old, "", ""}}, declared: []reconcile.Declaration{declare("ns/b", old)},
			want: "ns/a applied=false orphaned: main@sha1:9 no longer declares it\nns/b applied=true\n",
		},
		{
			name: "existing cluster was not renamed", live: []live{{"ns/a", old, "c1", ""}, {"ns/b", old, "c2", ""}}, declared: []reconcile.Declaration{declare("ns/b", old)},
			want: "ns/a applied=false orphaned: main@sha1:9 no longer declares it\nns/b applied=true\n",
		},
		{
			name: "renamed, problem may affect the old name", live: []live{{"ns/a", old, "c1", ""}},
			declared: []reconcile.Declaration{declare("ns/b", "3.6.16")}, problems: []report.Problem{{File: "x.yaml", Message: "not YAML"}},
			want: "ns/a applied=false problems: x.yaml: not YAML\nns/b applied=true renamed from: ns/a (cluster c1)\n",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			owned := inventory.ByCluster{}
			for _, l := range test.live {
				there(owned, l.what, l.version, l.id, l.said)
			}
			// Whether a removal is intended is tested by TestRemovals.
			desired := reconcile.Desired{
				Revision: "main@sha1:9", Confirmed: []string{"9"}, Clusters: test.declared, Problems: test.problems, Namespaces: test.namespaces,
			}
			if test.unfetched {
				desired.Unread = errors.New("no answer")
			}
			if got := describeTargets(first(Of(desired, owned))); got != test.want {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
		})
	}
}

// TestRenameIsDetectedWithinOneSource checks that a cluster is considered renamed only if the new cluster is declared
// by the same source, at any path.
func TestRenameIsDetectedWithinOneSource(t *testing.T) {
	for _, test := range []struct {
		name, before, now string
		places            []string
		want              bool
	}{
		{"same source", fleet, fleet, []string{fleet, shop}, true},
		{"different source", fleet, shop, []string{fleet, shop}, false},
		{"source of a different run", fleet, shop, []string{shop}, false},
		{"different path", fleet + ",path=a", fleet + ",path=b", []string{fleet + ",path=b", shop}, true},
		{"path of another tenant", fleet + ",path=a", fleet + ",path=b", []string{fleet + ",path=a", fleet + ",path=b"}, false},
		{"source unknown, one source configured", "", fleet, []string{fleet}, true},
		{"source unknown, two sources configured", "", fleet, []string{fleet, shop}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			owned := inventory.ByCluster{}
			there(owned, "ns/a", "3.5.30", "c1", "")
			owned.At("ns", "a").Custom.Status.DeclaredSource = test.before
			declared := declare("ns/b", "3.5.30")
			declared.Source = test.now
			desired := reconcile.Desired{Clusters: []reconcile.Declaration{declared}}
			for _, name := range test.places {
				desired.Sources = append(desired.Sources, reconcile.SourceState{Name: name, Revision: "main@sha1:9"})
			}
			got := describeTargets(first(Of(desired, owned)))
			if strings.Contains(got, "renamed from") != test.want || strings.Contains(got, "it may now be ns/b") && !test.want {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

// TestUnmanagedClustersAreNotOrphans checks that clusters that Quorate does not manage are not orphans.
func TestUnmanagedClustersAreNotOrphans(t *testing.T) {
	owned := inventory.ByCluster{}
	there(owned, "ns/a", "3.6.16", "c1", "")
	owned.At("ns", "a").Custom.Labels = nil
	for _, unread := range []error{nil, errors.New("no answer")} {
		if got := first(Of(reconcile.Desired{Unread: unread}, owned)); len(got) != 0 {
			t.Errorf("unread %v: got\n%s", unread, describeTargets(got))
		}
	}
}

// recorded adds a cluster's record.
func recorded(i inventory.ByCluster, cluster, record string) {
	own := i.At("ns", cluster)
	own.Applied, own.HasConfigMap, own.Record = 1, true, record
}

// TestRenameIsDetectedFromRecord checks that a rename is detected from the record, which contains the cluster ID before
// the status does.
func TestRenameIsDetectedFromRecord(t *testing.T) {
	owned := inventory.ByCluster{}
	there(owned, "ns/a", "3.6.16", "", "")
	recorded(owned, "a", "token: t\nclusterID: c1\n")
	got := describeTargets(first(Of(reconcile.Desired{Revision: "r", Confirmed: []string{"r"}, Clusters: []reconcile.Declaration{declare("ns/b", "3.6.16")}}, owned)))
	if !strings.Contains(got, "renamed from: ns/a (cluster c1)") {
		t.Errorf("got\n%s", got)
	}
}

// TestLiveSourceDeclaresAllClusters checks that, if the custom resources are the source, all of them count as declared,
// regardless of who created them, and nothing is applied to them.
func TestLiveSourceDeclaresAllClusters(t *testing.T) {
	owned := inventory.ByCluster{}
	there(owned, "ns/a", "3.6.16", "c1", "main@sha1:1 no longer declares it")
	there(owned, "other/b", "3.6.16", "c2", "")
	heldBefore(owned, "other/b", "main@sha1:1 no longer declares it")
	owned.At("other", "b").Custom.Labels = nil
	for _, p := range owned {
		p.Custom.Spec.Etcd = v1alpha1.EtcdOptions{HeartbeatInterval: "100ms", ElectionTimeout: "1s"}
	}
	owned.At("other", "b").Custom.Spec.Etcd.Options = map[string]v1alpha1.OptionValue{"data-dir": "/elsewhere"}
	recorded(owned, "gone", "token: t\nclusterID: c1\n")
	got := describeTargets(first(Of(reconcile.Desired{Live: true}, owned)))
	if want := "ns/a applied=false\nother/b applied=false problems: spec.etcd.options.data-dir is not supported"; !strings.HasPrefix(got, want) {
		t.Errorf("got\n%swant\n%s…", got, want)
	}
}

// TestSpecThatWasNotApplied checks that without a source, a spec that the last pass could not apply is reported, and
// that a pass that reads a source judges the spec itself.
func TestSpecThatWasNotApplied(t *testing.T) {
	for _, test := range []struct {
		name, rule string
		desired    reconcile.Desired
		want       string
	}{
		{"no source is read", decide.InvalidSpec, reconcile.Desired{Live: true, Unread: reconcile.ErrNotAsked}, "the newest spec was not applied, as of the last pass: spec.version: why"},
		{"no source is read, other block", "ForeignObjects", reconcile.Desired{Live: true, Unread: reconcile.ErrNotAsked}, ""},
		{"the resource is the source", decide.InvalidSpec, reconcile.Desired{Live: true}, ""},
		{"git is the source", decide.InvalidSpec, reconcile.Desired{Clusters: []reconcile.Declaration{declare("ns/a", "3.6.16")}}, ""},
		{"git cannot be read", decide.InvalidSpec, reconcile.Desired{Unread: errors.New("no answer")}, ""},
	} {
		owned := inventory.ByCluster{}
		there(owned, "ns/a", "3.6.16", "c1", "")
		meta.SetStatusCondition(&owned.At("ns", "a").Custom.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: test.rule, Message: "spec.version: why"})
		got, _ := Of(test.desired, owned)
		if problems := strings.Join(got[0].Problems, "; "); strings.Contains(problems, "spec.version") != (test.want != "") || !strings.Contains(problems, test.want) {
			t.Errorf("%s: %q, want %q", test.name, problems, test.want)
		}
	}
}
