package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// RecoveryOrder is git's request for a cluster that has permanently lost its majority: create a new cluster from a
// remaining member's data or from a backup.
type RecoveryOrder struct {
	// ClusterID is the ID of the lost cluster; other clusters are not changed. It is zero if there is no request.
	ClusterID ID `json:"clusterID,omitempty"`
	// Ordinal is the ordinal of the remaining member, or of the slot whose volume receives the backup.
	Ordinal int `json:"ordinal"`
	// Backup describes the source backup. It is empty if the source is the member's data.
	Backup string `json:"backup,omitempty"`
	// Lost are the members whose data is permanently lost, according to spec.recovery.lost.
	Lost Ordinals `json:"lost,omitempty"`
	// OldVolumes is whether the lost cluster's other volumes are kept.
	OldVolumes Retention `json:"oldVolumes,omitempty"`
	// Refused is why this run must not carry out the request, or empty.
	Refused string `json:"refused,omitempty"`
	// Digest is a digest of everything that the Job depends on.
	Digest string `json:"digest,omitempty"`
	// Word is a digest of the request: the lost cluster, the remaining member, and the members declared lost.
	Word string `json:"word,omitempty"`
	// Deadline is the maximum duration of the Job.
	Deadline time.Duration `json:"deadline,omitempty"`
}

// recoverCluster creates a new cluster from the remains of a cluster that has permanently lost its majority, if git
// requests recovery. It stops all pods first; from then on only the Job touches the data.
func recoverCluster(s State) (Decision, bool) {
	switch {
	case !s.toRun():
		return Decision{}, false
	case s.Recovery.Job != nil && s.delaysDeletion(s.Recovery.Job.VolumeJob):
		return act(StopRecovery{s.Recovery.Job.UID}, jobDelaysDeletion, s.recoveryJobName())
	case s.endingJob() != "" && s.Objects.RunsReplicas == 0 && !RequiredRecord(s, "").Recovering():
		return wait(recheck, "waiting for %s to stop writing to a member's volume before pods are started",
			s.endingJob())
	case !s.recorded():
		return Decision{}, false
	case s.recoversInVain():
		return act(StopRecovery{s.Recovery.Job.UID}, "etcd has quorum: deleting Job %s, which would create a second "+
			"cluster", s.recoveryJobName())
	case s.Record.Recovering():
		return s.goOnRecovering()
	case RequiredRecord(s, "").Recovering():
		return Decision{}, false // it must be recorded first
	case s.recoversUnasked():
		return act(StopRecovery{s.Recovery.Job.UID}, "deleting Job %s: neither git nor the record requests a new "+
			"cluster",
			s.recoveryJobName())
	case s.ordersRecovery() && s.hindersRecovery() == "":
		return s.beginRecovery()
	case s.nothingRuns() && s.recoveredBefore() != "":
		// Starting would bring back the lost cluster alongside the new one.
		return block("nothing is running: %s", s.recoveredBefore())
	}
	return Decision{}, false
}

// ordersRecovery reports whether git requests recovery of this cluster, and no quorum responds.
func (s State) ordersRecovery() bool {
	order := s.Declared.Recovery.ClusterID
	if order == 0 || order != s.Record.ClusterID || s.Membership.MayServe() || s.Membership.HasQuorum() {
		return false
	}
	for _, c := range s.clusterIDs() {
		if c.id != order {
			return false
		}
	}
	return true
}

// recoverableCluster returns the cluster whose recovery git requests, if neither the record nor the status names a
// cluster and only that cluster has used the claims and pods. Otherwise, it returns zero. A new cluster that had
// already been created from the lost one would also have used the claims.
func (s State) recoverableCluster() ID {
	order := s.Declared.Recovery
	used := s.anyReplica(func(r Replica) bool { return r.LostCluster == 0 && r.LastUse.ClusterID == order.ClusterID })
	unnamed := s.Record.ClusterID == 0 && s.ReportedClusterID == 0 && !s.Membership.MayServe()
	if !unnamed || !used || s.isVoid(order) || len(s.usedByOthers(order.ClusterID)) > 0 {
		return 0
	}
	return order.ClusterID
}

// RefusedRecovery returns why this run must not carry out the requested recovery of a cluster without quorum, or "".
func (s State) RefusedRecovery() string {
	if !s.ordersRecovery() || s.Record.Recovering() {
		return ""
	}
	return s.Declared.Recovery.Refused
}

