package forecast

import (
	"fmt"

	"quorate.dev/quorate/reconcile/decide"
)

// Quorum describes how far etcd is from losing quorum. The zero value means that the cluster has not formed.
type Quorum struct {
	// Voters is the number of voters that etcd lists, and Answering is the number of responding voters.
	Voters    int `json:"voters"`
	Answering int `json:"answering"`
	Learners  int `json:"learners,omitempty"`
	// Leader is the name of the leader, or empty if it is unknown.
	Leader string `json:"leader,omitempty"`
	// Unknown is true if the cluster has formed but members do not return a list of voters.
	Unknown bool `json:"unknown,omitempty"`
}

// quorumOf returns the quorum of a state. If etcd does not return its member list, the voters in before count as
// unresponsive. If before has no voters, the voters that a single member lists count as unresponsive.
func quorumOf(s decide.State, before Quorum) Quorum {
	voters := s.Membership.Voters()
	if !s.Membership.Known {
		if before.Voters == 0 {
			before = Quorum{Voters: len(voters), Unknown: len(voters) == 0 && s.Formed()}
		}
		before.Answering, before.Leader = 0, ""
		return before
	}
	at := Quorum{Voters: len(voters), Answering: decide.Answering(voters)}
	at.Learners = len(s.Membership.Members) - at.Voters
	for _, m := range voters {
		if m.Leader {
			at.Leader = m.Name
		}
	}
	return at
}

// Needed returns the number of voters that must respond.
func (s Quorum) Needed() int {
	if s.Voters == 0 {
		return 0
	}
	return decide.Quorum(s.Voters)
}

// Spare returns the number of responding voters that may fail without losing quorum. It is negative if quorum is lost.
func (s Quorum) Spare() int { return s.Answering - s.Needed() }

// serves reports whether etcd has quorum.
func (s Quorum) serves() bool { return s.Voters > 0 && s.Spare() >= 0 }

// String describes the quorum, as in "2 of 3 voters, none may fail".
func (s Quorum) String() string {
	switch {
	case s.Unknown:
		return "unknown"
	case s.Voters == 0:
		return "not formed"
	}
	text := fmt.Sprintf("%d of %s", s.Answering, decide.Count(s.Voters, "voter"))
	if s.Learners > 0 {
		text += fmt.Sprintf(" and %s", decide.Count(s.Learners, "learner"))
	}
	switch spare := s.Spare(); {
	case spare < 0:
		return text + ", no quorum"
	case spare == 0:
		return text + ", none may fail"
	default:
		return fmt.Sprintf("%s, %d may fail", text, spare)
	}
}
