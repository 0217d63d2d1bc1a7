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
	for _, sizes := range [][2]int{{2, 1}, {3, 1}, {3, 2}, {5, 3}, {7, 5}} {
		for _, every := range []time.Duration{time.Second, 7 * time.Second, time.Minute, 9 * time.Minute} {
			for _, stays := range []bool{false, true} {
				l := &leaders{State: after(sizes[0], func(s *State) { s.Declared.Replicas = sizes[1] }), neverHandOver: stays}
				began := l.Now
				for ; l.Now.Sub(began) < 2*time.Hour; l.Now = l.Now.Add(every) {
					l.pass(began)
				}
				// Leadership is transferred once to each remaining voter, except the first leader.
				if others := sizes[0] - 2; l.moves != others && (every < time.Minute || l.moves == 0 || l.moves > others) {
					t.Errorf("%v every %s, stays %t: leadership was to move %d times", sizes, every, stays, l.moves)
				}
				if l.told < longPatience || l.told > longPatience+2*every {
					t.Errorf("%v every %s, stays %t: manual action was requested after %s", sizes, every, stays, l.told)
				}
				if passes := int(2 * time.Hour / every); l.asked < passes-l.moves-1 {
					t.Errorf("%v every %s, stays %t: asked in %d of %d passes", sizes, every, stays, l.asked, passes)
				}
			}
		}
	}
}
