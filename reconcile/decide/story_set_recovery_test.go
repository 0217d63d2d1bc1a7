package decide_test

import (
	"strconv"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
)

// setRecovery changes the observed recovery. When a value of the Job is set, it adds the Job if it is missing, for the
// current request and on the existing volume.
func (w *world) setRecovery(key, text string) (err error) {
	seen := &w.Recovery
	if setSight(&seen.JobSight, key, text) {
		return nil
	}
	if key == "job" {
		seen.Job = nil
		return isNone(text)
	}
	if seen.Job == nil {
		seen.Job = w.newRecoveryJob()
	}
	switch key {
	case "of":
		seen.Job.Digest = decidetest.Text(text)
	case "suspect":
		seen.Job.Suspect, err = strconv.ParseBool(text)
	case "from":
		seen.Job.From = decidetest.Text(text)
	case "into":
		seen.Job.Into, err = decidetest.ID(text)
	default:
		err = setVolumeJob(&seen.Job.VolumeJob, key, text)
	}
	return err
}

func (w *world) newRecoveryJob() *decide.RecoveryJob {
	order := w.Declared.Recovery
	return &decide.RecoveryJob{ClusterID: order.ClusterID, Ordinal: order.Ordinal, From: order.Backup, VolumeJob: decide.VolumeJob{
		UID: "j1", Digest: order.Digest, VolumeUID: w.Replica(order.Ordinal).VolumeUID, Phase: decide.JobRuns}}
}
