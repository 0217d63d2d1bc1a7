package decide_test

import (
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// backsUp has git want backups, and one before an upgrade to 3.7.3, which is the second declaration.
func backsUp(w *world) {
	w.Declared.BacksUp, w.Declared.BacksUpBeforeUpgrade, w.Declared.Version = true, true, "3.7.3"
	w.Generation = 2
}

// startedFor has a pass have started a Job for a generation ten minutes ago, and a backup begun so
// long after that.
func startedFor(generation int64, after time.Duration) func(*world) {
	return func(w *world) {
		backsUp(w)
		created := w.Now.Add(-10 * time.Minute)
		w.Backups.Jobs = []decide.BackupJob{{Name: "a-backup-gen2", Generation: generation, Phase: decide.JobSucceeded,
			CreatedAt: created}}
		w.Backups.Last = &decide.Backup{ClusterID: w.Record.ClusterID, StartedAt: created.Add(after)}
	}
}

// withTemplate has new pods be made as declared.
func withTemplate(change func(*world)) func(*world) {
	return func(w *world) {
		change(w)
		w.Objects.RunsVersion = w.Declared.Version
	}
}

var wrongsAboutBackups = []wrong{
	{"backed up before an upgrade", "rolls without", backsUp, acts(decide.StartRollout{Version: "3.7.3", SpecHash: "h1"})},
	{"backed up before an upgrade", "rolls with one of before", startedFor(2, -time.Second), acts(decide.StartRollout{Version: "3.7.3", SpecHash: "h1"})},
	{"backed up before an upgrade", "rolls with one for another declaration", startedFor(1, time.Second), acts(decide.StartRollout{Version: "3.7.3", SpecHash: "h1"})},
	{"backed up before an upgrade", "rolls with one of another cluster", func(w *world) {
		startedFor(2, time.Second)(w)
		w.Backups.Last.ClusterID = 0xc9
	}, acts(decide.StartRollout{Version: "3.7.3", SpecHash: "h1"})},
	{"backed up before an upgrade", "restarts without", withTemplate(backsUp), acts(decide.RestartReplica{Ordinal: 2, PodUID: "p2"})},
	{"backed up before an upgrade", "prepares without", func(w *world) {
		backsUp(w)
		w.Declared.Version = "3.5.35"
	}, acts(decide.EnableDowngrade{Version: "3.5"})},

	{"backed up as declared", "of what is not declared", func(w *world) { w.Generation = 2 }, acts(decide.StartBackup{Generation: 2})},
	{"backed up as declared", "for another generation", backsUp, acts(decide.StartBackup{Generation: 1})},
	{"backed up as declared", "for none", func(w *world) { backsUp(w); w.Generation = 0 }, acts(decide.StartBackup{})},
	{"backed up as declared", "twice", startedFor(2, time.Second), acts(decide.StartBackup{Generation: 2})},
	{"backed up as declared", "while nobody says who the members are", func(w *world) { backsUp(w); unknown(w) }, acts(decide.StartBackup{Generation: 2})},
	{"backed up as declared", "before the cluster is on record", func(w *world) { backsUp(w); w.Record.ClusterID = 0 }, acts(decide.StartBackup{Generation: 2})},
	{"backed up as declared", "of what is to stop", func(w *world) { backsUp(w); w.Declared.Lifecycle = decide.Stopped }, acts(decide.StartBackup{Generation: 2})},
	{"backed up as declared", "beside somebody else's", func(w *world) { backsUp(w); w.Backups.Foreign = "CronJob" }, acts(decide.StartBackup{Generation: 2})},
	{"backed up as declared", "without having seen which there are", func(w *world) { backsUp(w); w.Backups.Hidden = "forbidden" }, acts(decide.StartBackup{Generation: 2})},
}
