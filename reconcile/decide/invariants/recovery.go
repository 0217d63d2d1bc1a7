package invariants

import (
	"fmt"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

// recoveryInvariants are the invariants about a new cluster created from the remains of a lost one.
var recoveryInvariants = []invariant{
	{Invariant{"recovered on a person's word",
		"Pods of a cluster that is to run are stopped, and data are made those of a new cluster, only where git " +
			"orders it for the cluster that is there, nobody hears a quorum or finds a pod ready, and every other " +
			"member, or every member if it is made of a backup, has lost its volume or is said to have lost its " +
			"data; or once that was begun, while git orders it."},
		recoveredOnWord},
	{Invariant{"recovered while nothing runs",
		"The data of a member are made those of a new cluster only while no pod is there, on the volume on record, " +
			"by one Job, and it starts on them only once that has ended well."}, recoveredWhileNothingRuns},
	{Invariant{"a changed request stops its Job",
		"The rules Restore and Recover leave no Job at work for a request that git has changed or removed since, " +
			"unless the run may not carry it out, or something else seems to be the cluster."}, stopsChangedJob},
	{Invariant{"the lost cluster stays stopped",
		"Pods are stopped as those of a lost cluster only on volumes that are marked so, and whose members the new " +
			"cluster, which is known, does not list. Unless a guard before it holds, no rule waits or blocks while " +
			"one runs."}, lostClusterStaysStopped},
	{Invariant{"the lost cluster is kept",
		"When a new cluster is made of a lost one, its record names every volume of that as kept; one is deleted " +
			"only once git says so for that very cluster, and the new one serves."}, lostClusterIsKept},
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
		if begun && !s.Membership.Known && !anyReady(s) {
			return ""
		}
	case decide.StartRecovery:
		begun := s.Record.Recovery
		same := begun.FromBackup == ordersBackup(s) &&
			(begun.FromBackup || replicaAt(s, begun.Ordinal).VolumeUID == begun.VolumeUID)
		again := recovering(s.Record) && s.Declared.Recovery.Ordinal == begun.Ordinal && same
		if again && s.Declared.Recovery.ClusterID == begun.ClusterID && notGivenUp(s) == "" {
			return ""
		}
	case decide.StopRecovery:
		ended := s.Recovery.Job == nil || s.Recovery.Job.Phase != decide.JobRuns
		held := s.Recovery.Job != nil && delaysDeletion(s, s.Recovery.Job.VolumeJob)
		if ended && !held && s.Declared.Recovery.ClusterID != s.Record.ClusterID && !s.Membership.Known {
			return fmt.Sprintf("%s, and git orders no recovery of this cluster", d.Action)
		}
		return ""
	case decide.FinishRecovery:
		if what := notGivenUp(s); what != "" || s.Declared.Recovery.ClusterID != s.Record.ClusterID {
			return fmt.Sprintf("%s, and git orders no recovery of this cluster, or %s", d.Action, what)
		}
		return ""
	default:
		return ""
	}
	if what := notOrdered(s); what != "" {
		return fmt.Sprintf("%s, and %s", d.Action, what)
	}
	return ""
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
		switch {
		case stops && a.Ordinals&(1<<uint(r.Ordinal)) != 0 && (!lost || r.LostCluster != a.LostCluster || other(r.ClusterID)):
			return fmt.Sprintf("%s, and %s is no member of a lost cluster", a, podName(s, r.Ordinal))
		case lost && stays && d.Verdict != decide.Act && r.ClusterID == r.LostCluster && !guarded(s, d):
			return fmt.Sprintf("%s runs beside the cluster that was made of its own", podName(s, r.Ordinal))
		}
	}
	return ""
}

// replaced reports whether the record belongs to the cluster created in place of the lost one.
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
			return "a Job restores what git does not declare any more"
		}
	case recovers != nil && works(recovers.VolumeJob) && recovering(s.Record):
		changed := recovers.ClusterID != order.ClusterID || recovers.Digest != order.Digest
		if changed && order.Refused == "" && !s.Membership.Known && !anyReady(s) {
			return "a Job recovers what git does not order any more"
		}
	}
	return ""
}

// works reports whether a Job is running and is not being deleted.
func works(j decide.VolumeJob) bool { return j.Phase == decide.JobRuns && !j.Terminating }

func anyReady(s decide.State) bool {
	return slices.ContainsFunc(s.Replicas, func(r decide.Replica) bool { return r.Pod == decide.PodReady })
}

// saidLost reports whether the data of the member in that slot is confirmed as lost.
func saidLost(s decide.State, ordinal int) bool {
	return s.Declared.Recovery.Lost&(1<<uint(ordinal)) != 0
}

// ordersBackup reports whether git requests a new cluster from a backup.
func ordersBackup(s decide.State) bool { return s.Declared.Recovery.Backup != "" }

