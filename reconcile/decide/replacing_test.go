package decide

import "testing"

func unlisted(s *State) { s.Membership.Known = false }

type ruleCase struct {
	members int
	change  func(*State)
	want    Action // nil if the rule does not apply
}

// askAlone evaluates a rule without earlier rules.
func askAlone(t *testing.T, rule func(State) (Decision, bool), cases map[string]ruleCase) {
	t.Helper()
	for what, c := range cases {
		d, speaks := rule(after(c.members, c.change))
		if d.Action != c.want || speaks != (c.want != nil) {
			t.Errorf("%s: %s", what, d)
		}
	}
}

// TestReplaceMember checks the rule by itself, and which voter gets leadership before a leader is removed.
func TestReplaceMember(t *testing.T) {
	removes := func(n int, loss Loss, volume string) Action {
		return RemoveMember{ID(0xa0 + n), healthy(1).ReplicaName(n), LossEvidence{loss, volume}}
	}
	moves := func(to int) Action { return MoveLeader{0xa0, ID(0xa0 + to)} }
	lost := slot1(PodPending, 0, gone)
	askAlone(t, replaceMember, map[string]ruleCase{
		"a member lost its volume":                 {3, lost, removes(1, VolumeLost, "v1")},
		"lost volume, member list unknown":         {3, both(lost, unlisted), nil},
		"lost volume, only one member responds":    {3, both(lost, silence(2)), nil},
		"a member's data is outvoted":              {3, holds(2, 1, 2), removes(1, Corruption, "")},
		"outvoted, another member is unhealthy":    {4, both(holds(2, 1, 2, 2), func(s *State) { s.Replicas[3].Pod = PodPending }), nil},
		"the leader's data is outvoted":            {3, holds(1, 2, 2), moves(1)},
		"the only voter's volume is being deleted": {2, both(going(0), learns(1), declared(1)), nil},
		"the leader's volume is being deleted":     {3, going(0), moves(1)},
	})
	for what, c := range map[string]ruleCase{
		"to a voter whose volume is kept":              {3, going(0, 1), moves(2)},
		"to any voter, all volumes being deleted":      {3, going(0, 1, 2), moves(1)},
		"to a voter that is not outvoted":              {5, holds(1, 1, 2, 2, 2), moves(2)},
		"a learner is removed without a transfer":      {1, learns(0), removes(0, Silence, "")},
		"the only voter is removed without a transfer": {1, nil, removes(0, Silence, "")},
		"from one of two voters to the other":          {2, nil, moves(1)},
	} {
		s := after(c.members, c.change)
		if d, _ := s.giveUp(s.Membership.Members[0], "goes"); d.Action != c.want {
			t.Errorf("%s: %s", what, d)
		}
	}
}

// TestLeaderTransferTarget checks that leadership goes to the first acceptable voter that responds and has caught up.
// The rule waits only if an acceptable voter exists.
func TestLeaderTransferTarget(t *testing.T) {
	ahead := func(s *State) { s.Membership.Members[0].Applied = 9000 }
	caughtUp := func(n int) func(*State) { return func(s *State) { s.Membership.Members[n].Applied = 9000 } }
	notFirst := func(m Member) bool { return m.ID != 0xa1 }
	anyone := func(Member) bool { return true }
	for what, c := range map[string]struct {
		change func(*State)
		willDo func(Member) bool
		want   Action
		waits  bool
	}{
		"the first voter":                           {nil, anyone, MoveLeader{0xa0, 0xa1}, false},
		"the first voter that has caught up":        {both(ahead, caughtUp(2)), anyone, MoveLeader{0xa0, 0xa2}, false},
		"no voter has caught up":                    {ahead, anyone, nil, true},
		"the first voter is not acceptable":         {nil, notFirst, MoveLeader{0xa0, 0xa2}, false},
		"the first is a learner":                    {learns(1), anyone, MoveLeader{0xa0, 0xa2}, false},
		"the first is not responding":               {silence(1), anyone, MoveLeader{0xa0, 0xa2}, false},
		"the first is outvoted":                     {holds(2, 1, 2), anyone, MoveLeader{0xa0, 0xa2}, false},
		"one is not acceptable, one not responding": {silence(2), notFirst, nil, false},
	} {
		s := after(3, c.change)
		d, speaks := s.transferLeadership(s.Membership.Members[0], c.willDo, "so")
		if d.Action != c.want || (d.Verdict == Wait) != c.waits || speaks != (c.want != nil || c.waits) {
			t.Errorf("%s: %s", what, d)
		}
	}
}

