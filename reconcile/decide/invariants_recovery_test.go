package decide_test

import "quorate.dev/quorate/reconcile/decide"

// loses makes a cluster permanently lose two of three members. Git requests a new cluster from the third member's data.
// All pods are gone.
func loses(w *world) {
	w.Declared.Recovery = decide.RecoveryOrder{ClusterID: theCluster, Ordinal: 1, Lost: 0b101, Digest: "d1"}
	w.Membership = decide.Membership{Why: "no pod"}
	w.Objects.RunsReplicas = 0
	for i := range w.Replicas {
		w.Replicas[i].Pod, w.Replicas[i].PodUID, w.Replicas[i].ClusterID = decide.PodAbsent, "", 0
	}
}

// begun does the same as loses, and adds a recovery Job that has just ended.
func begun(w *world) {
	loses(w)
	w.Record = decide.RecoveringRecord(w.State, w.Replica(w.Declared.Recovery.Ordinal).VolumeUID)
	w.Recovery.Job = w.newRecoveryJob()
	w.Recovery.Job.Phase, w.Recovery.Job.Into = decide.JobSucceeded, 0xc2
}

// inPlace makes a cluster permanently lose all members. Git requests a new cluster from a backup.
func inPlace(w *world) {
	loses(w)
	w.Declared.Recovery.Backup, w.Declared.Recovery.Lost = "tuesday", 0b111
}

// restoringInPlace does the same as inPlace, adds a Job that has just ended, and applies a further change.
func restoringInPlace(change func(*world)) func(*world) {
	return func(w *world) {
		inPlace(w)
		w.Record = decide.RecoveringRecord(w.State, "v1")
		w.Recovery.Job = w.newRecoveryJob()
		w.Recovery.Job.Phase, w.Recovery.Job.Into = decide.JobSucceeded, 0xc2
		change(w)
	}
}

// losing and beginning apply loses and begun, and then a further change.
func losing(change func(*world)) func(*world)    { return func(w *world) { loses(w); change(w) } }
func beginning(change func(*world)) func(*world) { return func(w *world) { begun(w); change(w) } }

// keeps changes the state to that of a new cluster that keeps a volume of the lost cluster.
func keeps(w *world) {
	w.Declared.Recovery = decide.RecoveryOrder{ClusterID: 0xc9, Ordinal: 1, OldVolumes: decide.Delete}
	w.Record.Recovery = decide.RecordedRecovery{ClusterID: 0xc9, Ordinal: 1, VolumeUID: "v1"}
	w.Record = w.Record.WithRemoved(decide.RemovedMember{Ordinal: 3, VolumeUID: "v3", LostCluster: 0xc9})
	w.Replicas = append(w.Replicas, decide.Replica{Ordinal: 3, Pod: decide.PodAbsent, VolumeUID: "v3", VolumeToken: theToken})
}

func keeping(change func(*world)) func(*world) { return func(w *world) { keeps(w); change(w) } }

var (
	recovers  = acts(decide.StartRecovery{Ordinal: 1, Digest: "d1"})
	recovered = acts(decide.FinishRecovery{ClusterID: 0xc2, VolumeUID: "v1"})
	stops     = acts(decide.StopPods{})
	gives     = acts(decide.DeleteVolume{Ordinal: 3, VolumeUID: "v3"})
)

