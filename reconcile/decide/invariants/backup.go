package invariants

import (
	"fmt"
	"slices"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// backupInvariants are the invariants about when a backup is started, and what waits for it.
var backupInvariants = []invariant{
	{Invariant{"backed up before an upgrade",
		"Where git wants a backup before an upgrade and there may be a quorum, nothing is done for a version that no " +
			"pod was made for, and none brought back with it, before there is a backup that was begun since a pass " +
			"has started one for this declaration, and not in the future."},
		backedUpFirst},
	{Invariant{"backed up before a deletion",
		"Where git wants a backup before the cluster is deleted, nothing of one that has formed is stopped or " +
			"deleted for that, its volumes included, before the status says which backup there is: one of this " +
			"declaration, where git wants it, and begun recently when the pods stop, and not in the future. " +
			"Volumes go before the record does."},
		backedUpBeforeDeletion},
	{Invariant{"backed up as declared",
		"A pass starts a backup only of a cluster that runs, whose ID is on record, whose members a quorum has named " +
			"and whose backups git declares; for the generation that was seen, and once for each."},
		backedUpAsDeclared},
	{Invariant{"taken again",
		"The Job of a backup is deleted only if a pass has started it for this declaration, it has ended, and too " +
			"long ago for a cluster that serves and is to be deleted, or it was made at a time that has not come."},
		takenAgain},
	{Invariant{"renewed while it waits",
		"A cluster that waits for its last backup does so with certificates that are good for long."},
		renewedWhileItWaits},
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
			return "" // the move has begun, or is being reverted
		}
	}
	for _, job := range s.Backups.Jobs {
		if job.Generation == s.Generation && s.Generation > 0 && !s.Objects.DeclarationDiffers &&
			knownSince(s, job.CreatedAt) {
			return ""
		}
	}
	return fmt.Sprintf("%s, and no backup was taken since etcd %s was declared", d.Action, s.Declared.Version)
}

// knownSince reports whether a known backup of this cluster was begun at or after since and, if git requires it,
// verified.
func knownSince(s decide.State, since time.Time) bool {
	known := []*decide.Backup{s.Backups.Last}
	for _, job := range s.Backups.Jobs {
		known = append(known, job.Backup)
	}
	return slices.ContainsFunc(known, func(b *decide.Backup) bool {
		return b != nil && b.ClusterID == s.Record.ClusterID && (b.Verified || !s.Declared.VerifiesBackups) &&
			b.StartedAt.Sub(since) >= 0 && !ofTheFuture(s, *b)
	})
}

// ofTheFuture allows five minutes of clock skew, and ten more for a slot.
func ofTheFuture(s decide.State, b decide.Backup) bool {
	return b.StartedAt.Sub(s.Now) > 5*time.Minute || b.Slot.Sub(s.Now) > 15*time.Minute
}

func backedUpBeforeDeletion(s decide.State, d decide.Decision) string {
	recorded := len(s.Record.Members) > 0
	neverFormed := recorded && s.Record.ClusterID == 0
	if s.Declared.Lifecycle != decide.Deleted || !s.Declared.BacksUpBeforeDeletion || neverFormed {
		return ""
	}
	switch a := d.Action.(type) {
	case decide.ApplyObjects, decide.StopPods: // which stop running pods
		if !recorded && s.Objects.RunsReplicas == 0 {
			return ""
		}
	case decide.DeleteObjects:
		if s.Declared.Retention == decide.Delete && slices.ContainsFunc(s.Replicas, volumeStays) {
			return "deletes the record, and there are volumes"
		}
		if !recorded && s.Objects.RunsReplicas == 0 {
			return ""
		}
	case decide.DeleteVolume:
		mine := func(m decide.RecordedMember) bool { return m.Ordinal == a.Ordinal && m.VolumeUID == a.VolumeUID }
		if recorded && !slices.ContainsFunc(s.Record.Members, mine) {
			return "" // a removed member has left it
		}
	default:
		return ""
	}
	if lack := lacksProof(s); lack != "" {
		return fmt.Sprintf("%s, and %s", d.Action, lack)
	}
	return ""
}

func volumeStays(r decide.Replica) bool { return r.VolumeUID != "" && !r.VolumeTerminating }

