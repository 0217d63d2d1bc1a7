package findings_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/internal/printable/printabletest"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/report/findings"
)

// wrong returns a report with one finding of each kind.
func wrong(said string) report.Report {
	ahead := forecast.Forecast{Steps: []forecast.Step{{Action: decide.DeleteVolume{}, Lowest: forecast.Quorum{Voters: 3, Answering: 3}}}, End: decide.Decision{Verdict: decide.Done}}
	where := report.Problem{File: "clusters/a.yaml", Line: 3}
	return report.Report{
		Error: said, Warnings: []string{said}, Planned: true,
		Problems: []report.Problem{{File: "clusters/b.yaml", Line: 7, Cluster: "shop/b", Message: said}},
		Removals: []report.Removal{{Revision: "main@sha1:1", Clusters: []string{"shop/x"}, Of: 1, Source: said}},
		Clusters: []report.Cluster{
			{Namespace: "shop", Name: "a", Where: where, Road: &ahead, Warnings: []string{said}, Decision: decide.Decision{Rule: "R", Verdict: decide.Act, Message: "acts"}},
			{Namespace: "shop", Name: "c", Error: said},
			{Namespace: "shop", Name: "d", Where: where, Decision: decide.Decision{Rule: "InvalidSpec", Verdict: decide.Block, Message: said}},
			{Namespace: "shop", Name: "e", Decision: decide.Decision{Rule: "Converged", Verdict: decide.Done, Message: "done"}},
		},
	}
}

func ExampleGitHub() {
	options := findings.Options{FailOn: []forecast.Risk{forecast.DeletesData}, Root: func(string) (string, bool) { return "infra", true }}
	r := wrong("what is wrong, in 100% of cases: this")
	_ = findings.GitHub(os.Stdout, r, findings.Of(r, options))
	// Output:
	// ::notice title=Plan::sha256:d710b6919a03f45654cd60025be8b64442253576e3e30503e93b03fbb91e6951
	// ::error title=Error::what is wrong, in 100%25 of cases: this
	// ::error file=infra/clusters/b.yaml,line=7,title=shop/b Problem::what is wrong, in 100%25 of cases: this
	// ::error title=Removal::main@sha1:1 no longer declares 1 of 1 cluster of what is wrong, in 100%25 of cases: this: shop/x
	// ::error file=infra/clusters/a.yaml,line=3,title=shop/a Risk::the declaration deletes data: 1 action, then done
	// ::error title=shop/c Error::what is wrong, in 100%25 of cases: this
	// ::error file=infra/clusters/a.yaml,line=3,title=shop/d InvalidSpec::what is wrong, in 100%25 of cases: this
	// ::warning file=infra/clusters/a.yaml,line=3,title=shop/a Warning::what is wrong, in 100%25 of cases: this
	// ::warning title=Warning::what is wrong, in 100%25 of cases: this
}

// TestFailOn checks that a risk is an error only if FailOn names it. An unknown risk is an error if FailOn names any
// risk.
func TestFailOn(t *testing.T) {
	for _, test := range []struct {
		failOn []forecast.Risk
		open   bool
		want   int
	}{
		{nil, false, 0}, {nil, true, 0},
		{[]forecast.Risk{forecast.LosesQuorum}, false, 0}, {[]forecast.Risk{forecast.LosesQuorum}, true, 1},
		{[]forecast.Risk{forecast.LosesQuorum, forecast.DeletesData}, false, 1}, {[]forecast.Risk{forecast.DeletesData}, true, 2},
	} {
		r := wrong("x")
		r.Clusters[0].Road.Open = test.open
		got := 0
		for _, f := range findings.Of(r, findings.Options{FailOn: test.failOn}) {
			if f.Rule == findings.Risk && f.Level == findings.Error {
				got++
			}
		}
		if got != test.want {
			t.Errorf("%v, open %t: %d risks", test.failOn, test.open, got)
		}
	}
}