// TestPromoteLearner checks that a learner is promoted once it is sealed and has nine tenths of the leader's log, and
// the voters including the learner have quorum.
func TestPromoteLearner(t *testing.T) {
	promotes := PromoteLearner{0xa2, "a-2"}
	applied := func(leader, learner uint64) func(*State) {
		return func(s *State) { s.Membership.Members[0].Applied, s.Membership.Members[2].Applied = leader, learner }
	}
	joins := func(s *State) { s.Record = s.Record.With(RecordedMember{Ordinal: 2, Mode: Joining}) }
	askAlone(t, promoteLearner, map[string]ruleCase{
		"a learner":                        {3, learns(2), promotes},
		"a voter":                          {3, nil, nil},
		"the member list is unknown":       {3, both(learns(2), unlisted), nil},
		"has nine tenths of the log":       {3, both(learns(2), applied(1000, 900)), promotes},
		"has less than nine tenths":        {3, both(learns(2), applied(1000, 899)), nil},
		"not responding":                   {3, both(learns(2), silence(2)), nil},
		"not started":                      {3, both(learns(2), func(s *State) { s.Membership.Members[2].Started = false }), nil},
		"not sealed":                       {3, both(learns(2), joins), nil},
		"an unknown member":                {3, both(learns(2), stranger(2)), nil},
		"members' data may differ":         {3, both(learns(2), inDoubt), nil},
		"too few other members respond":    {4, both(learns(2), silence(1, 3)), nil},
		"the learner completes the quorum": {5, both(learns(2), silence(3, 4)), promotes},
		"one of two voters responds":       {3, both(learns(2), silence(1)), promotes},
	})
}

// TestDisarmAlarm checks that alarms of removed members are disarmed, and CORRUPT alarms only when all voters are known
// to hold the same data.
func TestDisarmAlarm(t *testing.T) {
	askAlone(t, disarmAlarm, map[string]ruleCase{
		"NOSPACE alarm of a removed member":       {3, leftOver(0xd1, "NOSPACE"), DisarmAlarm{0xd1, "NOSPACE"}},
		"NOSPACE alarm, member list unknown":      {3, both(leftOver(0xd1, "NOSPACE"), unlisted), nil},
		"NOSPACE alarm of an unidentified member": {3, leftOver(0, "NOSPACE"), nil},
		"NOSPACE alarm of a listed member":        {3, alarms(1, "NOSPACE"), nil},
		"CORRUPT alarm that is not refuted":       {3, leftOver(0xd1, "CORRUPT"), nil},
		"CORRUPT alarm that is refuted":           {3, both(holds(1, 1, 1), leftOver(0xd2, "NOSPACE"), leftOver(0xd1, "CORRUPT")), DisarmAlarm{0xd1, "CORRUPT"}},
	})
}

