package decide

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestActionsForDifferentThingsDiffer checks that actions count as the same only if they do the same thing, regardless
// of the current IDs and UIDs.
func TestActionsForDifferentThingsDiffer(t *testing.T) {
	s := State{Name: "a", Declared: Declared{Version: "3.6.16", SpecHash: "h"}}
	for _, c := range []struct {
		action, same, other Action
	}{
		{RestartReplica{1, "p1"}, RestartReplica{1, "p2"}, RestartReplica{2, "p1"}},
		{DeleteVolume{1, "v1"}, DeleteVolume{1, "v2"}, DeleteVolume{2, "v1"}},
		{AddLearner{1, "https://a"}, AddLearner{1, "https://b"}, AddLearner{2, "https://a"}},
		{RemoveMember{ID: 1, Name: "a-1"}, RemoveMember{ID: 2, Name: "a-1"}, RemoveMember{ID: 1, Name: "a-2"}},
		{PromoteLearner{1, "a-1"}, PromoteLearner{2, "a-1"}, PromoteLearner{1, "a-2"}},
		{RenewCertificates{}, RenewCertificates{}, StopPods{}},
		{StartRollout{"3.6.16", "h"}, StartRollout{"3.6.16", "h"}, StartRollout{"3.6.16", "i"}},
		{StopReplicas{1, 2}, StopReplicas{1, 2}, StopReplicas{2, 2}},
	} {
		subject := func(a Action) string { return s.subject(Decision{Verdict: Act, Action: a}) }
		if subject(c.action) == "" || subject(c.action) != subject(c.same) {
			t.Errorf("%s and %s count as different", c.action, c.same)
		}
		if subject(c.action) == subject(c.other) {
			t.Errorf("%s and %s count as the same", c.action, c.other)
		}
	}
	restart := Decision{Verdict: Act, Action: RestartReplica{1, "p1"}}
	before := s.subject(restart)
	if s.Declared.SpecHash = "i"; s.subject(restart) == before {
		t.Error("a restart for another declaration counts as the same")
	}
}

// drifting returns a healthy cluster whose drift has been corrected the given number of times in a row.
func drifting(times int) (State, Decision) {
	s := healthy(3)
	s.Objects.Drift = []string{"Service a-client: changed"}
	d, _ := applyObjects(s)
	d.Rule = "ApplyObjects"
	s.Repeated = []Repeated{{Rule: d.Rule, What: s.subject(d), Times: times, Last: noon}}
	s.Now = noon.Add(time.Second)
	return s, d
}

