package decide

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// scaleDown removes the member with the highest ordinal, compared as a number (hard case H24). An unresponsive member
// or a learner may be removed at any time (hard cases H25, H107), and before a healthy member. A healthy member is
// removed only while all members are healthy, and transfers leadership first if it leads. While a member's volume is
// being deleted, a surplus member is kept to replace that member.
func scaleDown(s State) (Decision, bool) {
	victim, surplus := s.goesDown()
	needless := victim.needless()
	_, going := s.goingFirst()
	takesPlace := going && (victim.Learner || !needless)
	if !surplus || takesPlace || !s.Membership.Known {
		return Decision{}, false
	}
	if s.copyCounts(victim) || !s.Membership.Without(victim.ID).HasQuorum() {
		return Decision{}, false
	}
	listed, declared := len(s.Membership.Members), s.wanted()
	switch {
	case !victim.Learner && len(s.ownVoters()) <= declared:
		return Decision{}, false
	case !victim.Learner && s.mayServeOthers(victim):
		return Decision{}, false
	case !needless && len(s.unsettled()) > 0:
		return Decision{}, false
	case s.copiesWithout(victim) != "":
		return wait(recheck, "%s, %d declared; %s is kept: %s", plural(listed, "member", "members"), declared,
			s.nameOf(victim), s.copiesWithout(victim))
	case victim.Leader:
		willDo := func(to Member) bool { return !s.abandons() || s.Record.Hosts(to.ID) }
		return s.transferLeadership(victim, willDo, "%s, %d declared, and %s is the leader",
			plural(listed, "member", "members"), declared, victim.Name)
	}
	return s.removal(ruleScaleDown, RemoveMember{ID: victim.ID, Name: s.nameOf(victim)},
		"%s, %d declared: removing %s; %s",
		plural(listed, "member", "members"), declared, s.nameOf(victim), s.describeResponding())
}

// copiesWithout returns why a surplus voter is still needed, or "": without it, fewer data copies than declared would
// be on volumes that are kept.
func (s State) copiesWithout(victim Member) string {
	left := s.safeWithout(victim)
	if !s.safe(victim) || left >= s.wanted() {
		return ""
	}
	var names []string
	for _, m := range s.MembersInOrder() {
		if !m.Learner && m.ID != victim.ID && !s.safe(m) {
			names = append(names, s.nameOf(m))
		}
	}
	return fmt.Sprintf("the volumes of %s are unreachable or unknown, although these members respond",
		Enumerate(names))
}

// surplus returns the member with the highest ordinal, and whether there are more members than declared, so that this
// member is surplus.
func (s State) surplus() (Member, bool) {
	listed := s.listed()
	if s.Declared.Replicas < 1 || len(listed) <= s.wanted() {
		return Member{}, false
	}
	return listed[slices.Max(slices.Collect(maps.Keys(listed)))], true
}

// needless reports whether the others do not depend on a member: it is unresponsive, or has no vote.
func (m Member) needless() bool { return m.Learner || !m.Answers }

// goesDown returns the member to remove if there are more members than declared: the needless member with the highest
// ordinal beyond the declared number or, without such a member, the member with the highest ordinal. While a volume is
// being deleted, only the highest ordinal counts.
func (s State) goesDown() (Member, bool) {
	victim, surplus := s.surplus()
	if _, going := s.goingFirst(); going || !surplus {
		return victim, surplus
	}
	listed := s.listed()
	for _, ordinal := range slices.Backward(slices.Sorted(maps.Keys(listed))) {
		if m := listed[ordinal]; ordinal >= s.wanted() && m.needless() {
			return m, true
		}
	}
	return victim, true
}

// freeOrdinal returns the lowest ordinal below the declared number without a member. There is none while the replicas
// must leave an adopted cluster.
func (s State) freeOrdinal() (int, bool) {
	listed := s.listed()
	if s.Declared.Adoption.Abandon && s.adopting() {
		return 0, false
	}
	for ordinal := range s.wanted() {
		if _, found := listed[ordinal]; !found {
			return ordinal, true
		}
	}
	return 0, false
}