// TestCleanUp checks that only the recorded volume is deleted, only if its slot has no member, and only if every
// member's slot is known.
func TestCleanUp(t *testing.T) {
	left := both(func(s *State) {
		s.Record.Members, s.Membership.Members = s.Record.Members[:2], s.Membership.Members[:2]
		s.Record = s.Record.WithRemoved(RemovedMember{Ordinal: 2, VolumeUID: "v2"})
	}, declared(2))
	inGap := func(s *State) {
		s.Record = s.Record.WithRemoved(RemovedMember{Ordinal: 1, VolumeUID: "v1"})
		s.Membership.Members = append(s.Membership.Members[:1:1], s.Membership.Members[2])
	}
	nameless := func(s *State) {
		s.Membership.Members[0].Name, s.Membership.Members[0].PeerURL = "", "https://10.0.0.1:2380"
	}
	unnamed := func(s *State) { s.Membership.Members[0].Name = "" }
	restart := RestartReplica{1, "p1"}
	askAlone(t, cleanUp, map[string]ruleCase{
		"a removed member's volume":                      {3, left, DeleteVolume{2, "v2"}},
		"a removed member's volume, member list unknown": {3, both(left, unlisted), nil},
		"the slot still has a member":                    {3, func(s *State) { s.Record = s.Record.WithRemoved(RemovedMember{Ordinal: 2, VolumeUID: "v2"}) }, nil},
		"the slot has another volume":                    {3, both(left, func(s *State) { s.Replicas[2].VolumeUID = "w2" }), nil},
		"the slot has no volume":                         {3, both(left, func(s *State) { s.Replicas[2].VolumeUID, s.Record.Removed[0].VolumeUID = "", "" }), nil},
		"the volume is already being deleted":            {3, both(left, going(2)), nil},
		"a member's slot is unknown":                     {3, both(left, nameless), nil},
		"a member has no name yet":                       {3, both(left, unnamed), DeleteVolume{2, "v2"}},
		"an unknown member is listed":                    {3, both(left, stranger(0)), DeleteVolume{2, "v2"}},
		"a pod delays the volume's deletion":             {3, both(inGap, going(1)), restart},
		"a pod delays deletion, member list unknown":     {3, both(inGap, going(1), unlisted), nil},
		"a pod delays deletion, a slot is unknown":       {3, both(inGap, going(1), nameless), nil},
		"the volume's pod is terminating":                {3, both(inGap, going(1), func(s *State) { s.Replicas[1].Pod = PodTerminating }), nil},
		"the pod's UID is unknown":                       {3, both(inGap, going(1), func(s *State) { s.Replicas[1].PodUID = "" }), nil},
		"the volume's member has started":                {3, going(1), nil},
		"a new member has not started":                   {3, both(going(1), unstarted, silence(1)), restart},
		"a new, unstarted member responds":               {3, both(going(1), unstarted), nil},
		"beyond the highest recorded slot":               {3, both(left, going(2)), nil},
	})
	for what, c := range map[string]slotCase{
		"the volume exists":               {left, true},
		"the volume is deleted":           {both(left, func(s *State) { s.Replicas = s.Replicas[:2] }), false},
		"below the highest recorded slot": {inGap, false},
		"no member was removed":           {nil, false},
	} {
		if d, speaks := waitForCleanUp(after(3, c.change)); speaks != c.want {
			t.Errorf("%s: %s", what, d)
		}
	}
}

// left records that a member was removed from the slot, and its volume.
func left(volume string) func(*State) {
	return func(s *State) { s.Record.Removed = []RemovedMember{{Ordinal: 1, VolumeUID: volume}} }
}

// TestSlotOfAnother checks that only a member that has never started counts as being in another's slot, and only if the
// record shows an earlier member there.
func TestSlotOfAnother(t *testing.T) {
	is := func(s State, m Member) bool { return s.slotOfAnother(m, 1) }
	other := func(s *State) { s.Membership.Members[1].ID = 0xb1 }
	check(t, is, map[string]slotCase{
		"the slot is the member's own": {unstarted, false},
		"the slot is another member's": {both(unstarted, other), true},
		"the member has started":       {other, false},
		"no member ID is recorded":     {both(unstarted, other, recordedAs(RecordedMember{Mode: Joining})), false},

		"a removed member's volume":                     {both(slot1(PodFailing, 0), unstarted, left("v1")), true},
		"a removed member's volume, being deleted":      {both(slot1(PodAbsent, 0, onItsWay), unstarted, left("v1")), false},
		"a removed member's volume, held by a pod":      {both(slot1(PodFailing, 0, onItsWay), unstarted, left("v1")), true},
		"the volume was created later":                  {both(slot1(PodFailing, 0), unstarted, left("v0")), false},
		"the removed member had no volume":              {both(slot1(PodPending, 0, gone), unstarted, left("")), false},
		"a removed member's volume, member has started": {both(slot1(PodFailing, 0), left("v1")), false},
	})
}