// hindersRecovery returns what prevents the requested recovery, or "".
func (s State) hindersRecovery() string {
	order := s.Declared.Recovery
	survivor := s.ReplicaName(order.Ordinal)
	switch m, recorded := s.Record.Member(order.Ordinal); {
	case order.Refused != "":
		return order.Refused
	case s.mayHaveGuests():
		return "the guests may have newer data. Bring them back, or copy the data of all members into a new cluster"
	case s.isVoid(order):
		return "the cluster has had quorum since spec.recovery was declared, or its record was lost. If the cluster " +
			"is permanently lost now, remove spec.recovery from git, run a pass, and declare it again"
	case order.Backup == "" && s.Replica(order.Ordinal).VolumeTerminating:
		return fmt.Sprintf("the volume of %s is being deleted", survivor)
	case !recorded:
		return fmt.Sprintf("%s is not a recorded member", survivor)
	case order.Backup != "":
	case m.Mode != Sealed || !hasVolume(s.Replica(order.Ordinal)):
		return fmt.Sprintf("%s is not recorded as a member with data", survivor)
	case s.volumeLost(order.Ordinal): // unknown after the record was lost: the Job checks the owner of the data
		return fmt.Sprintf("the volume of %s has been replaced", survivor)
	case order.Lost.Has(order.Ordinal):
		return fmt.Sprintf("%s is itself listed in spec.recovery.lost", survivor)
	}
	if recovered := s.recoveredBefore(); recovered != "" {
		return recovered
	}
	if used := s.usedLater(); used != "" {
		return used
	}
	if going := s.wouldGoWithPods(); going != "" {
		return going
	}
	if others := s.hinderedByOthers(); others != "" {
		return others
	}
	if serving := s.replicaNames(isReady); len(serving) > 0 {
		return fmt.Sprintf("Kubernetes still reports %s as ready, so etcd may have quorum", Enumerate(serving))
	}
	return ""
}

// wouldGoWithPods returns which volumes of members not declared lost are deleted once their pods stop, or "".
func (s State) wouldGoWithPods() string {
	order := s.Declared.Recovery
	going := s.replicaNames(func(r Replica) bool { return s.keepsGoingVolume(r) && !order.Lost.Has(r.Ordinal) })
	if len(going) == 0 {
		return ""
	}
	return fmt.Sprintf("the volumes of %s are being deleted and would disappear with their data as soon as the pods "+
		"stop. If their data is not needed, list these members in spec.recovery.lost", Enumerate(going))
}

// awaitsUnready reports whether the requested recovery is only waiting until Kubernetes reports all pods as not ready,
// which takes seconds after quorum is lost.
func (s State) awaitsUnready() bool {
	return s.ordersRecovery() && !s.Record.Recovering() && s.anyReplica(isReady) &&
		s.withoutReady().hindersRecovery() == ""
}

// withoutReady returns the state as if Kubernetes reported all pods as not ready.
func (s State) withoutReady() State {
	s.Replicas = slices.Clone(s.Replicas)
	for i := range s.Replicas {
		if isReady(s.Replicas[i]) {
			s.Replicas[i].Pod = PodStarting
		}
	}
	return s
}

// hinderedByOthers returns which members may have data that the survivor or the backup lacks. A claim counts even if it
// is not the recorded claim, because it may be bound to the old volume. A claim also counts if only its mark identifies
// it, or if the record does not know its member: the record may have been restored to its state before the member
// joined. Once a recovery has begun, every claim is marked, so the record overrides a mark if it shows that the member
// was joining or already gone.
func (s State) hinderedByOthers() string {
	order := s.Declared.Recovery
	left := s.replicaNames(func(r Replica) bool {
		m, recorded := s.Record.Member(r.Ordinal)
		gone, _ := s.Record.removed(r.Ordinal)
		goneBefore := !gone.Kept() && gone.VolumeUID == r.VolumeUID
		lostMember := recorded && (m.Mode != Joining || r.LastUse.ClusterID == order.ClusterID) ||
			!recorded && !goneBefore && (r.LostCluster == 0 || r.LostCluster == order.ClusterID)
		return lostMember && hasVolume(r) && !order.Lost.Has(r.Ordinal) &&
			(r.Ordinal != order.Ordinal || order.Backup != "")
	})
	switch {
	case len(left) == 0:
		return ""
	case order.Backup != "":
		return fmt.Sprintf("volumes of %s exist and may hold writes made after the backup. Recover one of these "+
			"members if its volume can be read; if their data is lost, list them in spec.recovery.lost",
			Enumerate(left))
	case len(left)+1 >= Quorum(len(s.Record.Members)):
		return fmt.Sprintf("volumes of %s also exist. If these members can be brought back, no data is lost; if "+
			"their data is lost, list them in spec.recovery.lost", Enumerate(left))
	}
	return fmt.Sprintf("volumes of %s also exist. Recover the member with the newest log entry, and list the others "+
		"in spec.recovery.lost", Enumerate(left))
}

