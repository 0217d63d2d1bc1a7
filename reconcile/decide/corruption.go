package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// InDoubt reports whether members may hold different data. Until it is known whose are right, no
// copy is given up that could be.
func (s State) InDoubt() bool { return len(s.doubts()) > 0 }

// doubts says what makes one doubt that all hold the same data.
func (s State) doubts() []string {
	var facts []string
	for _, alarm := range s.Membership.staleAlarms() {
		switch {
		case alarm.Kind == AlarmCorrupt && alarm.ID == unidentified:
			facts = append(facts, "etcd raises CORRUPT, and cannot tell which member it is about")
		case alarm.Kind == AlarmCorrupt:
			facts = append(facts, fmt.Sprintf("etcd raises CORRUPT of %s, which is gone", alarm.ID))
		}
	}
	differ, voters := false, s.Membership.Voters()
	for _, m := range s.MembersInOrder() {
		if slices.Contains(m.Alarms, AlarmCorrupt) {
			facts = append(facts, fmt.Sprintf("etcd raises CORRUPT of %s", s.nameOf(m)))
		}
		if s.stoppedByCheck(m) {
			facts = append(facts, fmt.Sprintf("%s does not start, because its data and a peer's differ", s.nameOf(m)))
		}
		differ = differ || slices.ContainsFunc(voters,
			func(other Member) bool { return !m.Learner && m.Hash.differs(other.Hash) })
	}
	if differ {
		facts = append(facts, "the members' data differ")
	}
	return facts
}

// stoppedByCheck reports whether a voter is down because it found, before it served anybody, that a
// peer's data differ.
func (s State) stoppedByCheck(m Member) bool {
	ordinal, ours := s.OrdinalOf(m)
	return ours && !m.Learner && !m.Answers && s.Replica(ordinal).PodStoppedByCheck
}

// agreed is the hash of a strict majority of all listed voters that answer now; the zero one if
// there is none.
func (m Membership) agreed() Hash {
	voters := m.Voters()
	for _, one := range voters {
		if votes := m.votes(one.Hash); votes >= Quorum(len(voters)) {
			return one.Hash
		}
	}
	return Hash{}
}

// votes counts the voters that answer with that hash.
func (m Membership) votes(hash Hash) int {
	n := 0
	for i := range m.Members {
		if member := &m.Members[i]; !member.Learner && member.Answers && hash.Known() && member.Hash == hash {
			n++
		}
	}
	return n
}

// mayCopyFrom reports whether others may take their data from a member: while in doubt, only if a
// majority holds the same.
func (s State) mayCopyFrom(m Member) bool {
	return !s.InDoubt() || m.Hash.Known() && m.Hash == s.Membership.agreed()
}

// copyCounts reports whether a member's copy may be one of the good ones, so that neither crashes
// nor silence are a reason to give it up. Once a majority answers and holds the same, nothing hangs
// on one that does not answer, unless it is down because of somebody else's data.
func (s State) copyCounts(m Member) bool {
	return !m.Learner && s.InDoubt() && (s.stoppedByCheck(m) || !s.Membership.agreed().Known())
}

// corruptMinority says why a member is lost because of its data: a strict majority holds others.
// What takes its place is copied from the leader, so a leader that is outvoted goes before all
// others. Empty if that is not so, or not known.
func (s State) corruptMinority(m Member) string {
	agreed := s.Membership.agreed()
	majority := fmt.Sprintf("%d of %s (%s)", s.Membership.votes(agreed),
		plural(len(s.Membership.Voters()), "voter", "voters"), agreed)
	switch {
	case m.Learner && s.leader().Hash.differs(agreed):
		return fmt.Sprintf("has no vote, and its data from %s, which holds other data than %s",
			s.leader().Name, majority)
	case !agreed.Known() || !m.Leader && !s.mayCopyFrom(s.leader()):
		return ""
	case m.Learner && slices.Contains(m.Alarms, AlarmCorrupt):
		return "has no vote, and etcd says that its data are corrupt"
	case m.Learner:
		return ""
	case m.Answers && m.Hash.differs(agreed):
		return fmt.Sprintf("holds other data (%08x) than %s", m.Hash.Sum, majority)
	case s.stoppedForLong(m) && s.Membership.votes(agreed) == len(s.Membership.Voters())-1:
		return "has stopped itself again and again, because its data and a peer's differ, and all others hold " +
			"the same: " + majority
	}
	return ""
}

// Outvoted reports whether a member is lost because a majority holds other data.
func (s State) Outvoted(id ID) bool {
	m, listed := s.Membership.byID(id)
	return listed && s.corruptMinority(m) != ""
}

// stoppedForLong reports whether a member has been stopped by its own check more than once, and for
// a while.
func (s State) stoppedForLong(m Member) bool {
	ordinal, _ := s.OrdinalOf(m)
	r := s.Replica(ordinal)
	long := !r.PodSince.IsZero() && s.Now.Sub(r.PodSince) >= crashPatience
	return s.stoppedByCheck(m) && long && r.PodCrashes >= checkStopThreshold && r.Pod != PodTerminating
}

// Refuted reports whether all voters are known to hold the same data, against what an alarm says.
func (s State) Refuted(a Alarm) bool { return slices.Contains(s.refuted(), a) }

// refuted are the CORRUPT alarms that all voters refute, or have outlived: they are known to hold
// the same data. One voter alone refutes only those of members that are gone.
func (s State) refuted() []Alarm {
	voters := s.Membership.Voters()
	if len(voters) == 0 || s.Membership.votes(voters[0].Hash) < len(voters) {
		return nil
	}
	var list []Alarm
	for _, alarm := range s.Membership.staleAlarms() {
		if alarm.Kind == AlarmCorrupt && (alarm.ID != unidentified || len(voters) > 1) {
			list = append(list, alarm)
		}
	}
	for _, m := range voters {
		if slices.Contains(m.Alarms, AlarmCorrupt) && len(voters) > 1 {
			list = append(list, Alarm{m.ID, AlarmCorrupt})
		}
	}
	return list
}

