package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// RecoveryOrder is what git orders for a cluster that has lost its majority for good: a new one is made
// of the data of a member that is left.
type RecoveryOrder struct {
	// ClusterID of the cluster that is lost; nothing is done to another one. Zero: nothing is ordered.
	ClusterID ID `json:"clusterID,omitempty"`
	// Ordinal of the member that is left.
	Ordinal int `json:"ordinal"`
	// Lost are the members of which a person says that their data are lost for good.
	Lost Ordinals `json:"lost,omitempty"`
	// OldVolumes says what becomes of the other volumes of the lost cluster.
	OldVolumes Retention `json:"oldVolumes,omitempty"`
	// Refused says why it cannot be carried out by whoever decides; empty if it can.
	Refused string `json:"refused,omitempty"`
	// Digest of all that the Job depends on.
	Digest string `json:"digest,omitempty"`
	// Word is a digest of what a person says by it: which cluster is lost, who is left, and who is given up.
	Word string `json:"word,omitempty"`
	// Deadline is how long that Job may take.
	Deadline time.Duration `json:"deadline,omitempty"`
}

// RecordedRecovery is a recovery that was begun. It is under way while ClusterID is that of the record.
type RecordedRecovery struct {
	// ClusterID of the cluster that is lost.
	ClusterID ID `json:"clusterID"`
	// Ordinal of the member that the new cluster is made of, and UID of the volume with its data.
	Ordinal   int    `json:"ordinal"`
	VolumeUID string `json:"volumeUID"`
	// Suspect: etcd had found, before the cluster was lost, that members hold different data. Whose are right,
	// nobody knows.
	Suspect bool `json:"suspect,omitempty"`
}

// Recovery is what is seen of the Job that makes a new cluster of a member's data.
type Recovery struct {
	// Job that is there; nil if there is none.
	Job *RecoveryJob `json:"job,omitempty"`
	JobSight
}

// RecoveryJob is the Job that makes a new cluster of the data in a volume.
type RecoveryJob struct {
	VolumeJob
	// ClusterID of the cluster that is lost, and Ordinal of the member.
	ClusterID ID  `json:"clusterID"`
	Ordinal   int `json:"ordinal"`
	// Into is the ID of the new cluster, once the Job has said so.
	Into ID `json:"into,omitempty"`
	// Suspect: the Job says that etcd had found that members hold different data.
	Suspect bool `json:"suspect,omitempty"`
}

// Recovering reports whether the data of a member are being made those of a new cluster. No member
// runs meanwhile.
func (r Record) Recovering() bool {
	return r.Recovery.ClusterID != 0 && r.Recovery.ClusterID == r.ClusterID
}

// Supersedes reports whether that is a cluster of which this one was made, or one that it was made of.
func (r Record) Supersedes(lost ID) bool {
	if lost == 0 || r.ClusterID == lost {
		return false
	}
	return r.Recovery.ClusterID == lost ||
		slices.ContainsFunc(r.Removed, func(gone RemovedMember) bool { return gone.LostCluster == lost })
}

// RecoveringRecord is the record of a cluster of whose member git has ordered to make a new one.
func RecoveringRecord(s State) Record {
	r := StandingRecord(s, "")
	ordinal := s.Declared.Recovery.Ordinal
	r.Recovery = RecordedRecovery{ClusterID: r.ClusterID, Ordinal: ordinal, VolumeUID: s.Replica(ordinal).VolumeUID}
	return r
}

// RecoveredRecord is the record after action a: the member starts on the new data, or not at all; what
// others of the lost cluster have left is kept.
func RecoveredRecord(s State, a FinishRecovery) Record {
	r := StandingRecord(s, "")
	seed := r.Recovery.Ordinal
	r.ClusterID, r.Members, r.Confirmed = a.ClusterID, nil, nil
	r.Recovery.Suspect = s.Recovery.Job != nil && s.Recovery.Job.Suspect
	for _, slot := range s.replicasInOrder() {
		if slot.Ordinal != seed && hasVolume(slot) {
			r = r.keeping(slot, r.Recovery.ClusterID)
		}
	}
	return r.With(RecordedMember{Ordinal: seed, Mode: Sealed, VolumeUID: a.VolumeUID})
}

