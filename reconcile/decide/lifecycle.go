package decide

import (
	"fmt"
	"slices"
)

func orphaned(s State) (Decision, bool) {
	if s.Declared.Orphaned == "" {
		return Decision{}, false
	}
	return Decision{Verdict: Done, Message: fmt.Sprintf("%s; it is left unchanged (%s)", s.Declared.Orphaned,
		s.describe())}, true
}

func (s State) toRun() bool { return s.Declared.Lifecycle == Running }

func (s State) toDelete() bool { return s.Declared.Lifecycle == Deleted }

// nothingRuns applies if the cluster should not run and nothing is left to stop or delete. Retained volumes may remain,
// because they outlive the cluster.
func nothingRuns(s State) (Decision, bool) {
	if s.toRun() || s.anythingLeft() || s.anyReplica(hasPod) || len(s.Membership.Members) > 0 {
		return Decision{}, false
	}
	message := fmt.Sprintf("lifecycle %s: nothing is running", s.Declared.Lifecycle)
	if volumes := s.describeRemains(); volumes != "" {
		message += "; the data of " + volumes + " is kept"
	}
	return Decision{Verdict: Done, Message: message}, true
}

// anythingLeft reports whether anything must be stopped or deleted.
func (s State) anythingLeft() bool {
	return s.recorded() || s.hasStatefulSet() ||
		s.toDelete() && (len(s.Objects.Remaining) > 0 || s.deletesVolumes() && s.anyReplica(hasVolume))
}

func (s State) deletesVolumes() bool { return s.toDelete() && s.Declared.Retention == Delete }

func hasPod(r Replica) bool { return r.Pod != PodAbsent }

func hasVolume(r Replica) bool { return r.VolumeUID != "" }

// stop deletes the pods, and waits until they are gone, before anything else is deleted.
func stop(s State) (Decision, bool) {
	switch {
	case s.toRun() || !s.anythingLeft() || s.lacksLastBackup():
		return Decision{}, false
	case s.stillJoined() != "":
		return block("lifecycle %s: %s may be members of the adopted cluster, which needs their votes. Declare "+
			"lifecycle Running and spec.adopt.abandon, so that they leave it first", s.Declared.Lifecycle,
			s.stillJoined())
	case s.anyReplica(s.keepsGoingVolume) && !s.deletesVolumes():
		return block("lifecycle %s: the volumes of %s are being deleted and would disappear with their data as soon "+
			"as the pods stop. Declare lifecycle Running so that these members are replaced first",
			s.Declared.Lifecycle, s.describeGoingVolumes())
	case s.Objects.RunsReplicas > 0 && len(RequiredRecord(s, "").Members) == 0:
		return block("lifecycle %s: it is unknown which members the StatefulSet runs (no record, no volumes, no "+
			"response from etcd). Scale the StatefulSet to 0 manually", s.Declared.Lifecycle)
	case s.Objects.RunsReplicas > 0:
		return act(ApplyObjects{}, "lifecycle %s: stopping the pods of %s", s.Declared.Lifecycle, s.describeRemains())
	case s.anyReplica(hasPodThatStays) && !s.hasStatefulSet() && len(RequiredRecord(s, "").Members) > 0 && s.mayRoll():
		return act(ApplyObjects{},
			"lifecycle %s: the StatefulSet is missing, but its pods still exist; recreating the StatefulSet to stop %s",
			s.Declared.Lifecycle, s.describeRemains())
	case s.anyReplica(hasPod):
		return wait(recheck, "lifecycle %s: the pods are stopping: %s", s.Declared.Lifecycle, s.describeReplicas())
	case s.toDelete():
		return s.deleteRest()
	case len(s.drift()) > 0 && len(RequiredRecord(s, "").Members) > 0 && (s.hasStatefulSet() || s.mayRoll()):
		return act(ApplyObjects{}, "%s", sentence(s.drift()))
	}
	return Decision{Verdict: Done, Message: "stopped; the data of " + s.describeRemains() + " is kept"}, true
}

// drift returns the drift of all objects, including objects for backups.
func (s State) drift() []string { return slices.Concat(s.Objects.Drift, s.Backups.Drift) }

// keepsGoingVolume reports whether a pod holds a volume that is being deleted, or whose claim is already gone: the
// volume is deleted with the pod.
func (s State) keepsGoingVolume(r Replica) bool {
	gone := s.claimGone(r.Ordinal) && r.Pod != PodPending
	return hasPodThatStays(r) && (r.holdsTerminating() || gone)
}

// holdsTerminating reports whether a pod delays the deletion of a claim.
func (r Replica) holdsTerminating() bool {
	return hasVolume(r) && r.VolumeTerminating && hasPodThatStays(r)
}

func (s State) describeGoingVolumes() string {
	var names []string
	for _, r := range s.replicasInOrder() {
		if s.keepsGoingVolume(r) {
			names = append(names, s.ReplicaName(r.Ordinal))
		}
	}
	return Enumerate(names)
}

// deleteRest deletes the objects of a cluster without pods, and then its volumes if its retention is Delete. If a final
// backup is required, the volumes are deleted first, because the record shows that the backup exists. A volume being
// deleted may be waiting for the pod of an ended Job, which is deleted with the objects. Quorate deletes a cluster's
// data only here.
func (s State) deleteRest() (Decision, bool) {
	if s.Objects.DeclarationDiffers {
		return act(Declare{}, "updating the custom resource: the cluster will be deleted")
	}
	goFirst := s.Declared.BacksUpBeforeDeletion && s.deletesVolumes() && s.anyReplica(staysToDelete)
	if !goFirst && (s.recorded() || s.hasStatefulSet() || len(s.Objects.Remaining) > 0) {
		return act(DeleteObjects{}, "lifecycle Deleted: deleting the objects of the cluster: %s",
			sentence(s.Objects.Remaining))
	}
	for _, r := range s.replicasInOrder() {
		if s.deletesVolumes() && hasVolume(r) && !r.VolumeTerminating {
			return act(DeleteVolume{r.Ordinal, r.VolumeUID},
				"lifecycle Deleted, retention Delete: deleting the volume of %s", s.ReplicaName(r.Ordinal))
		}
	}
	return wait(recheck, "the data of %s is being deleted", s.describeRemains())
}

func renamedInGit(s State) (Decision, bool) {
	if s.Declared.RenamedFrom == "" || s.Formed() || s.recorded() {
		return Decision{}, false
	}
	return block("this looks like %s under a new name. A cluster cannot be renamed or moved: its members would start "+
		"without their data. Restore the old name, or copy the data with spec.restore.from.etcd. If this is a "+
		"separate cluster, set the annotation etcd.quorate.dev/confirm-new-cluster", s.Declared.RenamedFrom)
}
