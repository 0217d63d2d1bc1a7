package simulate_test

import (
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/simulate"
)

// TestFullDatabaseDoesNotStarveHealing checks that, in every small world in which a lost member is replaced, the member
// is replaced within an hour even if the database is full. A Block then names the alarm.
func TestFullDatabaseDoesNotStarveHealing(t *testing.T) {
	for name, start := range worldsWithLoss(t) {
		if testing.Short() && name != "nothing else" || len(healingActions(start)) == 0 {
			continue
		}
		w := start.Clone()
		w.FillDatabase()
		if fault := healsWhile(w, "", func(*simulate.World, *simulate.World, decide.Decision) {}); fault != "" {
			t.Errorf("%s: %s", name, fault)
			continue
		}
		steps := w.Converge(patienceOfTests)
		last := steps[len(steps)-1].Decision
		if name == "nothing else" && (last.Verdict != decide.Block || last.Rule != "AlarmRaised" || !strings.Contains(last.Message, "NOSPACE")) {
			t.Errorf("%s: it ends in %s", name, last)
		}
	}
}