// voidRecovery brings a record up to an order that came to nothing, since the cluster has a quorum: it is not
// to come into effect when that is lost another time, perhaps months later. One that git takes out and
// declares again is a new one.
func (s State) voidRecovery(r Record) Record {
	switch order := s.Declared.Recovery; {
	case order.ClusterID == 0:
		r.VoidRecovery = ""
	case s.Membership.Known && order.ClusterID == r.ClusterID && order.ClusterID == s.Membership.ClusterID &&
		!r.Recovering():
		r.VoidRecovery = order.Word
	}
	return r
}

// keeping returns the record with the volume in a slot as one that is kept, as left of that cluster, or of
// an earlier one, if it was kept before.
func (r Record) keeping(slot Replica, lost ID) Record {
	if gone, known := r.removed(slot.Ordinal); known && gone.VolumeUID == slot.VolumeUID && gone.Kept() {
		lost = gone.LostCluster
	}
	return r.WithRemoved(RemovedMember{Ordinal: slot.Ordinal, VolumeUID: slot.VolumeUID, LostCluster: lost})
}

// leftOfLost reports whether the claim in a slot is marked to be left of a cluster that this one was made of.
// No mark says anything of a volume that is on record as that of a member, unless that record is of the lost
// cluster, and so older than what was made of it; if the status says so, too, the mark is wrong. Nor does it
// say anything of one that serves, which is somebody's member.
func (s State) leftOfLost(r Replica) bool {
	m, _ := s.Record.Member(r.Ordinal)
	if isReady(r) {
		return false
	}
	if m.VolumeUID != "" && m.VolumeUID == r.VolumeUID {
		return r.LostCluster != 0 && r.LostCluster == s.Record.ClusterID && r.LostCluster != s.ReportedClusterID
	}
	return r.LostCluster != 0
}

// keepLost brings a record up to the marks on claims: whoever has put it back, or lost it, no member starts
// on what is left of a lost cluster, since enough of those would be that cluster again. Whom etcd lists is
// one of its members, whatever a mark says.
func (s State) keepLost(r Record) Record {
	listed := s.listed()
	for _, slot := range s.replicasInOrder() {
		_, inUse := listed[slot.Ordinal]
		if hasVolume(slot) && s.leftOfLost(slot) && !(s.Membership.Known && inUse) && !r.Recovering() {
			r = r.keeping(slot, slot.LostCluster)
		}
	}
	return r
}

// recoverCluster makes a new cluster of what is left of one that has lost its majority for good, where git
// orders it. Before that it stops all pods; from then on nobody but the Job touches the data.
func recoverCluster(s State) (Decision, bool) {
	switch {
	case !s.toRun() || !s.recorded():
		return Decision{}, false
	case s.Record.Recovering():
		return s.goOnRecovering()
	case StandingRecord(s, "").Recovering():
		return Decision{}, false // it has to be on record first
	case s.ordersRecovery() && s.hindersRecovery() == "":
		return s.beginRecovery()
	}
	return Decision{}, false
}

// ordersRecovery reports whether git orders to recover the cluster that is there, and nobody has heard a
// quorum of it.
func (s State) ordersRecovery() bool {
	order := s.Declared.Recovery.ClusterID
	if order == 0 || order != s.Record.ClusterID || s.Membership.Known || s.Membership.HasQuorum() {
		return false
	}
	for _, c := range s.clusterIDs() {
		if c.id != order {
			return false
		}
	}
	return true
}

// hindersRecovery says what stands against the recovery that git orders; empty if nothing does.
func (s State) hindersRecovery() string {
	order := s.Declared.Recovery
	survivor := s.ReplicaName(order.Ordinal)
	switch m, recorded := s.Record.Member(order.Ordinal); {
	case order.Refused != "":
		return order.Refused
	case order.Word != "" && order.Word == s.Record.VoidRecovery:
		return "the cluster has had a quorum since that was declared: if it is lost for good now, take " +
			"spec.recovery out of git, have a pass run, and declare it again"
	case !recorded || m.Mode != Sealed || m.VolumeUID == "":
		return fmt.Sprintf("%s is not on record as a member with data", survivor)
	case s.volumeLost(order.Ordinal):
		return fmt.Sprintf("the volume of %s is not the one that it had", survivor)
	case s.Replica(order.Ordinal).VolumeTerminating:
		return fmt.Sprintf("the volume of %s is being deleted", survivor)
	case order.Lost.Has(order.Ordinal):
		return fmt.Sprintf("%s is said to be lost itself", survivor)
	}
	if recovered := s.recoveredBefore(); recovered != "" {
		return recovered
	}
	if going := s.replicaNames(func(r Replica) bool {
		return s.keepsGoingVolume(r) && !order.Lost.Has(r.Ordinal)
	}); len(going) > 0 {
		return fmt.Sprintf("volumes are being deleted that go as soon as their pods stop, with their data: %s; "+
			"if nobody needs them, name them in spec.recovery.lost", Enumerate(going))
	}
	if others := s.hinderedByOthers(); others != "" {
		return others
	}
	if serving := s.replicaNames(isReady); len(serving) > 0 {
		return fmt.Sprintf("Kubernetes finds %s ready, as long as etcd has a quorum", Enumerate(serving))
	}
	return ""
}

