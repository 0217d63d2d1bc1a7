package invariants

import (
	"fmt"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

// recoveryInvariants are the invariants about a new cluster created from the remains of a lost cluster.
var recoveryInvariants = []invariant{
	{Invariant{"recovered only on request",
		"A cluster that should run is stopped, and a new cluster is created from its data, only if the spec " +
			"requests recovery for the recorded cluster ID. A quorum must not respond, and pods must not be ready. " +
			"Every other member, or every member if the data comes from a backup, must have lost its volume or be " +
			"listed in spec.recovery.lost. A recovery that has begun continues while the spec requests it."},
		recoveredOnWord},
	{Invariant{"recovered while nothing runs",
		"Only one Job at a time creates a new cluster from a member's data. The Job works on the recorded volume " +
			"while no pods exist. The member starts on that data only after the Job has succeeded."},
		recoveredWhileNothingRuns},
	{Invariant{"a changed request stops its Job",
		"Restore and Recover do not wait or block while a Job is running for a request that has since been changed " +
			"or removed. The exceptions are a run that may not carry out the request, and a cluster that may still " +
			"exist."},
		stopsChangedJob},
	{Invariant{"the lost cluster stays stopped",
		"Pods are stopped as members of a lost cluster only if their claims are marked as belonging to it, the ID of " +
			"the new cluster is known, and the new cluster does not list them. While such a pod is running, no rule " +
			"except a guard waits or blocks."},
		lostClusterStaysStopped},
	{Invariant{"the lost cluster is kept",
		"The record of a new cluster lists every volume of the lost cluster as kept. Unless the whole cluster is " +
			"deleted, such a volume is deleted only if the spec requests deletion for that lost cluster. The new " +
			"cluster must have quorum, and its data must not be in doubt."},
		lostClusterIsKept},
}

// recovering reports whether a recovery of the recorded cluster has begun.
func recovering(r decide.Record) bool {
	return r.Recovery.ClusterID != 0 && r.Recovery.ClusterID == r.ClusterID
}

func recoveredOnWord(s decide.State, d decide.Decision) string {
	switch d.Action.(type) {
	case decide.StopPods:
		if s.Declared.Lifecycle != decide.Running {
			return ""
		}
		begun := recovering(s.Record) && s.Declared.Recovery.ClusterID == s.Record.ClusterID
		if begun && !mayServe(s) && !anyReady(s) {
			return ""
		}
	case decide.StartRecovery:
		if startsAgain(s) {
			return ""
		}
	case decide.StopRecovery:
		ended := s.Recovery.Job == nil || s.Recovery.Job.Phase != decide.JobRuns
		held := s.Recovery.Job != nil && delaysDeletion(s, s.Recovery.Job.VolumeJob)
		if ended && !held && s.Declared.Recovery.ClusterID != s.Record.ClusterID && !s.Membership.Known {
			return fmt.Sprintf("%s, but the spec does not request recovery of this cluster", d.Action)
		}
		return ""
	case decide.FinishRecovery:
		if s.Declared.Recovery.ClusterID != s.Record.ClusterID {
			return fmt.Sprintf("%s, but the spec does not request recovery of this cluster", d.Action)
		}
		if what := notGivenUp(s); what != "" {
			return fmt.Sprintf("%s, but %s", d.Action, what)
		}
		return ""
	default:
		return ""
	}
	if what := notOrdered(s); what != "" {
		return fmt.Sprintf("%s, but %s", d.Action, what)
	}
	return ""
}

// startsAgain reports whether the recovery that the spec requests has begun and may be started again.
func startsAgain(s decide.State) bool {
	begun := s.Record.Recovery
	same := begun.FromBackup == ordersBackup(s) &&
		(begun.FromBackup || replicaAt(s, begun.Ordinal).VolumeUID == begun.VolumeUID)
	return recovering(s.Record) && s.Declared.Recovery.Ordinal == begun.Ordinal && same &&
		s.Declared.Recovery.ClusterID == begun.ClusterID && notGivenUp(s) == ""
}

func lostClusterStaysStopped(s decide.State, d decide.Decision) string {
	a, stops := d.Action.(decide.StopReplicas)
	for _, r := range s.Replicas {
		other := func(id decide.ID) bool { return id != 0 && id != r.LostCluster }
		givenUp := s.Record.ClusterID == r.LostCluster && s.ReportedClusterID == r.LostCluster && !recovering(s.Record)
		recorded := !givenUp || slices.ContainsFunc(s.Replicas, func(used decide.Replica) bool {
			return used.LastUse.ClusterID == s.Membership.ClusterID
		})
		made := other(s.ReportedClusterID) || other(s.Membership.ClusterID) && recorded ||
			other(s.Record.ClusterID) && replaced(s.Record, r.LostCluster)
		_, listed := memberAt(s, r.Ordinal)
		member := listed && s.Membership.Known && s.Membership.ClusterID != r.LostCluster
		lost := r.LostCluster != 0 && r.VolumeUID != "" && made && !member
		stays := r.Pod != decide.PodAbsent && r.Pod != decide.PodTerminating
		stopped := stops && a.Ordinals&(1<<uint(r.Ordinal)) != 0
		switch {
		case stopped && (!lost || r.LostCluster != a.LostCluster || other(r.ClusterID)):
			return fmt.Sprintf("%s, but %s is not a member of a lost cluster", a, podName(s, r.Ordinal))
		case lost && stays && d.Verdict != decide.Act && r.ClusterID == r.LostCluster && !guarded(s, d):
			return fmt.Sprintf("%s is running alongside the cluster that replaced its lost "+
				"cluster", podName(s, r.Ordinal))
		}
	}
	return ""
}

// replaced reports whether the record belongs to the cluster that was created to replace the lost cluster.
func replaced(record decide.Record, lost decide.ID) bool {
	if lost == 0 || record.ClusterID == 0 {
		return false
	}
	if record.Recovery.ClusterID == lost {
		return true
	}
	for _, gone := range record.Removed {
		if gone.LostCluster == lost {
			return true
		}
	}
	return false
}

// guarded reports whether a guard prevents changes to the cluster, or the action only renews certificates.
func guarded(s decide.State, d decide.Decision) bool {
	_, renews := d.Action.(decide.RenewCertificates)
	return renews || s.Declared.Suspended || s.Declared.Orphaned != "" || len(s.Declared.Problems) > 0 ||
		s.Declared.Replicas < 1 || s.Declared.Replicas > decide.MaxOrdinals || s.LockHolder != "" ||
		len(s.Objects.Foreign) > 0 || len(s.Objects.Relabelled) > 0 || d.Rule == "ForeignObjects"
}

func stopsChangedJob(s decide.State, d decide.Decision) string {
	restores, recovers, order := s.Restore.Job, s.Recovery.Job, s.Declared.Recovery
	switch {
	case d.Verdict == decide.Act || d.Rule != "Restore" && d.Rule != "Recover":
	case restores != nil && works(restores.VolumeJob) && besideSeed(s) == "":
		if restores.Digest != s.Declared.Restore.Digest {
			return "a Job restores a backup that the spec no longer declares"
		}
	case recovers != nil && works(recovers.VolumeJob) && recovering(s.Record):
		changed := recovers.ClusterID != order.ClusterID || recovers.Digest != order.Digest
		if changed && order.Refused == "" && !mayServe(s) && !anyReady(s) {
			return "a Job carries out a recovery that the spec no longer requests"
		}
	}
	return ""
}

// works reports whether a Job is running and is not being deleted.
func works(j decide.VolumeJob) bool { return j.Phase == decide.JobRuns && !j.Terminating }

// mayServe reports whether a member returned a linearizable list, whether or not a quorum confirms it.
func mayServe(s decide.State) bool { return s.Membership.Known || s.Membership.Unconfirmed }

func anyReady(s decide.State) bool {
	return slices.ContainsFunc(s.Replicas, func(r decide.Replica) bool { return r.Pod == decide.PodReady })
}

// saidLost reports whether git declares the data of the slot's member as lost.
func saidLost(s decide.State, ordinal int) bool {
	return s.Declared.Recovery.Lost&(1<<uint(ordinal)) != 0
}

// ordersBackup reports whether git requests a new cluster from a backup.
func ordersBackup(s decide.State) bool { return s.Declared.Recovery.Backup != "" }

// notOrdered returns which condition for beginning a recovery is not met, or "".
func notOrdered(s decide.State) string {
	order := s.Declared.Recovery
	survivor, recorded := recordedAt(s.Record, order.Ordinal)
	r := replicaAt(s, order.Ordinal)
	switch {
	case order.ClusterID == 0 || order.ClusterID != s.Record.ClusterID || order.ClusterID != cluster(s):
		return "the spec does not request recovery of the current cluster ID"
	case mayServe(s):
		return "etcd has or may have quorum"
	case order.Word != "" && (order.Word == s.Record.VoidRecovery || order.Word == s.ReportedVoidRecovery):
		return "etcd has had quorum since the recovery was requested"
	case order.Refused != "":
		return order.Refused
	case r.VolumeTerminating && !ordersBackup(s):
		return "the volume of the surviving member is being deleted"
	case !recorded:
		return "the requested member is not recorded"
	case ordersBackup(s):
	case survivor.Mode != decide.Sealed || r.VolumeUID == "",
		survivor.VolumeUID != "" && survivor.VolumeUID != r.VolumeUID:
		return "the volume of the surviving member differs from the recorded volume"
	case saidLost(s, order.Ordinal):
		return "the surviving member is listed as lost"
	}
	for _, slot := range s.Replicas {
		if slot.Pod == decide.PodReady {
			return "the pod of " + podName(s, slot.Ordinal) + " is ready"
		}
		if slot.LostCluster == order.ClusterID && !recovering(s.Record) {
			return "a new cluster was already created from this cluster"
		}
	}
	return notGivenUp(s)
}

// notGivenUp returns which other member has a volume and is not declared lost, or "".
func notGivenUp(s decide.State) string {
	for _, m := range s.Record.Members {
		slot := replicaAt(s, m.Ordinal)
		lost := saidLost(s, m.Ordinal) || slot.VolumeUID == ""
		survives := m.Ordinal == s.Declared.Recovery.Ordinal && !ordersBackup(s)
		if !survives && m.Mode != decide.Joining && !lost {
			return "the data of " + podName(s, m.Ordinal) + " is not confirmed as lost"
		}
	}
	for _, r := range s.Replicas {
		_, recorded := recordedAt(s.Record, r.Ordinal) // checked above
		goneBefore := slices.ContainsFunc(s.Record.Removed, func(gone decide.RemovedMember) bool {
			return gone.Ordinal == r.Ordinal && gone.VolumeUID == r.VolumeUID && gone.LostCluster == 0
		})
		mayBe := r.VolumeUID != "" && (r.LostCluster == 0 || r.LostCluster == s.Declared.Recovery.ClusterID)
		if mayBe && !recorded && !goneBefore && r.Ordinal != s.Declared.Recovery.Ordinal && !saidLost(s, r.Ordinal) {
			return "the data of that cluster on the volume of " + podName(s, r.Ordinal) + " is not confirmed as lost"
		}
	}
	return ""
}

func recoveredWhileNothingRuns(s decide.State, d decide.Decision) string {
	if what := beside(s, d); what != "" {
		return what
	}
	seen := s.Recovery
	switch a := d.Action.(type) {
	case decide.StartRecovery:
		switch {
		case seen.Job != nil || len(seen.Stopping) > 0:
			return "starts a second recovery Job"
		case seen.Foreign != "" || seen.Hidden != "":
			return "starts a recovery Job without knowing whether another exists"
		case replicaAt(s, a.Ordinal).VolumeTerminating:
			return "creates a cluster on a volume that is being deleted"
		case a.Ordinal != s.Declared.Recovery.Ordinal || a.Digest != s.Declared.Recovery.Digest:
			return "creates a cluster from data that the spec does not name"
		}
	case decide.StopRecovery:
		if seen.Job == nil || seen.Job.UID != a.JobUID {
			return "stops a Job that was not observed"
		}
	case decide.FinishRecovery:
		return unfinished(s, a)
	}
	return ""
}

// beside returns which pod exists, or may be created at any moment, alongside the Job, or "".
func beside(s decide.State, d decide.Decision) string {
	switch d.Action.(type) {
	case decide.StartRecovery, decide.FinishRecovery:
	default:
		return ""
	}
	if s.Objects.RunsReplicas > 0 {
		return fmt.Sprintf("%s, but the StatefulSet may create pods", d.Action)
	}
	for _, r := range s.Replicas {
		if r.Pod != decide.PodAbsent {
			return fmt.Sprintf("%s while the pod of %s exists", d.Action, podName(s, r.Ordinal))
		}
	}
	return ""
}

// unfinished returns why a member must not start on a Job's result.
func unfinished(s decide.State, a decide.FinishRecovery) string {
	j, begun := s.Recovery.Job, s.Record.Recovery
	r := replicaAt(s, begun.Ordinal)
	switch {
	case j == nil || j.Phase != decide.JobSucceeded || j.Terminating || len(s.Recovery.Stopping) > 0:
		return "starts a member on data that may be incomplete"
	case !recovering(s.Record) || j.ClusterID != begun.ClusterID || j.Ordinal != begun.Ordinal:
		return "finishes a recovery that has not begun"
	case begun.FromBackup != (j.From != "") || begun.FromBackup != ordersBackup(s):
		return "finishes a recovery from a different source"
	case a.ClusterID == 0 || a.ClusterID != j.Into || a.ClusterID == begun.ClusterID:
		return "starts a cluster that the Job did not create"
	case a.VolumeUID == "" || a.VolumeUID != begun.VolumeUID || a.VolumeUID != r.VolumeUID ||
		a.VolumeUID != j.VolumeUID || r.VolumeTerminating:
		return "starts a member on a different volume"
	}
	return ""
}

func lostClusterIsKept(s decide.State, d decide.Decision) string {
	switch a := d.Action.(type) {
	case decide.FinishRecovery:
		return leavesBehind(s, decide.RecoveredRecord(s, a))
	case decide.DeleteVolume:
		order := s.Declared.Recovery
		for _, gone := range s.Record.Removed {
			is := gone.Ordinal == a.Ordinal && gone.VolumeUID == a.VolumeUID && gone.LostCluster != 0
			wanted := order.ClusterID == gone.LostCluster && order.ClusterID != s.Record.ClusterID &&
				order.OldVolumes == decide.Delete && s.Membership.Known && !anyCorrupt(s) &&
				s.Record.Recovery.ClusterID == gone.LostCluster && !s.Record.Recovery.Suspect
			if is && !wanted && !wholeClusterGoes(s) {
				return "deletes a volume that must be kept"
			}
		}
	}
	return ""
}

// anyCorrupt reports whether etcd reports that data may be wrong.
func anyCorrupt(s decide.State) bool {
	for _, alarm := range s.Membership.StaleAlarms {
		if alarm.Kind == decide.AlarmCorrupt {
			return true
		}
	}
	return slices.ContainsFunc(s.Membership.Members,
		func(m decide.Member) bool { return slices.Contains(m.Alarms, decide.AlarmCorrupt) })
}

// leavesBehind returns the information about the lost cluster that is missing in a new cluster's record, or "".
func leavesBehind(s decide.State, after decide.Record) string {
	seed, begun := s.Record.Recovery.Ordinal, after.Recovery
	begun.Suspect = s.Record.Recovery.Suspect
	switch {
	case after.Token != s.Record.Token:
		return "changes the token"
	case begun != s.Record.Recovery || after.ClusterID == s.Record.ClusterID:
		return "forgets the lost cluster"
	case len(after.Members) != 1 || after.Members[0].Ordinal != seed || after.Members[0].Mode != decide.Sealed:
		return "lets a different member start"
	}
	for _, r := range s.Replicas {
		if r.VolumeUID != "" && r.Ordinal != seed && !keepsSlot(after, r) {
			return "forgets the volume of " + podName(s, r.Ordinal)
		}
	}
	return ""
}

func keepsSlot(record decide.Record, r decide.Replica) bool {
	for _, gone := range record.Removed {
		if gone.Ordinal == r.Ordinal {
			return gone.LostCluster != 0 && gone.VolumeUID == r.VolumeUID
		}
	}
	return false
}
