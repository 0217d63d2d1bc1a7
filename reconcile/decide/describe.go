package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

func act(a Action, format string, args ...any) (Decision, bool) {
	return Decision{Verdict: Act, Action: a, Message: fmt.Sprintf(format, args...)}, true
}

func wait(recheck time.Duration, format string, args ...any) (Decision, bool) {
	return Decision{Verdict: Wait, Message: fmt.Sprintf(format, args...), Recheck: recheck}, true
}

func block(format string, args ...any) (Decision, bool) {
	return Decision{Verdict: Block, Message: fmt.Sprintf(format, args...)}, true
}

// Enumerate joins names as in prose: a, b and c.
func Enumerate(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// sentence joins facts in sorted order, so that the result does not depend on the order of observation.
func sentence(facts []string) string {
	return strings.Join(slices.Sorted(slices.Values(facts)), "; ")
}

// Count returns a number with its noun.
func Count(n int, what string) string { return plural(n, what, what+"s") }

func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}

// itOrThem returns the pronoun for the things just listed.
func itOrThem(things []string) string {
	if len(things) == 1 {
		return "it"
	}
	return "them"
}

func (s State) replicasInOrder() []Replica {
	inOrder := func(a, b Replica) int { return cmp.Compare(a.Ordinal, b.Ordinal) }
	if slices.IsSortedFunc(s.Replicas, inOrder) {
		return slices.Clip(s.Replicas)
	}
	list := slices.Clone(s.Replicas)
	slices.SortFunc(list, inOrder)
	return list
}

// MembersInOrder returns the members by ordinal, then members with other names by name and ID. The result may share the
// state's own list: do not change it.
func (s State) MembersInOrder() []Member {
	if s.membersAreInOrder() {
		return slices.Clip(s.Membership.Members)
	}
	list := slices.Clone(s.Membership.Members)
	slices.SortFunc(list, func(a, b Member) int {
		return compareMembers(&a, &b, s.rank(&a), s.rank(&b))
	})
	return list
}

// membersAreInOrder reports whether etcd's list is already in the order of MembersInOrder, as it usually is.
func (s State) membersAreInOrder() bool {
	members, last := s.Membership.Members, 0
	for i := range members {
		rank := s.rank(&members[i])
		if i > 0 && compareMembers(&members[i-1], &members[i], last, rank) > 0 {
			return false
		}
		last = rank
	}
	return true
}

// rank returns a member's ordinal, or a higher number for members with other names.
func (s State) rank(m *Member) int {
	if ordinal, ours := s.OrdinalOf(*m); ours {
		return ordinal
	}
	return 1 << 30
}