// dataInDoubt: while it is not known whose data are right, nothing is changed; once a majority has
// said so, and the one that it outvotes has still to wait for a free slot to be filled, nothing
// else is.
func dataInDoubt(s State) (Decision, bool) {
	if !s.Membership.Known || !s.InDoubt() {
		return Decision{}, false
	}
	facts := strings.Join(append(s.doubts(), s.describeHashes()), "; ")
	if d, fills := scaleUp(s.withoutDoubt()); fills && s.mayCopyFrom(s.leader()) {
		return d, true
	}
	if s.mayBeJudged() {
		return wait(s.untilJudged(), "%s", facts)
	}
	return block("%s; %s", facts, s.adviceInDoubt())
}

// adviceInDoubt says what a person can do about it.
func (s State) adviceInDoubt() string {
	if len(s.Membership.Voters()) == 1 {
		return "there is no other to compare it with: " +
			"restore it from a backup, or, if its data are right, etcdctl alarm disarm"
	}
	return "no majority says whose data are right, so nothing is changed: take the member with the wrong " +
		"data out (etcdctl member remove, or delete its claim and pod); if none are wrong, etcdctl alarm disarm; " +
		"half or more of the members taken out are then to be confirmed in git (see MembersMissing)"
}

// untilJudged is when to ask again. A hash costs a scan of the whole database, and a pod that has
// ended is started again ever more slowly.
func (s State) untilJudged() time.Duration {
	if slices.ContainsFunc(s.Membership.Members, s.stoppedByCheck) {
		return recheckStopped
	}
	return s.untilSettled()
}

// withoutDoubt is the state without what makes one doubt the data.
func (s State) withoutDoubt() State {
	s.Membership.StaleAlarms = slices.DeleteFunc(slices.Clone(s.Membership.StaleAlarms),
		func(a Alarm) bool { return a.Kind == AlarmCorrupt })
	s.Membership.Members = slices.Clone(s.Membership.Members)
	for i := range s.Membership.Members {
		m := &s.Membership.Members[i]
		m.Alarms = slices.DeleteFunc(slices.Clone(m.Alarms), func(kind AlarmKind) bool { return kind == AlarmCorrupt })
		m.Hash = Hash{}
	}
	return s
}

// mayBeJudged reports whether a majority may still come about, or do what it has to, without a
// person: somebody who is on its way up has not said what it holds, or is waited for. Where one is out
// for good, as where a person has taken it out, the check that has stopped another may find nothing the
// next time.
func (s State) mayBeJudged() bool {
	stands, coming, checksAgain, out := s.Membership.agreed().Known(), false, false, false
	for _, m := range s.Membership.Members {
		ordinal, ours := s.OrdinalOf(m)
		r := s.Replica(ordinal)
		switch {
		case s.stoppedByCheck(m) && (r.PodSince.IsZero() || s.Now.Sub(r.PodSince) < longPatience):
			checksAgain = true
			others := s.Membership.without(m.ID)
			coming = coming || stands && others.votes(s.Membership.agreed()) == len(others.Voters())
		case !m.Answers && ours && s.unrecoverable(ordinal):
			out = true
		case !m.Answers || stands && s.ailment(m) != "":
			coming = true
		}
	}
	if out {
		return checksAgain
	}
	return coming
}

// describeHashes says what each voter holds, and at which points.
func (s State) describeHashes() string {
	var facts, unknown []string
	told := map[Hash]bool{}
	for _, m := range s.MembersInOrder() {
		point := m.Hash.point()
		switch {
		case m.Learner:
		case !m.Hash.Known():
			unknown = append(unknown, s.nameOf(m)+inParentheses(m.HashWhy))
		case !told[point]:
			told[point] = true
			facts = append(facts, fmt.Sprintf("at revision %d, compacted at %d: %s", point.Revision,
				point.CompactRevision, s.describePoint(point)))
		}
	}
	if len(unknown) > 0 {
		facts = append(facts, "hash not known of "+Enumerate(unknown))
	}
	return strings.Join(facts, "; ")
}

// describePoint says which hashes the voters have at one point.
func (s State) describePoint(point Hash) string {
	var sums []uint32
	names := map[uint32][]string{}
	for _, m := range s.MembersInOrder() {
		if m.Learner || m.Hash.point() != point {
			continue
		}
		if names[m.Hash.Sum] == nil {
			sums = append(sums, m.Hash.Sum)
		}
		names[m.Hash.Sum] = append(names[m.Hash.Sum], s.nameOf(m))
	}
	var facts []string
	for _, sum := range sums {
		facts = append(facts, fmt.Sprintf("hash %08x of %s", sum, Enumerate(names[sum])))
	}
	return strings.Join(facts, ", ")
}

func inParentheses(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// unreadyByAlarm reports whether a pod may be unready because of a CORRUPT alarm alone: /readyz of
// all members fails under it.
func (s State) unreadyByAlarm(r Replica) bool {
	alarmed := slices.ContainsFunc(s.Membership.Members,
		func(m Member) bool { return slices.Contains(m.Alarms, AlarmCorrupt) }) ||
		slices.ContainsFunc(s.Membership.StaleAlarms, func(a Alarm) bool { return a.Kind == AlarmCorrupt })
	return r.Pod == PodStarting && alarmed
}
