package decide

import (
	"strings"
	"testing"
	"time"
)

// deciding returns a rule that always decides the same.
func deciding(name string, verdict Verdict, a Action) rule {
	return rule{Rule{Name: name}, func(State) (Decision, bool) { return Decision{Verdict: verdict, Action: a}, true }}
}

// TestDelayedRepairPrecedesOnlyRecurringActions checks that a delayed repair precedes only actions that may recur: it
// does not precede a Wait, a Block, another repair or any other change.
func TestDelayedRepairPrecedesOnlyRecurringActions(t *testing.T) {
	remove := RemoveMember{ID: 1, Name: "a-1"}
	repair := deciding(ruleReplaceMember, Act, remove)
	silent := rule{Rule{Name: "Suspended"}, func(State) (Decision, bool) { return Decision{}, false }}
	drift := Decision{Rule: ruleApplyObjects, Verdict: Act, Action: ApplyObjects{}}
	reverted := Repeated{ruleReplaceMember, "RemoveMember a-1", undoneThreshold, noon}
	for name, c := range map[string]struct {
		d        Decision
		later    []rule
		repeated []Repeated
		want     bool
	}{
		"immediately":                          {drift, []rule{repair}, nil, true},
		"after a rule that does not apply":     {drift, []rule{silent, repair}, nil, true},
		"after another recurring action":       {drift, []rule{deciding("DisarmAlarm", Act, DisarmAlarm{}), repair}, nil, true},
		"after another repair":                 {drift, []rule{deciding("ScaleUp", Act, AddLearner{}), repair}, nil, false},
		"after a Wait of a recurring rule":     {drift, []rule{deciding("DisarmAlarm", Wait, nil), repair}, nil, false},
		"after a Block of a recurring rule":    {drift, []rule{deciding("DisarmAlarm", Block, nil), repair}, nil, false},
		"a repair that waits":                  {drift, []rule{deciding(ruleReplaceMember, Wait, nil)}, nil, false},
		"a repair that keeps being reverted":   {drift, []rule{repair}, []Repeated{reverted}, false},
		"before a Block of a recurring rule":   {Decision{Rule: ruleApplyObjects, Verdict: Block}, []rule{repair}, nil, false},
		"before an action that does not recur": {Decision{Rule: "StartRollout", Verdict: Act, Action: StartRollout{}}, []rule{repair}, nil, false},
	} {
		s := healthy(3)
		s.Now = noon
		s.Repeated = append(c.repeated, Repeated{ruleReplaceMember, preempted, delayThreshold, noon})
		got := s.orDelayedRepair(c.d, c.later)
		if (got.Rule == ruleReplaceMember) != c.want || !c.want && got.Message != c.d.Message {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// TestMembersChangeOnlyWithRecord checks which decisions a reverted record withholds.
func TestMembersChangeOnlyWithRecord(t *testing.T) {
	for _, c := range []struct {
		d    Decision
		want bool
	}{
		{Decision{Rule: "WaitForMembers", Verdict: Wait}, true},
		{Decision{Rule: ruleReplaceMember, Verdict: Act}, true},
		{Decision{Rule: "StartRollout", Verdict: Act}, true},
		{Decision{Rule: ruleReplaceMember, Verdict: Block}, false},
		{Decision{Rule: "RenewCertificates", Verdict: Act}, false},
		{Decision{Rule: "Stop", Verdict: Act}, false},
		{Decision{Rule: Converged, Verdict: Done}, false},
	} {
		if got := needsRecord(c.d); got != c.want {
			t.Errorf("%s: needs the record: %t", c.d, got)
		}
	}
}

// TestRevertedSealWithholdsMembershipChanges checks that a Block names the ConfigMap and each reverted action once, and
// that a Seal is retried, instead of a change of members, once the pause is over.
func TestRevertedSealWithholdsMembershipChanges(t *testing.T) {
	s, drift := drifting(undoneThreshold)
	seal := Decision{Rule: ruleSeal, Verdict: Act, Action: Seal{}, Message: "seal"}
	s.Repeated = append(s.Repeated, Repeated{ruleSeal, s.subject(seal), undoneThreshold, noon})
	replace := Decision{Rule: ruleReplaceMember, Verdict: Act, Action: RemoveMember{ID: 1, Name: "a-1"}}
	undone := []Decision{drift, seal}
	got := s.afterUndone(replace, undone)
	if got.Rule != ruleSeal || got.Verdict != Block || !strings.Contains(got.Message, "in ConfigMap a-members") {
		t.Errorf("the Block does not name the ConfigMap: %s", got)
	}
	for _, kind := range []string{"Seal", "ApplyObjects"} {
		if n := strings.Count(got.Message, kind+" keeps being reverted"); n != 1 {
			t.Errorf("%s is named %d times: %s", kind, n, got)
		}
	}
	if got := s.blockUndone(drift, nil); strings.Contains(got.Message, "ConfigMap") {
		t.Errorf("a Block for drift names the ConfigMap: %s", got)
	}
	s.Now = noon.Add(undonePause)
	if got := s.afterUndone(replace, []Decision{seal}); got.Rule != ruleSeal || got.Verdict != Act {
		t.Errorf("after the pause: %s", got)
	}
}

// TestRepairIsDelayedOnlyByChanges checks what counts as a delay of a repair, and what ends it.
func TestRepairIsDelayedOnlyByChanges(t *testing.T) {
	repair := Decision{Rule: ruleReplaceMember, Verdict: Act, Action: RemoveMember{ID: 1, Name: "a-1"}}
	waits := Decision{Rule: ruleReplaceMember, Verdict: Wait}
	for name, c := range map[string]struct {
		d, wanted Decision
		changed   bool
		want      int
	}{
		"another action":               {Decision{Rule: ruleApplyObjects, Verdict: Act}, repair, true, 3},
		"an action that failed":        {Decision{Rule: ruleApplyObjects, Verdict: Act}, repair, false, 2},
		"an action that never recurs":  {Decision{Rule: "StartRollout", Verdict: Act}, repair, true, 2},
		"while the repair waits":       {Decision{Rule: ruleApplyObjects, Verdict: Act}, waits, true, 2},
		"the repair is carried out":    {repair, repair, true, 0},
		"the repair failed":            {repair, repair, false, 2},
		"nothing is left to be done":   {Decision{Rule: Converged, Verdict: Done}, Decision{}, false, 0},
		"another pass holds the lease": {Decision{Rule: LockedElsewhere, Verdict: Wait}, repair, false, 2},
	} {
		s := healthy(3)
		s.Now = noon
		s.Repeated = []Repeated{{ruleReplaceMember, preempted, 2, noon.Add(-time.Second)}}
		if got := s.delayAfter(c.d, c.wanted, ruleReplaceMember, c.changed); got.Times != c.want {
			t.Errorf("%s: delayed %d times, want %d", name, got.Times, c.want)
		}
	}
}

// TestChangedClusterEndsRepetition checks that applying objects again does not count as repeated after a member or a
// volume has changed, in any slot, and that bootstrapping other objects does not either.
func TestChangedClusterEndsRepetition(t *testing.T) {
	subject := func(change func(*State)) string {
		s := healthy(3)
		s.Replicas, s.Membership.Members = s.Replicas[:1], s.Membership.Members[1:]
		change(&s)
		return s.subject(Decision{Verdict: Act, Action: ApplyObjects{}, Message: "m"})
	}
	same := subject(func(*State) {})
	if got := subject(func(s *State) { s.Replicas[0].VolumeUID = "other" }); got == same {
		t.Error("a volume without a member has changed, and the action counts as the same")
	}
	if got := subject(func(s *State) { s.Membership.Members[0].ID = 99 }); got == same {
		t.Error("a member without a volume has changed, and the action counts as the same")
	}
	bootstrap := func(missing string) string {
		return healthy(3).subject(Decision{Verdict: Act, Action: Bootstrap{}, Message: missing})
	}
	first, again := bootstrap("a"), bootstrap("a")
	if first == "" || first != again || first == bootstrap("b") {
		t.Error("bootstrapping does not count as repeated exactly if the same objects are missing")
	}
}