// compareMembers compares members by their ranks, then by name and ID.
func compareMembers(a, b *Member, rankA, rankB int) int {
	return cmp.Or(cmp.Compare(rankA, rankB), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
}

// describe returns a summary of the running cluster, or of what is left of a deleted cluster that git no longer
// declares.
func (s State) describe() string {
	if s.Declared.Orphaned != "" && s.toDelete() {
		if left, nothing := nothingRuns(s); nothing {
			return left.Message + "; to delete its EtcdCluster, run kubectl delete etcd " + s.Name
		}
	}
	if !s.Membership.Known {
		return s.describeReplicas()
	}
	return fmt.Sprintf("%s, etcd %s", s.describeQuorum(), s.Declared.Version)
}

func (s State) describeQuorum() string {
	voters := s.Membership.Voters()
	return fmt.Sprintf("%d of %s", Answering(voters), plural(len(voters), "voter", "voters"))
}

// describeResponding returns the number of responding voters as a clause.
func (s State) describeResponding() string {
	if voters := s.Membership.Voters(); len(voters) == 1 || Answering(voters) == 1 {
		return s.describeQuorum() + " responds"
	}
	return s.describeQuorum() + " respond"
}

// describeMembers returns the number of responding voters, and each member's problem.
func (s State) describeMembers() string {
	return strings.Join(append([]string{s.describeResponding()}, s.troubles()...), "; ")
}

// troubles returns the problem of each unhealthy member.
func (s State) troubles() []string {
	var facts []string
	for _, m := range s.MembersInOrder() {
		if trouble := s.Explain(m); trouble != "" {
			facts = append(facts, s.nameOf(m)+" "+trouble)
		}
	}
	return facts
}

// nameOf returns a member's name, or its replica's name if the member has no name yet, or else the member's ID.
func (s State) nameOf(m Member) string {
	ordinal, ours := s.OrdinalOf(m)
	switch {
	case s.Record.Hosts(m.ID):
		return "guest " + cmp.Or(m.Name, m.ID.String()) // its name may be a replica's name
	case m.Name != "" && !(s.isForeign(m) && s.isReplicaName(m.Name)):
		return m.Name
	case ours:
		return s.ReplicaName(ordinal)
	}
	return "member " + m.ID.String()
}

// Explain describes a member's problem in a phrase to append to the member's name. It returns "" for a sealed, healthy
// voter in a ready pod.
func (s State) Explain(m Member) string {
	if m.Answers && len(m.Alarms) > 0 {
		return m.describeAlarms()
	}
	return s.ailment(m)
}

// ailment returns the same as Explain, but ignores alarms.
func (s State) ailment(m Member) string {
	ordinal, ours := s.OrdinalOf(m)
	replica := s.Replica(ordinal)
	recorded, _ := s.Record.Member(ordinal)
	switch {
	case s.Record.Hosts(m.ID):
		return m.ailmentOfGuest()
	case !ours && !m.Answers:
		return "is not one of this cluster's replicas and is not responding"
	case !ours:
		return "is not one of this cluster's replicas"
	case !m.Answers && s.volumeLost(ordinal):
		return "lost its volume"
	case !m.Answers && replica.Stranded != "":
		return "is stranded (" + replica.Stranded + ")"
	case !m.Answers:
		return fmt.Sprintf("is not responding (%s)", s.describePod(replica))
	case m.Learner && m.Started && s.leader().Applied > 0:
		return fmt.Sprintf("is a learner (at index %d of %d)", m.Applied, s.leader().Applied)
	case m.Learner:
		return "is a learner"
	case !m.Started:
		return "has not published its client URLs yet"
	case recorded.Mode != Sealed:
		return "is not sealed yet"
	case m.Disagrees != "":
		return m.Disagrees
	case replica.VolumeTerminating && hasVolume(replica), s.onGoingVolume(m):
		return "is on a volume that is being deleted"
	case replica.Pod != PodReady && !s.unreadyByAlarm(replica):
		pod := s.describePod(replica)
		if pod == podNotReady {
			return "responds, but its pod is not ready"
		}
		return fmt.Sprintf("responds, but its pod is not ready (%s)", pod)
	}
	return ""
}

// describeReplicas returns the pod state of each recorded replica.
func (s State) describeReplicas() string {
	var facts []string
	for _, m := range s.Record.Members {
		fact := s.describePod(s.Replica(m.Ordinal))
		if s.volumeLost(m.Ordinal) {
			fact = "lost its volume, " + fact
		}
		facts = append(facts, fmt.Sprintf("%s (%s)", s.ReplicaName(m.Ordinal), fact))
	}
	if len(facts) == 0 {
		return "no members are recorded"
	}
	return strings.Join(facts, "; ")
}

// podNotReady describes a pod that is not ready although its container has been running for some time.
const podNotReady = "pod not ready"

func (s State) describePod(r Replica) string {
	words := "pod " + strings.ToLower(string(r.Pod))
	if r.Pod == PodStarting && !r.PodStarted.IsZero() && s.Now.Sub(r.PodStarted) >= crashPatience {
		words = podNotReady // it may have been ready before
	}
	if r.PodRefused != "" {
		words += ": cannot be created: " + r.PodRefused
	}
	if r.PodMessage != "" {
		words += ": " + r.PodMessage
	}
	if r.Pod != PodReady && s.madeOtherwise(r) {
		words += ", created from an earlier spec"
	}
	if r.Pod != PodReady && hasVolume(r) && r.VolumeTerminating {
		words += ", its volume is being deleted"
	}
	return words
}

// describeRemains names the slots that have a pod or a volume.
func (s State) describeRemains() string {
	var names []string
	for _, r := range s.replicasInOrder() {
		if r.remains() {
			names = append(names, s.ReplicaName(r.Ordinal))
		}
	}
	return Enumerate(names)
}

// describeSigns returns the evidence that the cluster has formed.
func (s State) describeSigns() string {
	var signs []string
	for _, c := range s.clusterIDs() {
		signs = append(signs, fmt.Sprintf("%s %s", c.who, c.id))
	}
	if len(signs) == 0 {
		return "its objects exist, but the record is lost"
	}
	return strings.Join(signs, ", ")
}

// why returns the reason why the membership is unknown, in parentheses, or "".
func (s State) why() string {
	if s.Membership.Why == "" {
		return ""
	}
	return " (" + s.Membership.Why + ")"
}

// describeSealable returns which of the members to seal have started, which lack a recorded ID or volume, and which
// differ from the record.
func (s State) describeSealable(set Ordinals) string {
	var started, silent, changed, facts []string
	for _, ordinal := range set.List() {
		switch m, _ := s.Record.Member(ordinal); {
		case m.Mode != Sealed:
			started = append(started, s.ReplicaName(ordinal))
		case m.ID == 0 || m.VolumeUID == "":
			silent = append(silent, s.ReplicaName(ordinal))
		default:
			changed = append(changed, s.ReplicaName(ordinal))
		}
	}
	if len(started) > 0 {
		facts = append(facts, Enumerate(started)+" started")
	}
	if len(silent) > 0 {
		facts = append(facts, "the ID or volume of "+Enumerate(silent)+" is not recorded yet")
	}
	if len(changed) > 0 {
		facts = append(facts, "the ID or volume of "+Enumerate(changed)+" differs from the record")
	}
	return strings.Join(facts, "; ")
}
