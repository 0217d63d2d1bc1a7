package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
	"quorate.dev/quorate/reconcile/report"
)

// explained returns the explanation of a state, as text and as JSON.
func explained(t *testing.T, s decide.State, failed string) (text string, rules []struct {
	Rule, About string
	Decides     bool
	Says        *struct{ Verdict, Message string }
}) {
	t.Helper()
	c := report.Cluster{Namespace: "prod", Name: "a", State: s, Error: failed}
	if failed == "" {
		c.Decision = decide.Decide(s)
	}
	var b, j bytes.Buffer
	if err := errors.Join(report.Explain(&b, c, report.Style{}), report.Opinions(&j, c)); err != nil {
		t.Fatal(err)
	}
	into := struct{ Rules any }{&rules}
	if err := json.Unmarshal(j.Bytes(), &into); err != nil {
		t.Fatal(err)
	}
	return b.String(), rules
}

// TestExplain checks that every rule has a line, in order, and that exactly one rule decides: the rule of the decision
// that Decide returns.
func TestExplain(t *testing.T) {
	suspended := decide.State{Name: "a", Declared: decidetest.Declared(3)}
	suspended.Declared.Suspended, suspended.Declared.Orphaned = true, "git\x1b[31m declares it no longer"
	all := decide.Rules()
	for name, s := range map[string]decide.State{"suspended": suspended, "nothing yet": {Name: "a", Declared: decidetest.Declared(3)}} {
		text, rules := explained(t, s, "")
		decides := 0
		for i, r := range rules {
			if r.Rule != all[i+1].Name || r.About != all[i+1].About || !strings.Contains(text, " "+r.Rule+" ") {
				t.Errorf("%s: rule %d is %+v; want %+v", name, i, r, all[i+1])
			}
			if r.Decides {
				decides++
				if want := decide.Decide(s); r.Rule != want.Rule || r.Says.Message != want.Message && !strings.Contains(want.Message, "\x1b") {
					t.Errorf("%s: %+v decides; want %+v", name, r, want)
				}
			}
		}
		if decides != 1 || strings.Count(text, "\n  > ") != 1 || strings.Contains(text, "\x1b") {
			t.Errorf("%s: %d rules decide:\n%s", name, decides, text)
		}
	}
	text, _ := explained(t, suspended, "")
	if !strings.Contains(text, "\n  > Orphaned Done: ") || !strings.Contains(text, "\n  + Suspended ") || !strings.Contains(text, "\n  - InvalidSpec The spec is invalid or not allowed") {
		t.Error(text)
	}
}

// TestExplainWithoutObservation checks that rules are not evaluated for a cluster that could not be observed.
func TestExplainWithoutObservation(t *testing.T) {
	text, rules := explained(t, decide.State{Name: "a"}, "observe prod/a: forbidden")
	if rules != nil || !strings.Contains(text, "error observe prod/a: forbidden") || strings.Contains(text, "Bootstrap") {
		t.Errorf("%+v\n%s", rules, text)
	}
}
