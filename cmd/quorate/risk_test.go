package main

import (
	"errors"
	"testing"

	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/road"
)

func TestFailOn(t *testing.T) {
	var f runFlags
	if err := f.failOn.Set("loses-quorum, deletes-data"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		deletes []string
		want    int
	}{{nil, exitOK}, {[]string{"a-2"}, exitBlocked}} {
		ahead := &road.Road{Steps: []road.Step{{Deletes: test.deletes}}}
		var code exit
		err := f.code(report.Report{Planned: true, Clusters: []report.Cluster{{Road: ahead}}}, true)
		if errors.As(err, &code); int(code) != test.want {
			t.Errorf("a road that deletes the volumes of %q ends with %d, want %d", test.deletes, code, test.want)
		}
	}
	for _, text := range []string{"", "safe", "deletes-data,", "deletes data"} {
		if err := f.failOn.Set(text); err == nil {
			t.Errorf("%q is a risk", text)
		}
	}
}
