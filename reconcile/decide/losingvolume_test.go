package decide

import (
	"testing"
	"time"
)

func going(ordinals ...int) func(*State) {
	return func(s *State) {
		for _, n := range ordinals {
			s.Replicas[n].VolumeTerminating = true
		}
	}
}

func declared(n int) func(*State) { return func(s *State) { s.Declared.Replicas = n } }

// changed changes the replica of a-1, whose member still responds.
func changed(changes ...func(*Replica)) func(*State) {
	return func(s *State) {
		for _, change := range changes {
			change(&s.Replicas[1])
		}
	}
}

func stranger(n int) func(*State) { return func(s *State) { s.Membership.Members[n].Name = "x" } }

// TestOnGoingVolume checks that a voter's data is lost with its pod if the volume is being deleted or its claim is
// already gone.
func TestOnGoingVolume(t *testing.T) {
	check(t, State.onGoingVolume, map[string]slotCase{
		"volume kept":          {nil, false},
		"volume being deleted": {going(1), true},
		"volume being deleted, member not responding": {slot1(PodStarting, 0, onItsWay), true},
		"different volume being deleted":              {changed(another, onItsWay), false},
		"claim gone, member responds":                 {changed(gone), true},
		"claim gone, volume being deleted":            {changed(gone, onItsWay), true},
		"claim gone, member not responding":           {slot1(PodPending, 0, gone), false},
		"claim gone, no claim recorded":               {both(changed(gone, onItsWay), recordedAs(RecordedMember{Mode: Sealed})), false},
		"a learner's volume being deleted":            {both(going(1), learns(1)), false},
		"an unstarted member's volume being deleted":  {both(going(1), unstarted), false},
		"a-0's volume being deleted, unknown member":  {both(going(0), stranger(1)), false},
	})
	check(t, func(s State, m Member) bool { return s.mustMove(m) != "" }, map[string]slotCase{
		"volume kept":          {nil, false},
		"volume being deleted": {going(1), true},
		"volume being deleted, member list differs":          {both(going(1), disagrees), false},
		"volume being deleted, not responding, pod ready":    {slot1(PodReady, 0, onItsWay), false},
		"volume being deleted, not responding, pod starting": {slot1(PodStarting, 0, onItsWay), true},
	})
	check(t, State.safe, map[string]slotCase{
		"healthy":              {nil, true},
		"a learner":            {learns(1), false},
		"not responding":       {slot1(PodReady, 0), false},
		"claim gone":           {changed(gone), false},
		"volume being deleted": {changed(onItsWay), false},
		"stranded":             {changed(unlucky), false},
		"an unknown member":    {stranger(1), false},
		"data in doubt":        {inDoubt, false},
		"outvoted":             {holds(2, 1, 2), false},
		"in the majority":      {holds(2, 2, 1), true},
	})
}

// TestOthersAreWell checks that all other members must be healthy, regardless of whether their volumes are being
// deleted.
func TestOthersAreWell(t *testing.T) {
	check(t, State.othersAreWell, map[string]slotCase{
		"all healthy":                                    {nil, true},
		"only the member itself is unhealthy":            {slot1(PodFailing, time.Hour), true},
		"another member not responding":                  {silence(2), false},
		"another member's volume being deleted":          {going(2), true},
		"another's volume being deleted, not responding": {both(going(2), func(s *State) { s.down(PodStarting, 0, 2) }), false},
		"another member is a learner":                    {learns(2), false},
		"another learner's volume being deleted":         {both(learns(2), going(2)), true},
		"another member down because of data":            {halts(2, 1, 0), false},
	})
}

// TestOthersWaitForNone checks that a removal does not wait for members that are down because of the data of the peer
// to be removed.
func TestOthersWaitForNone(t *testing.T) {
	check(t, State.othersWaitForNone, map[string]slotCase{
		"all healthy":                           {nil, true},
		"another member not responding":         {silence(2), false},
		"another member's volume being deleted": {going(2), true},
		"another member is a learner":           {learns(2), false},
		"another member down because of data":   {halts(2, 1, 0), true},
	})
}

