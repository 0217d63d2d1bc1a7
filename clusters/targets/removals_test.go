package targets

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

const fleet, shop = "https://host/fleet.git", "https://host/shop.git"

// situation parses candidates. Each field consists of a source, a colon, and one letter per cluster: d is declared, u
// is undeclared, h is undeclared and was held before, and H was held before and is declared again.
func situation(text string) []candidate {
	var list []candidate
	for field := range strings.FieldsSeq(text) {
		at := strings.LastIndex(field, ":")
		for _, letter := range field[at+1:] {
			list = append(list, candidate{group: group{source: field[:at]}, declared: strings.ContainsRune("dH", letter), held: strings.ContainsRune("hH", letter)})
		}
	}
	return list
}

func TestJudge(t *testing.T) {
	for _, test := range []struct {
		name, clusters string
		places         []string
		nothing        bool // nothing is declared
		want           string
	}{
		{name: "one of many", clusters: fleet + ":uddd", places: []string{fleet}, want: fleet + " dropped"},
		{name: "one of two", clusters: fleet + ":ud", places: []string{fleet}, want: fleet + " dropped"},
		{name: "two of three", clusters: fleet + ":uud", places: []string{fleet}, want: fleet + " held"},
		{name: "three of five", clusters: fleet + ":uuudd", places: []string{fleet}, want: fleet + " held"},
		{name: "the only cluster", clusters: fleet + ":u", places: []string{fleet}, nothing: true, want: fleet + " held"},
		{name: "all replaced by other clusters", clusters: fleet + ":uuu", places: []string{fleet}, want: fleet + " held"},
		{name: "all exist and are declared", clusters: fleet + ":ddd", places: []string{fleet}, want: fleet + " dropped"},

		{name: "some held before, many new clusters", clusters: fleet + ":hhdddddddd", places: []string{fleet}, want: fleet + " held"},
		{name: "one more while some are held", clusters: fleet + ":hhhuddd", places: []string{fleet}, want: fleet + " held"},
		{name: "held before, declared again", clusters: fleet + ":HHu", places: []string{fleet}, want: fleet + " dropped"},

		{name: "all of one of two sources", clusters: fleet + ":dddddd " + shop + ":uu", places: []string{fleet, shop}, want: fleet + " dropped\n" + shop + " held"},
		{name: "one of each of two sources", clusters: fleet + ":uddd " + shop + ":ud", places: []string{fleet, shop}, want: fleet + " dropped\n" + shop + " dropped"},

		{name: "source unknown", clusters: ":uuud", places: []string{fleet}, want: " held"},
		{name: "another team's repository", clusters: fleet + ":dd " + shop + ":uuu", places: []string{fleet}, want: fleet + " dropped\n" + shop + " elsewhere"},
		{name: "another team's, no clusters of this run yet", clusters: shop + ":uuu", places: []string{fleet}, want: shop + " elsewhere"},
		{name: "different source, nothing declared", clusters: shop + ":uuu", places: []string{fleet}, nothing: true, want: shop + " held"},
		{name: "different source, declares clusters later", clusters: shop + ":huu " + fleet + ":d", places: []string{fleet}, want: fleet + " dropped\n" + shop + " held"},
		{name: "all but one moved to another source", clusters: shop + ":dddu", places: []string{fleet}, want: shop + " dropped"},
		{name: "only one moved to another source", clusters: shop + ":duuu", places: []string{fleet}, want: shop + " held"},

		{name: "different path, nothing declared", clusters: fleet + ",path=a:uu", places: []string{fleet + ",path=b"}, nothing: true, want: fleet + ",path=a held"},
		{name: "different path, other clusters declared", clusters: fleet + ",path=a:uu", places: []string{fleet + ",path=b"}, want: fleet + ",path=a held"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var places []reconcile.SourceState
			for _, name := range test.places {
				places = append(places, reconcile.SourceState{Name: name})
			}
			names := map[fate]string{dropped: "dropped", held: "held", elsewhere: "elsewhere"}
			var got []string
			fates := judge(situation(test.clusters), places, !test.nothing)
			for _, source := range []string{"", fleet, fleet + ",path=a", shop} {
				if f, ok := fates[group{source: source}]; ok {
					got = append(got, source+" "+names[f])
				}
			}
			if got := strings.Join(got, "\n"); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestConfirms(t *testing.T) {
	for _, test := range []struct {
		confirmed, revision string
		want                bool
	}{
		{"main@sha1:1", "main@sha1:1", true},
		{"1", "main@sha1:1", true},
		{"release@sha1:1", "main@sha1:1", true},
		{"main@sha1:1", "main@sha1:2", false},
		{"", "main@sha1:2", false},
		{"1 2", "main@sha1:1 main@sha1:2", true},
		{"1", "main@sha1:1 main@sha1:2", false},
		{"directory", "directory", true},
		{"directory", "main@sha1:1", false},
		{"1", "", false},
	} {
		if got := confirms(strings.Fields(test.confirmed), test.revision); got != test.want {
			t.Errorf("%q confirms %q: %v", test.confirmed, test.revision, got)
		}
	}
}

// declaredBy adds live custom resources that were last declared by source.
func declaredBy(i inventory.ByCluster, source string, clusters ...string) {
	for _, what := range clusters {
		there(i, what, "3.5.30", "", "")
		namespace, name, _ := strings.Cut(what, "/")
		i.At(namespace, name).Custom.Status.DeclaredSource = source
	}
}

// heldBefore sets the condition of a cluster whose removal an earlier pass has held.
func heldBefore(i inventory.ByCluster, what, said string) {
	namespace, name, _ := strings.Cut(what, "/")
	meta.SetStatusCondition(&i.At(namespace, name).Custom.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionRemovalHeld, Status: metav1.ConditionTrue, Message: said})
}

func describeRemovals(targets []Target, removals []report.Removal) string {
	text := describeTargets(targets)
	for _, r := range removals {
		text += fmt.Sprintf("removal: %s\n", r)
	}
	return text
}

// TestRemovals checks that clusters that a source no longer declares are kept as last applied as long as the removal
// may be a mistake.
func TestRemovals(t *testing.T) {
	tests := []struct {
		name string
		// with, if set, modifies the existing clusters: ns/a and ns/b, declared by fleet, and other/c, declared by
		// shop.
		with      func(inventory.ByCluster)
		declared  string
		confirmed string
		problems  []report.Problem
		desired   func(*reconcile.Desired)
		want      string
	}{
		{name: "all are declared", declared: "ns/a ns/b other/c", want: "ns/a applied=true\nns/b applied=true\nother/c applied=true\n"},
		{
			name: "half of one source", declared: "ns/a other/c",
			want: "ns/a applied=true\nns/b applied=false orphaned: main@sha1:9 no longer declares it\nother/c applied=true\n",
		},
		{
			name: "all of one source", declared: "other/c",
			want: "ns/a applied=false held: main@sha1:9 no longer declares it\nns/b applied=false held: main@sha1:9 no longer declares it\nother/c applied=true\n" +
				"removal: main@sha1:9 no longer declares 2 of 2 clusters of https://host/fleet.git: ns/a, ns/b\n",
		},
		{
			name: "all of one source, different revision confirmed", declared: "other/c", confirmed: "8",
			want: "ns/a applied=false held: main@sha1:9 no longer declares it\nns/b applied=false held: main@sha1:9 no longer declares it\nother/c applied=true\n" +
				"removal: main@sha1:9 no longer declares 2 of 2 clusters of https://host/fleet.git: ns/a, ns/b\n",
		},
		{
			name: "all of one source, revision confirmed", declared: "other/c", confirmed: "main@sha1:9",
			want: "ns/a applied=false orphaned: main@sha1:9 no longer declares it\nns/b applied=false orphaned: main@sha1:9 no longer declares it\nother/c applied=true\n",
		},
		{
			name: "all of both sources", declared: "",
			want: "ns/a applied=false held: main@sha1:9 no longer declares it\nns/b applied=false held: main@sha1:9 no longer declares it\n" +
				"other/c applied=false held: v2@sha1:7 no longer declares it\n" +
				"removal: main@sha1:9 no longer declares 2 of 2 clusters of https://host/fleet.git: ns/a, ns/b\n" +
				"removal: v2@sha1:7 no longer declares 1 of 1 cluster of https://host/shop.git: other/c\n",
		},
		{
			name: "two removed, one added", declared: "ns/a ns/new other/c", with: func(i inventory.ByCluster) { declaredBy(i, fleet, "ns/more") },
			want: "ns/a applied=true\n" +
				"ns/b applied=false held: main@sha1:9 no longer declares it\nns/more applied=false held: main@sha1:9 no longer declares it\nns/new applied=true\nother/c applied=true\n" +
				"removal: main@sha1:9 no longer declares 2 of 3 clusters of https://host/fleet.git: ns/b, ns/more\n",
		},
		{
			name: "held at an earlier revision", declared: "other/c", with: func(i inventory.ByCluster) { heldBefore(i, "ns/a", "main@sha1:5 no longer declares it") },
			want: "ns/a applied=false held: main@sha1:5 no longer declares it\nns/b applied=false held: main@sha1:9 no longer declares it\nother/c applied=true\n" +
				"removal: main@sha1:5 no longer declares 1 of 2 clusters of https://host/fleet.git: ns/a\n" +
				"removal: main@sha1:9 no longer declares 1 of 2 clusters of https://host/fleet.git: ns/b\n",
		},
		{
			name: "held before, earlier revision confirmed", declared: "ns/b other/c", confirmed: "main@sha1:5",
			with: func(i inventory.ByCluster) { heldBefore(i, "ns/a", "main@sha1:5 no longer declares it") },
			want: "ns/a applied=false orphaned: main@sha1:5 no longer declares it\nns/b applied=true\nother/c applied=true\n",
		},
		{
			name: "held before, current revision confirmed", declared: "ns/b other/c", confirmed: "9",
			with: func(i inventory.ByCluster) { heldBefore(i, "ns/a", "main@sha1:5 no longer declares it") },
			want: "ns/a applied=false orphaned: main@sha1:5 no longer declares it\nns/b applied=true\nother/c applied=true\n",
		},
		{
			name: "held before, another removal allowed", declared: "ns/b ns/c other/c",
			with: func(i inventory.ByCluster) {
				declaredBy(i, fleet, "ns/c", "ns/d")
				heldBefore(i, "ns/a", "main@sha1:5 no longer declares it")
			},
			confirmed: "5",
			want: "ns/a applied=false orphaned: main@sha1:5 no longer declares it\nns/b applied=true\nns/c applied=true\n" +
				"ns/d applied=false orphaned: main@sha1:9 no longer declares it\nother/c applied=true\n",
		},
		{
			name: "held before, declared again", declared: "ns/a ns/b other/c", with: func(i inventory.ByCluster) { heldBefore(i, "ns/a", "main@sha1:5 no longer declares it") },
			want: "ns/a applied=true\nns/b applied=true\nother/c applied=true\n",
		},
		{
			name: "earlier orphans do not count", declared: "other/c", with: func(i inventory.ByCluster) {
				there(i, "ns/a", "3.5.30", "", "main@sha1:1 no longer declares it")
				there(i, "ns/b", "3.5.30", "", "main@sha1:2 no longer declares it")
			},
			want: "ns/a applied=false orphaned: main@sha1:1 no longer declares it\nns/b applied=false orphaned: main@sha1:2 no longer declares it\nother/c applied=true\n",
		},
		{
			name: "deleted clusters may be removed", declared: "ns/b", with: func(i inventory.ByCluster) {
				i.At("other", "c").Custom.Spec.Lifecycle = v1alpha1.LifecycleDeleted
				delete(i, inventory.Key{Namespace: "ns", Name: "a"})
			},
			want: "ns/b applied=true\nother/c applied=false orphaned: v2@sha1:7 no longer declares it\n",
		},
		{
			name: "invalid manifest counts as declared", declared: "other/c", problems: []report.Problem{{Cluster: "ns/a", Message: "spec.versoin: unknown"}},
			want: "ns/a applied=false problems: spec.versoin: unknown\nns/b applied=false orphaned: main@sha1:9 no longer declares it\nother/c applied=true\n",
		},
		{
			name: "held before, problem that may affect it", declared: "other/c", problems: []report.Problem{{File: "x.yaml", Message: "not YAML", Place: fleet}},
			with: func(i inventory.ByCluster) { heldBefore(i, "ns/a", "main@sha1:5 no longer declares it") },
			want: "ns/a applied=false held: main@sha1:5 no longer declares it\nns/b applied=false problems: x.yaml: not YAML\nother/c applied=true\n",
		},
		{
			name: "held before, while a source cannot be read", declared: "other/c", desired: func(d *reconcile.Desired) { d.Unread = fmt.Errorf("no answer") },
			with: func(i inventory.ByCluster) { heldBefore(i, "ns/a", "main@sha1:5 no longer declares it") },
			want: "ns/a applied=false held: main@sha1:5 no longer declares it\nns/b applied=false\nother/c applied=true\n",
		},
		{
			name: "other source cannot be read", declared: "ns/a", desired: func(d *reconcile.Desired) { d.Sources[1].Unread = fmt.Errorf("no answer") },
			want: "ns/a applied=true\nns/b applied=false orphaned: main@sha1:9 no longer declares it\nother/c applied=false\n",
		},
		{
			name: "other source cannot be parsed", declared: "ns/a", problems: []report.Problem{{File: "x.yaml", Message: "not YAML", Place: shop}},
			want: "ns/a applied=true\nns/b applied=false orphaned: main@sha1:9 no longer declares it\nother/c applied=false problems: x.yaml: not YAML\n",
		},
		{
			name: "source unknown, one source cannot be read", declared: "ns/a other/c", desired: func(d *reconcile.Desired) { d.Sources[1].Unread = fmt.Errorf("no answer") },
			with: func(i inventory.ByCluster) { declaredBy(i, "", "ns/b") },
			want: "ns/a applied=true\nns/b applied=false\nother/c applied=true\n",
		},
		{
			name: "another team's clusters in other namespaces", declared: "other/c", desired: func(d *reconcile.Desired) { d.Namespaces = []string{"other"} },
			want: "other/c applied=true\n",
		},
		{
			name: "another team's clusters", declared: "other/c", desired: func(d *reconcile.Desired) { d.Sources, d.Revision = d.Sources[1:], "v2@sha1:7" },
			want: "ns/a applied=false elsewhere\nns/b applied=false elsewhere\nother/c applied=true\n",
		},
		{
			name: "source no longer configured, confirmed", declared: "other/c", confirmed: "7", desired: func(d *reconcile.Desired) { d.Sources, d.Revision = d.Sources[1:], "v2@sha1:7" },
			want: "ns/a applied=false orphaned: the source no longer declares it\nns/b applied=false orphaned: the source no longer declares it\nother/c applied=true\n",
		},
		{
			name: "held by a version with combined revisions", declared: "other/c",
			with: func(i inventory.ByCluster) { heldBefore(i, "ns/a", "main@sha1:5 v2@sha1:3 no longer declares it") },
			want: "ns/a applied=false held: main@sha1:9 no longer declares it\nns/b applied=false held: main@sha1:9 no longer declares it\nother/c applied=true\n" +
				"removal: main@sha1:9 no longer declares 2 of 2 clusters of https://host/fleet.git: ns/a, ns/b\n",
		},
		{
			name: "sources not yet recorded", declared: "other/c", with: func(i inventory.ByCluster) { declaredBy(i, "", "ns/a", "ns/b", "other/c") },
			want: "ns/a applied=false held: the source no longer declares it\nns/b applied=false held: the source no longer declares it\nother/c applied=true\n" +
				"removal: main@sha1:9 v2@sha1:7 no longer declares 2 of 3 clusters: ns/a, ns/b\n",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			owned := inventory.ByCluster{}
			declaredBy(owned, fleet, "ns/a", "ns/b")
			declaredBy(owned, shop, "other/c")
			if test.with != nil {
				test.with(owned)
			}
			desired := reconcile.Desired{
				Revision: "main@sha1:9 v2@sha1:7", Confirmed: strings.Fields(test.confirmed), Problems: test.problems,
				Sources: []reconcile.SourceState{{Name: fleet, Revision: "main@sha1:9"}, {Name: shop, Revision: "v2@sha1:7"}},
			}
			for what := range strings.FieldsSeq(test.declared) {
				desired.Clusters = append(desired.Clusters, declare(what, "3.5.30"))
			}
			if test.desired != nil {
				test.desired(&desired)
			}
			if got := describeRemovals(Of(desired, owned)); got != test.want {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
		})
	}
}

// TestUnusedConfirmations checks that a single warning reports all confirmations that do not match the held removals.
func TestUnusedConfirmations(t *testing.T) {
	shop, bank := report.Removal{Source: "shop", Revision: "main@sha1:1"}, report.Removal{Source: "bank", Revision: "main@sha1:2"}
	for _, test := range []struct {
		confirmed []string
		held      []report.Removal
		want      string
	}{
		{nil, []report.Removal{shop}, ""},
		{[]string{"main@sha1:9"}, nil, ""},
		{[]string{"main@sha1:9"}, []report.Removal{shop}, "--confirm-removals names main@sha1:9, but the held clusters were removed at main@sha1:1, so none of them is confirmed"},
		{[]string{"8", "9"}, []report.Removal{shop, bank, shop}, "--confirm-removals names 8 and 9, but the held clusters were removed at main@sha1:1 and at main@sha1:2, so none of them is confirmed"},
	} {
		if got := strings.Join(UnusedConfirmations(test.confirmed, test.held), "\n"); got != test.want {
			t.Errorf("%q: got %q, want %q", test.confirmed, got, test.want)
		}
	}
}

// TestRemovalsAreJudgedWithoutOtherTenants checks that custom resources in one tenant's namespace, whose status may
// name any source, do not affect whether another tenant's undeclared clusters are kept and repaired.
func TestRemovalsAreJudgedWithoutOtherTenants(t *testing.T) {
	for name, recorded := range map[string]string{
		"a source under a new address":      "https://old.host/b.git",
		"custom resources without a status": "",
	} {
		judged := func(forged bool) Target {
			owned := inventory.ByCluster{}
			desired := reconcile.Desired{Namespaces: reconcile.Namespaces{"a", "b"}, Sources: []reconcile.SourceState{
				{Name: "https://host/a.git", Revision: "main@sha1:0123456789012345678901234567890123456789", Namespaces: reconcile.Namespaces{"a"}},
				{Name: "https://new.host/b.git", Revision: "main@sha1:9876543210987654321098765432109876543210", Namespaces: reconcile.Namespaces{"b"}},
			}}
			declaredBy(owned, recorded, "b/removed1", "b/removed2")
			source := "https://host/a.git"
			for _, own := range []string{"a/own1", "a/own2"} {
				d := declare(own, "3.5.30")
				d.Source = source
				desired.Clusters = append(desired.Clusters, d)
			}
			if forged {
				source = recorded
			}
			declaredBy(owned, source, "a/own1", "a/own2")
			list, _ := Of(desired, Trusted(owned, desired))
			for _, one := range list {
				if one.Cluster.Name == "removed1" {
					return one
				}
			}
			t.Fatal("b/removed1 is missing")
			return Target{}
		}
		if before := judged(false); before.Orphaned != "" || !before.Elsewhere && before.Held == "" {
			t.Fatalf("%s: without forged sources: %+v", name, before)
		}
		if after := judged(true); after.Orphaned != "" {
			t.Errorf("%s: b/removed1 is no longer repaired because of custom resources in namespace a: %s", name, after.Orphaned)
		}
	}
}
