package report_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/internal/printable/printabletest"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/report"
)

// parts returns random reports about several Kubernetes clusters.
func parts(random *rand.Rand) []report.Part {
	some := func(texts ...string) (list []string) {
		for _, text := range texts {
			if random.IntN(3) == 0 {
				list = append(list, text)
			}
		}
		return list
	}
	verdicts := []decide.Verdict{decide.Done, decide.Act, decide.Wait, decide.Block}
	var list []report.Part
	for i := range 1 + random.IntN(4) {
		r := report.Report{Revision: strings.Join(some("main@sha1:1", "main@sha1:2"), " "), Warnings: some("w", "v"),
			Error: strings.Join(some("no answer"), ""), Planned: true, Unobserved: random.IntN(4) == 0}
		for _, name := range some("a", "b", "c") {
			rule := []string{"R", decide.LockedElsewhere, "InvalidSpec"}[random.IntN(3)]
			c := report.Cluster{Namespace: "shop", Name: name, Error: strings.Join(some("down"), ""), Decision: decide.Decision{Rule: rule, Verdict: verdicts[random.IntN(4)]}}
			if random.IntN(3) == 0 {
				c.Road = &forecast.Forecast{Steps: []forecast.Step{{Action: decide.Seal{}, What: "Seal a-0"}}}
			}
			r.Clusters = append(r.Clusters, c)
		}
		for _, message := range some("wrong", "worse") {
			r.Problems = append(r.Problems, report.Problem{File: "a.yaml", Line: 1, Message: message})
		}
		for _, cluster := range some("shop/x") {
			r.Removals = append(r.Removals, report.Removal{Revision: "main@sha1:1", Clusters: []string{cluster}, Of: 1})
		}
		list = append(list, report.Part{Kubernetes: fmt.Sprintf("eu-%d", i), Report: r})
	}
	return list
}

// TestJoin checks that the joined report has the result of its worst part, and contains everything that the parts
// report.
func TestJoin(t *testing.T) {
	for seed := range uint64(2000) {
		list := parts(rand.New(rand.NewPCG(seed, 0)))
		joined := report.Join(list)
		worst, unobserved := len(report.Results()), false
		clusters := map[string]report.Cluster{}
		for _, c := range joined.Clusters {
			clusters[c.Title()] = c
		}
		total, removals := 0, 0
		for _, part := range list {
			r := part.Report
			worst, unobserved = min(worst, slices.Index(report.Results(), r.Result())), unobserved || r.Unobserved
			total, removals = total+len(r.Clusters), removals+len(r.Removals)
			for _, c := range r.Clusters {
				got, there := clusters[part.Kubernetes+" "+c.Key()]
				if got.Kubernetes = ""; !there || !reflect.DeepEqual(got, c) {
					t.Errorf("seed %d: %s of %s is %+v", seed, c.Key(), part.Kubernetes, got)
				}
			}
			says(t, r, part.Kubernetes, joined, len(list))
		}
		if got := joined.Result(); got != report.Results()[worst] || joined.Unobserved != unobserved {
			t.Errorf("seed %d: the joined result is %s, the worst result of a part is %s", seed, got, report.Results()[worst])
		}
		if len(joined.Clusters) != total || len(clusters) != total || len(joined.Removals) != removals {
			t.Errorf("seed %d: %d clusters and %d removals, want %d and %d", seed, len(joined.Clusters), len(joined.Removals), total, removals)
		}
	}
}

// says fails the test unless the joined report contains every problem, warning, error and revision of a part, with or
// without the part's name.
func says(t *testing.T, r report.Report, name string, joined report.Report, parts int) {
	t.Helper()
	in := func(list []string, text string) bool {
		return slices.Contains(list, name+": "+text) || slices.Contains(list, text)
	}
	var problems []string
	for _, p := range joined.Problems {
		problems = append(problems, p.String())
	}
	for _, p := range r.Problems {
		if !in(problems, p.String()) {
			t.Errorf("with %d parts, %s: problem %q is missing from %q", parts, name, p, problems)
		}
	}
	for _, w := range r.Warnings {
		if !in(joined.Warnings, w) {
			t.Errorf("with %d parts, %s: warning %q is missing from %q", parts, name, w, joined.Warnings)
		}
	}
	if r.Error != "" && !in(strings.Split(joined.Error, "; "), r.Error) {
		t.Errorf("with %d parts, %s: error %q is missing from %q", parts, name, r.Error, joined.Error)
	}
	for _, revision := range strings.Fields(r.Revision) {
		if !slices.Contains(strings.Fields(joined.Revision), revision) {
			t.Errorf("with %d parts, %s: revision %q is missing from %q", parts, name, revision, joined.Revision)
		}
	}
}

