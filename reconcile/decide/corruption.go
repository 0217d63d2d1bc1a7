package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// InDoubt reports whether members may hold different data. Until it is known which data is right, no copy that could be
// right is discarded.
func (s State) InDoubt() bool { return len(s.doubts()) > 0 }

// doubts returns the reasons why members may not all hold the same data.
func (s State) doubts() []string {
	var facts []string
	for _, alarm := range s.Membership.staleAlarms() {
		switch {
		case alarm.Kind == AlarmCorrupt && alarm.ID == unidentified:
			facts = append(facts, "a CORRUPT alarm is active for an unidentified member")
		case alarm.Kind == AlarmCorrupt:
			facts = append(facts, fmt.Sprintf("a CORRUPT alarm is active for member %s, which has been removed",
				alarm.ID))
		}
	}
	for _, m := range s.MembersInOrder() {
		if slices.Contains(m.Alarms, AlarmCorrupt) {
			facts = append(facts, s.nameOf(m)+" has a CORRUPT alarm")
		}
		if s.stoppedByCheck(m) {
			facts = append(facts, s.nameOf(m)+" does not start because its data differs from a peer's")
		}
	}
	switch since := s.Comparison.DiffersSince; {
	case s.Membership.anyDiffer():
		facts = append(facts, "members hold different data")
	case !since.IsZero() && !s.Membership.allAgree():
		facts = append(facts, fmt.Sprintf("members were found to hold different data at %s, and it is not yet known "+
			"that all of them hold the same data again", since.UTC().Format(time.RFC3339)))
	}
	return facts
}

// stoppedByCheck reports whether a voter is down because it found, before serving, that a peer's data differs.
func (s State) stoppedByCheck(m Member) bool {
	ordinal, ours := s.OrdinalOf(m)
	return ours && !m.Learner && !m.Answers && s.Replica(ordinal).PodStoppedByCheck
}

// agreed returns the hash that a strict majority of all listed voters report now, or the zero hash.
func (m Membership) agreed() Hash {
	voters := m.Voters()
	for _, one := range voters {
		if votes := m.votes(one.Hash); votes >= Quorum(len(voters)) {
			return one.Hash
		}
	}
	return Hash{}
}

// votes counts the responding voters that report the given hash.
func (m Membership) votes(hash Hash) int {
	n := 0
	for i := range m.Members {
		if member := &m.Members[i]; !member.Learner && member.Answers && hash.Known() && member.Hash == hash {
			n++
		}
	}
	return n
}

// mayCopyFrom reports whether other members may copy a member's data. If members may hold different data, it returns
// true only if a majority holds the same data.
func (s State) mayCopyFrom(m Member) bool {
	return !s.InDoubt() || m.Hash.Known() && m.Hash == s.Membership.agreed()
}

// copyCounts reports whether a member's copy may be right, so that neither crashes nor a lack of response justifies
// discarding it. Once a majority responds with the same data, an unresponsive member does not matter, unless it is down
// because its data differs from a peer's.
func (s State) copyCounts(m Member) bool {
	return !m.Learner && s.InDoubt() && (s.stoppedByCheck(m) || !s.Membership.agreed().Known())
}

// corruptMinority returns why a member counts as lost because a strict majority is known to hold different data, or "".
// A replacement copies the leader's data, so an outvoted leader is removed first.
func (s State) corruptMinority(m Member) string {
	agreed := s.Membership.agreed()
	majority := fmt.Sprintf("%d of %s (%s)", s.Membership.votes(agreed),
		plural(len(s.Membership.Voters()), "voter", "voters"), agreed)
	switch {
	case m.Learner && s.leader().Hash.differs(agreed):
		return fmt.Sprintf("is a learner with data from %s, which holds different data than %s",
			s.leader().Name, majority)
	case !agreed.Known() || !m.Leader && !s.mayCopyFrom(s.leader()):
		return ""
	case m.Learner && slices.Contains(m.Alarms, AlarmCorrupt):
		return "is a learner, and etcd reports that its data is corrupt"
	case m.Learner:
		return ""
	case m.Answers && m.Hash.differs(agreed):
		return fmt.Sprintf("holds different data (%08x) than %s", m.Hash.Sum, majority)
	case s.stoppedForLong(m) && s.Membership.votes(agreed) == len(s.Membership.Voters())-1:
		return "has repeatedly stopped because its data differs from a peer's, and all other voters hold " +
			"the same data: " + majority
	}
	return ""
}

// Outvoted reports whether a member is lost because a majority holds different data.
func (s State) Outvoted(id ID) bool {
	m, listed := s.Membership.byID(id)
	return listed && s.corruptMinority(m) != ""
}

