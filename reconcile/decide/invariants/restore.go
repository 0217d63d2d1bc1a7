package invariants

import (
	"fmt"

	"quorate.dev/quorate/reconcile/decide"
)

// restoreInvariants are the invariants about a cluster created from a backup.
var restoreInvariants = []invariant{
	{Invariant{"restored before it runs",
		"Data are restored only for a cluster of which nobody knows an ID, which is to run, and of which no pod is " +
			"there, on the volume of its only member, which is made for that."}, restoredBeforeItRuns},
	{Invariant{"restored as declared",
		"What fills a volume is started once, for the backup that git declares, and is stopped only as it was seen. " +
			"A member starts on a volume only once what fills it has ended well, for what git declares."},
		restoredAsDeclared},
	{Invariant{"clients find what was restored",
		"The ID of a cluster that was made from a backup goes on record, which leads clients to it, only once its " +
			"first member has shown that it runs on what the Job says that it restored."}, findsWhatWasRestored},
	{Invariant{"nothing is stopped for a restore",
		"Objects are not applied for a restore, which leaves no pod, where there is a pod, or a volume of another " +
			"member: the record may have been put back."}, notStoppedForRestore},
}

func restoredBeforeItRuns(s decide.State, d decide.Decision) string {
	switch d.Action.(type) {
	case decide.StartRestore, decide.StopRestore, decide.FinishRestore:
	default:
		return ""
	}
	if _, stops := d.Action.(decide.StopRestore); stops && s.Restore.Job != nil && delaysDeletion(s, s.Restore.Job.VolumeJob) {
		return ""
	}
	switch {
	case !restoring(s.Record) || s.Record.Members[0].Ordinal != 0:
		return fmt.Sprintf("%s, and no member is on record as one that is restored", d.Action)
	case cluster(s) != 0 || len(s.Membership.Members) > 0:
		return fmt.Sprintf("%s, and the cluster has formed", d.Action)
	case s.Declared.Lifecycle != decide.Running:
		return fmt.Sprintf("%s of a cluster that is not to run", d.Action)
	}
	if what := besideSeed(s); what != "" {
		return fmt.Sprintf("%s beside %s", d.Action, what)
	}
	return ""
}

// delaysDeletion reports whether a Job has ended whose volume is being deleted, and no data is lost with that: etcd has
// a quorum, or no member has started there on data of a backup, or git declares its data lost.
func delaysDeletion(s decide.State, j decide.VolumeJob) bool {
	for _, r := range s.Replicas {
		m, _ := recordedAt(s.Record, r.Ordinal)
		order, begun := s.Declared.Recovery, s.Record.Recovery
		lost := order.ClusterID != 0 && order.ClusterID == s.Record.ClusterID && order.Lost&(1<<uint(r.Ordinal)) != 0 &&
			order.Refused == "" && s.Record.VoidRecovery != order.Word
		fromBackup := m.Mode == decide.Restoring && cluster(s) == 0 && len(s.Membership.Members) == 0 && besideSeed(s) == "" || recovering(s.Record) && begun.FromBackup && begun.Ordinal == r.Ordinal
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

// besideSeed returns what exists in addition to the volume being restored, or "".
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

// notStoppedForRestore checks that a restore, during which no pod runs, does not stop the pods of an existing cluster.
func notStoppedForRestore(s decide.State, d decide.Decision) string {
	_, applies := d.Action.(decide.ApplyObjects)
	if !applies || s.Declared.Lifecycle != decide.Running || !restoring(decide.RequiredRecord(s, "fresh")) {
		return ""
	}
	if what := besideSeed(s); what != "" {
		return "stops all pods for a restore beside " + what
	}
	return ""
}

func restoredAsDeclared(s decide.State, d decide.Decision) string {
	seen, declared, seed := s.Restore, s.Declared.Restore.Digest, replicaAt(s, 0)
	switch a := d.Action.(type) {
	case decide.StartRestore:
		switch {
		case seen.Job != nil || len(seen.Stopping) > 0:
			return "starts a second one"
		case seen.Foreign != "" || seen.Hidden != "":
			return "starts one without knowing whether there is one"
		case declared == "" || a.Digest != declared:
			return "restores what git does not declare"
		case seed.VolumeTerminating:
			return "fills a volume that is being deleted"
		}
	case decide.StopRestore:
		if seen.Job == nil || seen.Job.UID != a.JobUID {
			return "stops what was not seen"
		}
	case decide.FinishRestore:
		j := seen.Job
		switch {
		case j == nil || j.Phase != decide.JobSucceeded || j.Terminating:
			return "starts a member on data that nothing has restored"
		case a.VolumeUID == "" || a.VolumeUID != seed.VolumeUID || a.VolumeUID != j.VolumeUID || seed.VolumeTerminating:
			return "starts a member on another volume"
		case declared == "" || j.Digest != declared:
			return "starts a member on data that git does not declare"
		case a.Data != j.Data:
			return "has the member show something else than was restored"
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
		return "another cluster than was restored"
	}
	if len(s.Membership.Members) != 1 {
		return ""
	}
	switch m := s.Membership.Members[0]; {
	case want.MemberID != 0 && m.ID != want.MemberID:
		return "another member than was restored"
	case m.Revision < want.Revision:
		return "older data than were restored"
	case len(s.Membership.StaleAlarms) > 0:
		return "under an alarm of the cluster that was backed up"
	}
	return ""
}
