package decide_test

import "quorate.dev/quorate/reconcile/decide"

// restores changes the state to that of a cluster whose data was restored by a Job that has just ended, and whose
// member has not started yet.
func restores(w *world) {
	from := decide.RestoreSource{From: "tuesday", Digest: "d1"}
	*w = world{State: decide.State{
		Name: w.Name, Now: w.Now, Declared: w.Declared,
		Record:   decide.RestoringRecord(theToken),
		Objects:  decide.Objects{RunsVersion: w.Declared.Version, RunsHash: w.Declared.SpecHash},
		Replicas: []decide.Replica{{Ordinal: 0, Pod: decide.PodAbsent, VolumeUID: "v0", VolumeToken: theToken}},
		Restore: decide.Restore{Job: &decide.RestoreJob{From: from.From, VolumeJob: decide.VolumeJob{UID: "j1", Digest: from.Digest,
			VolumeUID: "v0", Phase: decide.JobSucceeded}}},
	}}
	w.Declared.Restore = from
}

// restoring applies restores, and then a further change.
func restoring(change func(*world)) func(*world) {
	return func(w *world) { restores(w); change(w) }
}

// proving changes the state to that of a cluster whose first member runs on restored data that no pass has confirmed
// yet.
func proving(change func(*world)) func(*world) {
	return func(w *world) {
		data := decide.RestoredData{ClusterID: 0xc1, MemberID: 0xa0, Revision: 1018}
		w.Record = decide.Record{Token: theToken, RestoredFrom: "tuesday", Restored: data}.
			With(decide.RecordedMember{Ordinal: 0, Mode: decide.Sealed, VolumeUID: "v0"})
		w.ReportedClusterID, w.Replicas = 0, w.Replicas[:1]
		w.Membership.Members = []decide.Member{w.Membership.Members[0]}
		m := &w.Membership.Members[0]
		m.ID, m.Revision = data.MemberID, data.Revision
		w.Membership.ClusterID = data.ClusterID
		change(w)
	}
}

func withoutJob(w *world) { restores(w); w.Restore.Job = nil }

var (
	starts   = acts(decide.StartRestore{Digest: "d1"})
	seals    = acts(decide.Seal{ClusterID: 0xc1, Members: 1})
	finishes = acts(decide.FinishRestore{VolumeUID: "v0", From: "tuesday"})
)

var wrongsAboutRestores = []wrong{
	{"restored before the cluster runs", "into a running cluster", nil, starts},
	{"restored before the cluster runs", "into a cluster being bootstrapped", restoring(func(w *world) { w.Record = decide.FoundingRecord(theToken, 1) }), finishes},
	{"restored before the cluster runs", "although the status has a cluster ID", restoring(func(w *world) { w.ReportedClusterID = 0xc1 }), finishes},
	{"restored before the cluster runs", "although etcd lists a member", restoring(func(w *world) { w.Membership.Members = []decide.Member{{ID: 1}} }), acts(decide.StopRestore{JobUID: "j1"})},
	{"restored before the cluster runs", "of a cluster that must stop", restoring(func(w *world) { w.Declared.Lifecycle = decide.Stopped }), starts},
	{"restored before the cluster runs", "while a pod exists", restoring(func(w *world) { w.Replicas[0].Pod = decide.PodFailing }), finishes},

	{"restored before the cluster runs", "while a different volume exists", restoring(func(w *world) {
		w.Replicas = append(w.Replicas, decide.Replica{Ordinal: 1, Pod: decide.PodAbsent, VolumeUID: "v1", VolumeToken: theToken})
	}), finishes},
	{"a restore does not stop a cluster", "a pod", restoring(func(w *world) { w.Replicas[0].Pod = decide.PodReady }), acts(decide.ApplyObjects{})},
	{"a restore does not stop a cluster", "a volume", restoring(func(w *world) { w.Replicas[0].Ordinal = 1 }), acts(decide.ApplyObjects{})},

	{"the declared backup is restored", "git no longer declares the restore", restoring(func(w *world) { w.Declared.Restore = decide.RestoreSource{} }), finishes},
	{"the declared backup is restored", "starts a second Job", restores, starts},
	{"the declared backup is restored", "starts while the previous Job's pod exists", restoring(func(w *world) { withoutJob(w); w.Restore.Stopping = []string{"x"} }), starts},
	{"the declared backup is restored", "starts while existing Jobs are unknown", restoring(func(w *world) { withoutJob(w); w.Restore.Hidden = "forbidden" }), starts},
	{"the declared backup is restored", "a different backup", withoutJob, acts(decide.StartRestore{Digest: "d2"})},
	{"the declared backup is restored", "into a volume being deleted", restoring(func(w *world) { withoutJob(w); w.Replicas[0].VolumeTerminating = true }), starts},
	{"the declared backup is restored", "stops a different Job", restores, acts(decide.StopRestore{JobUID: "j2"})},
	{"the declared backup is restored", "finishes without a Job", withoutJob, finishes},
	{"the declared backup is restored", "finishes while the Job runs", restoring(func(w *world) { w.Restore.Job.Phase = decide.JobRuns }), finishes},
	{"the declared backup is restored", "finishes although the Job failed", restoring(func(w *world) { w.Restore.Job.Phase = decide.JobFailed }), finishes},
	{"the declared backup is restored", "finishes on a volume it did not fill", restoring(func(w *world) { w.Restore.Job.VolumeUID = "v9" }), finishes},
	{"the declared backup is restored", "finishes with another backup's data", restoring(func(w *world) { w.Declared.Restore.Digest = "d2" }), finishes},

	{"the declared backup is restored", "records different data", restores, acts(decide.FinishRestore{VolumeUID: "v0", From: "tuesday",
		Data: decide.RestoredData{Revision: 7}})},

	{"clients reach only restored data", "a different cluster ID", proving(func(w *world) { w.Membership.ClusterID = 0xc2 }),
		acts(decide.Seal{ClusterID: 0xc2, Members: 1})},
	{"clients reach only restored data", "a different member ID", proving(func(w *world) { w.Membership.Members[0].ID = 0xb0 }), seals},
	{"clients reach only restored data", "older data", proving(func(w *world) { w.Membership.Members[0].Revision-- }), seals},
	{"clients reach only restored data", "an alarm of a removed member", proving(func(w *world) {
		w.Membership.StaleAlarms = []decide.Alarm{{ID: 0xd1, Kind: decide.AlarmNoSpace}}
	}), seals},

	{"never bootstrapped twice", "without the declared restore", restoring(func(w *world) {
		w.Record, w.Replicas, w.Restore = decide.Record{}, nil, decide.Restore{}
	}), acts(decide.Bootstrap{Replicas: 3})},
	{"never bootstrapped twice", "restored into three members", restoring(func(w *world) {
		w.Record, w.Replicas, w.Restore = decide.Record{}, nil, decide.Restore{}
	}), acts(decide.Bootstrap{Replicas: 3, Restores: true})},
}
