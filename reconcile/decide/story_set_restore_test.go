package decide_test

import (
	"fmt"
	"strconv"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
)

// setRestore changes the observed restore. When a value of the Job is set, it adds the Job if it is missing, for the
// current declaration and on the existing volume.
func (w *world) setRestore(key, text string) (err error) {
	seen := &w.Restore
	if setSight(&seen.JobSight, key, text) {
		return nil
	}
	if key == "job" {
		seen.Job = nil
		return isNone(text)
	}
	if seen.Job == nil {
		seen.Job = w.newRestoreJob()
	}
	switch key {
	case "of":
		seen.Job.From, seen.Job.Digest = decidetest.Text(text), decidetest.Text(text)
	case "restored":
		seen.Job.Restored = decidetest.Text(text)
	case "data":
		_, err = fmt.Sscanf(decidetest.Text(text), "%x %x %d", &seen.Job.Data.ClusterID, &seen.Job.Data.MemberID,
			&seen.Job.Data.Revision)
	default:
		err = setVolumeJob(&seen.Job.VolumeJob, key, text)
	}
	return err
}

func isNone(text string) error {
	if text != "none" {
		return fmt.Errorf("a Job is none, or is not said")
	}
	return nil
}

// setSight sets the field of seen that key names, and reports whether there is such a field.
func setSight(seen *decide.JobSight, key, text string) bool {
	switch key {
	case "hidden":
		seen.Hidden = decidetest.Text(text)
	case "foreign":
		seen.Foreign = decidetest.Text(text)
	case "stopping":
		seen.Stopping = strings.Fields(decidetest.Text(text))
	default:
		return false
	}
	return true
}

func setVolumeJob(job *decide.VolumeJob, key, text string) (err error) {
	switch key {
	case "phase":
		job.Phase = decide.JobPhase(text)
	case "volume":
		job.VolumeUID = text
	case "message":
		job.Message = decidetest.Text(text)
	case "terminating":
		job.Terminating, err = strconv.ParseBool(text)
	default:
		err = fmt.Errorf("a Job has no %s", key)
	}
	return err
}

func (w *world) newRestoreJob() *decide.RestoreJob {
	return &decide.RestoreJob{From: w.Declared.Restore.From, VolumeJob: decide.VolumeJob{UID: "j1",
		Digest: w.Declared.Restore.Digest, VolumeUID: w.Replica(0).VolumeUID, Phase: decide.JobRuns}}
}

// startRestore creates the volume and the Job.
func (w *world) startRestore() error {
	if w.Replica(0).VolumeUID == "" {
		if err := w.setSlot(0, "volume", "v0"); err != nil {
			return err
		}
	}
	w.Restore.Job = w.newRestoreJob()
	return nil
}