// recoveredBefore says that another cluster was made of the one that git orders to recover, by the marks on what
// is left of it; empty if none was, as far as they say.
func (s State) recoveredBefore() string {
	marked := s.replicaNames(func(r Replica) bool {
		return r.LostCluster != 0 && r.LostCluster == s.Declared.Recovery.ClusterID
	})
	if len(marked) == 0 {
		return ""
	}
	return fmt.Sprintf("a new cluster was made of it before, as the marks on the claims of %s say, and its record "+
		"was put back; if that is wrong, take them off: kubectl annotate pvc data-%s etcd.quorate.dev/lost-cluster-",
		Enumerate(marked), marked[0])
}

// WrongMarks are the replicas whose claims are marked to be left of a lost cluster, although etcd lists their
// members, which have started on them: somebody has copied the marks there, or has given a recovery up.
func (s State) WrongMarks() []Replica {
	if !s.Membership.Known || s.Membership.ClusterID != s.Record.ClusterID {
		return nil
	}
	listed := s.listed()
	return slices.DeleteFunc(s.replicasInOrder(), func(r Replica) bool {
		m, _ := s.Record.Member(r.Ordinal)
		return r.LostCluster == 0 || !hasVolume(r) || m.VolumeUID != r.VolumeUID || !listed[r.Ordinal].Started
	})
}

// awaitsUnready reports whether the recovery that git orders waits for nothing but for Kubernetes to find
// no pod ready, which it does within seconds of the loss of quorum.
func (s State) awaitsUnready() bool {
	return s.ordersRecovery() && !s.Record.Recovering() && s.anyReplica(isReady) && s.hindersRecovery() != "" &&
		s.withoutReady().hindersRecovery() == ""
}

// withoutReady returns the state as it is once Kubernetes finds no pod ready.
func (s State) withoutReady() State {
	s.Replicas = slices.Clone(s.Replicas)
	for i := range s.Replicas {
		if isReady(s.Replicas[i]) {
			s.Replicas[i].Pod = PodStarting
		}
	}
	return s
}

// hinderedByOthers says who beside the survivor may have data that the survivor lacks. A claim that is not
// the one on record counts: somebody may have bound it to the volume that there was.
func (s State) hinderedByOthers() string {
	order := s.Declared.Recovery
	var left []string
	for _, m := range s.Record.Members {
		gone := m.Mode == Joining || order.Lost.Has(m.Ordinal) || !hasVolume(s.Replica(m.Ordinal))
		if m.Ordinal != order.Ordinal && !gone {
			left = append(left, s.ReplicaName(m.Ordinal))
		}
	}
	switch {
	case len(left) == 0:
		return ""
	case len(left)+1 >= Quorum(len(s.Record.Members)):
		return fmt.Sprintf("there are volumes of %s as well: nothing is lost if they can be brought back; "+
			"if their data are lost, name them in spec.recovery.lost", Enumerate(left))
	}
	return fmt.Sprintf("there are volumes of %s as well: recover the member whose log ends last, "+
		"and name the others in spec.recovery.lost", Enumerate(left))
}

func isReady(r Replica) bool { return r.Pod == PodReady }

// replicaNames are those of the replicas of which that holds.
func (s State) replicaNames(holds func(Replica) bool) []string {
	var names []string
	for _, r := range s.replicasInOrder() {
		if holds(r) {
			names = append(names, s.ReplicaName(r.Ordinal))
		}
	}
	return names
}

