package decide

import (
	"cmp"
	"slices"
)

// Quorum is the number of voters that must agree among n.
func Quorum(n int) int { return n/2 + 1 }

// MinAvailable is how many pods Kubernetes has to leave alone, so that quorum is never evicted. While members come or
// go, and while etcd's list is not known, the larger membership counts: pods show no sign of having a vote (hard case
// H32, H105). A learner's pod has none: before etcd 3.5.18 it may be ready, and stand in for a voter that quorum needs.
func MinAvailable(voters, learners, recorded, declared int) int {
	needed := Quorum(max(voters, recorded, declared))
	if learners > 0 {
		needed = max(needed, Quorum(voters)+learners)
	}
	return needed
}

// Voters returns the voting members. Learners never count, neither as reachable nor as needed. It may be the list of
// the members itself: it is not to be changed.
func (m Membership) Voters() []Member {
	if m.learners() == 0 {
		return slices.Clip(m.Members)
	}
	var voters []Member
	for _, member := range m.Members {
		if !member.Learner {
			voters = append(voters, member)
		}
	}
	return voters
}

// Answering counts the members among those given that answer.
func Answering(members []Member) int {
	n := 0
	for i := range members {
		if members[i].Answers {
			n++
		}
	}
	return n
}

// HasQuorum reports whether a majority of the voters answers.
func (m Membership) HasQuorum() bool {
	voters := m.Voters()
	return Answering(voters) >= Quorum(len(voters))
}

// staleAlarms are the alarms of members that are gone in an order of their own: etcd lists them in
// any.
func (m Membership) staleAlarms() []Alarm {
	return slices.SortedFunc(slices.Values(m.StaleAlarms), Alarm.compare)
}

func (a Alarm) compare(b Alarm) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind))
}

// without returns the membership after that member is gone from the list.
func (m Membership) without(id ID) Membership {
	rest := m
	rest.Members = nil
	for _, member := range m.Members {
		if member.ID != id {
			rest.Members = append(rest.Members, member)
		}
	}
	return rest
}

// promoted returns the membership with that member as a voter.
func (m Membership) promoted(id ID) Membership {
	return m.with(id, func(member *Member) { member.Learner = false })
}

// with returns the membership after a change of that member.
func (m Membership) with(id ID, change func(*Member)) Membership {
	after := m
	after.Members = slices.Clone(m.Members)
	for i := range after.Members {
		if after.Members[i].ID == id {
			change(&after.Members[i])
		}
	}
	return after
}

// byID returns the member with that ID.
func (m Membership) byID(id ID) (Member, bool) {
	for _, member := range m.Members {
		if member.ID == id {
			return member, true
		}
	}
	return Member{}, false
}

// byName returns the member with that name; an empty one if there is none.
func (m Membership) byName(name string) Member {
	for _, member := range m.Members {
		if member.Name == name {
			return member
		}
	}
	return Member{}
}
