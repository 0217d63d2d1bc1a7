package decide

import (
	"fmt"
	"slices"
)

// removal asks the leader to remove a member. If it has refused that for long although all others are well, it may have
// lost sight of one that was restarted: it takes that for disconnected for as long as it leads (etcd issue 14523). Then
// leadership goes to the other voters that stay, one after the other, and each is asked for a while. That is done once;
// if it does not help, a person is told.
func (s State) removal(rule string, a RemoveMember, format string, args ...any) (Decision, bool) {
	d, _ := act(a, format, args...)
	d.Rule, d.waitsFor = rule, "remove "+a.Name
	leader := s.leader()
	if !s.asksNext(d) || leader.ID == 0 || len(s.unsettledBut(a.ID)) > 0 {
		return d, true
	}
	if to, is := s.nextToLead(rule, a.ID); is {
		d.Action, d.waitsFor, d.asksNext = MoveLeader{From: leader.ID, To: to.ID}, s.nameOf(to), true
		d.Message += fmt.Sprintf("; nothing has come of that for long: transfer leadership to %s, to ask it next",
			s.nameOf(to))
	}
	return d, true
}

// nextToLead is the next one whose turn it is, by ordinal, of the voters that follow and stay.
func (s State) nextToLead(rule string, removed ID) (Member, bool) {
	last, turned := s.Ordinal(s.lastTurn(rule).For)
	for _, m := range s.MembersInOrder() {
		ordinal, ours := s.OrdinalOf(m)
		turn := ours && (!turned || ordinal > last) && m.ID != removed && !m.Leader
		if turn && s.mayLead(m) && s.near(m) && s.doomed(m) == "" {
			return m, true
		}
	}
	return Member{}, false
}

// asksNext reports whether another than the leader is to be asked for what has been tried in vain: for that long, and
// not for so long that a person is told. Whose turn it was has been asked, and had its time.
func (s State) asksNext(d Decision) bool {
	w, tried := s.waited(d)
	turn := s.lastTurn(d.Rule).Since
	tries := s.Now.Sub(w.Since)
	return tried && tries >= refusalPatience && tries < s.patienceFor(d) &&
		!w.Seen.Before(turn) && s.Now.Sub(turn) >= refusalPatience
}

// lastTurn is the wait that began when leadership was last transferred for what a rule has tried in vain; it is for the
// new leader. The zero value if that has not been done.
func (s State) lastTurn(rule string) Waited {
	i := slices.IndexFunc(s.Waited, func(w Waited) bool { return s.isTurn(w, rule) && !s.outdated(w) })
	if i < 0 {
		return Waited{}
	}
	return s.Waited[i]
}

// isTurn reports whether a wait of that rule is for a leader: of a member's name.
func (s State) isTurn(w Waited, rule string) bool {
	_, turn := s.Ordinal(w.For)
	return turn && w.Rule == rule
}
