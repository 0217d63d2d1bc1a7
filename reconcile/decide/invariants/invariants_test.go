package invariants

import (
	"testing"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// TestDecisionNeedsRuleAndValidRecheck checks that a decision without a rule, or with an invalid recheck interval, is
// rejected.
func TestDecisionNeedsRuleAndValidRecheck(t *testing.T) {
	good := decide.Decision{Rule: "Wait", Verdict: decide.Wait, Message: "wait", Recheck: time.Minute}
	nameless, tooEarly, tooLate := good, good, good
	nameless.Rule, tooEarly.Recheck, tooLate.Recheck = "", -1, time.Minute+1
	if broken := Broken(decide.State{}, good); len(broken) > 0 {
		t.Errorf("%q", broken)
	}
	for _, bad := range []decide.Decision{nameless, tooEarly, tooLate} {
		if len(Broken(decide.State{}, bad)) == 0 {
			t.Errorf("the invariants accept %+v", bad)
		}
	}
}

// TestSingleMemberNeedsNoLeaderTransfer checks that leadership does not prevent the restart of the only member.
func TestSingleMemberNeedsNoLeaderTransfer(t *testing.T) {
	s := decide.State{Name: "a", Membership: decide.Membership{Known: true, Members: []decide.Member{{ID: 1, Name: "a-0", Leader: true, Answers: true}}}}
	if what := leadershipIsTransferredFirst(s, decide.Decision{Action: decide.RestartReplica{Ordinal: 0}}); what != "" {
		t.Error(what)
	}
}

// TestSlotOf checks that a slot is found by name or, without a name, by peer URL, and only for exact pod names of this
// cluster.
func TestSlotOf(t *testing.T) {
	s := decide.State{Name: "a"}
	for _, c := range []struct {
		name, peerURL string
		want          int
		ours          bool
	}{
		{"a-0", "", 0, true}, {"a-63", "", 63, true}, {"a-64", "", 0, false}, {"a-01", "", 0, false}, {"a--1", "", 0, false}, {"b-0", "", 0, false},
		{"", "https://a-2.a.default.svc:2380", 2, true}, {"", "https://b-2.a.default.svc:2380", 0, false}, {"", "", 0, false}, {"", "a-2", 0, false},
		{"a-1", "https://a-2.a.default.svc:2380", 1, true},
	} {
		if got, ours := slotOf(s, decide.Member{Name: c.name, PeerURL: c.peerURL}); got != c.want || ours != c.ours {
			t.Errorf("%q at %q: slot %d, %t", c.name, c.peerURL, got, ours)
		}
	}
}
