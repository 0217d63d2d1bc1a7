package main

import (
	"errors"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/report"
)

func TestFailOn(t *testing.T) {
	var f runFlags
	if err := f.failOn.Set("loses-quorum, deletes-data"); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		ahead forecast.Forecast
		want  int
	}{
		"nothing":            {forecast.Forecast{Steps: []forecast.Step{{}}}, exitOK},
		"restarts":           {forecast.Forecast{Steps: []forecast.Step{{Restarts: []string{"a-2"}}}}, exitOK},
		"deletes":            {forecast.Forecast{Steps: []forecast.Step{{}, {Deletes: []string{"a-2"}}}}, exitBlocked},
		"unknown":            {forecast.Forecast{Open: true}, exitBlocked},
		"unknown after that": {forecast.Forecast{End: decide.Decision{Verdict: decide.Wait}}, exitBlocked},
	} {
		var code exit
		err := f.code(report.Report{Planned: true, Clusters: []report.Cluster{{Road: &test.ahead}}}, true)
		if errors.As(err, &code); int(code) != test.want {
			t.Errorf("%s: it ends with %d, want %d", name, code, test.want)
		}
		if err := new(runFlags).code(report.Report{Planned: true, Clusters: []report.Cluster{{Road: &test.ahead}}}, true); err != nil {
			t.Errorf("%s: it ends with %v without --fail-on", name, err)
		}
	}
	locked := report.Cluster{Decision: decide.Decision{Rule: decide.LockedElsewhere, Verdict: decide.Wait}}
	deletes := report.Cluster{Road: &forecast.Forecast{Steps: []forecast.Step{{Deletes: []string{"a-2"}}}}}
	if err := f.code(report.Report{Planned: true, Clusters: []report.Cluster{locked, deletes}}, true); !errors.Is(err, exit(exitBlocked)) {
		t.Errorf("with a locked cluster, a risk ends with %v", err)
	}
	for _, text := range []string{"", "safe", "unknown", "deletes-data,", "deletes data"} {
		if err := f.failOn.Set(text); err == nil {
			t.Errorf("%q is a risk", text)
		}
	}
}
