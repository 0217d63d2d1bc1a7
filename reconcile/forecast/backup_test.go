package forecast_test

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/simulate"
)

// TestForecastAssumesVerifiedBackups checks that the forecast of an upgrade or a deletion goes on after the required
// backup, whether or not backups are verified.
func TestForecastAssumesVerifiedBackups(t *testing.T) {
	for _, verifies := range []bool{true, false} {
		for name, change := range map[string]func(*decide.Declared){
			"upgrade": func(d *decide.Declared) { d.Version = "3.6.17" },
			"delete":  func(d *decide.Declared) { d.Lifecycle = decide.Deleted },
		} {
			w := simulate.New("a", decide.Declared{Replicas: 3, Version: "3.6.16", Lifecycle: decide.Running, SpecHash: "h",
				BacksUp: true, BacksUpBeforeUpgrade: true, BacksUpBeforeDeletion: true, BackupTo: "s3://b",
				VerifiesBackups: verifies}, 0)
			w.Converge(40)
			change(&w.Declared)
			if ahead := forecast.Of(w.Observe()); ahead.Open || ahead.End.Verdict != decide.Done {
				t.Errorf("%s, verifies backups: %t: open: %t, end: %s\n%s", name, verifies, ahead.Open, ahead.End, ahead.Text(""))
			}
		}
	}
}