// nothingRuns reports whether no pods exist and the StatefulSet does not create any.
func (s State) nothingRuns() bool { return s.Objects.RunsReplicas == 0 && !s.anyReplica(hasPod) }

func isReady(r Replica) bool { return r.Pod == PodReady }

// replicaNames returns the names of the replicas for which holds is true.
func (s State) replicaNames(holds func(Replica) bool) []string {
	var names []string
	for _, r := range s.replicasInOrder() {
		if holds(r) {
			names = append(names, s.ReplicaName(r.Ordinal))
		}
	}
	return names
}

// beginRecovery stops the pods, then starts the recovery. Until the pods are gone, the request can still be removed
// from git.
func (s State) beginRecovery() (Decision, bool) {
	if !s.hasStatefulSet() && s.anyReplica(hasPodThatStays) {
		return Decision{}, false // the StatefulSet must exist to stop them
	}
	if d, stops := s.stopForRecovery(s.describeSource()); stops {
		return d, true
	}
	return s.startRecovery()
}

// describeSource returns the requested source of the new cluster.
func (s State) describeSource() string {
	order := s.Declared.Recovery
	return cmp.Or(order.Backup, "the data of "+s.ReplicaName(order.Ordinal))
}

// describeBegun returns the source of the new cluster being created.
func (s State) describeBegun() string {
	switch begun, order := s.Record.Recovery, s.Declared.Recovery; {
	case !begun.FromBackup:
		return "the data of " + s.ReplicaName(begun.Ordinal)
	case order.Backup != "":
		return order.Backup
	}
	return "a backup"
}

func (s State) stopForRecovery(source string) (Decision, bool) {
	switch {
	case s.Objects.RunsReplicas > 0:
		return act(StopPods{}, "spec.recovery requests a new cluster from %s: stopping all pods first%s",
			source, s.describeLoss())
	case s.anyReplica(hasPod):
		return wait(recheck, "a new cluster will be created from %s once all pods are gone: %s",
			source, s.describeReplicas())
	}
	return Decision{}, false
}

func (s State) startRecovery() (Decision, bool) {
	if d, waits := s.Recovery.hinders("cannot create a new cluster from the data"); waits {
		return d, true
	}
	order, job := s.Declared.Recovery, s.Recovery.Job
	switch {
	case order.Refused != "":
		return block("a new cluster was being created from %s, but %s", s.describeSource(), order.Refused)
	case job == nil && s.Replica(order.Ordinal).VolumeTerminating:
		return wait(recheck, "the volume of %s is being deleted", s.ReplicaName(order.Ordinal)) // a new volume follows
	case job == nil && order.Backup != "":
		return act(StartRecovery{order.Ordinal, order.Digest}, "creating a new cluster from %s, in the slot of %s; "+
			"writes made after the backup are lost%s", order.Backup, s.ReplicaName(order.Ordinal), s.describeLoss())
	case job == nil:
		return act(StartRecovery{order.Ordinal, order.Digest}, "creating a new cluster from the data of %s; data that "+
			"existed only on the lost members is lost%s", s.ReplicaName(order.Ordinal), s.describeLoss())
	case job.Terminating:
		return wait(recheck, "Job %s is being deleted", s.recoveryJobName())
	}
	return act(StopRecovery{job.UID}, "Job %s was started for a different recovery; deleting it to start again",
		s.recoveryJobName())
}

