package invariants

import (
	"fmt"

	"quorate.dev/quorate/reconcile/decide"
)

// restoreInvariants are those about a cluster that is made from a backup.
var restoreInvariants = []invariant{
	{Invariant{"restored before it runs",
		"Data are restored only for a cluster of which nobody knows an ID, which is to run, and of which no pod is " +
			"there, on the volume of its only member, which is made for that."}, restoredBeforeItRuns},
	{Invariant{"restored as declared",
		"What fills a volume is started once, for the backup that git declares, and is stopped only as it was seen. " +
			"A member starts on a volume only once what fills it has ended well, for what git declares."},
		restoredAsDeclared},
}

func restoredBeforeItRuns(s decide.State, d decide.Decision) string {
	switch d.Action.(type) {
	case decide.StartRestore, decide.StopRestore, decide.FinishRestore:
	default:
		return ""
	}
	members := s.Record.Members
	switch {
	case len(members) != 1 || members[0].Mode != decide.Restoring || members[0].Ordinal != 0:
		return fmt.Sprintf("%s, and no member is on record as one that is restored", d.Action)
	case cluster(s) != 0 || len(s.Membership.Members) > 0:
		return fmt.Sprintf("%s, and the cluster has formed", d.Action)
	case s.Declared.Lifecycle != decide.Running:
		return fmt.Sprintf("%s of a cluster that is not to run", d.Action)
	}
	for _, r := range s.Replicas {
		if r.Pod != decide.PodAbsent {
			return fmt.Sprintf("%s beside the pod of %s", d.Action, podName(s, r.Ordinal))
		}
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
		case declared != "" && j.Digest != declared:
			return "starts a member on data that git does not declare"
		}
	}
	return ""
}
