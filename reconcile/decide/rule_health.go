package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"quorate.dev/quorate/internal/etcdversion"
)

func applyObjects(s State) (Decision, bool) {
	facts := append(s.recordDifferences(), s.Objects.Drift...)
	goes := !s.deletesVolumes() && s.anyReplica(s.keepsGoingVolume) || s.stillJoined() != ""
	if s.lacksLastBackup() || !s.toRun() && goes {
		return Decision{}, false // pods would stop
	}
	if s.toRun() && s.Record.Restoring() && s.ReportedClusterID == 0 && s.besideRestore() != "" {
		return Decision{}, false // a record that may be wrong would stop the pods
	}
	if !s.Formed() || len(facts) == 0 || RequiredRecord(s, "").Empty() || s.BeginsAdoption() {
		return Decision{}, false
	}
	if refusal, _ := s.judgeVersion(); !s.hasStatefulSet() && !s.mayRoll() {
		return block("the StatefulSet is missing and must not be recreated with etcd %s: %s%s", s.Declared.Version,
			cmp.Or(refusal, "the data is not prepared for it"), cmp.Or(s.versionToReturnWith(), s.surplusInTheWay()))
	}
	if !s.hasStatefulSet() && s.lacksBackup() {
		return s.statefulSetAfterBackup()
	}
	if !s.hasStatefulSet() && s.adoptionTakenBack() && scheme(s.Declared.Adoption.PeerURL) == "https://" {
		return block("the StatefulSet is missing, and new pods would not restart to reject old certificates once the "+
			"guests have left: %s", s.declareAdoptionAgain())
	}
	if s.isBeingRestored() {
		return act(ApplyObjects{}, "the record is lost while %s is being restored: %s", s.ReplicaName(SeedOrdinal),
			sentence(s.Objects.Drift))
	}
	if !s.recorded() {
		return act(ApplyObjects{}, "the record is lost; bringing %s back with the existing data: %s",
			s.describeRemains(), sentence(s.Objects.Drift))
	}
	return act(ApplyObjects{}, "%s", sentence(facts))
}

// versionToReturnWith returns the version that brings back a cluster without a StatefulSet, or "" if there is no such
// version: the minor version changes only while members respond.
func (s State) versionToReturnWith() string {
	var version etcdversion.Version
	for _, v := range s.running() {
		declared := s
		declared.Declared.Version = v.String()
		if declared.mayRoll() && (version == etcdversion.Version{} || v.MajorMinor() == version.MajorMinor()) {
			version = v
		}
	}
	if version == (etcdversion.Version{}) {
		return ""
	}
	return fmt.Sprintf("; to bring the cluster back, declare etcd %s, and change the version once all members respond",
		version)
}

// surplusInTheWay returns how to free a surplus slot if its volume alone prevents the cluster from starting with any
// version. Otherwise, it returns "". Without a record, it is unknown whether etcd has removed the slot's
// member.
func (s State) surplusInTheWay() string {
	for _, r := range s.replicasInOrder() {
		_, recorded := s.Record.Member(r.Ordinal)
		if recorded || r.Ordinal < s.Declared.Replicas || !hasVolume(r) {
			continue
		}
		without := s
		without.Replicas = slices.DeleteFunc(slices.Clone(s.Replicas), func(other Replica) bool {
			return other.Ordinal == r.Ordinal
		})
		if without.mayRoll() || without.versionToReturnWith() != "" {
			return fmt.Sprintf("; if %s was removed from etcd: %s", s.ReplicaName(r.Ordinal), s.freeSlot(r.Ordinal))
		}
	}
	return ""
}

// silentOrdinals returns the ordinals of recorded members that etcd lists and that do not respond. It is empty if etcd
// returns no list.
func (s State) silentOrdinals() []int {
	var silent []int
	members := s.listed()
	for _, recorded := range s.Record.Members {
		m, listed := members[recorded.Ordinal]
		if s.Membership.Known && listed && !m.Answers {
			silent = append(silent, recorded.Ordinal)
		}
	}
	return silent
}

// membershipMismatch blocks if etcd lists unknown members, which must be removed manually. Any other change of the list
// is recorded.
func membershipMismatch(s State) (Decision, bool) {
	if s.lacksGuests() && s.Membership.Known {
		return block("%s", abandonIsVoid)
	}
	if strangers := s.strangers(); s.Membership.Known && len(strangers) > 0 {
		return block("%s. %sRemove %s manually with etcdctl member remove", strings.Join(strangers, "; "),
			s.describeRejoined(), itOrThem(strangers))
	}
	return Decision{}, false
}

