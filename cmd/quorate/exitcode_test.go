package main

import (
	"errors"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// TestExitCodeForExpiringCertificates checks that certificates that expire soon cause the same exit code as a Block if
// nothing else is left to do. While certificates are being renewed, an invalid declaration keeps its own exit code.
func TestExitCodeForExpiringCertificates(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	certificate := func(left time.Duration) []decide.Certificate {
		return []decide.Certificate{{Secret: "s", Key: "k", NotBefore: now.Add(left - 100*time.Hour), NotAfter: now.Add(left)}}
	}
	done := decide.Decision{Rule: "Suspended", Verdict: decide.Done, Message: "m"}
	renews := decide.Decision{Rule: "RenewCertificates", Verdict: decide.Act, Action: decide.RenewCertificates{}, Message: "m"}
	for name, test := range map[string]struct {
		decision decide.Decision
		left     time.Duration
		problems []string
		want     int
	}{
		"a third":            {done, 33 * time.Hour, nil, 0},
		"a tenth":            {done, 10 * time.Hour, nil, 0},
		"less than a tenth":  {done, 9 * time.Hour, nil, exitBlocked},
		"expired":            {done, -time.Hour, nil, exitBlocked},
		"renewed":            {renews, 9 * time.Hour, nil, 0},
		"renewed on a typo":  {renews, 9 * time.Hour, []string{"x"}, exitInvalid},
		"waiting for others": {decide.Decision{Rule: "LockedElsewhere", Verdict: decide.Wait, Message: "m"}, 9 * time.Hour, nil, exitLocked},
	} {
		state := decide.State{Now: now, Certificates: certificate(test.left), Declared: decide.Declared{Problems: test.problems}}
		err := (&runFlags{}).code(report.Report{Clusters: []report.Cluster{{State: state, Decision: test.decision}}}, true)
		got := 0
		if code := exit(0); errors.As(err, &code) {
			got = int(code)
		}
		if got != test.want {
			t.Errorf("%s: exit code %d, want %d", name, got, test.want)
		}
	}
}
