package decide_test

import (
	"fmt"
	"strconv"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
)

// setRestore changes what is seen of data being restored. There is a Job as soon as anything is said of
// it, for what git declares, on the volume that is there.
func (w *world) setRestore(key, text string) (err error) {
	seen := &w.Restore
	switch key {
	case "hidden":
		seen.Hidden = decidetest.Text(text)
		return nil
	case "foreign":
		seen.Foreign = decidetest.Text(text)
		return nil
	case "stopping":
		seen.Stopping = strings.Fields(decidetest.Text(text))
		return nil
	case "job":
		if text != "none" {
			return fmt.Errorf("restore job is none, or is not said")
		}
		seen.Job = nil
		return nil
	}
	if seen.Job == nil {
		seen.Job = w.newRestoreJob()
	}
	switch key {
	case "phase":
		seen.Job.Phase = decide.JobPhase(text)
	case "of":
		seen.Job.From, seen.Job.Digest = decidetest.Text(text), decidetest.Text(text)
	case "volume":
		seen.Job.VolumeUID = text
	case "message":
		seen.Job.Message = decidetest.Text(text)
	case "restored":
		seen.Job.Restored = decidetest.Text(text)
	case "terminating":
		seen.Job.Terminating, err = strconv.ParseBool(text)
	default:
		err = fmt.Errorf("a restore has no %s", key)
	}
	return err
}

func (w *world) newRestoreJob() *decide.RestoreJob {
	return &decide.RestoreJob{UID: "j1", From: w.Declared.Restore.From, Digest: w.Declared.Restore.Digest,
		VolumeUID: w.Replica(0).VolumeUID, Phase: decide.JobRuns}
}

// startRestore makes the volume and the Job.
func (w *world) startRestore() error {
	if w.Replica(0).VolumeUID == "" {
		if err := w.setSlot(0, "volume", "v0"); err != nil {
			return err
		}
	}
	w.Restore.Job = w.newRestoreJob()
	return nil
}
