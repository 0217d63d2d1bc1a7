package decide_test

import (
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
)

// TestActionThatKeepsBeingUndoneComesLast checks that drift that returns after every pass does not prevent the
// replacement of a lost member, and that a Block names it once nothing else remains to be done.
func TestActionThatKeepsBeingUndoneComesLast(t *testing.T) {
	w := &world{}
	for _, line := range []string{"cluster a", "set a-1 pod=Failing since=5m volume=none etcd=silent", "add drift=(Service a-client: changed at spec.ports by other)"} {
		if _, err := decidetest.Teller(w.tell).Line(line); err != nil {
			t.Fatal(err)
		}
	}
	s := w.State
	var kinds []string
	for range 6 {
		d := decide.Decide(s)
		kinds = append(kinds, decide.KindOf(d.Action))
		s.Repeated = decide.Repeats(s, d, true)
		s.Now = s.Now.Add(time.Minute)
	}
	if got := strings.Join(kinds, " "); got != "ApplyObjects ApplyObjects ApplyObjects RemoveMember RemoveMember RemoveMember" {
		t.Errorf("got %s", got)
	}
	d := decide.Decide(s)
	if d.Verdict != decide.Wait && d.Verdict != decide.Block || !strings.Contains(d.Message, "Service a-client") || !strings.Contains(d.Message, "RemoveMember keeps being undone") {
		t.Errorf("got %s", d)
	}
	s.Now = s.Now.Add(10 * time.Minute)
	d = decide.Decide(s)
	if decide.KindOf(d.Action) != "ApplyObjects" {
		t.Errorf("after ten minutes: got %s", d)
	}
	if retried := decide.Retried(s, d); retried.Verdict != decide.Block || retried.Rule != "ApplyObjects" {
		t.Errorf("the Block does not stay: got %s", retried)
	}
	s.Objects.Drift = nil
	if list := decide.Repeats(s, decide.Decide(s), true); len(list) != 1 || list[0].Rule != "ReplaceMember" {
		t.Errorf("what has lasted is not forgotten: %+v", list)
	}
}