// describeUnfilled names the declared members that etcd does not list, or returns "".
func (s State) describeUnfilled() string {
	ours := s.Membership.Known && s.Record.ClusterID != 0 && s.Record.ClusterID == s.Membership.ClusterID
	if !ours || !s.toRun() || len(s.Declared.Problems) > 0 {
		return ""
	}
	var names []string
	listed := s.listed()
	for ordinal := range s.wanted() {
		if _, found := listed[ordinal]; !found {
			names = append(names, s.ReplicaName(ordinal))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; missing: %s (etcd lists %d of %d declared members)", Enumerate(names),
		s.Declared.Replicas-len(names), s.Declared.Replicas)
}

// scaleUp adds a learner at the lowest free ordinal while all members are healthy (hard cases H11, H17, H92), once the
// previous member's volume is gone or being deleted (hard case H20).
func scaleUp(s State) (Decision, bool) {
	ordinal, free := s.freeOrdinal()
	if !free || !s.settled() {
		return Decision{}, false
	}
	if !s.empty(ordinal) {
		return s.waitForSlot(ordinal)
	}
	need := fmt.Sprintf("%s, %d declared", plural(len(s.Membership.Members), "member", "members"), s.Declared.Replicas)
	if d, blocked := s.cannotJoin(ordinal, need); blocked {
		return d, true
	}
	return act(AddLearner{ordinal, s.peerURL(ordinal)}, "%s: adding %s as a learner; %s", need,
		s.ReplicaName(ordinal), s.describeResponding())
}

// waitForSlot waits until a slot's volume is gone. If the record does not show that its member was removed, manual
// action is required.
func (s State) waitForSlot(ordinal int) (Decision, bool) {
	name := s.ReplicaName(ordinal)
	gone, known := s.Record.removed(ordinal)
	if gone.Kept() && !s.Replica(ordinal).VolumeTerminating {
		once := "if its data is not needed, declare oldVolumes: Delete in spec.recovery with this clusterID; or, "
		if why := s.mayBeRight(gone); why != "" {
			once = why + "; compare the data first; "
		}
		return block("the volume of %s is kept, because it holds data from lost cluster %s: %s%s", name,
			gone.LostCluster, once, s.freeSlot(ordinal))
	}
	if r := s.Replica(ordinal); r.VolumeTerminating || known &&
		(gone.VolumeUID == "" && !usedIn(r, s.Record) || gone.VolumeUID == r.VolumeUID) {
		return wait(recheckSettling, "a volume for %s already exists and is being deleted", name)
	}
	return block("%s", s.volumeInTheWay(ordinal))
}

func (s State) volumeInTheWay(ordinal int) string {
	return fmt.Sprintf("a volume for %s already exists, and the record does not show whose data it holds: %s",
		s.ReplicaName(ordinal), s.freeSlot(ordinal))
}

// freeSlot returns how to free the slot of a volume whose data may be right: the PersistentVolume keeps the data.
func (s State) freeSlot(ordinal int) string {
	return fmt.Sprintf("to keep its data, set persistentVolumeReclaimPolicy of its PersistentVolume to Retain; then "+
		"run kubectl delete pvc data-%s", s.ReplicaName(ordinal))
}

// empty reports whether a slot is free of its previous member. The slot has no volume, or its volume is being deleted
// and pods cannot start on it, or its volume was created after the old volume was gone, for a pod without a file to
// start with.
func (s State) empty(ordinal int) bool {
	r := s.Replica(ordinal)
	gone, _ := s.Record.removed(ordinal)
	switch {
	case !hasVolume(r):
		return true
	case r.VolumeTerminating:
		return !hasPodThatStays(r)
	}
	unused := r.LastUse.ClusterID == 0 && r.LostCluster == 0
	return gone.VolumeUID != "" && gone.VolumeUID != r.VolumeUID && unused
}

// peerURL returns a replica's peer URL, derived from the peer URLs of existing members.
func (s State) peerURL(ordinal int) string {
	for _, m := range s.MembersInOrder() {
		if _, ours := s.namedOrdinal(m); ours && strings.Contains(m.PeerURL, "//"+m.Name) {
			return strings.Replace(m.PeerURL, "//"+m.Name, "//"+s.ReplicaName(ordinal), 1)
		}
	}
	return s.peerURLOf(ordinal)
}

// settled reports whether every member is known to be a sealed, healthy voter.
func (s State) settled() bool { return s.Membership.Known && len(s.unsettled()) == 0 }

// unsettled returns the reasons why members are not sealed, healthy voters. It ignores alarms.
func (s State) unsettled() []string { return s.unsettledBut(0) }

// unsettledBut returns the problems of all members except one.
func (s State) unsettledBut(one ID) []string {
	var facts []string
	if len(s.Membership.Members) == 0 {
		facts = append(facts, "etcd lists no members")
	}
	if s.Record.ClusterID == 0 {
		facts = append(facts, "the cluster ID is not recorded")
	}
	for _, m := range s.MembersInOrder() {
		if what := s.ailment(m); what != "" && (one == 0 || m.ID != one) {
			facts = append(facts, s.nameOf(m)+" "+what)
		}
	}
	return slices.Concat(facts, s.unlisted(), s.doubts())
}

// leader returns the leader, or an empty member.
func (s State) leader() Member {
	if i := slices.IndexFunc(s.Membership.Members, func(m Member) bool { return m.Leader }); i >= 0 {
		return s.Membership.Members[i]
	}
	return Member{}
}

// nearby is the maximum number of log entries that a member may lag behind and still count as caught up.
const nearby = 1000

// near reports whether a member has caught up with the leader.
func (s State) near(m Member) bool { return m.Applied+nearby >= s.leader().Applied }
