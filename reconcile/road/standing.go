package road

import (
	"fmt"

	"quorate.dev/quorate/reconcile/decide"
)

// Standing is how far etcd is from losing its quorum. The zero value stands for a cluster that has not formed.
type Standing struct {
	// Voters that etcd lists, and how many of them answer.
	Voters    int `json:"voters"`
	Answering int `json:"answering"`
	Learners  int `json:"learners,omitempty"`
	// Leader by its name; empty if none is known.
	Leader string `json:"leader,omitempty"`
}

// standing is that of a state. Where etcd says nothing, none of the voters that it had before answers.
func standing(s decide.State, before Standing) Standing {
	if !s.Membership.Known {
		before.Answering, before.Leader = 0, ""
		return before
	}
	voters := s.Membership.Voters()
	at := Standing{Voters: len(voters), Answering: decide.Answering(voters)}
	at.Learners = len(s.Membership.Members) - at.Voters
	for _, m := range voters {
		if m.Leader {
			at.Leader = m.Name
		}
	}
	return at
}

// Needed is the number of voters that must answer.
func (s Standing) Needed() int {
	if s.Voters == 0 {
		return 0
	}
	return decide.Quorum(s.Voters)
}

// Spare is how many of the voters that answer could fail; negative if as many are missing.
func (s Standing) Spare() int { return s.Answering - s.Needed() }

// serves reports whether there is a quorum.
func (s Standing) serves() bool { return s.Voters > 0 && s.Spare() >= 0 }

// String says it in a few words, such as "2 of 3 voters, none may fail".
func (s Standing) String() string {
	if s.Voters == 0 {
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