// strangers describes each listed member that is not one of the cluster's replicas.
func (s State) strangers() []string {
	var strangers []string
	inSlots := s.listed()
	for _, m := range s.MembersInOrder() {
		if ordinal, ours := s.OrdinalOf(m); ours && inSlots[ordinal].ID != m.ID {
			strangers = append(strangers, fmt.Sprintf("etcd lists %s at %s, in the slot of %s", m.ID,
				orUnknown(m.PeerURL), inSlots[ordinal].ID))
		} else if !ours && !s.Record.Hosts(m.ID) && !(s.mayHaveGuests() && s.Record.Adopted == 0) {
			strangers = append(strangers, fmt.Sprintf("etcd lists %s at %s, which is not one of this cluster's "+
				"replicas", s.nameOf(m), orUnknown(m.PeerURL)))
		}
	}
	return strangers
}

// unlisted returns the recorded members that etcd does not list.
func (s State) unlisted() []string {
	var facts []string
	members := s.listed()
	for _, r := range s.Record.Members {
		if _, listed := members[r.Ordinal]; !listed {
			facts = append(facts, s.ReplicaName(r.Ordinal)+" is recorded, but etcd does not list it")
		}
	}
	return facts
}

// unidentified is the member ID in an alarm if etcd has found that members hold different data and a majority does not
// agree (etcd: CompactHashCheck).
const unidentified = ID(0)

func memberFailing(s State) (Decision, bool) {
	for _, ordinal := range s.silentOrdinals() {
		if s.failsForLong(s.Replica(ordinal)) && !s.replacedInTime(ordinal) {
			if d, waits := s.upgradeAfterBackup(); waits {
				return d, true
			}
			return block("%s%s%s%s%s%s%s", s.describeMembers(), s.describeClosed(), s.describeStoppedRollout(),
				s.describeNotMoved(), s.remedyForNode(ordinal), s.remedyForJoining(ordinal), s.remedyForData(ordinal))
		}
	}
	return s.neverReady()
}

// neverReady blocks if a member responds but its pod does not become ready, so that clients cannot find the member.
func (s State) neverReady() (Decision, bool) {
	if !s.Membership.Known {
		return Decision{}, false
	}
	for _, m := range s.MembersInOrder() {
		ordinal, ours := s.OrdinalOf(m)
		r := s.Replica(ordinal)
		serves := ours && m.Answers && !m.Learner
		if serves && r.Pod != PodAbsent && r.Pod != PodTerminating && s.failsForLong(r) {
			return block("%s; clients cannot reach that member. kubectl describe pod %s shows which probe or "+
				"readiness gate fails",
				s.describeMembers(), s.nameOf(m))
		}
	}
	return Decision{}, false
}

// replacedInTime reports whether an unresponsive member can be replaced, and will be after the declared time.
func (s State) replacedInTime(ordinal int) bool {
	m, _ := s.listedAt(ordinal)
	return s.Declared.ReplaceAfter > 0 && s.replaceable(m, s.Replica(ordinal)) && !s.standsBehindList(m) &&
		s.Membership.Without(m.ID).HasQuorum()
}

func waitForMembers(s State) (Decision, bool) {
	if !s.Membership.Known || len(s.unsettled()) == 0 {
		return Decision{}, false
	}
	d, _ := wait(s.untilSettled(), "%s; %s%s%s", s.describeResponding(), strings.Join(s.unsettled(), "; "),
		s.describeClosed(), s.describeNotMoved())
	d.waitsFor = strings.Join(s.unwell(), ",")
	return d, true
}

// describeClosed reports that the client Service does not route to the members yet, or returns "".
func (s State) describeClosed() string {
	if !s.Record.MayFound() {
		return ""
	}
	return fmt.Sprintf("; Service %s-client will route to the members once all initial members have started", s.Name)
}

// untilSettled returns when to ask etcd again: nothing reports when a learner has caught up.
func (s State) untilSettled() time.Duration {
	if len(s.Membership.Voters()) < len(s.Membership.Members) {
		return recheckStarting
	}
	return recheckSettling
}

func notActedOn(s State) (Decision, bool) {
	wishes := s.unmetChanges()
	if len(wishes) == 0 {
		return Decision{}, false
	}
	return block("the spec requests a change that is not supported yet: %s; the cluster keeps running as it is",
		strings.Join(wishes, ", "))
}

// unmetChanges returns declared changes that no rule carries out. During bootstrap, members must first start and be
// sealed.
func (s State) unmetChanges() []string {
	var wishes []string
	if runs := s.Objects.RunsStorage; !s.founding() && runs != "" && runs != s.Declared.Storage {
		wishes = append(wishes, fmt.Sprintf("resizing volumes from %s to %s", runs, s.Declared.Storage))
	}
	return wishes
}
