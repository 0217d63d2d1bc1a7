package decide_test

import (
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// TestTraits lists the actions that have each trait, so that a change to a trait is visible.
func TestTraits(t *testing.T) {
	for name, test := range map[string]struct {
		has  func(decide.Traits) bool
		want string
	}{
		"NeverRestart: Allowed": {func(t decide.Traits) bool { return t.NeverRestart == decide.Allowed },
			"Seal RenewCertificates DisarmAlarm Defragment StartBackup StartRestore FinishRestore AddLearner PromoteLearner"},
		"NeverRestart: AllowedIfRunning":    {func(t decide.Traits) bool { return t.NeverRestart == decide.AllowedIfRunning }, "Bootstrap Declare"},
		"NeverRestart: AllowedIfNoneLeaves": {func(t decide.Traits) bool { return t.NeverRestart == decide.AllowedIfNoneLeaves }, "ApplyObjects"},
		"DiscardsData":                      {func(t decide.Traits) bool { return t.DiscardsData }, "StartRecovery FinishRecovery DeleteVolume"},
		"ChangesEtcd": {func(t decide.Traits) bool { return t.ChangesEtcd },
			"EnableDowngrade CancelDowngrade DisarmAlarm Defragment AddLearner PromoteLearner RemoveMember MoveLeader"},
		"IssuesCertificates": {func(t decide.Traits) bool { return t.IssuesCertificates }, "Bootstrap ApplyObjects RenewCertificates"},
		"Joins":              {func(t decide.Traits) bool { return t.Joins }, "AddLearner PromoteLearner"},
		"Unplannable":        {func(t decide.Traits) bool { return t.Unplannable }, "Seal ApplyObjects Defragment MoveLeader"},
		"DiscardsData and not refused": {func(t decide.Traits) bool {
			return t.DiscardsData && t.NeverRestart != decide.Refused
		}, ""},
	} {
		var have []string
		for _, a := range decide.Actions() {
			if test.has(decide.TraitsOf(a)) {
				have = append(have, decide.KindOf(a))
			}
		}
		if got := strings.Join(have, " "); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
	if got := decide.TraitsOf(nil); got != (decide.Traits{}) {
		t.Errorf("a nil action has the traits %+v", got)
	}
}

// TestDescribeAction checks that a description begins with the action's kind, and names members instead of IDs, UIDs
// and hashes.
func TestDescribeAction(t *testing.T) {
	s := decide.State{Name: "a", Membership: decide.Membership{Members: []decide.Member{{ID: 1, Name: "a-0"}}}}
	for want, a := range map[string]decide.Action{
		"Bootstrap replicas=3":                       decide.Bootstrap{Replicas: 3},
		"StartRollout version=3.6.16":                decide.StartRollout{Version: "3.6.16", SpecHash: "h"},
		"Seal a-0 and a-2":                           decide.Seal{ClusterID: 7, Members: decide.Ordinals(0).With(0).With(2)},
		"AddLearner a-2":                             decide.AddLearner{Ordinal: 2, PeerURL: "https://a-2"},
		"MoveLeader a-0 to " + decide.ID(9).String(): decide.MoveLeader{From: 1, To: 9},
		"Defragment a-0":                             decide.Defragment{ID: 1, Name: "a-0"},
		"DisarmAlarm NOSPACE":                        decide.DisarmAlarm{ID: 1, Kind: decide.AlarmNoSpace},
		"DeleteVolume a-1":                           decide.DeleteVolume{Ordinal: 1, VolumeUID: "u"},
		"FinishRecovery":                             decide.FinishRecovery{ClusterID: 7, VolumeUID: "u"},
	} {
		if got := s.DescribeAction(a); got != want {
			t.Errorf("%s is described as %q, want %q", a, got, want)
		}
	}
	for _, a := range decide.Actions() {
		if got := s.DescribeAction(a); !strings.HasPrefix(got, decide.KindOf(a)) {
			t.Errorf("%s is described as %q", a, got)
		}
	}
}