// goOnRecovering continues a recovery that has begun. The volume may already hold the new cluster's data, so nothing
// else is done until the result is known.
func (s State) goOnRecovering() (Decision, bool) {
	begun, order := s.Record.Recovery, s.Declared.Recovery
	source, r := s.describeBegun(), s.Replica(begun.Ordinal)
	switch serving := s.replicaNames(isReady); {
	case s.Membership.MayServe() || len(serving) > 0:
		return block("a new cluster was being created from %s, but etcd is serving requests (%s). If no data is lost, "+
			"%sremove recovery from record.yaml in ConfigMap %s-members; otherwise stop etcd: kubectl scale "+
			"statefulset %[4]s --replicas=0", source,
			cmp.Or(Enumerate(serving), "it returns a member list"), s.firstGiveUp(), s.Name)
	case len(s.usedByOthers(begun.ClusterID)) > 0:
		return block("according to the record, a new cluster is being created from %s, but the claims of %s have "+
			"already been used by another cluster. If that cluster is the new one, restore the ConfigMap %s-members "+
			"that contained its record", source, Enumerate(s.usedByOthers(begun.ClusterID)), s.Name)
	case s.stopsRecovery() != "":
		return act(StopRecovery{s.Recovery.Job.UID}, "stopping Job %s: %s", s.recoveryJobName(), s.stopsRecovery())
	case order.ClusterID != begun.ClusterID:
		return block("a new cluster was being created from %s, but git no longer requests it. Declare spec.recovery "+
			"with clusterID %s again", source, begun.ClusterID)
	}
	if going := s.wouldGoWithPods(); going != "" {
		return block("a new cluster was being created from %s, but %s", source, going)
	}
	if d, stops := s.stopForRecovery(source); stops {
		return d, true
	}
	gone := !hasVolume(r) || r.VolumeUID != begun.VolumeUID
	switch changed := order.Ordinal != begun.Ordinal || begun.FromBackup != (order.Backup != ""); {
	case changed && s.hindersRecovery() != "":
		return block("spec.recovery differs from the recovery in progress: %s", s.hindersRecovery())
	case changed:
		return s.startRecovery()
	case s.hinderedByOthers() != "":
		return block("a new cluster was being created from %s, but spec.recovery no longer lists all other members as "+
			"lost: %s", source,
			s.hinderedByOthers())
	case begun.FromBackup && (gone || r.VolumeTerminating):
		return s.startRecovery() // in a different volume
	case gone || r.VolumeTerminating:
		return block("the volume of %s, from which a new cluster was being created, is missing or being deleted. Name "+
			"another member or a backup in spec.recovery", s.ReplicaName(begun.Ordinal))
	}
	return s.followRecovery()
}

// firstGiveUp returns what to delete manually before a recovery that has begun is removed from the record: the Job, or
// the claim that may already hold the new cluster.
func (s State) firstGiveUp() string {
	begun, job := s.Record.Recovery, s.Recovery.Job
	switch {
	case job != nil && job.runs():
		return fmt.Sprintf("run kubectl delete job %s and ", s.recoveryJobName())
	case s.Membership.Known && !s.listed()[begun.Ordinal].Answers:
		return fmt.Sprintf("run kubectl delete pvc data-%s, which may already hold the new cluster, and ",
			s.ReplicaName(begun.Ordinal))
	}
	return ""
}

// unnamedRecovery returns why it is unknown whether this is the cluster whose recovery git requests, or "".
func (s State) unnamedRecovery() string {
	order := s.Declared.Recovery
	if order.ClusterID == 0 || !s.recorded() || !s.Formed() || s.Membership.MayServe() ||
		RequiredRecord(s, "").ClusterID != 0 {
		return ""
	}
	if s.isVoid(order) {
		return "the record and status of the cluster were lost after spec.recovery was declared. Remove " +
			"spec.recovery from git, run a pass, and declare it again"
	}
	return fmt.Sprintf("the record and status are lost, and the claims do not show that cluster %s used them last. "+
		"If it did, annotate the claim of the remaining member: kubectl annotate pvc data-%s "+
		"etcd.quorate.dev/cluster-id=%[1]s",
		order.ClusterID, s.ReplicaName(order.Ordinal))
}

// describeHindered returns why the requested recovery of a cluster without quorum has not begun, or "".
func (s State) describeHindered() string {
	if unnamed := s.unnamedRecovery(); unnamed != "" {
		return "; spec.recovery has no effect: " + unnamed
	}
	if !s.ordersRecovery() || s.Record.Recovering() || s.hindersRecovery() == "" {
		return ""
	}
	return "; spec.recovery has no effect yet: " + s.hindersRecovery() + s.describeLoss()
}

// recoveryWarnings returns why the requested recovery has not begun.
func (s State) recoveryWarnings() []string {
	order := s.Declared.Recovery
	switch {
	case order.ClusterID == 0 || s.Record.Recovering() || s.Record.Supersedes(order.ClusterID):
		return nil
	case s.Record.ClusterID != 0 && order.ClusterID != s.Record.ClusterID:
		return []string{fmt.Sprintf("spec.recovery has no effect: it is for cluster %s, but this is cluster %s",
			order.ClusterID, s.Record.ClusterID)}
	case s.unnamedRecovery() != "":
		return []string{"spec.recovery has no effect: " + s.unnamedRecovery()}
	case s.Membership.Known:
		return []string{"spec.recovery has no effect: the cluster has quorum. Remove spec.recovery from git"}
	case s.Membership.Unconfirmed:
		return []string{"spec.recovery has no effect: a member returns a member list, so the cluster may have quorum"}
	case s.recorded() && s.hindersRecovery() != "":
		return []string{"spec.recovery has no effect yet: " + s.hindersRecovery()}
	}
	return nil
}
