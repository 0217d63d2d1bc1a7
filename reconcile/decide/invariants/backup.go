package invariants

import (
	"fmt"

	"quorate.dev/quorate/reconcile/decide"
)

// backupInvariants are those about when a backup is started, and what waits for one.
var backupInvariants = []invariant{
	{Invariant{"backed up before an upgrade",
		"Where git wants a backup before an upgrade and there may be a quorum, nothing is done for a version that no " +
			"pod was made for before there is a backup that was begun since a pass has started one for this " +
			"declaration."},
		backedUpFirst},
	{Invariant{"backed up as declared",
		"A pass starts a backup only of a cluster that runs, whose ID is on record, whose members a quorum has named " +
			"and whose backups git declares; for the generation that was seen, and once for each."},
		backedUpAsDeclared},
}

func backedUpFirst(s decide.State, d decide.Decision) string {
	ready, fails := 0, false
	for _, m := range s.Record.Members {
		pod := replicaAt(s, m.Ordinal).Pod
		fails = fails || pod == decide.PodFailing
		if pod == decide.PodReady {
			ready++
		}
	}
	gone := !s.Membership.Known && fails && 2*ready <= len(s.Record.Members)
	if !s.Declared.BacksUpBeforeUpgrade || gone || !changesVersion(s, d.Action) {
		return ""
	}
	for _, r := range s.Replicas {
		if r.Pod != decide.PodAbsent && r.PodVersion == s.Declared.Version {
			return "" // it has begun, or it is taken back
		}
	}
	last := s.Backups.Last
	for _, job := range s.Backups.Jobs {
		if job.Generation == s.Generation && s.Generation > 0 && last != nil && last.ClusterID == s.Record.ClusterID &&
			last.StartedAt.Sub(job.CreatedAt) >= 0 && (last.Verified || !s.Declared.VerifiesBackups) {
			return ""
		}
	}
	return fmt.Sprintf("%s, and no backup was taken since etcd %s was declared", d.Action, s.Declared.Version)
}

// changesVersion reports whether an action gives a member another version, or has etcd prepare for one.
func changesVersion(s decide.State, action decide.Action) bool {
	switch a := action.(type) {
	case decide.StartRollout:
		return a.Version != s.Objects.RunsVersion
	case decide.EnableDowngrade:
		return true
	case decide.RestartReplica:
		r := replicaAt(s, a.Ordinal)
		return !r.PodUnbound && r.PodVersion != "" && r.PodVersion != s.Objects.RunsVersion &&
			s.Objects.RunsVersion == s.Declared.Version
	default:
		return false
	}
}

func backedUpAsDeclared(s decide.State, d decide.Decision) string {
	a, starts := d.Action.(decide.StartBackup)
	if !starts {
		return ""
	}
	for _, job := range s.Backups.Jobs {
		if job.Generation == a.Generation {
			return fmt.Sprintf("%s, which Job %s was started for", a, job.Name)
		}
	}
	switch {
	case a.Generation == 0 || a.Generation != s.Generation:
		return fmt.Sprintf("%s, and %d was seen", a, s.Generation)
	case !s.Declared.BacksUp && !s.Declared.BacksUpBeforeUpgrade:
		return "starts a backup, and git declares none"
	case s.Declared.Lifecycle != decide.Running || !s.Membership.Known || s.Record.ClusterID == 0:
		return "starts a backup of what does not run, or is not known"
	case s.Backups.Foreign != "":
		return "starts a backup beside what somebody else has made"
	case s.Backups.Hidden != "":
		return "starts a backup without having seen which there are"
	}
	return ""
}