// lacksProof returns the problem with the backup on which deletion relies, or "".
func lacksProof(s decide.State) string {
	b := s.Backups.BeforeDeletion
	stands := s.Objects.RunsVersion != "" || s.Objects.RunsHash != "" || s.Objects.RunsReplicas > 0
	stays := func(r decide.Replica) bool { return r.Pod != decide.PodAbsent && r.Pod != decide.PodTerminating }
	serves := s.Objects.RunsReplicas > 0 || !stands && slices.ContainsFunc(s.Replicas, stays)
	switch {
	case b == nil || s.Record.ClusterID == 0 || b.ClusterID != s.Record.ClusterID:
		return "the status knows no backup of it"
	case !b.Verified && s.Declared.VerifiesBackups:
		return "the last backup is not verified"
	case s.Objects.DeclarationDiffers || s.Generation == 0 || b.Generation != s.Generation:
		return "the last backup is of before that was declared"
	case b.To != s.Declared.BackupTo:
		return "the last backup is not where git declares it"
	case ofTheFuture(s, *b):
		return "the last backup is of a time that has not come"
	case serves && tooLongAgo(s, b.StartedAt):
		return "the last backup was taken long ago"
	}
	return ""
}

// tooLongAgo allows ten minutes more than the maximum duration of a backup.
func tooLongAgo(s decide.State, then time.Time) bool {
	return s.Now.Sub(then) > s.Declared.BackupDeadline+10*time.Minute
}

func takenAgain(s decide.State, d decide.Decision) string {
	a, discards := d.Action.(decide.DiscardBackup)
	if !discards {
		return ""
	}
	for _, job := range s.Backups.Jobs {
		old := tooLongAgo(s, job.EndedAt) || job.CreatedAt.Sub(s.Now) > 5*time.Minute ||
			job.Backup != nil && tooLongAgo(s, job.Backup.StartedAt)
		if job.UID == a.JobUID && job.Phase == decide.JobSucceeded && old && job.Generation == s.Generation &&
			s.Declared.Lifecycle == decide.Deleted && s.Declared.BacksUpBeforeDeletion {
			return ""
		}
	}
	return fmt.Sprintf("%s, which may be of use", a)
}

func renewedWhileItWaits(s decide.State, d decide.Decision) string {
	if d.Rule != "BackUpBeforeDeletion" || !wearsOut(s) || s.Record.CA == "" || s.Record.CA != s.CA.Secret ||
		s.CA.Proven != s.CA.Secret {
		return ""
	}
	for _, c := range s.Certificates {
		if c.CA || s.Now.Sub(c.NotAfter) < 0 {
			return "" // it may end with its CA, as a new one would
		}
	}
	return "waits, and its certificates have expired"
}

// changesVersion reports whether an action gives a member a different version, or makes etcd prepare for one.
func changesVersion(s decide.State, action decide.Action) bool {
	switch a := action.(type) {
	case decide.StartRollout:
		return a.Version != s.Objects.RunsVersion
	case decide.EnableDowngrade:
		return true
	case decide.ApplyObjects: // which may recreate the StatefulSet
		gone := s.Objects.RunsVersion == "" && s.Objects.RunsHash == "" && s.Objects.RunsReplicas == 0
		return gone && s.Declared.Lifecycle == decide.Running && len(s.Record.Members) > 0 &&
			s.Record.ClusterID != 0 && podOfAnother(s)
	case decide.RestartReplica:
		r := replicaAt(s, a.Ordinal)
		if _, listed := memberAt(s, a.Ordinal); s.Membership.Known && !listed {
			return false // no member has data in it
		}
		return !r.PodUnbound && r.PodVersion != "" && r.PodVersion != s.Objects.RunsVersion &&
			s.Objects.RunsVersion == s.Declared.Version
	default:
		return false
	}
}

// podOfAnother reports whether a pod was created for a version other than the declared one.
func podOfAnother(s decide.State) bool {
	return slices.ContainsFunc(s.Replicas, func(r decide.Replica) bool {
		return r.Pod != decide.PodAbsent && r.PodVersion != "" && r.PodVersion != s.Declared.Version
	})
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
	case !s.Declared.BacksUp && !s.Declared.BacksUpBeforeUpgrade && !s.Declared.BacksUpBeforeDeletion:
		return "starts a backup, and git declares none"
	case s.Declared.Lifecycle == decide.Stopped,
		s.Declared.Lifecycle == decide.Deleted && !s.Declared.BacksUpBeforeDeletion:
		return "starts a backup of what is to be stopped"
	case !s.Membership.Known || s.Record.ClusterID == 0:
		return "starts a backup of what does not run, or is not known"
	case s.Backups.Foreign != "":
		return "starts a backup beside what somebody else has made"
	case s.Backups.Hidden != "":
		return "starts a backup without having seen which there are"
	}
	return ""
}
