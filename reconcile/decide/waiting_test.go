package decide_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
	"quorate.dev/quorate/reconcile/decide/invariants"
)

func (w *world) hasWaited(args []datadriven.CmdArg) (err error) {
	entry := decide.Waited{Rule: args[0].Key, Seen: w.Now}
	for _, arg := range args[1:] {
		switch arg.Key {
		case "for":
			entry.For = strings.Join(arg.Vals, ",")
		case "since":
			entry.Since, err = w.ago(decidetest.Value(arg))
		case "seen":
			entry.Seen, err = w.ago(decidetest.Value(arg))
		}
		if err != nil {
			return err
		}
	}
	w.Waited = append(w.Waited, entry)
	return nil
}

func (w *world) report(changed bool) string {
	d := decide.Decide(w.State)
	repeated := decide.Repeats(w.State, d, changed)
	if changed {
		d = decide.Retried(w.State, d)
	}
	w.Waited, w.Repeated = decide.Waits(w.State, d, changed), repeated
	w.Backups.BeforeDeletion = w.BackupBeforeDeletion()
	w.DefragmentationRequest = w.RequestToReport(0)
	var out strings.Builder
	for _, entry := range w.Waited {
		fmt.Fprintf(&out, "waited %s for=(%s) since=%s seen=%s\n", entry.Rule, entry.For, w.Now.Sub(entry.Since), w.Now.Sub(entry.Seen))
	}
	if out.Len() == 0 {
		return "waited for nothing\n"
	}
	return out.String()
}

// TestActionWithoutProgressBlocks checks that an action that has not changed anything for a long time requires manual
// action, but not earlier, and not for a different action.
func TestActionWithoutProgressBlocks(t *testing.T) {
	s := decide.State{Name: "a", Now: dawn}
	try := decide.Decision{Rule: "RollOneMember", Verdict: decide.Act, Action: decide.MoveLeader{From: 1, To: 2}, Message: "let it hand over"}
	if d := decide.NoProgress(s, try, "refused"); d != try {
		t.Errorf("the first time: %s", d)
	}
	for range 6 {
		s.Waited = decide.Waits(s, try, false)
		s.Now = s.Now.Add(5 * time.Minute)
	}
	d := decide.NoProgress(s, try, "etcd: not yet:\nno leader")
	if d.Verdict != decide.Block || d.Rule != try.Rule || !strings.Contains(d.Message, "let it hand over (etcd: not yet: no leader); no progress since 2026-08-01T12:00:00Z: ") {
		t.Errorf("after half an hour: %s", d)
	}
	if broken := invariants.Broken(s, d); len(broken) > 0 {
		t.Errorf("broken invariants: %q", broken)
	}
	if again := decide.Waits(s, d, false); len(again) != 1 || !again[0].Since.Equal(dawn) {
		t.Errorf("the wait starts again: %+v", again)
	}
	other := try
	other.Rule = "ScaleDown"
	if d := decide.NoProgress(s, other, ""); d != other {
		t.Errorf("another rule: %s", d)
	}
	wait := decide.Decision{Rule: try.Rule, Verdict: decide.Wait, Message: "it must catch up"}
	if d := decide.NoProgress(s, wait, ""); d != wait {
		t.Errorf("a Wait counts as an action without progress: %s", d)
	}
}

// TestAlternatingRulesWithoutProgressBlock checks that rules that alternate without changing anything also lead to a
// Block, and that only a few waits are remembered.
func TestAlternatingRulesWithoutProgressBlock(t *testing.T) {
	s := decide.State{Name: "a", Now: dawn}
	for n := range 36 {
		d := decide.Decision{Rule: "RollOneMember", Verdict: decide.Wait, Message: "it must catch up"}
		if n%2 == 0 {
			d = decide.Decision{Rule: "PromoteLearner", Verdict: decide.Act, Action: decide.PromoteLearner{ID: decide.ID(n)}, Message: "promote it"}
		}
		s.Waited = decide.Waits(s, d, false)
		s.Now = s.Now.Add(time.Minute)
	}
	d := decide.NoProgress(s, decide.Decision{Rule: "PromoteLearner", Verdict: decide.Act, Action: decide.PromoteLearner{ID: 1}, Message: "promote it"}, "too far behind")
	if d.Verdict != decide.Block {
		t.Errorf("after half an hour: %s, waited %+v", d, s.Waited)
	}
	for n := range 20 {
		s.Waited = decide.Waits(s, decide.Decision{Rule: fmt.Sprint("Rule", n), Verdict: decide.Wait}, false)
	}
	if len(s.Waited) != 10 || s.Waited[9].Rule == "" {
		t.Errorf("%d waits are kept: %+v", len(s.Waited), s.Waited)
	}
}

func (w *world) ago(text string) (time.Time, error) {
	ago, err := time.ParseDuration(text)
	return w.Now.Add(-ago), err
}
