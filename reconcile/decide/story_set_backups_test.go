package decide_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
)

// setBackups changes the observed backups as a whole, or a Job. The names of Jobs started by a pass end with gen and
// the generation.
func (w *world) setBackups(target, key, text string) error {
	if target == "backups" {
		switch key {
		case "last":
			return w.setLastBackup(text)
		case "generation":
			generation, err := strconv.ParseInt(text, 10, 64)
			w.Backups.Last.Generation = generation
			return err
		case "in":
			w.Backups.Last.To = text
			return nil
		case "verified":
			verified, err := strconv.ParseBool(text)
			w.Backups.Last.Verified = verified
			return err
		case "to":
			w.Backups.To = text
			return nil
		case "job":
			w.Backups.Last.Job = text
			return nil
		case "revision":
			var err error
			w.Backups.Last.Revision, err = strconv.ParseInt(text, 10, 64)
			return err
		case "cluster":
			id, err := decidetest.ID(text)
			w.Backups.Last.ClusterID = id
			return err
		case "foreign":
			w.Backups.Foreign = decidetest.Text(text)
			return nil
		case "hidden":
			w.Backups.Hidden = decidetest.Text(text)
			return nil
		}
		return fmt.Errorf("backups have no %s", key)
	}
	name := strings.TrimPrefix(target, "job-")
	i := slices.IndexFunc(w.Backups.Jobs, func(j decide.BackupJob) bool { return j.Name == w.Name+"-backup-"+name })
	if i < 0 {
		generation, _ := strconv.ParseInt(strings.TrimPrefix(name, "gen"), 10, 64)
		w.Backups.Jobs = append(w.Backups.Jobs, decide.BackupJob{Name: w.Name + "-backup-" + name, Generation: generation,
			UID: "j-" + name, Phase: decide.JobRuns, CreatedAt: w.Now})
		i = len(w.Backups.Jobs) - 1
	}
	job := &w.Backups.Jobs[i]
	switch key {
	case "phase":
		job.Phase, job.EndedAt = decide.JobPhase(text), w.Now
	case "stored":
		ago, err := time.ParseDuration(text)
		at := w.Now.Add(-ago)
		job.Backup = &decide.Backup{Job: job.Name, Generation: job.Generation, Slot: at, StartedAt: at, FinishedAt: at,
			ClusterID: w.Record.ClusterID, To: w.Declared.BackupTo}
		return err
	case "in":
		job.Backup.To = text
	case "verified":
		verified, err := strconv.ParseBool(text)
		job.Backup.Verified = verified
		return err
	case "message":
		job.Message = text
	case "differs":
		job.DiffersSince = w.Comparison.DiffersSince
	case "created":
		ago, err := time.ParseDuration(text)
		job.CreatedAt = w.Now.Add(-ago)
		return err
	default:
		return fmt.Errorf("a Job has no %s", key)
	}
	return nil
}

// setLastBackup sets the age of the newest backup.
func (w *world) setLastBackup(text string) error {
	if text == "none" {
		w.Backups.Last = nil
		return nil
	}
	ago, err := time.ParseDuration(text)
	at := w.Now.Add(-ago)
	w.Backups.Last = &decide.Backup{Job: w.Name + "-backup", Slot: at, StartedAt: at, FinishedAt: at,
		ClusterID: w.Record.ClusterID, To: w.Declared.BackupTo}
	return err
}
