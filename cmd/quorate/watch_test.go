package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// TestWatch checks that, if the output is a pipe, status --watch prints changes, pauses between checks, prints each
// error once, and ends without an error.
func TestWatch(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	at := func(rule string) report.Report {
		return report.Report{Clusters: []report.Cluster{{Namespace: "ns", Name: "x", Decision: decide.Decision{Rule: rule, Verdict: decide.Done, Message: "m"}}}}
	}
	unseen := errors.New("nobody\nanswers")
	type seen struct {
		rep report.Report
		err error
	}
	partly := at("A")
	partly.Clusters[0].Name = "y"
	looks := []seen{{at("A"), nil}, {at("A"), nil}, {partly, unseen}, {report.Report{}, unseen}, {report.Report{}, unseen}, {at("B"), nil}, {report.Report{}, nil}}
	pauses := 0
	var out, stderr bytes.Buffer
	f := watchFlags{on: true, interval: 7 * time.Second}
	err := f.watch(ctx, streams{out: &out, err: &stderr}, func(context.Context) (report.Report, error) {
		next := looks[0]
		looks = looks[1:]
		return next.rep, next.err
	}, func(_ context.Context, pause time.Duration) {
		if pauses++; pause != f.interval {
			t.Errorf("it waits %s", pause)
		}
		if len(looks) == 0 {
			interrupt()
		}
	})
	const want = "NAMESPACE/NAME  STATE   SINCE  MEMBERS  VERSION  SIZE  BACKUP  REVISION  MESSAGE\n" +
		"ns/x            Done/A  -      -        -        -     -       -         m\n" +
		"ns/y            Done/A  -      -        -        -     -       -         m\n" + // x may still exist
		"ns/x            Done/B  -      -        -        -     -       -         m\nns/y  gone\nns/x  gone\n"
	if err != nil || out.String() != want || stderr.String() != "quorate: nobody; answers\n" || pauses != 7 {
		t.Errorf("%v, %d pauses\n%s\n%s", err, pauses, out.String(), stderr.String())
	}
	err = f.watch(t.Context(), streams{out: &out, err: &stderr}, func(context.Context) (report.Report, error) { return report.Report{}, unseen }, nil)
	if !errors.Is(err, unseen) {
		t.Errorf("nothing is seen the first time: %v", err)
	}
}