// TestFindingNamesOnlyCheckedOutFiles checks that a finding is attached to a file only if the file is in the checkout.
// Otherwise, its message contains the file name.
func TestFindingNamesOnlyCheckedOutFiles(t *testing.T) {
	for _, test := range []struct {
		root, file string
		known      bool
		want       string
	}{
		{"", "a.yaml", true, "a.yaml"}, {".", "x/a.yaml", true, "x/a.yaml"}, {"infra", "a.yaml", true, "infra/a.yaml"},
		{"", "a.yaml", false, ""}, {"", "../a.yaml", true, ""}, {"infra", "../../a.yaml", true, ""}, {"", "/etc/passwd", true, ""}, {"", "", true, ""}, {"", "a\nb", true, ""},
	} {
		r := report.Report{Problems: []report.Problem{{File: test.file, Line: 7, Message: "wrong"}}}
		got := findings.Of(r, findings.Options{Root: func(string) (string, bool) { return test.root, test.known }})[0]
		if got.File != test.want || (got.Line == 7) != (test.want != "") {
			t.Errorf("%+v: it is in %q:%d", test, got.File, got.Line)
		}
		if bare := got.Message == "wrong"; bare != (test.want != "" || test.file == "") {
			t.Errorf("%+v: got %q", test, got.Message)
		}
	}
}

// command is a workflow command as GitHub reads it.
type command struct {
	level, message string
	properties     map[string]string
}

// read parses a line as the GitHub Actions runner does.
func read(line string) (command, error) {
	rest, is := strings.CutPrefix(line, "::")
	head, message, ends := strings.Cut(rest, "::")
	if !is || !ends {
		return command{}, fmt.Errorf("no command: %q", line)
	}
	c := command{properties: map[string]string{}, message: strings.NewReplacer("%0D", "\r", "%0A", "\n", "%25", "%").Replace(message)}
	var properties string
	c.level, properties, _ = strings.Cut(head, " ")
	for _, p := range strings.Split(properties, ",") {
		name, value, found := strings.Cut(p, "=")
		if properties != "" && !found {
			return c, fmt.Errorf("%q is no property: %q", p, line)
		}
		c.properties[name] = strings.NewReplacer("%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",", "%25", "%").Replace(value)
	}
	return c, nil
}

// TestWorkflowCommandsAreEscaped checks that each line is one command, and that GitHub reads the intended text, for any
// untrusted text.
func TestWorkflowCommandsAreEscaped(t *testing.T) {
	texts := map[string]string{"escapes": "100%, a%0A::b%25: c" + printabletest.Mark, "only colons": "::::" + printabletest.Mark}
	for name, text := range printabletest.Hostile {
		texts[name] = text
	}
	for name, text := range texts {
		r := report.Report{Problems: []report.Problem{{File: "a,b:c%d.yaml", Line: 3, Cluster: text, Message: text}, {File: text, Message: text}}, Error: text}
		list := findings.Of(r, findings.Options{})
		var b strings.Builder
		if err := findings.GitHub(&b, r, list); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if len(lines) != len(list) {
			t.Fatalf("%s: %d findings are %d lines: %.500q", name, len(list), len(lines), b.String())
		}
		for i, line := range lines {
			c, err := read(line)
			if err != nil || c.level != "error" || c.message != printable.Line(list[i].Message) || !printable.Is(line) || !strings.Contains(c.message, printabletest.Mark) {
				t.Errorf("%s: %v: %+v: %.300q", name, err, c, line)
			}
			for property := range c.properties {
				if !slices.Contains([]string{"", "file", "line", "title"}, property) {
					t.Errorf("%s: it has the property %q", name, property)
				}
			}
			if c.properties["file"] != list[i].File {
				t.Errorf("%s: the file is %q, and not %q", name, c.properties["file"], list[i].File)
			}
		}
	}
}

// TestMostSevereFindingsAreShown checks that the most severe findings are shown, and that the other findings are
// counted.
func TestMostSevereFindingsAreShown(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 9: 9, 10: 10, 11: 10, 500: 10} {
		r := report.Report{Error: "first"}
		for range n - 1 {
			r.Problems = append(r.Problems, report.Problem{Message: "wrong"})
		}
		for range n {
			r.Warnings = append(r.Warnings, "beware")
		}
		if n == 0 {
			r.Error = ""
		}
		var b strings.Builder
		if err := findings.GitHub(&b, r, findings.Of(r, findings.Options{})); err != nil {
			t.Fatal(err)
		}
		said := b.String()
		if errors, warnings := strings.Count(said, "::error"), strings.Count(said, "::warning"); errors != want || warnings != want {
			t.Errorf("%d each: %d errors, %d warnings", n, errors, warnings)
		}
		if rest := fmt.Sprintf("::error::and %s: see the report\n", decide.Count(n-9, "other error")); (n > 10) != strings.Contains(said, rest) {
			t.Errorf("%d: %q is missing, or present without need:\n%s", n, rest, said)
		}
		if n > 0 && !strings.HasPrefix(said, "::error title=Error::first\n") {
			t.Errorf("%d: the most severe is not first", n)
		}
	}
}