// stoppedForLong reports whether a member has been stopped by its own check more than once, and for some time.
func (s State) stoppedForLong(m Member) bool {
	ordinal, _ := s.OrdinalOf(m)
	r := s.Replica(ordinal)
	long := !r.PodSince.IsZero() && s.Now.Sub(r.PodSince) >= crashPatience
	return s.stoppedByCheck(m) && long && r.PodCrashes >= checkStopThreshold && r.Pod != PodTerminating
}

// Refuted reports whether all voters are known to hold the same data, contrary to an alarm.
func (s State) Refuted(a Alarm) bool { return slices.Contains(s.refuted(), a) }

// refuted returns the CORRUPT alarms that are wrong or outdated because all voters are known to hold the same data. A
// single voter refutes only alarms of removed members.
func (s State) refuted() []Alarm {
	if !s.Membership.allAgree() {
		return nil
	}
	voters := s.Membership.Voters()
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

// dataInDoubt does not change anything while it is unknown which data is right. If a majority agrees, but the outvoted
// member can be removed only after a free slot is filled, it only fills that slot.
func dataInDoubt(s State) (Decision, bool) {
	if !s.Membership.Known || !s.InDoubt() {
		return Decision{}, false
	}
	facts := strings.Join(append(s.doubts(), s.describeHashes()), "; ")
	if d, fills := s.fillDespiteDoubt(); fills {
		return d, true
	}
	if s.mayBeJudged() {
		return wait(s.untilJudged(), "%s", facts)
	}
	return block("%s. %s", facts, s.adviceInDoubt())
}

// fillDespiteDoubt fills a free slot although data is in doubt, if the leader's data is known to be right.
func (s State) fillDespiteDoubt() (Decision, bool) {
	d, fills := scaleUp(s.withoutDoubt())
	return d, fills && s.mayCopyFrom(s.leader())
}

// adviceInDoubt returns the available manual actions.
func (s State) adviceInDoubt() string {
	if len(s.Membership.Voters()) == 1 {
		return "There is no other voter to compare the data with. " +
			"Restore the cluster from a backup or, if its data is right, run etcdctl alarm disarm"
	}
	lead, disarm := "No majority agrees on the right data, so nothing is changed", ""
	if s.Membership.agreed().Known() {
		lead = "A majority agrees, but another member's data is unknown or cannot be discarded"
	}
	if s.Membership.HasCorruptAlarm() {
		disarm = "; if no data is wrong, run etcdctl alarm disarm"
	}
	return lead + ". Remove the member with the wrong data (etcdctl member remove, or delete its claim and pod)" +
		disarm + ". If you remove half or more of the members, confirm the remaining members in git (see MembersMissing)"
}

// untilJudged returns when to check again. A hash requires a scan of the whole database, which delays writes unless
// etcd already rejects them because of an alarm. The kubelet restarts a stopped pod with increasing delays.
func (s State) untilJudged() time.Duration {
	if !s.Membership.HasCorruptAlarm() || slices.ContainsFunc(s.Membership.Members, s.stoppedByCheck) {
		return recheckDoubt
	}
	return s.untilSettled()
}

// withoutDoubt returns the state without the signs of differing data.
func (s State) withoutDoubt() State {
	s.Comparison.DiffersSince = time.Time{}
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

// mayBeJudged reports whether a majority may still form, or act, without manual action: a starting member has not
// reported its data yet, or Quorate is still waiting for a member. If a member is permanently gone, for example because
// it was removed manually, the check that has stopped another member may succeed next time.
func (s State) mayBeJudged() bool {
	stands, coming, checksAgain, out := s.Membership.agreed().Known(), false, false, false
	for _, m := range s.Membership.Members {
		ordinal, ours := s.OrdinalOf(m)
		r := s.Replica(ordinal)
		switch {
		case s.stoppedByCheck(m) && (r.PodSince.IsZero() || s.Now.Sub(r.PodSince) < longPatience):
			checksAgain = true
			others := s.Membership.Without(m.ID)
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

// describeHashes describes the voters' hashes at each point, and names the voters whose hashes are unknown.
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
		facts = append(facts, "hash unknown for "+Enumerate(unknown))
	}
	return strings.Join(facts, "; ")
}

// describePoint returns the voters' hashes at one point.
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
		facts = append(facts, fmt.Sprintf("hash %08x on %s", sum, Enumerate(names[sum])))
	}
	return strings.Join(facts, ", ")
}

func inParentheses(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// unreadyByAlarm reports whether a pod may be unready only because of a CORRUPT alarm, which makes /readyz of all
// members fail.
func (s State) unreadyByAlarm(r Replica) bool {
	return r.Pod == PodStarting && s.Membership.HasCorruptAlarm()
}