// TestRepeatsCountOneRuleAndAction checks that an entry counts only for an action of the same rule.
func TestRepeatsCountOneRuleAndAction(t *testing.T) {
	s, d := drifting(2)
	if got := s.repeats(d).Times; got != 2 {
		t.Errorf("the action was repeated %d times, want 2", got)
	}
	other, waits := d, d
	other.Rule, waits.Verdict = "StartRollout", Wait
	for name, d := range map[string]Decision{"another rule": other, "no action": waits} {
		if got := s.repeats(d); got != (Repeated{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestRevertedActionIsRetriedAfterPause checks that a retry waits for the pause, unless the clock was set back.
func TestRevertedActionIsRetriedAfterPause(t *testing.T) {
	for after, want := range map[time.Duration]bool{
		0: false, undonePause - 1: false, undonePause: true, -time.Hour: true,
	} {
		s, d := drifting(undoneThreshold)
		s.Now = noon.Add(after)
		if got := s.mayRetry(d); got != want {
			t.Errorf("after %s: retried is %t", after, got)
		}
	}
}

// TestForgedSealEntryDelaysTenMinutes checks that a status that records a Seal as reverted delays it, and only until the
// pause is over.
func TestForgedSealEntryDelaysTenMinutes(t *testing.T) {
	s := healthy(3)
	d := Decision{Rule: ruleSeal, Verdict: Act, Action: Seal{Members: Ordinals(0).With(1)}}
	s.Repeated = []Repeated{{Rule: ruleSeal, What: s.subject(d), Times: math.MaxInt32, Last: noon}}
	waits := Decision{Rule: "WaitForMembers", Verdict: Wait}
	for after, want := range map[time.Duration]Verdict{0: Block, undonePause - 1: Block, undonePause: Act} {
		s.Now = noon.Add(after)
		if got := s.afterUndone(waits, []Decision{d}); got.Verdict != want || got.Rule != ruleSeal {
			t.Errorf("after %s: %s, want %s", after, got, want)
		}
	}
}

// TestOtherActionsPrecedeRetry checks that other actions come before the retry of an action that keeps being reverted.
func TestOtherActionsPrecedeRetry(t *testing.T) {
	s, undone := drifting(undoneThreshold)
	s.Now = noon.Add(undonePause)
	for want, d := range map[string]Decision{
		"PromoteLearner": {Rule: "PromoteLearner", Verdict: Act, Action: PromoteLearner{1, "a-1"}},
		"ApplyObjects":   {Rule: "WaitForMembers", Verdict: Wait},
	} {
		if got := s.afterUndone(d, []Decision{undone}); got.Rule != want {
			t.Errorf("together with %s: got %s", d.Rule, got)
		}
	}
}

// TestRepeatsOfPass checks which actions the status records as repeated after a pass.
func TestRepeatsOfPass(t *testing.T) {
	locked := Decision{Rule: LockedElsewhere, Verdict: Wait}
	for name, c := range map[string]struct {
		times   int
		change  func(s *State, d *Decision)
		changed bool
		want    int // recorded number of drift corrections, or 0
		last    time.Duration
	}{
		"carried out again":                      {1, nil, true, 2, time.Second},
		"carried out for the first time":         {1, func(s *State, _ *Decision) { s.Repeated = nil }, true, 1, time.Second},
		"not carried out":                        {1, nil, false, 0, 0},
		"not carried out, often repeated before": {undoneThreshold, nil, false, undoneThreshold, 0},
		"another action, often repeated before":  {undoneThreshold, func(_ *State, d *Decision) { d.Rule = "Seal" }, true, undoneThreshold, 0},
		"another action, rarely repeated before": {1, func(_ *State, d *Decision) { d.Rule = "Seal" }, true, 0, 0},
		"another pass holds the lease":           {1, func(_ *State, d *Decision) { *d = locked }, true, 1, 0},
		"no longer wanted":                       {1, func(s *State, _ *Decision) { s.Objects.Drift = nil }, true, 0, 0},
	} {
		s, d := drifting(c.times)
		if c.change != nil {
			c.change(&s, &d)
		}
		var want []Repeated
		if c.want > 0 {
			_, entry := drifting(0)
			want = []Repeated{{"ApplyObjects", s.subject(entry), c.want, noon.Add(c.last)}}
		}
		if got := Repeats(s, d, c.changed); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	waiting := healthy(3)
	waiting.Membership.Known = false
	waiting.Membership.Members[0].Answers, waiting.Membership.Members[1].Answers = false, false
	if got := Repeats(waiting, Decide(waiting), true); len(got) > 0 {
		t.Errorf("after a wait: got %+v", got)
	}
}

// TestChangesOfDeclarationAreNotRepeats checks that applying declarations that git changes at every pass does not count
// as an action that keeps being reverted.
func TestChangesOfDeclarationAreNotRepeats(t *testing.T) {
	s, _ := drifting(0)
	s.Repeated = nil
	for n := range 2 * undoneThreshold {
		s.Declared.Digest = string(rune('a' + n))
		d := Decide(s)
		if d.Rule != "ApplyObjects" || d.Verdict != Act {
			t.Fatalf("change %d: %s", n, d)
		}
		s.Repeated = Repeats(s, d, true)
		s.Now = s.Now.Add(time.Second)
	}
}

// TestRepeatedActionIsIdentifiedInShortPlainText checks that a status can store the identification of an action
// unchanged, regardless of the names of the objects and their field managers.
func TestRepeatedActionIsIdentifiedInShortPlainText(t *testing.T) {
	s, _ := drifting(0)
	s.Objects.Drift = []string{"Service a-client: changed by ##vso[x]\n" + strings.Repeat("x", 1<<16)}
	d, _ := applyObjects(s)
	if what := s.subject(d); !regexp.MustCompile(`^[A-Za-z]+ [0-9a-f]{16}$`).MatchString(what) {
		t.Errorf("got %.100q", what)
	}
}

// TestSealsAreRemembered checks that a Seal still counts if passes in between carried out other actions, but only for a
// while.
func TestSealsAreRemembered(t *testing.T) {
	for name, c := range map[string]struct {
		age    time.Duration
		others int
		want   int
	}{
		"just now":         {time.Second, 0, 1},
		"long ago":         {undonePause, 0, 0},
		"in the future":    {-time.Hour, 0, 0},
		"with many others": {time.Second, 20, 8},
	} {
		s := healthy(3)
		s.Now = noon
		for n := range c.others + 1 {
			s.Repeated = append(s.Repeated, Repeated{ruleSeal, fmt.Sprint("Seal ", n), 2, noon.Add(-c.age + time.Duration(n))})
		}
		list := Repeats(s, Decision{Rule: "ApplyObjects", Verdict: Act}, true)
		if len(list) != c.want {
			t.Errorf("%s: %+v", name, list)
		}
		if c.others > 0 && list[0].What != "Seal 20" {
			t.Errorf("%s: the newest entry is not first: %+v", name, list)
		}
	}
}
