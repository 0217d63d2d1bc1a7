package invariants

import (
	"fmt"

	"quorate.dev/quorate/reconcile/decide"
)

// restoreInvariants are the invariants about a cluster created from a backup.
var restoreInvariants = []invariant{
	{Invariant{"restored before the cluster runs",
		"Data is restored only into the volume of the single recorded member, while the cluster should run but has " +
			"no cluster ID and no pods."},
		restoredBeforeItRuns},
	{Invariant{"the declared backup is restored",
		"A restore Job is started once, for the declared backup, and is stopped only by its observed UID. A member " +
			"starts on the volume only after the Job for the declared backup has succeeded."},
		restoredAsDeclared},
	{Invariant{"clients reach only restored data",
		"After a restore, the cluster ID is recorded only once the first member runs on the data that the Job " +
			"reported. Recording the ID opens the client Service."},
		findsWhatWasRestored},
	{Invariant{"a restore does not stop a cluster",
		"During a restore, applying objects stops all pods. Objects are therefore not applied while a pod or " +
			"another member's volume exists, because an older record may have been restored."},
		notStoppedForRestore},
}

func restoredBeforeItRuns(s decide.State, d decide.Decision) string {
	switch d.Action.(type) {
	case decide.StartRestore, decide.StopRestore, decide.FinishRestore:
	default:
		return ""
	}
	_, stops := d.Action.(decide.StopRestore)
	if stops && s.Restore.Job != nil && delaysDeletion(s, s.Restore.Job.VolumeJob) {
		return ""
	}
	switch {
	case !restoring(s.Record) || s.Record.Members[0].Ordinal != 0:
		return fmt.Sprintf("%s, but the record does not contain a member that is being restored", d.Action)
	case cluster(s) != 0 || len(s.Membership.Members) > 0:
		return fmt.Sprintf("%s, but the cluster has formed", d.Action)
	case s.Declared.Lifecycle != decide.Running:
		return fmt.Sprintf("%s, but the cluster should not run", d.Action)
	}
	if what := besideSeed(s); what != "" {
		return fmt.Sprintf("%s, but there is %s", d.Action, what)
	}
	return ""
}

// delaysDeletion reports whether a Job has ended while its volume is being deleted, and deleting the volume loses no
// data: etcd has quorum, no member has started on the restored data yet, or the spec lists the member as lost.
func delaysDeletion(s decide.State, j decide.VolumeJob) bool {
	for _, r := range s.Replicas {
		m, _ := recordedAt(s.Record, r.Ordinal)
		order, begun := s.Declared.Recovery, s.Record.Recovery
		lost := order.ClusterID != 0 && order.ClusterID == s.Record.ClusterID && order.Lost&(1<<uint(r.Ordinal)) != 0 &&
			order.Refused == "" && s.Record.VoidRecovery != order.Word
		restores := m.Mode == decide.Restoring && cluster(s) == 0 && len(s.Membership.Members) == 0 &&
			besideSeed(s) == ""
		fromBackup := restores || recovering(s.Record) && begun.FromBackup && begun.Ordinal == r.Ordinal
		if r.VolumeTerminating && r.VolumeUID == j.VolumeUID {
			return j.Phase != decide.JobRuns && !j.Terminating && (s.Membership.Known || lost || fromBackup)
		}
	}
	return false
}

// restoring reports whether the only recorded member is being restored.
func restoring(r decide.Record) bool {
	return len(r.Members) == 1 && r.Members[0].Mode == decide.Restoring
}

// besideSeed returns a pod or volume that exists in addition to the volume being restored, or "".
func besideSeed(s decide.State) string {
	for _, r := range s.Replicas {
		if r.Pod != decide.PodAbsent {
			return "the pod of " + podName(s, r.Ordinal)
		}
		if r.VolumeUID != "" && r.Ordinal != 0 {
			return "the volume of " + podName(s, r.Ordinal)
		}
	}
	return ""
}

// notStoppedForRestore checks that a restore, during which pods do not run, does not stop the pods of an existing
// cluster.
func notStoppedForRestore(s decide.State, d decide.Decision) string {
	_, applies := d.Action.(decide.ApplyObjects)
	if !applies || s.Declared.Lifecycle != decide.Running || !restoring(decide.RequiredRecord(s, "fresh")) {
		return ""
	}
	if what := besideSeed(s); what != "" {
		return "stops all pods for a restore although there is " + what
	}
	return ""
}

func restoredAsDeclared(s decide.State, d decide.Decision) string {
	seen, declared, seed := s.Restore, s.Declared.Restore.Digest, replicaAt(s, 0)
	switch a := d.Action.(type) {
	case decide.StartRestore:
		switch {
		case seen.Job != nil || len(seen.Stopping) > 0:
			return "starts a second restore Job"
		case seen.Foreign != "" || seen.Hidden != "":
			return "starts a restore Job without knowing whether another exists"
		case declared == "" || a.Digest != declared:
			return "restores a backup that the spec does not declare"
		case seed.VolumeTerminating:
			return "restores into a volume that is being deleted"
		}
	case decide.StopRestore:
		if seen.Job == nil || seen.Job.UID != a.JobUID {
			return "stops a Job that was not observed"
		}
	case decide.FinishRestore:
		j := seen.Job
		switch {
		case j == nil || j.Phase != decide.JobSucceeded || j.Terminating:
			return "starts a member on data that no Job has restored"
		case a.VolumeUID == "" || a.VolumeUID != seed.VolumeUID || a.VolumeUID != j.VolumeUID || seed.VolumeTerminating:
			return "starts a member on a different volume"
		case declared == "" || j.Digest != declared:
			return "starts a member on data that the spec does not declare"
		case a.Data != j.Data:
			return "records data other than the data that the Job restored"
		}
	}
	return ""
}

// findsWhatWasRestored checks that a cluster created from a backup is sealed only if it runs the restored data. If etcd
// lists several members, an older record was restored, and only the cluster ID is checked.
func findsWhatWasRestored(s decide.State, d decide.Decision) string {
	a, seals := d.Action.(decide.Seal)
	want := s.Record.Restored
	if !seals || s.Record.RestoredFrom == "" || s.Record.ClusterID != 0 {
		return ""
	}
	if want.ClusterID != 0 && a.ClusterID != want.ClusterID {
		return "the cluster ID differs from the restored cluster ID"
	}
	if len(s.Membership.Members) != 1 {
		return ""
	}
	switch m := s.Membership.Members[0]; {
	case want.MemberID != 0 && m.ID != want.MemberID:
		return "the member ID differs from the restored member ID"
	case m.Revision < want.Revision:
		return "the data is older than the restored data"
	case len(s.Membership.StaleAlarms) > 0:
		return "an alarm of the original cluster is still active"
	}
	return ""
}
