package invariants

import (
	"fmt"
	"slices"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// backupInvariants are the invariants about starting backups, and about actions that require a backup.
var backupInvariants = []invariant{
	{Invariant{"backed up before an upgrade",
		"If the spec requires a backup before an upgrade and there may be quorum, the first pod gets the new " +
			"version only once there is a backup that began after a pass started a Job for this generation. A " +
			"backup dated in the future does not count."},
		backedUpFirst},
	{Invariant{"backed up before a deletion",
		"If the spec requires a final backup, no part of a cluster that has formed is stopped or deleted until the " +
			"status names a backup of this generation in the declared store. The backup must not be dated in the " +
			"future, must be recent when the pods stop and, if the spec requires it, must be verified. Volumes are " +
			"deleted before the record."},
		backedUpBeforeDeletion},
	{Invariant{"backed up before a member with wrong data is replaced",
		"If backups are declared and etcd has not raised a CORRUPT alarm, a responding voter whose data differs from " +
			"a majority's is removed only once there is a backup that began after the status recorded the difference."},
		backedUpBeforeReplacement},
	{Invariant{"backed up only on request",
		"A pass starts a backup only if the spec requires backups, the cluster runs, etcd returns a member list " +
			"and the cluster ID is recorded. It starts one backup per observed generation, and one for each recorded " +
			"difference between the voters' data."},
		backedUpAsDeclared},
	{Invariant{"only outdated final backups are discarded",
		"A backup Job is deleted only if the spec requires a final backup and the Job succeeded for this " +
			"generation, but too long ago or with a date in the future."},
		takenAgain},
	{Invariant{"certificates are renewed before a final backup",
		"BackUpBeforeDeletion does not apply while all certificates have expired and the recorded CA can renew " +
			"them."},
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
	gone := !mayServe(s) && fails && 2*ready <= len(s.Record.Members)
	if !s.Declared.BacksUpBeforeUpgrade || gone || !changesVersion(s, d.Action) {
		return ""
	}
	for _, r := range s.Replicas {
		if r.Pod != decide.PodAbsent && r.PodVersion == s.Declared.Version {
			return "" // the upgrade has begun, or is being reverted
		}
	}
	for _, job := range s.Backups.Jobs {
		if job.Generation == s.Generation && s.Generation > 0 && !s.Objects.DeclarationDiffers &&
			knownSince(s, job.CreatedAt) {
			return ""
		}
	}
	return fmt.Sprintf("%s, but no backup has been taken since etcd %s was declared", d.Action, s.Declared.Version)
}

// knownSince reports whether a known backup of this cluster began at or after the given time and, if the spec requires
// it, has been verified.
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

// ofTheFuture reports whether a backup is dated in the future. It allows five minutes of clock skew, and ten additional
// minutes for a slot.
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
	case decide.ApplyObjects, decide.StopPods: // these stop running pods
		if !recorded && s.Objects.RunsReplicas == 0 {
			return ""
		}
	case decide.DeleteObjects:
		if s.Declared.Retention == decide.Delete && slices.ContainsFunc(s.Replicas, volumeStays) {
			return "deletes the record while volumes exist"
		}
		if !recorded && s.Objects.RunsReplicas == 0 {
			return ""
		}
	case decide.DeleteVolume:
		mine := func(m decide.RecordedMember) bool { return m.Ordinal == a.Ordinal && m.VolumeUID == a.VolumeUID }
		if recorded && !slices.ContainsFunc(s.Record.Members, mine) {
			return "" // the volume belongs to a removed member
		}
	default:
		return ""
	}
	if lack := lacksProof(s); lack != "" {
		return fmt.Sprintf("%s, but %s", d.Action, lack)
	}
	return ""
}

func volumeStays(r decide.Replica) bool { return r.VolumeUID != "" && !r.VolumeTerminating }

func backedUpBeforeReplacement(s decide.State, d decide.Decision) string {
	a, removes := d.Action.(decide.RemoveMember)
	m, _ := memberByID(s, a.ID)
	if !removes || !s.Declared.BacksUp || !m.Answers || m.Learner || !outvoted(s, m) || alarmedCorrupt(s) {
		return ""
	}
	if since := s.Comparison.DiffersSince; since.IsZero() || !knownSince(s, since) {
		return fmt.Sprintf("%s, but no backup has begun since the difference was found", a)
	}
	return ""
}

