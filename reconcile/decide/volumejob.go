package decide

// JobSight is what is seen around a Job that works on a volume.
type JobSight struct {
	// Foreign says that somebody else has a Job of its name; empty if nobody has.
	Foreign string `json:"foreign,omitempty"`
	// Hidden says why it is not known whether there is one; empty if it is.
	Hidden string `json:"hidden,omitempty"`
	// Stopping are pods of Jobs before this one that may still write to the volume.
	Stopping []string `json:"stopping,omitempty"`
}

// VolumeJob is a Job that works on the data in a volume.
type VolumeJob struct {
	UID string `json:"uid"`
	// Digest is that of the declaration that it was started for.
	Digest string `json:"digest"`
	// VolumeUID of the volume that it works on.
	VolumeUID string   `json:"volumeUID"`
	Phase     JobPhase `json:"phase"`
	// Terminating: it is being deleted.
	Terminating bool `json:"terminating,omitempty"`
	// Message says why it failed, or what it waits for, if that is known.
	Message string `json:"message,omitempty"`
}

// runs reports whether the Job is at work, or about to be, and is not being deleted.
func (j VolumeJob) runs() bool { return j.Phase == JobRuns && !j.Terminating }

// hinders says what is in the way of starting or following a Job, and of what.
func (j JobSight) hinders(what string) (Decision, bool) {
	switch {
	case j.Hidden != "":
		return wait(recheck, "whether a Job is at work is not known: %s", j.Hidden)
	case j.Foreign != "":
		return block("%s: %s", what, j.Foreign)
	case len(j.Stopping) > 0:
		return wait(recheck, "of an earlier Job, a pod is still there: %s", Enumerate(j.Stopping))
	}
	return Decision{}, false
}