// TestJoinKeepsSingleReport checks that a single report is returned unchanged.
func TestJoinKeepsSingleReport(t *testing.T) {
	for seed := range uint64(100) {
		r := parts(rand.New(rand.NewPCG(seed, 1)))[0].Report
		if got := report.Join([]report.Part{{Report: r}}); !reflect.DeepEqual(got, r) {
			t.Errorf("seed %d: %+v, want %+v", seed, got, r)
		}
	}
}

// TestDigestDistinguishesKubernetesClusters checks that a digest that approves a plan for one Kubernetes cluster does
// not approve it for a different one.
func TestDigestDistinguishesKubernetesClusters(t *testing.T) {
	planOf := func(parts ...report.Part) string { return report.Join(parts).Digest() }
	part := func(kubernetes, name string) report.Part {
		of := func(name string) report.Report {
			return report.Report{Planned: true, Revision: "main@sha1:1", Clusters: []report.Cluster{{Namespace: "shop", Name: name,
				Road: &forecast.Forecast{Steps: []forecast.Step{{Action: decide.Seal{}, What: "Seal a-0"}}}}}}
		}
		return report.Part{Kubernetes: kubernetes, Report: of(name)}
	}
	plan := func(first, second string) string { return planOf(part(first, "a"), part(second, "b")) }
	digest := plan("eu", "us")
	if turned := planOf(part("us", "b"), part("eu", "a")); turned != digest {
		t.Errorf("in a different order, the digest is %q, not %q", turned, digest)
	}
	for _, other := range []string{plan("us", "eu"), plan("eu", "ap"), plan("eu", "eu")} {
		if digest == "" || other == digest {
			t.Errorf("different plans have the digests %q and %q", digest, other)
		}
	}
}

// ExampleJoin shows the output for two Kubernetes clusters, one of which does not respond.
func ExampleJoin() {
	problem := report.Problem{File: "b.yaml", Line: 7, Message: "wrong"}
	of := func(c report.Cluster) report.Report {
		return report.Report{Revision: "main@sha1:1", Problems: []report.Problem{problem}, Clusters: []report.Cluster{c}}
	}
	done := report.Cluster{Namespace: "shop", Name: "a", Decision: decide.Decision{Rule: decide.Converged, Verdict: decide.Done, Message: "as declared"}}
	eu, us := of(done), report.Report{Revision: "main@sha1:1", Problems: []report.Problem{problem}, Error: "observe https://us: no answer"}
	eu.Removals = []report.Removal{{Revision: "main@sha1:1", Clusters: []string{"shop/x"}, Of: 1}}
	eu.Warnings = []string{"only here"}
	var b strings.Builder
	joined := report.Join([]report.Part{{Kubernetes: "eu", Report: eu}, {Kubernetes: "us", Report: us}})
	_ = report.Text(&b, joined, report.Style{})
	_ = report.Table(&b, joined, report.Style{})
	fmt.Print(b.String())
	// Output:
	// revision main@sha1:1
	// eu shop/a  Done   Converged
	//     as declared
	// warning eu: only here
	// held eu: main@sha1:1 no longer declares 1 of 1 cluster: shop/x
	//     these clusters keep their last applied state and are still repaired until they are declared again; if the removals are intended: --confirm-removals=main@sha1:1
	// problem b.yaml:7: wrong
	// error us: observe https://us: no answer
	// 1 cluster, 1 done, 1 removal held, 1 problem in the source
	// KUBERNETES  NAMESPACE/NAME  STATE           SINCE  MEMBERS  VERSION  SIZE  BACKUP  REVISION
	// eu          shop/a          Done/Converged  -      -        -        -     -       -
}

// TestHostileContextNamesAreEscaped checks that the names of contexts are escaped too, because they are untrusted text.
func TestHostileContextNamesAreEscaped(t *testing.T) {
	outputs := map[string]func(io.Writer, report.Report) error{
		"text":  func(w io.Writer, r report.Report) error { return report.Text(w, r, report.Style{}) },
		"table": func(w io.Writer, r report.Report) error { return report.Table(w, r, report.Style{}) },
		"json":  report.JSON, "state": report.States, "yaml": report.StatesYAML,
	}
	for name, text := range printabletest.Hostile {
		r := report.Report{Error: "e", Warnings: []string{"w"}, Clusters: []report.Cluster{{Namespace: "ns", Name: "x"}},
			Problems: []report.Problem{{Message: "p"}}, Removals: []report.Removal{{Revision: "r", Clusters: []string{"ns/y"}, Of: 1}}}
		joined := report.Join([]report.Part{{Kubernetes: text, Report: r}, {Kubernetes: "other"}})
		for output, print := range outputs {
			var b bytes.Buffer
			if err := print(&b, joined); err != nil {
				t.Fatal(err)
			}
			if unfit := printabletest.Unfit(b.String()); unfit != "" || !strings.Contains(b.String(), printabletest.Mark) {
				t.Errorf("%s in %s: %s: %.300q", name, output, unfit, b.String())
			}
		}
	}
}
