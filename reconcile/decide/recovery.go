package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// RecoveryOrder is what git orders for a cluster that has lost its majority for good: a new one is made
// of the data of a member that is left, or of a backup.
type RecoveryOrder struct {
	// ClusterID of the cluster that is lost; nothing is done to another one. Zero: nothing is ordered.
	ClusterID ID `json:"clusterID,omitempty"`
	// Ordinal of the member that is left, or in whose volume the data of the backup go.
	Ordinal int `json:"ordinal"`
	// Backup that the new cluster is made of, in words; empty: it is made of the data of the member.
	Backup string `json:"backup,omitempty"`
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

// Recovery is what is seen of the Job that makes a new cluster of a lost one.
type Recovery struct {
	// Job that is there; nil if there is none.
	Job *RecoveryJob `json:"job,omitempty"`
	JobSight
}

// RecoveryJob is the Job that makes a new cluster in a volume, of the data in it or of a backup.
type RecoveryJob struct {
	VolumeJob
	// ClusterID of the cluster that is lost, and Ordinal of the member.
	ClusterID ID  `json:"clusterID"`
	Ordinal   int `json:"ordinal"`
	// From is the backup that it was started for, in words; empty if it was started for the data in the volume.
	From string `json:"from,omitempty"`
	// Restored says which backup it was, once the Job has said so.
	Restored string `json:"restored,omitempty"`
	// Into is the ID of the new cluster, once the Job has said so.
	Into ID `json:"into,omitempty"`
	// Suspect: the Job says that etcd had found that members hold different data.
	Suspect bool `json:"suspect,omitempty"`
}

// recoverCluster makes a new cluster of what is left of one that has lost its majority for good, where git
// orders it. Before that it stops all pods; from then on nobody but the Job touches the data.
func recoverCluster(s State) (Decision, bool) {
	switch {
	case !s.toRun() || !s.recorded():
		return Decision{}, false
	case s.recoversInVain():
		return act(StopRecovery{s.Recovery.Job.UID}, "etcd has a quorum after all: delete Job %s, which would make "+
			"another cluster beside it", s.recoveryJobName())
	case s.Record.Recovering():
		return s.goOnRecovering()
	case StandingRecord(s, "").Recovering():
		return Decision{}, false // it has to be on record first
	case s.recoversUnasked():
		return act(StopRecovery{s.Recovery.Job.UID}, "delete Job %s: neither git nor the record requests a new cluster",
			s.recoveryJobName())
	case s.recoveryJobEnds() && s.Objects.RunsReplicas == 0 && !s.anyReplica(hasPod):
		return wait(recheck, "pods are started once Job %s no longer writes to the volume of a member%s",
			s.recoveryJobName(), describeStopping(s.Recovery.Stopping))
	case s.ordersRecovery() && s.hindersRecovery() == "":
		return s.beginRecovery()
	case s.Objects.RunsReplicas == 0 && !s.anyReplica(hasPod) && s.recoveredBefore() != "":
		// What starts would be the lost cluster, beside the new one.
		return block("nothing runs, and %s", s.recoveredBefore())
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
	case s.isVoid(order):
		return "the cluster has had a quorum since that was declared, or its record was lost: if it is lost for good now, " +
			"take spec.recovery out of git, have a pass run, and declare it again"
	case order.Backup == "" && s.Replica(order.Ordinal).VolumeTerminating:
		return fmt.Sprintf("the volume of %s is being deleted", survivor)
	case order.Backup != "" && !recorded:
		return fmt.Sprintf("%s is not on record as a member", survivor)
	case order.Backup != "":
	case !recorded || m.Mode != Sealed || !hasVolume(s.Replica(order.Ordinal)):
		return fmt.Sprintf("%s is not on record as a member with data", survivor)
	case s.volumeLost(order.Ordinal): // it is not known after the record was lost: the Job checks whose data it is
		return fmt.Sprintf("the volume of %s is not the one that it had", survivor)
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

// recoversInVain reports whether a Job is still at work, or about to be, although the cluster on record has a quorum.
// The pod of the member that it makes another cluster of would lead clients there.
func (s State) recoversInVain() bool {
	job := s.Recovery.Job
	return job != nil && job.runs() && s.Membership.Known &&
		s.Membership.ClusterID == s.Record.ClusterID
}

// recoversUnasked reports whether a Job is at work that neither the record nor git requests, as after both were reverted.
// A pod would start on the volume that it writes to.
func (s State) recoversUnasked() bool {
	job := s.Recovery.Job
	return job != nil && job.runs() && s.Declared.Recovery.ClusterID != job.ClusterID
}

// recoveryJobEnds reports whether the Job is being deleted, or a pod of a deleted Job may still write to a volume.
func (s State) recoveryJobEnds() bool {
	job := s.Recovery.Job
	return job != nil && job.Terminating || len(s.Recovery.Stopping) > 0
}

// describeStopping names the pods of deleted Jobs; empty if there are none.
func describeStopping(pods []string) string {
	if len(pods) == 0 {
		return ""
	}
	return ": " + Enumerate(pods)
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

// hinderedByOthers says who may have data that the survivor, or the backup, lacks. A claim that is not
// the one on record counts: somebody may have bound it to the volume that there was. So does one whose mark
// alone says whose it is, or whose the record does not know: it may have been restored from before the member joined. Every
// claim is marked once a recovery was begun, so that a mark says nothing of one that the
// record says more of: that it is of a member that was joining, or of one that was gone before.
func (s State) hinderedByOthers() string {
	order := s.Declared.Recovery
	left := s.replicaNames(func(r Replica) bool {
		m, recorded := s.Record.Member(r.Ordinal)
		gone, known := s.Record.removed(r.Ordinal)
		goneBefore := known && !gone.Kept() && gone.VolumeUID == r.VolumeUID
		lostMember := recorded && m.Mode != Joining ||
			!recorded && !goneBefore && (r.LostCluster == 0 || r.LostCluster == order.ClusterID)
		return lostMember && hasVolume(r) && !order.Lost.Has(r.Ordinal) &&
			(r.Ordinal != order.Ordinal || order.Backup != "")
	})
	switch {
	case len(left) == 0:
		return ""
	case order.Backup != "":
		return fmt.Sprintf("there are volumes of %s, which may hold what was written after the backup: recover one of "+
			"them if it can be read; if their data are lost, name them in spec.recovery.lost", Enumerate(left))
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
	if d, stops := s.stopForRecovery(s.describeSource()); stops {
		return d, true
	}
	return s.startRecovery()
}

// describeSource says what git orders to make the new cluster of.
func (s State) describeSource() string {
	order := s.Declared.Recovery
	return cmp.Or(order.Backup, "the data of "+s.ReplicaName(order.Ordinal))
}

// describeBegun says what a new cluster is being made of.
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
		return act(StopPods{}, "git orders a new cluster of %s: stop all pods first%s", source, s.describeLoss())
	case s.anyReplica(hasPod):
		return wait(recheck, "a new cluster is made of %s once all pods are gone: %s", source, s.describeReplicas())
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
		return block("a new cluster was being made of %s, and %s", s.describeSource(), order.Refused)
	case job == nil && s.Replica(order.Ordinal).VolumeTerminating:
		return wait(recheck, "the volume of %s is being deleted", s.ReplicaName(order.Ordinal)) // another one is made
	case job == nil && order.Backup != "":
		return act(StartRecovery{order.Ordinal, order.Digest}, "make a new cluster of %s, in the place of %s; "+
			"what was written after it is lost%s", order.Backup, s.ReplicaName(order.Ordinal), s.describeLoss())
	case job == nil:
		return act(StartRecovery{order.Ordinal, order.Digest}, "make a new cluster of the data of %s; "+
			"what only members had that are lost is lost%s", s.ReplicaName(order.Ordinal), s.describeLoss())
	case job.Terminating:
		return wait(recheck, "Job %s is being deleted", s.recoveryJobName())
	}
	return act(StopRecovery{job.UID}, "Job %s was started for another recovery: start again", s.recoveryJobName())
}

// goOnRecovering follows a recovery that was begun. The data in the volume may be those of the new
// cluster by now, so that nothing else is done until that is known.
func (s State) goOnRecovering() (Decision, bool) {
	begun, order := s.Record.Recovery, s.Declared.Recovery
	source, r := s.describeBegun(), s.Replica(begun.Ordinal)
	switch serving := s.replicaNames(isReady); {
	case s.Membership.Known || len(serving) > 0:
		return block("a new cluster was being made of %s, and etcd serves (%s): if nothing is lost after "+
			"all, %stake recovery out of record.yaml in ConfigMap %s-members; otherwise stop it: "+
			"kubectl scale statefulset %[4]s --replicas=0", source,
			cmp.Or(Enumerate(serving), "it lists its members"), s.firstGiveUp(), s.Name)
	case s.stopsRecovery() != "":
		return act(StopRecovery{s.Recovery.Job.UID}, "stop Job %s: %s", s.recoveryJobName(), s.stopsRecovery())
	case order.ClusterID != begun.ClusterID:
		return block("a new cluster was being made of %s, and git does not order it any more: "+
			"declare spec.recovery with clusterID %s again", source, begun.ClusterID)
	}
	if d, stops := s.stopForRecovery(source); stops {
		return d, true
	}
	gone := !hasVolume(r) || r.VolumeUID != begun.VolumeUID
	switch changed := order.Ordinal != begun.Ordinal || begun.FromBackup != (order.Backup != ""); {
	case changed && s.hindersRecovery() != "":
		return block("git orders another recovery than the one that was begun: %s", s.hindersRecovery())
	case changed:
		return s.startRecovery()
	case s.hinderedByOthers() != "":
		return block("a new cluster was being made of %s, and git gives up the others no longer: %s", source,
			s.hinderedByOthers())
	case begun.FromBackup && (gone || r.VolumeTerminating):
		return s.startRecovery() // in another volume
	case gone || r.VolumeTerminating:
		return block("the volume of %s, of whose data a new cluster was being made, is gone or is being deleted: "+
			"name another member in spec.recovery, or a backup", s.ReplicaName(begun.Ordinal))
	}
	return s.followRecovery()
}

// stopsRecovery says why a Job is stopped that is at work: git has changed the order since, or no longer gives up the
// others; empty if it goes on. A run that may not carry out an order leaves the Job of another run alone.
func (s State) stopsRecovery() string {
	job, order := s.Recovery.Job, s.Declared.Recovery
	switch {
	case job == nil || !job.runs() || order.Refused != "":
		return ""
	case order.ClusterID != job.ClusterID || order.Digest != job.Digest:
		return "spec.recovery has changed since it was started"
	}
	return s.hinderedByOthers()
}

// firstGiveUp says what a person gives up before a recovery that was begun: the Job, and what it may have made.
func (s State) firstGiveUp() string {
	begun, job := s.Record.Recovery, s.Recovery.Job
	switch {
	case job != nil && job.runs():
		return fmt.Sprintf("kubectl delete job %s, and ", s.recoveryJobName())
	case s.Membership.Known && !s.listed()[begun.Ordinal].Answers:
		return fmt.Sprintf("kubectl delete pvc data-%s, on which there may be the new cluster by now, and ",
			s.ReplicaName(begun.Ordinal))
	}
	return ""
}

// followRecovery follows the Job on the volume that is there.
func (s State) followRecovery() (Decision, bool) {
	begun, job := s.Record.Recovery, s.Recovery.Job
	if job == nil || job.Terminating || !job.isFor(begun) || job.Digest != s.Declared.Recovery.Digest {
		return s.startRecovery()
	}
	source := s.describeBegun()
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
			"a new cluster is made of %s: let %s start%s", cmp.Or(job.Restored, source), s.ReplicaName(begun.Ordinal),
			doubt)
	case JobFailed:
		return block("Job %s has failed: %s; cure that, and delete the Job to have it tried again: "+
			"kubectl delete job %[1]s; or name another member in spec.recovery", s.recoveryJobName(),
			cmp.Or(job.Message, "it does not say why"))
	case JobRuns:
	}
	if job.Message != "" {
		return wait(recheck, "making a new cluster of %s: %s", source, job.Message)
	}
	return wait(recheck, "making a new cluster of %s", source)
}

func (j RecoveryJob) isFor(r RecordedRecovery) bool {
	return j.ClusterID == r.ClusterID && j.Ordinal == r.Ordinal && j.VolumeUID == r.VolumeUID &&
		(j.From != "") == r.FromBackup
}

// describeHindered says why the recovery that git orders of a cluster without quorum is not begun; empty if
// none is ordered.
func (s State) describeHindered() string {
	if !s.ordersRecovery() || s.Record.Recovering() || s.hindersRecovery() == "" {
		return ""
	}
	return "; spec.recovery is not acted on: " + s.hindersRecovery() + s.describeLoss()
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