func (s State) recoveryJobName() string { return s.Name + "-recovery" }

// beginRecovery stops the pods. Git may take the order back until they are gone.
func (s State) beginRecovery() (Decision, bool) {
	if !s.hasStatefulSet() && s.anyReplica(hasPodThatStays) {
		return Decision{}, false // it has to be there to stop them
	}
	survivor := s.ReplicaName(s.Declared.Recovery.Ordinal)
	if d, stops := s.stopForRecovery(survivor); stops {
		return d, true
	}
	return s.startRecovery()
}

func (s State) stopForRecovery(survivor string) (Decision, bool) {
	switch {
	case s.Objects.RunsReplicas > 0:
		return act(StopPods{}, "git orders a new cluster of the data of %s: stop all pods first", survivor)
	case s.anyReplica(hasPod):
		return wait(recheck, "a new cluster is made of the data of %s once all pods are gone: %s", survivor,
			s.describeReplicas())
	}
	return Decision{}, false
}

func (s State) startRecovery() (Decision, bool) {
	if d, waits := s.Recovery.hinders("a new cluster cannot be made of the data"); waits {
		return d, true
	}
	order, job := s.Declared.Recovery, s.Recovery.Job
	switch {
	case order.Refused != "":
		return block("a new cluster was being made of the data of %s, and %s", s.ReplicaName(order.Ordinal),
			order.Refused)
	case job == nil:
		return act(StartRecovery{order.Ordinal, order.Digest}, "make a new cluster of the data of %s; "+
			"what only members had that are lost is lost", s.ReplicaName(order.Ordinal))
	case job.Terminating:
		return wait(recheck, "Job %s is being deleted", s.recoveryJobName())
	}
	return act(StopRecovery{job.UID}, "Job %s was started for another recovery: start again", s.recoveryJobName())
}

// goOnRecovering follows a recovery that was begun. The data in the volume may be those of the new
// cluster by now, so that nothing else is done until that is known.
func (s State) goOnRecovering() (Decision, bool) {
	begun, order := s.Record.Recovery, s.Declared.Recovery
	survivor, r := s.ReplicaName(begun.Ordinal), s.Replica(begun.Ordinal)
	switch serving := s.replicaNames(isReady); {
	case s.Membership.Known || len(serving) > 0:
		return block("a new cluster was being made of the data of %s, and etcd serves (%s): if nothing is lost after "+
			"all, take recovery out of record.yaml in ConfigMap %s-members; otherwise stop it: "+
			"kubectl scale statefulset %[3]s --replicas=0", survivor,
			cmp.Or(Enumerate(serving), "it lists its members"), s.Name)
	case order.ClusterID != begun.ClusterID:
		return block("a new cluster was being made of the data of %s, and git does not order it any more: "+
			"declare spec.recovery with clusterID %s again", survivor, begun.ClusterID)
	}
	if d, stops := s.stopForRecovery(survivor); stops {
		return d, true
	}
	switch changed := order.Ordinal != begun.Ordinal; {
	case changed && s.hindersRecovery() != "":
		return block("git orders another recovery than the one that was begun: %s", s.hindersRecovery())
	case changed:
		return s.startRecovery()
	case s.hinderedByOthers() != "":
		return block("a new cluster was being made of the data of %s, and git gives up the others no longer: %s",
			survivor, s.hinderedByOthers())
	case !hasVolume(r) || r.VolumeUID != begun.VolumeUID || r.VolumeTerminating:
		return block("the volume of %s, of whose data a new cluster was being made, is gone or is being deleted: "+
			"name another member in spec.recovery, or delete the cluster and restore it from a backup", survivor)
	}
	return s.followRecovery()
}

