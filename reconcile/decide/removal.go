package decide

import (
	"fmt"
	"slices"
)

// removal asks the leader to remove a member. If the leader has refused the removal for a long time although all other
// members are healthy, it may have lost track of a restarted member, which it treats as disconnected as long as it
// leads (etcd issue 14523). Leadership is then transferred to each of the other remaining voters in turn, and the
// removal is requested from each new leader for a while. This is done once; if it does not help, manual action is
// required.
func (s State) removal(rule string, a RemoveMember, format string, args ...any) (Decision, bool) {
	d, _ := act(a, format, args...)
	d.Rule, d.waitsFor = rule, "remove "+a.Name
	leader := s.leader()
	if !s.asksNext(d) || leader.ID == 0 {
		return d, true
	}
	if to, is := s.nextToLead(rule, a.ID); is {
		d.Action, d.waitsFor, d.asksNext = MoveLeader{From: leader.ID, To: to.ID}, s.nameOf(to), true
		d.Message += fmt.Sprintf("; no progress for a long time: transferring leadership to %s, to request the "+
			"removal from the new leader", s.nameOf(to))
	}
	return d, true
}

// nextToLead returns the next follower, by ordinal, that is not being removed and has caught up. It returns no member
// unless all members that are not being removed are healthy voters, whose data is not in doubt.
func (s State) nextToLead(rule string, removed ID) (Member, bool) {
	if len(s.unsettledBut(removed)) > 0 {
		return Member{}, false
	}
	last, turned := s.Ordinal(s.lastTurn(rule).For)
	for _, m := range s.MembersInOrder() {
		ordinal, _ := s.OrdinalOf(m)
		turn := !turned || ordinal > last
		if turn && m.ID != removed && !s.Record.Hosts(m.ID) && !m.Leader && s.near(m) {
			return m, true
		}
	}
	return Member{}, false
}

// asksNext reports whether a different leader must be asked for an action that has not succeeded: the action has been
// tried for long enough, but not so long that manual action is required, and the current leader has also been asked for
// long enough.
func (s State) asksNext(d Decision) bool {
	w, tried := s.waited(d)
	turn := s.lastTurn(d.Rule).Since
	tries := s.Now.Sub(w.Since)
	return tried && tries >= refusalPatience && tries < s.deadlineFor(d) &&
		!w.Seen.Before(turn) && s.Now.Sub(turn) >= refusalPatience
}

// lastTurn returns the wait that began when leadership was last transferred because a rule's action had not succeeded,
// or the zero value. The wait is named after the new leader.
func (s State) lastTurn(rule string) Waited {
	i := slices.IndexFunc(s.Waited, func(w Waited) bool { return s.isTurn(w, rule) && !s.outdated(w) })
	if i < 0 {
		return Waited{}
	}
	return s.Waited[i]
}

// isTurn reports whether a wait belongs to the rule and names a leader.
func (s State) isTurn(w Waited, rule string) bool {
	_, turn := s.Ordinal(w.For)
	return turn && w.Rule == rule
}
