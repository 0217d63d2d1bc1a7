package decide

import (
	"cmp"
	"slices"
)

// Quorum returns how many of n voters must agree.
func Quorum(n int) int { return n/2 + 1 }

// MinAvailable returns how many pods must remain when Kubernetes evicts pods, so that quorum is kept. While members
// join or leave, and while etcd's list is unknown, the larger membership counts, because pods do not show whether they
// have a vote (hard cases H32, H105). A learner has no vote, but before etcd 3.5.18 its pod may be ready, and may count
// instead of a voter that quorum requires. Guests vote, too, but another budget counts their pods: one of them may be
// evicted at the same time.
func MinAvailable(voters, guests, learners, recorded, declared int) int {
	needed := Quorum(max(voters, recorded, declared))
	if all := voters + guests; guests > 0 {
		needed = max(needed, voters-max(0, all-Quorum(all)-1))
	}
	if learners > 0 {
		needed = max(needed, Quorum(voters)+learners)
	}
	return needed
}

// Voters returns the voting members. Learners count neither as reachable nor as needed. The result may share the list
// of members: do not change it.
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

// Answering counts the given members that respond.
func Answering(members []Member) int {
	n := 0
	for i := range members {
		if members[i].Answers {
			n++
		}
	}
	return n
}

// HasQuorum reports whether a majority of the voters responds.
func (m Membership) HasQuorum() bool {
	voters := m.Voters()
	return Answering(voters) >= Quorum(len(voters))
}

// staleAlarms returns the alarms of removed members in sorted order.
func (m Membership) staleAlarms() []Alarm {
	return slices.SortedFunc(slices.Values(m.StaleAlarms), Alarm.compare)
}

func (a Alarm) compare(b Alarm) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind))
}

// Without returns the membership without the given member.
func (m Membership) Without(id ID) Membership {
	rest := m
	rest.Members = nil
	for _, member := range m.Members {
		if member.ID != id {
			rest.Members = append(rest.Members, member)
		}
	}
	return rest
}

// promoted returns the membership with the given member as a voter.
func (m Membership) promoted(id ID) Membership {
	return m.with(id, func(member *Member) { member.Learner = false })
}

// with returns the membership with change applied to the given member.
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
