package decide_test

import (
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// backsUp declares backups, including a backup before an upgrade to 3.7.3, which is the second declaration.
func backsUp(w *world) {
	w.Declared.BacksUp, w.Declared.BacksUpBeforeUpgrade, w.Declared.Version = true, true, "3.7.3"
	w.Generation = 2
}

// startedFor adds a Job that a pass started for a generation ten minutes ago, and a backup that began the given time
// later.
func startedFor(generation int64, after time.Duration) func(*world) {
	return func(w *world) {
		backsUp(w)
		created := w.Now.Add(-10 * time.Minute)
		w.Backups.Jobs = []decide.BackupJob{{Name: "a-backup-gen2", Generation: generation, Phase: decide.JobSucceeded,
			CreatedAt: created}}
		w.Backups.Last = &decide.Backup{ClusterID: w.Record.ClusterID, StartedAt: created.Add(after)}
	}
}

// withTemplate makes new pods match the declaration.
func withTemplate(change func(*world)) func(*world) {
	return func(w *world) {
		change(w)
		w.Objects.RunsVersion = w.Declared.Version
	}
}

// noted adds the backup for the second declaration to the status, and applies changes to that backup.
func noted(change func(w *world, b *decide.Backup)) func(*world) {
	return deleted(func(w *world) {
		w.Backups.BeforeDeletion = &decide.Backup{Generation: 2, ClusterID: w.Record.ClusterID, StartedAt: w.Now}
		change(w, w.Backups.BeforeDeletion)
	})
}

// deleted declares deletion after a backup, in the second declaration.
func deleted(change func(*world)) func(*world) {
	return func(w *world) {
		change(w)
		w.Generation = 2
		w.Declared.BacksUpBeforeUpgrade, w.Declared.Version = false, "3.6.16"
		w.Declared.Lifecycle, w.Declared.Retention, w.Declared.BacksUpBeforeDeletion = decide.Deleted, decide.Delete, true
	}
}

const backedUpBeforeReplacement = "backed up before a member with wrong data is replaced"

// hashesOnly sets the members' hashes, without an alarm.
func hashesOnly(sums ...uint32) func(*world) {
	return func(w *world) {
		hashes(sums...)(w)
		w.Membership.Members[1].Alarms = nil
	}
}

// differs records in the status that members hold different data since dawn.
func differs(w *world) { w.Comparison.DiffersSince = dawn }

var wrongsAboutBackups = []wrong{
	{"backed up before a deletion", "stops without a backup", deleted(func(*world) {}), acts(decide.ApplyObjects{})},
	{"backed up before a deletion", "stops because of the Job alone", deleted(startedFor(2, time.Second)), acts(decide.ApplyObjects{})},
	{"backed up before a deletion", "deletes with another declaration's backup", noted(func(_ *world, b *decide.Backup) { b.Generation = 1 }), acts(decide.DeleteVolume{Ordinal: 0, VolumeUID: "v0"})},
	{"backed up before a deletion", "stops before the declaration is stored", noted(func(w *world, _ *decide.Backup) { w.Objects.DeclarationDiffers = true }), acts(decide.ApplyObjects{})},
	{"backed up before a deletion", "deletes with another cluster's backup", noted(func(_ *world, b *decide.Backup) { b.ClusterID = 0xc9 }), acts(decide.DeleteVolume{Ordinal: 0, VolumeUID: "v0"})},
	{"backed up before a deletion", "stops with an unverified backup", noted(func(w *world, _ *decide.Backup) { w.Declared.VerifiesBackups = true }), acts(decide.StopPods{})},
	{"backed up before a deletion", "stops with a backup in another store", noted(func(_ *world, b *decide.Backup) { b.To = "s3://old" }), acts(decide.ApplyObjects{})},
	{"backed up before a deletion", "stops with an old backup", noted(func(w *world, b *decide.Backup) { b.StartedAt = w.Now.Add(-11 * time.Minute) }), acts(decide.ApplyObjects{})},
	{"backed up before a deletion", "stops with a backup that took long", noted(func(w *world, b *decide.Backup) { b.StartedAt, b.FinishedAt = w.Now.Add(-11*time.Minute), w.Now }), acts(decide.ApplyObjects{})},
	{"backed up before a deletion", "stops with a backup from the future", noted(func(w *world, b *decide.Backup) { b.StartedAt = w.Now.Add(24 * time.Hour) }), acts(decide.ApplyObjects{})},
	{"backed up before a deletion", "deletes with a backup slot in the future", noted(func(w *world, b *decide.Backup) { b.Slot = w.Now.Add(24 * time.Hour) }), acts(decide.DeleteVolume{Ordinal: 0, VolumeUID: "v0"})},
	{"backed up before a deletion", "deletes the record before volumes", noted(func(w *world, _ *decide.Backup) { w.Objects.RunsReplicas = 0 }), acts(decide.DeleteObjects{})},
	{"backed up before a deletion", "deletes volumes without a record", noted(func(w *world, _ *decide.Backup) { w.Record = decide.Record{} }), acts(decide.DeleteVolume{Ordinal: 0, VolumeUID: "v0"})},
	{"only outdated final backups are discarded", "while it runs", deleted(startedFor(2, time.Second)), acts(decide.DiscardBackup{JobUID: "j2"})},
	{"only outdated final backups are discarded", "while the backup is still usable", deleted(func(w *world) { startedFor(2, time.Second)(w); w.Backups.Jobs[0].EndedAt = w.Now }), acts(decide.DiscardBackup{})},
	{"only outdated final backups are discarded", "while it may be of now", deleted(func(w *world) {
		startedFor(2, 4*time.Minute)(w)
		w.Backups.Jobs[0].EndedAt, w.Backups.Jobs[0].CreatedAt = w.Now, w.Now.Add(4*time.Minute)
	}), acts(decide.DiscardBackup{})},
	{renewedWhileItWaits, "with expired certificates", deleted(func(w *world) {
		w.Record.CA, w.CA = "CA1", decide.CA{Secret: "CA1", Proven: "CA1"}
		w.Certificates = []decide.Certificate{{NotBefore: w.Now.Add(-time.Hour), NotAfter: w.Now.Add(-time.Minute)}}
	}), decision{decide.Block, nil, "because"}},
	{"backed up only on request", "of a cluster deleted without a backup", func(w *world) { backsUp(w); w.Declared.Lifecycle = decide.Deleted }, acts(decide.StartBackup{Generation: 2})},
	{"backed up before an upgrade", "rolls out without a backup", backsUp, acts(decide.StartRollout{Version: "3.7.3", SpecHash: "h1"})},
	{"backed up before an upgrade", "rolls out with an earlier backup", startedFor(2, -time.Second), acts(decide.StartRollout{Version: "3.7.3", SpecHash: "h1"})},
	{"backed up before an upgrade", "rolls out with another declaration's backup", startedFor(1, time.Second), acts(decide.StartRollout{Version: "3.7.3", SpecHash: "h1"})},
	{"backed up before an upgrade", "rolls out with a backup from the future", startedFor(2, 24*time.Hour), acts(decide.StartRollout{Version: "3.7.3", SpecHash: "h1"})},
	{"backed up before an upgrade", "rolls out with another cluster's backup", func(w *world) {
		startedFor(2, time.Second)(w)
		w.Backups.Last.ClusterID = 0xc9
	}, acts(decide.StartRollout{Version: "3.7.3", SpecHash: "h1"})},
	{"backed up before an upgrade", "recreates the StatefulSet without a backup", func(w *world) {
		backsUp(w)
		w.Objects.RunsVersion, w.Objects.RunsHash, w.Objects.RunsReplicas = "", "", 0
	}, acts(decide.ApplyObjects{})},
	{"backed up before an upgrade", "rolls out before the declaration is stored", func(w *world) {
		startedFor(2, time.Second)(w)
		w.Objects.DeclarationDiffers = true
	}, acts(decide.StartRollout{Version: "3.7.3", SpecHash: "h1"})},
	{"backed up before an upgrade", "restarts without a backup", withTemplate(backsUp), acts(decide.RestartReplica{Ordinal: 2, PodUID: "p2"})},
	{"backed up before an upgrade", "prepares a downgrade without a backup", func(w *world) {
		backsUp(w)
		w.Declared.Version = "3.5.35"
	}, acts(decide.EnableDowngrade{Version: "3.5"})},

	{"backed up only on request", "while backups are not declared", func(w *world) { w.Generation = 2 }, acts(decide.StartBackup{Generation: 2})},
	{"backed up only on request", "for another generation", backsUp, acts(decide.StartBackup{Generation: 1})},
	{"backed up only on request", "for no generation", func(w *world) { backsUp(w); w.Generation = 0 }, acts(decide.StartBackup{})},
	{"backed up only on request", "a second time for one generation", startedFor(2, time.Second), acts(decide.StartBackup{Generation: 2})},
	{"backed up only on request", "for a difference that the status does not record", also(backsUp, hashesOnly(2, 1, 2)), acts(decide.StartBackup{DiffersSince: dawn})},
	{"backed up only on request", "for a difference that is gone", also(backsUp, hashesOnly(2, 2, 2), differs), acts(decide.StartBackup{DiffersSince: dawn})},
	{"backed up only on request", "a second time for one difference", also(startedFor(2, time.Second), hashesOnly(2, 1, 2), differs, func(w *world) {
		w.Backups.Jobs[0].Generation, w.Backups.Jobs[0].DiffersSince = 0, dawn
	}), acts(decide.StartBackup{DiffersSince: dawn})},
	{backedUpBeforeReplacement, "without a backup", also(backsUp, hashesOnly(2, 1, 2), differs), remove(1, "a-1")},
	{backedUpBeforeReplacement, "with a backup, but without a recorded difference", also(startedFor(2, time.Second), hashesOnly(2, 1, 2)), remove(1, "a-1")},
	{backedUpBeforeReplacement, "with an earlier backup", also(startedFor(2, time.Second), hashesOnly(2, 1, 2), differs), remove(1, "a-1")},
	{"backed up only on request", "while the member list is unknown", func(w *world) { backsUp(w); unknown(w) }, acts(decide.StartBackup{Generation: 2})},
	{"backed up only on request", "before the cluster ID is recorded", func(w *world) { backsUp(w); w.Record.ClusterID = 0 }, acts(decide.StartBackup{Generation: 2})},
	{"backed up only on request", "of a cluster that must stop", func(w *world) { backsUp(w); w.Declared.Lifecycle = decide.Stopped }, acts(decide.StartBackup{Generation: 2})},
	{"backed up only on request", "with an unmanaged CronJob", func(w *world) { backsUp(w); w.Backups.Foreign = "CronJob" }, acts(decide.StartBackup{Generation: 2})},
	{"backed up only on request", "while existing backup Jobs are unknown", func(w *world) { backsUp(w); w.Backups.Hidden = "forbidden" }, acts(decide.StartBackup{Generation: 2})},
}