var wrongsAboutRecoveries = []wrong{
	{"recovered only on request", "not requested", losing(func(w *world) { w.Declared.Recovery.ClusterID = 0 }), stops},
	{"recovered only on request", "requested for another cluster", losing(func(w *world) { w.Declared.Recovery.ClusterID = 0xc2 }), recovers},
	{"recovered only on request", "although the status names another cluster", losing(func(w *world) { w.ReportedClusterID = 0xc2 }), recovers},
	{"recovered only on request", "although the member list is known", losing(func(w *world) { w.Membership.Known = true }), stops},
	{"recovered only on request", "although a member returns a list", losing(func(w *world) { w.Membership.Unconfirmed = true }), stops},
	{"recovered only on request", "although a pod is ready", losing(func(w *world) { w.Replicas[0].Pod = decide.PodReady }), stops},
	{"recovered only on request", "although another member may have the data", losing(func(w *world) { w.Declared.Recovery.Lost = 0b100 }), recovers},
	{"recovered only on request", "although the source member is lost", losing(func(w *world) { w.Declared.Recovery.Lost = 0b111 }), recovers},
	{"recovered only on request", "from an ordinal without a member", losing(func(w *world) { w.Declared.Recovery.Ordinal = 3 }), stops},
	{"recovered only on request", "from a different volume", losing(func(w *world) { w.Replicas[1].VolumeUID = "v9" }), recovers},
	{"recovered only on request", "from a volume being deleted", losing(func(w *world) { w.Replicas[1].VolumeTerminating = true }), recovers},
	{"recovered only on request", "request removed", beginning(func(w *world) { w.Declared.Recovery.ClusterID = 0 }), recovered},
	{"recovered only on request", "from a different member than begun", beginning(func(w *world) {
		w.Recovery.Job, w.Declared.Recovery.Ordinal, w.Declared.Recovery.Lost = nil, 2, 0b001
	}), acts(decide.StartRecovery{Ordinal: 2, Digest: "d1"})},

	{"recovered only on request", "request is void", losing(func(w *world) { w.Declared.Recovery.Word, w.Record.VoidRecovery = "w", "w" }), stops},
	{"recovered only on request", "although a new cluster was created before", losing(func(w *world) { w.Replicas[0].LostCluster = theCluster }), recovers},
	{"recovered only on request", "request not allowed", losing(func(w *world) { w.Declared.Recovery.Refused = "no" }), stops},
	{"recovered only on request", "another claim may have the data", losing(func(w *world) { w.Declared.Recovery.Lost, w.Replicas[0].VolumeUID = 0b100, "v9" }), recovers},
	{"recovered only on request", "a member is no longer declared lost", beginning(func(w *world) { w.Declared.Recovery.Lost = 0b100 }), recovered},
	{"recovered only on request", "again, a member no longer declared lost", beginning(func(w *world) { w.Declared.Recovery.Lost, w.Recovery.Job = 0b100, nil }), recovers},
	{"recovered only on request", "from a backup, another may have data", func(w *world) { inPlace(w); w.Declared.Recovery.Lost = 0b011 }, recovers},
	{"recovered only on request", "from a backup, replaced member may have data", func(w *world) { inPlace(w); w.Declared.Recovery.Lost = 0b101 }, stops},
	{"recovered only on request", "from a backup, ordinal without a member", func(w *world) { inPlace(w); w.Declared.Recovery.Ordinal = 5 }, stops},
	{"recovered while nothing runs", "from a backup, volume being deleted", func(w *world) { inPlace(w); w.Replicas[1].VolumeTerminating = true }, recovers},
	{"recovered only on request", "from a backup, a member not declared lost", restoringInPlace(func(w *world) { w.Declared.Recovery.Lost = 0b110 }), recovered},
	{"recovered while nothing runs", "finishes with a volume, backup requested", restoringInPlace(func(w *world) { w.Recovery.Job.From = "" }), recovered},
	{"recovered while nothing runs", "finishes with a backup, volume requested", restoringInPlace(func(w *world) { w.Declared.Recovery.Backup, w.Declared.Recovery.Lost = "", 0b101 }), recovered},
	{"recovered while nothing runs", "finishes with a backup, different volume", restoringInPlace(func(w *world) { w.Replicas[1].VolumeUID = "v9" }), recovered},

	{"recovered while nothing runs", "starts while a pod exists", losing(func(w *world) { w.Replicas[2].Pod = decide.PodTerminating }), recovers},
	{"recovered while nothing runs", "starts while pods may be created", losing(func(w *world) { w.Objects.RunsReplicas = 3 }), recovers},
	{"recovered while nothing runs", "starts a second Job", begun, recovers},
	{"recovered while nothing runs", "starts while the previous Job's pod exists", losing(func(w *world) { w.Recovery.Stopping = []string{"x"} }), recovers},
	{"recovered while nothing runs", "starts while existing Jobs are unknown", losing(func(w *world) { w.Recovery.Hidden = "forbidden" }), recovers},
	{"recovered while nothing runs", "starts with a different digest", loses, acts(decide.StartRecovery{Ordinal: 1, Digest: "d2"})},
	{"recovered while nothing runs", "stops a different Job", begun, acts(decide.StopRecovery{JobUID: "j2"})},
	{"recovered while nothing runs", "finishes without a Job", beginning(func(w *world) { w.Recovery.Job = nil }), recovered},
	{"recovered while nothing runs", "finishes while the Job runs", beginning(func(w *world) { w.Recovery.Job.Phase = decide.JobRuns }), recovered},
	{"recovered while nothing runs", "finishes although the Job failed", beginning(func(w *world) { w.Recovery.Job.Phase = decide.JobFailed }), recovered},
	{"recovered while nothing runs", "finishes on a different volume", beginning(func(w *world) { w.Recovery.Job.VolumeUID = "v9" }), recovered},
	{"recovered while nothing runs", "finishes a recovery that was not begun", beginning(func(w *world) { w.Record.Recovery = decide.RecordedRecovery{} }), recovered},
	{"recovered while nothing runs", "finishes while a pod exists", beginning(func(w *world) { w.Replicas[0].Pod = decide.PodPending }), recovered},

	{stopsChangedJob, "leaves an unrequested Job running", beginning(func(w *world) { w.Recovery.Job.Phase, w.Declared.Recovery.ClusterID = decide.JobRuns, 0 }), decision{decide.Block, nil, "because"}},
	{stopsChangedJob, "leaves a restore Job running", func(w *world) {
		w.Restore.Job = &decide.RestoreJob{VolumeJob: decide.VolumeJob{Digest: "d1", Phase: decide.JobRuns}}
		w.Replicas = nil
	}, decision{decide.Block, nil, "because"}},
	{"the lost cluster stays stopped", "stops a member of the new cluster", func(w *world) {
		w.Replicas[1].LostCluster, w.ReportedClusterID, w.Record.ClusterID, w.Membership.ClusterID = 0xc9, theCluster, theCluster, theCluster
	}, acts(decide.StopReplicas{Ordinals: 2, LostCluster: 0xc9})},
	{"the lost cluster stays stopped", "no new cluster is known", losing(func(w *world) { w.Replicas[1].LostCluster = theCluster }), acts(decide.StopReplicas{Ordinals: 2, LostCluster: theCluster})},
	{"the lost cluster stays stopped", "blocks while the lost cluster runs", losing(func(w *world) {
		w.Replicas[1].LostCluster, w.Replicas[1].ClusterID, w.Replicas[1].Pod, w.ReportedClusterID = theCluster, theCluster, decide.PodReady, 0xc2
	}), decision{decide.Block, nil, "because"}},
	{"the lost cluster is kept", "new cluster has the same ID", begun, acts(decide.FinishRecovery{ClusterID: theCluster, VolumeUID: "v1"})},
	{"the lost cluster is kept", "deletion not requested", keeping(func(w *world) { w.Declared.Recovery.OldVolumes = decide.Retain }), gives},
	{"the lost cluster is kept", "deletion requested for another cluster", keeping(func(w *world) { w.Declared.Recovery.ClusterID = 0xc8 }), gives},
	{"the lost cluster is kept", "the new cluster's data is in doubt", keeping(func(w *world) { w.Membership.Members[0].Alarms = []decide.AlarmKind{decide.AlarmCorrupt} }), gives},
	{"the lost cluster is kept", "the new cluster's source was in doubt", keeping(func(w *world) { w.Record.Recovery.Suspect = true }), gives},
	{"the lost cluster is kept", "unknown whether the source was in doubt", keeping(func(w *world) { w.Record.Recovery = decide.RecordedRecovery{} }), gives},
	{"the lost cluster is kept", "the new cluster's member list is unknown", keeping(func(w *world) { w.Membership.Known = false }), gives},
}