// lacksProof returns the problem with the backup on which deletion relies, or "".
func lacksProof(s decide.State) string {
	b := s.Backups.BeforeDeletion
	stands := s.Objects.RunsVersion != "" || s.Objects.RunsHash != "" || s.Objects.RunsReplicas > 0
	stays := func(r decide.Replica) bool { return r.Pod != decide.PodAbsent && r.Pod != decide.PodTerminating }
	serves := s.Objects.RunsReplicas > 0 || !stands && slices.ContainsFunc(s.Replicas, stays)
	switch {
	case b == nil || s.Record.ClusterID == 0 || b.ClusterID != s.Record.ClusterID:
		return "the status does not name a backup of the cluster"
	case !b.Verified && s.Declared.VerifiesBackups:
		return "the last backup is not verified"
	case s.Objects.DeclarationDiffers || s.Generation == 0 || b.Generation != s.Generation:
		return "the last backup was taken for an earlier generation"
	case b.To != s.Declared.BackupTo:
		return "the last backup is not in the declared store"
	case ofTheFuture(s, *b):
		return "the last backup is dated in the future"
	case serves && tooLongAgo(s, b.StartedAt):
		return "the last backup is too old"
	}
	return ""
}

// tooLongAgo reports whether more time has passed since then than the maximum duration of a backup plus ten minutes.
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
	return fmt.Sprintf("%s, but the backup may still be needed", a)
}

func renewedWhileItWaits(s decide.State, d decide.Decision) string {
	if d.Rule != "BackUpBeforeDeletion" || !wearsOut(s) || s.Record.CA == "" || s.Record.CA != s.CA.Secret ||
		s.CA.Proven != s.CA.Secret {
		return ""
	}
	for _, c := range s.Certificates {
		if c.CA || s.Now.Sub(c.NotAfter) < 0 {
			return "" // a new certificate would not be valid for longer than the CA either
		}
	}
	return "waits although the certificates have expired"
}

// changesVersion reports whether an action gives a member a different version, or makes etcd prepare for one.
func changesVersion(s decide.State, action decide.Action) bool {
	switch a := action.(type) {
	case decide.StartRollout:
		return a.Version != s.Objects.RunsVersion
	case decide.EnableDowngrade:
		return true
	case decide.ApplyObjects: // this may recreate the StatefulSet
		gone := s.Objects.RunsVersion == "" && s.Objects.RunsHash == "" && s.Objects.RunsReplicas == 0
		return gone && s.Declared.Lifecycle == decide.Running && len(s.Record.Members) > 0 &&
			s.Record.ClusterID != 0 && podOfAnother(s)
	case decide.RestartReplica:
		r := replicaAt(s, a.Ordinal)
		if _, listed := memberAt(s, a.Ordinal); s.Membership.Known && !listed {
			return false // no member has data on its volume
		}
		return !r.PodUnbound && r.PodVersion != "" && r.PodVersion != s.Objects.RunsVersion &&
			s.Objects.RunsVersion == s.Declared.Version
	default:
		return false
	}
}

// podOfAnother reports whether a pod was created for a version other than the declared version.
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
	because := a.DiffersSince
	for _, job := range s.Backups.Jobs {
		if job.Generation == a.Generation && job.DiffersSince.Sub(because) == 0 {
			return fmt.Sprintf("%s, but Job %s was already started for it", a, job.Name)
		}
	}
	contradicts := func(m decide.Member) bool { return contradicted(s, m) }
	switch {
	case !because.IsZero() && (a.Generation != 0 || because.Sub(s.Comparison.DiffersSince) != 0 || !s.Declared.BacksUp):
		return fmt.Sprintf("%s, but the status and the spec do not request it", a)
	case !because.IsZero() && !slices.ContainsFunc(s.Membership.Members, contradicts):
		return fmt.Sprintf("%s, but no voters hold different data", a)
	case because.IsZero() && (a.Generation == 0 || a.Generation != s.Generation):
		return fmt.Sprintf("%s, but the observed generation is %d", a, s.Generation)
	case !s.Declared.BacksUp && !s.Declared.BacksUpBeforeUpgrade && !s.Declared.BacksUpBeforeDeletion:
		return "starts a backup that the spec does not request"
	case s.Declared.Lifecycle == decide.Stopped,
		s.Declared.Lifecycle == decide.Deleted && !s.Declared.BacksUpBeforeDeletion:
		return "starts a backup of a cluster that should be stopped"
	case !s.Membership.Known || s.Record.ClusterID == 0:
		return "starts a backup of a cluster that is not running or whose ID is not recorded"
	case s.Backups.Foreign != "":
		return "starts a backup although a foreign object exists"
	case s.Backups.Hidden != "":
		return "starts a backup without knowing which Jobs exist"
	}
	return ""
}