// notOrdered returns which condition for beginning a recovery is missing.
func notOrdered(s decide.State) string {
	order := s.Declared.Recovery
	survivor, recorded := recordedAt(s.Record, order.Ordinal)
	r := replicaAt(s, order.Ordinal)
	switch {
	case order.ClusterID == 0 || order.ClusterID != s.Record.ClusterID || order.ClusterID != cluster(s):
		return "git does not order it for the cluster that is there"
	case s.Membership.Known:
		return "etcd has a quorum"
	case order.Word != "" && (order.Word == s.Record.VoidRecovery || order.Word == s.ReportedVoidRecovery):
		return "etcd has had a quorum since git orders it"
	case order.Refused != "":
		return order.Refused
	case r.VolumeTerminating && !ordersBackup(s):
		return "the volume of the member that is left is being deleted"
	case !recorded:
		return "it is no member that is on record"
	case ordersBackup(s):
	case survivor.Mode != decide.Sealed || r.VolumeUID == "",
		survivor.VolumeUID != "" && survivor.VolumeUID != r.VolumeUID:
		return "the volume of the member that is left is not the one on record"
	case saidLost(s, order.Ordinal):
		return "the member that is left is said to be lost"
	}
	for _, slot := range s.Replicas {
		if slot.Pod == decide.PodReady {
			return "the pod of " + podName(s, slot.Ordinal) + " is ready"
		}
		if slot.LostCluster == order.ClusterID && !recovering(s.Record) {
			return "another cluster was made of it before"
		}
	}
	return notGivenUp(s)
}

// notGivenUp returns which other member has a volume and is not confirmed as lost.
func notGivenUp(s decide.State) string {
	for _, m := range s.Record.Members {
		slot := replicaAt(s, m.Ordinal)
		lost := saidLost(s, m.Ordinal) || slot.VolumeUID == ""
		survives := m.Ordinal == s.Declared.Recovery.Ordinal && !ordersBackup(s)
		if !survives && m.Mode != decide.Joining && !lost {
			return "nobody says that the data of " + podName(s, m.Ordinal) + " are lost"
		}
	}
	for _, r := range s.Replicas {
		_, recorded := recordedAt(s.Record, r.Ordinal) // checked above
		goneBefore := slices.ContainsFunc(s.Record.Removed, func(gone decide.RemovedMember) bool {
			return gone.Ordinal == r.Ordinal && gone.VolumeUID == r.VolumeUID && gone.LostCluster == 0
		})
		mayBe := r.VolumeUID != "" && (r.LostCluster == 0 || r.LostCluster == s.Declared.Recovery.ClusterID)
		if mayBe && !recorded && !goneBefore && r.Ordinal != s.Declared.Recovery.Ordinal && !saidLost(s, r.Ordinal) {
			return "nobody says that what " + podName(s, r.Ordinal) + " has of that cluster is lost"
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
			return "starts a second one"
		case seen.Foreign != "" || seen.Hidden != "":
			return "starts one without knowing whether there is one"
		case replicaAt(s, a.Ordinal).VolumeTerminating:
			return "makes one in a volume that is being deleted"
		case a.Ordinal != s.Declared.Recovery.Ordinal || a.Digest != s.Declared.Recovery.Digest:
			return "makes a cluster of what git does not order"
		}
	case decide.StopRecovery:
		if seen.Job == nil || seen.Job.UID != a.JobUID {
			return "stops what was not seen"
		}
	case decide.FinishRecovery:
		return unfinished(s, a)
	}
	return ""
}

// beside returns what exists, or may at any moment, alongside the Job.
func beside(s decide.State, d decide.Decision) string {
	switch d.Action.(type) {
	case decide.StartRecovery, decide.FinishRecovery:
	default:
		return ""
	}
	if s.Objects.RunsReplicas > 0 {
		return fmt.Sprintf("%s, and the StatefulSet makes pods", d.Action)
	}
	for _, r := range s.Replicas {
		if r.Pod != decide.PodAbsent {
			return fmt.Sprintf("%s beside the pod of %s", d.Action, podName(s, r.Ordinal))
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
		return "starts a member on data that are not known to be whole"
	case !recovering(s.Record) || j.ClusterID != begun.ClusterID || j.Ordinal != begun.Ordinal:
		return "ends what was not begun"
	case begun.FromBackup != (j.From != "") || begun.FromBackup != ordersBackup(s):
		return "ends what was made of something else"
	case a.ClusterID == 0 || a.ClusterID != j.Into || a.ClusterID == begun.ClusterID:
		return "starts a cluster that nobody has made"
	case a.VolumeUID == "" || a.VolumeUID != begun.VolumeUID || a.VolumeUID != r.VolumeUID ||
		a.VolumeUID != j.VolumeUID || r.VolumeTerminating:
		return "starts a member on another volume"
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
				return "deletes a volume that is kept"
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

// leavesBehind returns what a new cluster's record lacks about the lost cluster.
func leavesBehind(s decide.State, after decide.Record) string {
	seed, begun := s.Record.Recovery.Ordinal, after.Recovery
	begun.Suspect = s.Record.Recovery.Suspect
	switch {
	case after.Token != s.Record.Token:
		return "changes the token"
	case begun != s.Record.Recovery || after.ClusterID == s.Record.ClusterID:
		return "forgets the lost cluster"
	case len(after.Members) != 1 || after.Members[0].Ordinal != seed || after.Members[0].Mode != decide.Sealed:
		return "lets another member start"
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