// TestMayGiveUp checks that a voter that must move is removed once it is replaced, or if enough other members for a
// quorum have the data on volumes that are kept.
func TestMayGiveUp(t *testing.T) {
	for what, c := range map[string]struct {
		members int
		change  func(*State)
		want    bool // for a-1
	}{
		"one of three must move":                         {3, going(1), true},
		"one of three must move, another not responding": {3, both(going(1), silence(2)), false},
		"two of three must move":                         {3, going(1, 2), false},
		"two of three must move, one surplus":            {3, both(going(1, 2), declared(2)), true},
		"all of three must move, one surplus":            {3, both(going(0, 1, 2), declared(2)), false},
		"two of five must move":                          {5, going(1, 2), true},
		"one of five must move, another stopped":         {5, both(going(1), holds(2, 2, 2, 2, 0), halts(4, 1, 0)), false},
		"three of five must move":                        {5, going(1, 2, 3), false},
		"one of two must move":                           {2, going(1), false},
		"one of three must move, ordinals have a gap": {3, both(going(1), func(s *State) {
			s.Membership.Members[2].Name, s.Replicas[2].Ordinal, s.Record.Members[2].Ordinal = "a-5", 5, 5
		}), false},
		"one of three must move, a learner":       {3, both(going(1), learns(1)), false},
		"one of three must move, another stopped": {3, both(going(1), declared(2), holds(2, 2, 0), halts(2, 1, 0)), false},
	} {
		s := after(c.members, c.change)
		if got := s.mayGiveUp(s.Membership.Members[1]); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}

// TestAddSpare checks that, if too few other members have the data on volumes that are kept, a spare is added before
// voters that must move are removed.
func TestAddSpare(t *testing.T) {
	add := func(n int) Action { return AddLearner{n, healthy(64).peerURL(n)} }
	for what, c := range map[string]struct {
		members int
		change  func(*State)
		want    Action
	}{
		"all of three must move":                    {3, going(0, 1, 2), add(3)},
		"no member must move":                       {3, nil, nil},
		"all must move, cluster stopped":            {3, both(going(0, 1, 2), func(s *State) { s.Declared.Lifecycle = "Stopped" }), nil},
		"all must move, data in doubt":              {3, both(going(0, 1, 2), inDoubt), nil},
		"two must move, another not responding":     {3, both(going(0, 1), silence(2)), nil},
		"two must move, one of them not responding": {3, both(going(0, 1), slot1(PodStarting, 0)), nil},
		"two must move, a recorded member unlisted": {3, both(going(0, 1), func(s *State) { s.Record = s.Record.With(RecordedMember{Ordinal: 3, Mode: Sealed}) }), nil},
		"one of two must move, one surplus":         {2, both(going(0), declared(1)), nil},
		"both must move, one surplus":               {2, both(going(0, 1), declared(1)), add(2)},
		"both must move, next slot not empty":       {2, both(going(0, 1), func(s *State) { s.Replicas = append(s.Replicas, Replica{Ordinal: 2, VolumeUID: "v2"}) }), nil},
		"both must move, peer URLs unknown":         {2, both(going(0, 1), func(s *State) { s.Membership.Members[0].PeerURL, s.Membership.Members[1].PeerURL = "", "" }), nil},
		"two of 63 must move":                       {63, going(0, 1), add(63)},
		"two of 64, the maximum, must move":         {64, going(0, 1), nil},
		"two must move, one stopped":                {4, both(holds(2, 2, 2, 0), going(0, 3), halts(3, 1, 0)), nil},
	} {
		d, speaks := after(c.members, c.change).addSpare()
		if d.Action != c.want || speaks != (d.Action != nil) {
			t.Errorf("%s: %s", what, d)
		}
	}
	if got := healthy(3).safeWithout(healthy(3).Membership.Members[1]); got != 2 {
		t.Errorf("without one of three, %d members are safe, want 2", got)
	}
	if got := after(3, stranger(0)).lowestFreeOrdinal(); got != 0 {
		t.Errorf("the lowest free ordinal is %d, want 0", got)
	}
}
