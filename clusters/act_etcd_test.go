package clusters

import (
	"maps"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// What etcd is to do is not done twice.
func TestAlreadySo(t *testing.T) {
	now := decide.Membership{
		Known: true, Downgrade: "3.6", StaleAlarms: []decide.Alarm{{ID: 9, Kind: "CORRUPT"}},
		Members: []decide.Member{
			{ID: 1, Name: "a-0", PeerURL: "http://a-0", Leader: true, Alarms: []decide.AlarmKind{"NOSPACE"}},
			{ID: 2, PeerURL: "http://a-1", Learner: true},
		},
	}
	for name, test := range map[string]struct {
		change change
		want   bool
	}{
		"listed":               {addition(decide.AddLearner{Ordinal: 1, PeerURL: "http://a-1"}), true},
		"not listed":           {addition(decide.AddLearner{Ordinal: 2, PeerURL: "http://a-2"}), false},
		"votes":                {promotion(decide.PromoteLearner{ID: 1}), true},
		"learns":               {promotion(decide.PromoteLearner{ID: 2}), false},
		"is none":              {promotion(decide.PromoteLearner{ID: 3}), false}, // for etcd to say
		"is gone":              {removal(decide.RemoveMember{ID: 3}), true},
		"is there":             {removal(decide.RemoveMember{ID: 2}), false},
		"leads":                {moveLeader(decide.MoveLeader{From: 2, To: 1}), true},
		"follows":              {moveLeader(decide.MoveLeader{From: 1, To: 2}), false},
		"downgrade under way":  {downgrade(decide.EnableDowngrade{Version: "3.6"}), true},
		"another under way":    {downgrade(decide.EnableDowngrade{Version: "3.5"}), false},
		"to be cancelled":      {noDowngrade(decide.CancelDowngrade{Version: "3.6"}), false},
		"alarm":                {disarming(decide.DisarmAlarm{ID: 1, Kind: "NOSPACE"}), false},
		"alarm of who is gone": {disarming(decide.DisarmAlarm{ID: 9, Kind: "CORRUPT"}), false},
		"another alarm":        {disarming(decide.DisarmAlarm{ID: 1, Kind: "CORRUPT"}), true},
		"alarm of another":     {disarming(decide.DisarmAlarm{ID: 2, Kind: "NOSPACE"}), true},
	} {
		if got := test.change.alreadySo(now); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !noDowngrade(decide.CancelDowngrade{Version: "3.6"}).alreadySo(decide.Membership{Known: true}) {
		t.Error("a downgrade that is not under way is to be cancelled")
	}
}

// A member that has not started goes by the name of its pod; one of another name is counted all the
// same.
func TestPeers(t *testing.T) {
	c := &cluster{state: decide.State{Name: "a"}}
	members := []decide.Member{
		{ID: 1, Name: "a-0", PeerURL: "https://a-0.a.ns.svc:2380"},
		{ID: 2, PeerURL: "https://a-1.a.ns.svc:2380"},
		{ID: 0xb, PeerURL: "https://10.0.0.1:2380"},
		{ID: 4, Name: "guest", PeerURL: "https://guest:2380"},
	}
	want := map[string]string{
		"a-0": members[0].PeerURL, "a-1": members[1].PeerURL, "b": members[2].PeerURL, "guest": members[3].PeerURL,
	}
	if got := c.peers(decide.Membership{Known: true, Members: members}); !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if got := c.peers(decide.Membership{Members: members}); got != nil {
		t.Errorf("hearsay: %v", got)
	}
}

// Only a claim that is known to be another than the removed member's is without data.
func TestMadeAfterRemoval(t *testing.T) {
	c := &cluster{}
	c.state.Record.Removed = []decide.RemovedMember{{Ordinal: 1, VolumeUID: "old"}, {Ordinal: 2}}
	for ordinal, want := range map[int]bool{0: false, 1: true, 2: false} {
		if got := c.madeAfterRemoval(ordinal, "new"); got != want {
			t.Errorf("%d: %v", ordinal, got)
		}
	}
	if c.madeAfterRemoval(1, "old") {
		t.Error("the volume of the removed member counts as new")
	}
}