// followRecovery follows the Job on the volume that is there.
func (s State) followRecovery() (Decision, bool) {
	begun, job := s.Record.Recovery, s.Recovery.Job
	if job == nil || job.Terminating || !job.isFor(begun) || job.Digest != s.Declared.Recovery.Digest {
		return s.startRecovery()
	}
	survivor := s.ReplicaName(begun.Ordinal)
	if d, waits := s.Recovery.hinders("a new cluster cannot be made of the data"); waits {
		return d, true
	}
	switch job.Phase {
	case JobSucceeded:
		if job.Into == 0 || job.Into == begun.ClusterID {
			return act(StopRecovery{job.UID}, "Job %s has ended, and what it said is gone: have it say it again",
				s.recoveryJobName())
		}
		doubt := ""
		if job.Suspect {
			doubt = "; etcd had found that members hold different data: compare them before anything relies on these"
		}
		return act(FinishRecovery{ClusterID: job.Into, VolumeUID: begun.VolumeUID},
			"a new cluster is made of the data of %s: let it start%s", survivor, doubt)
	case JobFailed:
		return block("Job %s has failed: %s; cure that, and delete the Job to have it tried again: "+
			"kubectl delete job %[1]s; or name another member in spec.recovery", s.recoveryJobName(),
			cmp.Or(job.Message, "it does not say why"))
	case JobRuns:
	}
	if job.Message != "" {
		return wait(recheck, "making a new cluster of the data of %s: %s", survivor, job.Message)
	}
	return wait(recheck, "making a new cluster of the data of %s", survivor)
}

func (j RecoveryJob) isFor(r RecordedRecovery) bool {
	return j.ClusterID == r.ClusterID && j.Ordinal == r.Ordinal && j.VolumeUID == r.VolumeUID
}

// takeUpRecovery makes good what a record has lost: passes start no Job for a cluster whose recovery is not
// on record. Others may, who may not stop members by that: nothing runs while one of a pass is at work, on
// the volume that stands in the slot; and unless all of the record is lost, git orders it.
func (s State) takeUpRecovery(r Record) Record {
	job := s.Recovery.Job
	if job == nil || job.ClusterID == 0 || job.ClusterID != r.ClusterID || r.Recovering() || s.Membership.Known {
		return r
	}
	slot := s.Replica(job.Ordinal)
	ordered := s.Declared.Recovery.ClusterID == job.ClusterID || len(s.Record.Members) == 0
	if !ordered || s.Objects.RunsReplicas > 0 || s.anyReplica(hasPod) || !hasVolume(slot) ||
		slot.VolumeUID != job.VolumeUID {
		return r
	}
	r.Recovery = RecordedRecovery{ClusterID: job.ClusterID, Ordinal: job.Ordinal, VolumeUID: job.VolumeUID}
	return r
}

// madeOfSuspect reports whether the cluster was made of data that may be wrong, and a volume that is left of the
// lost one may hold the right ones.
func (s State) madeOfSuspect(gone RemovedMember) bool {
	return s.Record.Recovery.Suspect && gone.LostCluster == s.Record.Recovery.ClusterID
}

// keeps reports whether a volume stays for now that is left of a lost cluster. Git gives up those of the
// cluster that it names. They go one at a time, each when a member is to take its place, and while all is
// well with those that there are: until then, they may hold the better copy.
func (s State) keeps(gone RemovedMember) bool {
	order := s.Declared.Recovery
	switch {
	case !gone.Kept():
		return false
	case order.ClusterID != gone.LostCluster || order.OldVolumes != Delete || s.Record.ClusterID == gone.LostCluster,
		s.madeOfSuspect(gone):
		return true
	}
	next, free := s.freeOrdinal()
	return !s.settled() || free && next != gone.Ordinal
}

// describeHindered says why the recovery that git orders of a cluster without quorum is not begun; empty if
// none is ordered.
func (s State) describeHindered() string {
	if !s.ordersRecovery() || s.Record.Recovering() || s.hindersRecovery() == "" {
		return ""
	}
	return "; spec.recovery is not acted on: " + s.hindersRecovery()
}

// recoveryWarnings say why the recovery that git orders is not begun.
func (s State) recoveryWarnings() []string {
	order := s.Declared.Recovery
	switch {
	case order.ClusterID == 0 || s.Record.Recovering() || s.Record.Supersedes(order.ClusterID):
		return nil
	case s.Record.ClusterID != 0 && order.ClusterID != s.Record.ClusterID:
		return []string{fmt.Sprintf("spec.recovery has no effect: it is for cluster %s, and this is cluster %s",
			order.ClusterID, s.Record.ClusterID)}
	case s.Membership.Known:
		return []string{"spec.recovery has no effect: the cluster has a quorum; take it out of git"}
	case s.recorded() && s.hindersRecovery() != "":
		return []string{"spec.recovery is not acted on: " + s.hindersRecovery()}
	}
	return nil
}
