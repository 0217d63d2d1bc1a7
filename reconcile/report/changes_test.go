package report_test

import (
	"fmt"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/report"
)

type object = map[string]any

func TestChanges(t *testing.T) {
	for name, test := range map[string]struct {
		from, to object
		want     string
	}{
		"no change":        {object{"a": 1, "b": []int{1}}, object{"a": 1.0, "b": []int{1}}, ""},
		"a field":          {object{"a": object{"b": 3, "c": 1}}, object{"a": object{"b": 5, "c": 1}}, "a.b: 3 -> 5"},
		"a new part":       {object{}, object{"a": object{"b": "x", "c": object{"d": true}}}, "a.b: none -> x\na.c.d: none -> true"},
		"a removed part":   {object{"a": object{"b": ""}}, object{}, `a.b: "" -> none`},
		"a list":           {object{"a": []string{"x"}}, object{"a": []string{"x", "<y>"}}, `a: ["x"] -> ["x","<y>"]`},
		"a different type": {object{"a": "x"}, object{"a": object{"b": 1}}, `a: x -> {"b":1}`},
		"untrusted text":   {object{}, object{"a\n::error::": "b\x1b[31m\nc"}, `a\n::error::: none -> b\x1b[31m c`},
	} {
		c := report.Cluster{Changes: report.Changes(test.from, test.to)}
		if got := strings.ReplaceAll(strings.Join(c.Lines(), "\n"), "a\n::", `a\n::`); got != test.want {
			t.Errorf("%s: %s\nwant %s", name, got, test.want)
		}
	}
}

// TestChangesAreBounded checks that the number of changes shown for a cluster is limited, and that the other changes
// are counted.
func TestChangesAreBounded(t *testing.T) {
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
		t.Errorf("annotations hide the requested change: it begins with %.100s", lines[0])
	}
}

// TestUncomparedClusterHasUnknownRisk checks that a cluster that was not compared has the risk Unknown.
func TestUncomparedClusterHasUnknownRisk(t *testing.T) {
	r := report.Report{Compared: &report.Comparison{Unknown: []string{"a/b"}}}
	if risks := r.Risks(); len(risks) != 1 || risks[0] != forecast.Unknown {
		t.Errorf("risks %v", risks)
	}
	if r.Compared.Unknown = nil; len(r.Risks()) > 0 {
		t.Errorf("risks %v", r.Risks())
	}
}

// arguments returns a list that is too long to be shown.
func arguments(first string) (list []any) {
	for i := range 40 {
		list = append(list, fmt.Sprintf("--%s-%d=value", first, i))
	}
	return list
}

// TestChangeShowsOnlyDifferences checks that long texts and lists are reduced to their differences, and that the content of a
// Secret is not shown.
func TestChangeShowsOnlyDifferences(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, test := range map[string]struct {
		change report.Change
		want   string
	}{
		"field of an object":            {report.Change{Object: "PodDisruptionBudget a", Field: "spec.minAvailable", From: 2, To: 3}, "PodDisruptionBudget a spec.minAvailable: 2 -> 3"},
		"object to create":              {report.Change{Object: "Service a", What: report.Made}, "Service a: will be created"},
		"deleted object":                {report.Change{Object: "CronJob a-backup", What: report.Deleted}, "CronJob a-backup: deleted"},
		"secret":                        {report.Change{Object: "Secret a-ca", What: report.Changed}, "Secret a-ca: changed; values are not shown"},
		"a line":                        {report.Change{Field: "f", From: "a\nb\nc\n", To: "a\nB\nc\n"}, "f: b -> B"},
		"a new line":                    {report.Change{Field: "f", From: "a\nc\n", To: "a\nb\nc\n"}, "f: none -> b"},
		"empty text":                    {report.Change{Field: "f", From: "", To: "a\nb"}, `f: "" -> a b`},
		"a long line":                   {report.Change{Field: "f", From: long + "1", To: long + "2"}, "f: …" + long[:20] + "1 -> …" + long[:20] + "2"},
		"long value, nothing in common": {report.Change{Field: "f", From: long, To: "y"}, "f: " + long[:197] + "… -> y"},
		"one in two":                    {report.Change{Field: "f", From: strings.Repeat("é", 150) + "1", To: strings.Repeat("é", 150)}, "f: …" + strings.Repeat("é", 10) + "1 -> …" + strings.Repeat("é", 10)},
		"arguments": {report.Change{Field: "args", From: append(arguments("a"), "--s3-region=b", "z"), To: append(arguments("a"), "--s3-region=c", "--new", "z")},
			`args: ["--s3-region=b"] -> ["--s3-region=c","--new"]`},
		"an argument":          {report.Change{Field: "args", From: append(arguments("a"), "z"), To: append(arguments("a"), "y")}, `args: ["z"] -> ["y"]`},
		"a new argument":       {report.Change{Field: "args", From: arguments("a"), To: append(arguments("a"), "y")}, `args: none -> ["y"]`},
		"one of two arguments": {report.Change{Field: "args", From: append(arguments("a"), "y", "y"), To: append(arguments("a"), "y")}, `args: ["y"] -> none`},
		"different order":      {report.Change{Field: "args", From: append(arguments("a"), "y", "z"), To: append(arguments("a"), "z", "y")}, `args: ["y","z"] -> ["z","y"]`},
		"a long argument":      {report.Change{Field: "args", From: []any{"a", long + "1"}, To: []any{"a", long + "2"}}, `args: …` + long[:20] + `1"] -> …` + long[:20] + `2"]`},
		"a long object":        {report.Change{Field: "o", From: object{"a": long, "b": 1}, To: object{"a": long, "b": 2}}, `o: …` + long[:14] + `","b":1} -> …` + long[:14] + `","b":2}`},
	} {
		if got := test.change.String(); got != test.want {
			t.Errorf("%s: %s\nwant %s", name, got, test.want)
		}
	}
}
