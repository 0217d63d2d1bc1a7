package decide

import "cmp"

// Recovery is the observed state of the Job that creates a new cluster from a lost cluster.
type Recovery struct {
	// Job is the existing Job, or nil.
	Job *RecoveryJob `json:"job,omitempty"`
	JobSight
}

// RecoveryJob is the Job that creates a new cluster in a volume, from the volume's data or from a backup.
type RecoveryJob struct {
	VolumeJob
	// ClusterID is the ID of the lost cluster, and Ordinal the slot of the volume.
	ClusterID ID  `json:"clusterID"`
	Ordinal   int `json:"ordinal"`
	// From describes the backup for which the Job was started, or is empty if it uses the data in the volume.
	From string `json:"from,omitempty"`
	// Restored is the backup that the Job restored, once reported.
	Restored string `json:"restored,omitempty"`
	// Into is the ID of the new cluster, once reported.
	Into ID `json:"into,omitempty"`
	// Suspect is true if the Job reports that etcd had found different data on members.
	Suspect bool `json:"suspect,omitempty"`
}

func (s State) recoveryJobName() string { return s.Name + "-recovery" }

// recoversInVain reports whether a Job is still running, or about to run, although the recorded cluster has a quorum.
// The pod of the member whose volume the Job uses would route clients to a second cluster.
func (s State) recoversInVain() bool {
	job := s.Recovery.Job
	return job != nil && job.runs() && s.Membership.MayServe() &&
		(s.Membership.ClusterID == 0 || s.Membership.ClusterID == s.Record.ClusterID)
}

// recoversUnasked reports whether a Job is running although git does not request its recovery, or the request is void.
// A pod would start on the volume that the Job writes to.
func (s State) recoversUnasked() bool {
	job, order := s.Recovery.Job, s.Declared.Recovery
	return job != nil && job.runs() && (order.ClusterID != job.ClusterID || s.isVoid(order))
}

// endingJob names a Job that may still write to a member's volume: it is being deleted, or it has been deleted and
// still has pods. It returns "" if no such Job exists. A Job that fills the volume of a cluster being restored is
// handled by a different rule.
func (s State) endingJob() string {
	recovery, restore := s.Recovery, s.Restore
	switch {
	case s.Record.Restoring():
		return ""
	case recovery.Job != nil && recovery.Job.Terminating, len(recovery.Stopping) > 0:
		return "Job " + s.recoveryJobName() + describeStopping(recovery.Stopping)
	case len(restore.Stopping) > 0:
		return "Job " + s.restoreJobName() + describeStopping(restore.Stopping)
	}
	return ""
}

// describeStopping names the pods of a deleted Job in parentheses, or returns "".
func describeStopping(pods []string) string {
	if len(pods) == 0 {
		return ""
	}
	return " (" + Enumerate(pods) + ")"
}

// stopsRecovery returns why a running Job must be stopped: the request has changed, or no longer declares the other
// members lost. Otherwise, it returns "". A run that must not carry out a request does not touch another run's Job.
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

// followRecovery returns the next step while a recovery's Job works on the existing volume.
func (s State) followRecovery() (Decision, bool) {
	begun, job := s.Record.Recovery, s.Recovery.Job
	if job == nil || job.Terminating || !job.isFor(begun) || job.Digest != s.Declared.Recovery.Digest {
		return s.startRecovery()
	}
	source := s.describeBegun()
	if d, waits := s.Recovery.hinders("cannot create a new cluster from the data"); waits {
		return d, true
	}
	switch job.Phase {
	case JobSucceeded:
		if job.Into == 0 || job.Into == begun.ClusterID {
			return act(StopRecovery{job.UID}, "Job %s has ended, but its result is lost; starting it again",
				s.recoveryJobName())
		}
		doubt := ""
		if job.Suspect {
			doubt = "; etcd had found that members held different data: compare the volumes before you rely on this " +
				"data"
		}
		return act(FinishRecovery{ClusterID: job.Into, VolumeUID: begun.VolumeUID},
			"the new cluster has been created from %s: starting %s%s",
			cmp.Or(job.Restored, source), s.ReplicaName(begun.Ordinal),
			doubt)
	case JobFailed:
		return block("Job %s failed: %s. Fix the cause and retry with kubectl delete job %[1]s, or name another "+
			"member in spec.recovery", s.recoveryJobName(),
			cmp.Or(job.Message, "no reason reported"))
	case JobRuns:
	}
	if job.Message != "" {
		return wait(recheck, "creating a new cluster from %s: %s", source, job.Message)
	}
	return wait(recheck, "creating a new cluster from %s", source)
}

func (j RecoveryJob) isFor(r RecordedRecovery) bool {
	return j.ClusterID == r.ClusterID && j.Ordinal == r.Ordinal && j.VolumeUID == r.VolumeUID &&
		(j.From != "") == r.FromBackup
}
