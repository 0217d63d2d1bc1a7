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
		"it stays":                                 {nil, false},
		"it goes":                                  {going(1), true},
		"it goes, and its member is silent":        {slot1(PodStarting, 0, onItsWay), true},
		"another goes":                             {changed(another, onItsWay), false},
		"its claim is gone":                        {changed(gone), true},
		"its claim is gone, on its way":            {changed(gone, onItsWay), true},
		"claim deleted, and member not responding": {slot1(PodPending, 0, gone), false},
		"no claim was on record":                   {both(changed(gone, onItsWay), recordedAs(RecordedMember{Mode: Sealed})), false},
		"a learner's":                              {both(going(1), learns(1)), false},
		"of one that has not started":              {both(going(1), unstarted), false},
		"of a-0, beside a stranger":                {both(going(0), stranger(1)), false},
	})
	check(t, func(s State, m Member) bool { return s.mustMove(m) != "" }, map[string]slotCase{
		"it stays":                     {nil, false},
		"it goes":                      {going(1), true},
		"it goes, and another list":    {both(going(1), disagrees), false},
		"it goes, silent and ready":    {slot1(PodReady, 0, onItsWay), false},
		"it goes, silent and starting": {slot1(PodStarting, 0, onItsWay), true},
	})
	check(t, State.safe, map[string]slotCase{
		"healthy":            {nil, true},
		"a learner":          {learns(1), false},
		"silent":             {slot1(PodReady, 0), false},
		"no volume":          {changed(gone), false},
		"a volume that goes": {changed(onItsWay), false},
		"stranded":           {changed(unlucky), false},
		"a stranger":         {stranger(1), false},
		"in doubt":           {inDoubt, false},
		"outvoted":           {holds(2, 1, 2), false},
		"of the majority":    {holds(2, 2, 1), true},
	})
}

// TestOthersAreWell checks that all other members must be healthy, regardless of whether their volumes are being
// deleted.
func TestOthersAreWell(t *testing.T) {
	check(t, State.othersAreWell, map[string]slotCase{
		"all well":                        {nil, true},
		"it is not":                       {slot1(PodFailing, time.Hour), true},
		"another is silent":               {silence(2), false},
		"another is doomed":               {going(2), true},
		"another is doomed, and silent":   {both(going(2), func(s *State) { s.down(PodStarting, 0, 2) }), false},
		"another is a learner":            {learns(2), false},
		"another is a learner, and going": {both(learns(2), going(2)), true},
		"another is down because of data": {halts(2, 1, 0), false},
	})
}

// TestOthersWaitForNone checks that a removal does not wait for members that are down because of the data of the peer
// to be removed.
func TestOthersWaitForNone(t *testing.T) {
	check(t, State.othersWaitForNone, map[string]slotCase{
		"all well":                        {nil, true},
		"another is silent":               {silence(2), false},
		"another is doomed":               {going(2), true},
		"another is a learner":            {learns(2), false},
		"another is down because of data": {halts(2, 1, 0), true},
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
		"one of three":                         {3, going(1), true},
		"one of three, another is silent":      {3, both(going(1), silence(2)), false},
		"two of three":                         {3, going(1, 2), false},
		"two of three, one more than declared": {3, both(going(1, 2), declared(2)), true},
		"all of three, one more than declared": {3, both(going(0, 1, 2), declared(2)), false},
		"two of five":                          {5, going(1, 2), true},
		"one of five, one down by its data":    {5, both(going(1), holds(2, 2, 2, 2, 0), halts(4, 1, 0)), false},
		"three of five":                        {5, going(1, 2, 3), false},
		"one of two":                           {2, going(1), false},
		"one of as many, one in another's slot": {3, both(going(1), func(s *State) {
			s.Membership.Members[2].Name, s.Replicas[2].Ordinal, s.Record.Members[2].Ordinal = "a-5", 5, 5
		}), false},
		"a learner in a slot of three":       {3, both(going(1), learns(1)), false},
		"one of three, one down by its data": {3, both(going(1), declared(2), holds(2, 2, 0), halts(2, 1, 0)), false},
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
		"all of three":                               {3, going(0, 1, 2), add(3)},
		"none":                                       {3, nil, nil},
		"all, not to run":                            {3, both(going(0, 1, 2), func(s *State) { s.Declared.Lifecycle = "Stopped" }), nil},
		"all, in doubt":                              {3, both(going(0, 1, 2), inDoubt), nil},
		"two, another is silent":                     {3, both(going(0, 1), silence(2)), nil},
		"two, and one of them is silent":             {3, both(going(0, 1), slot1(PodStarting, 0)), nil},
		"two, one on record is unlisted":             {3, both(going(0, 1), func(s *State) { s.Record = s.Record.With(RecordedMember{Ordinal: 3, Mode: Sealed}) }), nil},
		"one of two, one more than declared":         {2, both(going(0), declared(1)), nil},
		"both, one more than declared":               {2, both(going(0, 1), declared(1)), add(2)},
		"both, the next slot is not empty":           {2, both(going(0, 1), func(s *State) { s.Replicas = append(s.Replicas, Replica{Ordinal: 2, VolumeUID: "v2"}) }), nil},
		"both, no peer URL to go by":                 {2, both(going(0, 1), func(s *State) { s.Membership.Members[0].PeerURL, s.Membership.Members[1].PeerURL = "", "" }), nil},
		"two of 63":                                  {63, going(0, 1), add(63)},
		"two of 64, which are all that there can be": {64, going(0, 1), nil},
		"down by a peer's data":                      {4, both(holds(2, 2, 2, 0), going(0, 3), halts(3, 1, 0)), nil},
	} {
		d, speaks := after(c.members, c.change).addSpare()
		if d.Action != c.want || speaks != (d.Action != nil) {
			t.Errorf("%s: %s", what, d)
		}
	}
	if got := healthy(3).safeWithout(healthy(3).Membership.Members[1]); got != 2 {
		t.Errorf("in addition to one of three, %d are safe", got)
	}
	if got := after(3, stranger(0)).lowestFreeOrdinal(); got != 0 {
		t.Errorf("the lowest free ordinal is 0, not %d", got)
	}
}
