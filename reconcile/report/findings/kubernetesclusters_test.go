package findings_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/internal/printable/printabletest"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/report/findings"
)

// TestFindingsDistinguishKubernetesClusters checks that clusters with the same name in different Kubernetes clusters
// are distinguished, regardless of the Kubernetes clusters' names, and that statements that apply to all of them are
// included once.
func TestFindingsDistinguishKubernetesClusters(t *testing.T) {
	names := map[string]string{"a context of EKS": "arn:aws:eks:eu-west-1:1:cluster/x" + printabletest.Mark}
	for name, text := range printabletest.Hostile {
		names[name] = text
	}
	for name, text := range names {
		joined := report.Join([]report.Part{{Kubernetes: text, Report: wrong("x")}, {Kubernetes: "us", Report: wrong("x")}})
		list := findings.Of(joined, findings.Options{})
		alone := findings.Of(wrong("x"), findings.Options{})
		about := func(list []findings.Finding, cluster string) (n int) {
			for _, f := range list {
				if f.Cluster == printable.Line(cluster) {
					n++
				}
			}
			return n
		}
		for _, cluster := range []string{"shop/a", "shop/c", "shop/d"} {
			want := about(alone, cluster)
			if got, other := about(list, text+" "+cluster), about(list, "us "+cluster); want == 0 || got != want || other != want || about(list, cluster) != 0 {
				t.Errorf("%s: %d and %d findings of %s, want %d", name, got, other, cluster, want)
			}
		}
		if about(list, "shop/b") != 1 { // a problem with the source
			t.Errorf("%s: %+v", name, list)
		}
		for format, write := range formats {
			var b bytes.Buffer
			if err := write(&b, joined, list); err != nil {
				t.Fatal(err)
			}
			if format == "junit.xml" {
				checkJUnit(t, name, b.Bytes(), "x")
				if got := strings.Count(b.String(), "<testcase "); got != len(joined.Clusters)+2 {
					t.Errorf("%s: %d cases\n%s", name, got, b.String())
				}
			} else {
				checkSARIF(t, name, b.Bytes(), "x")
			}
			if !slices.ContainsFunc(strings.Split(b.String(), "\n"), func(line string) bool { return strings.Contains(line, printabletest.Mark) }) {
				t.Errorf("%s in %s: it is not named", name, format)
			}
		}
		var b strings.Builder
		if err := findings.GitHub(&b, joined, list); err != nil || !printable.Is(strings.ReplaceAll(b.String(), "\n", "")) {
			t.Errorf("%s: %v %q", name, err, b.String())
		}
	}
}
