package report_test

import (
	"fmt"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/road"
)

type object = map[string]any

func TestChanges(t *testing.T) {
	for name, test := range map[string]struct {
		from, to object
		want     string
	}{
		"nothing":        {object{"a": 1, "b": []int{1}}, object{"a": 1.0, "b": []int{1}}, ""},
		"a field":        {object{"a": object{"b": 3, "c": 1}}, object{"a": object{"b": 5, "c": 1}}, "a.b: 3 -> 5"},
		"a new part":     {object{}, object{"a": object{"b": "x", "c": object{"d": true}}}, "a.b: none -> x\na.c.d: none -> true"},
		"a part is gone": {object{"a": object{"b": ""}}, object{}, `a.b: "" -> none`},
		"a list":         {object{"a": []string{"x"}}, object{"a": []string{"x", "<y>"}}, `a: ["x"] -> ["x","<y>"]`},
		"another kind":   {object{"a": "x"}, object{"a": object{"b": 1}}, `a: x -> {"b":1}`},
		"other people's": {object{}, object{"a\n::error::": "b\x1b[31m\nc"}, `a\n::error::: none -> b\x1b[31m c`},
	} {
		c := report.Cluster{Changes: report.Changes(test.from, test.to)}
		if got := strings.ReplaceAll(strings.Join(c.Lines(), "\n"), "a\n::", `a\n::`); got != test.want {
			t.Errorf("%s: %s\nwant %s", name, got, test.want)
		}
	}
}

// TestManyChanges: what a report says of one cluster has a bound, and says what is missing.
func TestManyChanges(t *testing.T) {
	many := object{}
	for i := range 80 {
		many[fmt.Sprintf("a%02d", i)] = strings.Repeat("x", 10_000)
	}
	lines := report.Cluster{Changes: report.Changes(object{}, many)}.Lines()
	if text := strings.Join(lines, "\n"); len(lines) != 51 || len(text) > 20_000 || lines[50] != "and 30 other fields" {
		t.Errorf("%d lines, %d bytes: %s", len(lines), len(text), lines[len(lines)-1])
	}
	both := object{"metadata": object{"annotations": many}, "spec": object{"replicas": 1}}
	if lines := (report.Cluster{Changes: report.Changes(object{}, both)}).Lines(); lines[0] != "spec.replicas: none -> 1" {
		t.Errorf("annotations hide what is asked for: it begins with %.100s", lines[0])
	}
}

// TestUnknownIsARisk: what was not compared may be anything.
func TestUnknownIsARisk(t *testing.T) {
	r := report.Report{Compared: &report.Comparison{Unknown: []string{"a/b"}}}
	if risks := r.Risks(); len(risks) != 1 || risks[0] != road.Unknown {
		t.Errorf("risks %v", risks)
	}
	if r.Compared.Unknown = nil; len(r.Risks()) > 0 {
		t.Errorf("risks %v", r.Risks())
	}
}
