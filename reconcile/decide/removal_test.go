package decide

import (
	"testing"
	"time"
)

// leaders simulates leaders that always refuse to remove a member and, if neverHandOver is set, to transfer leadership.
type leaders struct {
	State
	neverHandOver bool
	moves, asked  int
	told          time.Duration // when manual action was first requested
}

// pass simulates a pass, which does not change anything except possibly the leader.
func (l *leaders) pass(began time.Time) {
	d, changed := Decide(l.State), false
	switch a := d.Action.(type) {
	case MoveLeader:
		l.moves++
		changed = !l.neverHandOver
		for i := range l.Membership.Members {
			if m := &l.Membership.Members[i]; changed {
				m.Leader = m.ID == a.To
			}
		}
	case RemoveMember:
		l.asked++
	}
	if d = NoProgress(l.State, d, "unhealthy cluster"); d.Verdict == Block && l.told == 0 {
		l.told = l.Now.Sub(began)
	}
	l.Waited = Waits(l.State, d, changed)
}

// TestEachLeaderIsAskedOnce checks that leadership is transferred to each voter once, however often passes run, and
// that manual action is still requested after half an hour.
func TestEachLeaderIsAskedOnce(t *testing.T) {
	const span = time.Hour // longer than longPatience and two of the longest intervals
	for _, sizes := range [][2]int{{2, 1}, {3, 1}, {3, 2}, {5, 3}, {7, 5}} {
		for _, every := range []time.Duration{time.Second, 7 * time.Second, time.Minute, 9 * time.Minute} {
			for _, stays := range []bool{false, true} {
				l := &leaders{State: after(sizes[0], func(s *State) { s.Declared.Replicas = sizes[1] }), neverHandOver: stays}
				began := l.Now
				for ; l.Now.Sub(began) < span; l.Now = l.Now.Add(every) {
					l.pass(began)
				}
				// Leadership is transferred once to each remaining voter, except the first leader.
				if others := sizes[0] - 2; l.moves != others && (every < time.Minute || l.moves == 0 || l.moves > others) {
					t.Errorf("%v every %s, never hands over %t: leadership transfer was requested %d times", sizes, every, stays, l.moves)
				}
				if l.told < longPatience || l.told > longPatience+2*every {
					t.Errorf("%v every %s, never hands over %t: manual action was requested after %s", sizes, every, stays, l.told)
				}
				if passes := int(span / every); l.asked < passes-l.moves-1 {
					t.Errorf("%v every %s, never hands over %t: removal was requested in %d of %d passes", sizes, every, stays, l.asked, passes)
				}
			}
		}
	}
}

// waiting records a wait that began, and was last recorded, the given times ago.
func waiting(rule, what string, since, seen time.Duration) func(*State) {
	return func(s *State) {
		s.Waited = append(s.Waited, Waited{Rule: rule, For: what, Since: s.Now.Add(-since), Seen: s.Now.Add(-seen)})
	}
}

// rejected declares three of five members. Passes have requested the removal of a-4 for the given time.
func rejected(since time.Duration) func(*State) {
	return both(declared(3), waiting(ruleScaleDown, "remove a-4", since, 0))
}

// TestRejectedRemovalIsRequestedFromNewLeader checks how long a removal is requested from each leader, and that
// leadership is transferred only if all remaining members are healthy.
func TestRejectedRemovalIsRequestedFromNewLeader(t *testing.T) {
	removes, moves := RemoveMember{ID: 0xa4, Name: "a-4"}, MoveLeader{0xa0, 0xa1}
	second := func(ago time.Duration) func(*State) { return both(leads(1), waiting(ruleScaleDown, "a-1", ago, ago)) }
	notReady := func(s *State) { s.Replicas[1].Pod = PodStarting }
	notYetAsked := both(declared(3), second(30*time.Second), waiting(ruleScaleDown, "remove a-4", time.Minute, 31*time.Second))
	askAlone(t, scaleDown, map[string]ruleCase{
		"rejected for less than 20 s":                    {5, rejected(20*time.Second - 1), removes},
		"rejected for 20 s":                              {5, rejected(20 * time.Second), moves},
		"rejected for less than 30 min":                  {5, rejected(30*time.Minute - 1), moves},
		"rejected for 30 min: manual action is required": {5, rejected(30 * time.Minute), removes},
		"another member's removal was rejected":          {5, both(declared(3), waiting(ruleScaleDown, "remove a-3", time.Minute, 0)), removes},
		"the new leader was asked for almost 20 s":       {5, both(rejected(time.Minute), second(20*time.Second-1)), removes},
		"the new leader was asked for 20 s":              {5, both(rejected(time.Minute), second(20*time.Second)), MoveLeader{0xa1, 0xa2}},
		"the new leader was not asked yet":               {5, notYetAsked, removes},
		"the removed member is not responding":           {5, both(rejected(time.Minute), silence(4)), moves},
		"a remaining member is not ready":                {5, both(rejected(time.Minute), silence(4), notReady), removes},
		"no member leads":                                {5, both(rejected(time.Minute), leads(-1)), removes},
	})
}

// TestNextLeaderOfRejectedRemoval checks that leadership goes to each remaining voter in turn, by ordinal, if the voter
// has caught up.
func TestNextLeaderOfRejectedRemoval(t *testing.T) {
	removes := func(n int) Action { return RemoveMember{ID: ID(0xa0 + n), Name: healthy(1).ReplicaName(n)} }
	moves := func(from, to int) Action { return MoveLeader{ID(0xa0 + from), ID(0xa0 + to)} }
	behind := func(n int, entries uint64) func(*State) {
		return func(s *State) {
			for i := range s.Membership.Members {
				s.Membership.Members[i].Applied = 9000
			}
			s.Membership.Members[n].Applied -= entries
		}
	}
	onlyOther := both(declared(1), waiting(ruleScaleDown, "remove a-1", time.Minute, 0))
	minute := rejected(time.Minute)
	lastAsked := func(what string, ago time.Duration) func(*State) {
		return both(minute, waiting(ruleScaleDown, what, ago, ago))
	}
	askAlone(t, scaleDown, map[string]ruleCase{
		"first the lowest ordinal":                               {5, both(minute, leads(2)), moves(2, 0)},
		"then the next ordinal":                                  {5, both(lastAsked("a-1", time.Minute), leads(1)), moves(1, 2)},
		"the next ordinal, even if the last one lost leadership": {5, lastAsked("a-1", time.Minute), moves(0, 2)},
		"the removed member does not lead":                       {5, both(lastAsked("a-3", time.Minute), leads(3)), removes(4)},
		"no other member remains":                                {2, onlyOther, removes(1)},
		"a voter that lags behind is skipped":                    {5, both(minute, behind(1, 1001)), moves(0, 2)},
		"a voter that has almost caught up leads":                {5, both(minute, behind(1, 1000)), moves(0, 1)},
		"an outdated transfer does not count":                    {5, lastAsked("a-1", 31*time.Minute), moves(0, 1)},
		"a wait recorded by a different rule is ignored":         {5, both(minute, waiting("WaitForMembers", "a-1", time.Minute, 0)), moves(0, 1)},
	})
	askAlone(t, replaceMember, map[string]ruleCase{
		"the replaced member does not lead": {3, both(going(1), waiting(ruleReplaceMember, "remove a-1", time.Minute, 0)), moves(0, 2)},
	})
}
