package decide_test

import (
	"fmt"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

// act carries out the decision.
func (w *world) act() error {
	switch a := decide.Decide(w.State).Action.(type) {
	case decide.Bootstrap, decide.ApplyObjects:
		w.apply()
	case decide.StopPods:
		w.Objects.RunsReplicas = 0
		w.Membership = decide.Membership{Why: "no member pod is running"}
		for _, r := range slices.Clone(w.Replicas) {
			_ = w.setSlot(r.Ordinal, "pod", string(decide.PodAbsent))
		}
	case decide.StopReplicas:
		w.Record = decide.StoppedRecord(w.State, a)
		for _, ordinal := range a.Ordinals.List() {
			_ = w.setSlot(ordinal, "pod", string(decide.PodStarting))
			_ = w.setSlot(ordinal, "etcd", "none")
			_ = w.setSlot(ordinal, "cluster", "none")
		}
	case decide.StartRollout:
		w.Objects.RunsVersion, w.Objects.RunsHash = a.Version, a.SpecHash
	case decide.Seal:
		w.Record = decide.SealedRecord(w.State, a, w.token())
	case decide.StartBackup:
		name := fmt.Sprintf("gen%d", a.Generation)
		if !a.DiffersSince.IsZero() {
			name = a.DiffersSince.Format(decide.SlotLayout)
		}
		w.Backups.Jobs = append(w.Backups.Jobs, decide.BackupJob{Name: w.Name + "-backup-" + name, UID: "j-" + name,
			Generation: a.Generation, DiffersSince: a.DiffersSince, Phase: decide.JobRuns, CreatedAt: w.Now})
	case decide.DiscardBackup:
		w.Backups.Jobs = slices.DeleteFunc(w.Backups.Jobs, func(j decide.BackupJob) bool { return j.UID == a.JobUID })
	case decide.StartRestore:
		return w.startRestore()
	case decide.StopRestore:
		w.Restore.Job = nil
	case decide.FinishRestore:
		w.Record = decide.RestoredRecord(w.State, a)
		w.Objects.Drift = []string{"StatefulSet " + w.Name + ": changed at spec.replicas"}
	case decide.StartRecovery:
		if w.Declared.Recovery.Backup != "" && w.Replica(a.Ordinal).VolumeUID == "" {
			if err := w.setSlot(a.Ordinal, "volume", fmt.Sprintf("v%d-new", a.Ordinal)); err != nil {
				return err
			}
		}
		w.Record = decide.RecoveringRecord(w.State, w.Replica(a.Ordinal).VolumeUID)
		w.Recovery.Job = w.newRecoveryJob()
	case decide.StopRecovery:
		w.Recovery.Job = nil
	case decide.FinishRecovery:
		w.Record, w.ReportedClusterID = decide.RecoveredRecord(w.State, a), 0
		w.Objects.Drift = []string{"StatefulSet " + w.Name + ": changed at spec.replicas"}
	case decide.RenewCertificates:
		w.Certificates = nil
	case decide.Declare:
		w.Objects.DeclarationDiffers = false
	case decide.DeleteObjects:
		w.Record, w.Objects = decide.Record{}, decide.Objects{}
	case decide.RestartReplica:
		w.restart(a.Ordinal)
	case decide.DeleteVolume:
		w.deleteVolume(a.Ordinal)
	case nil:
		return fmt.Errorf("nothing is to be done")
	default:
		return w.actOnEtcd(a)
	}
	return nil
}

func (w *world) apply() {
	w.Record = decide.RequiredRecord(w.State, w.token())
	o := decide.Objects{RunsVersion: w.Objects.RunsVersion, RunsHash: w.Objects.RunsHash, RunsReplicas: w.Record.Replicas()}
	if o.RunsVersion == "" {
		o.RunsVersion, o.RunsHash = w.Declared.Version, w.Declared.SpecHash
	}
	if w.Declared.Lifecycle != "Running" || w.Record.Restoring() || w.Record.Recovering() {
		o.RunsReplicas = 0
	}
	w.Objects, w.Backups.Drift = o, nil
	for _, r := range slices.Clone(w.Replicas) {
		if r.Ordinal >= o.RunsReplicas {
			_ = w.setSlot(r.Ordinal, "pod", string(decide.PodAbsent))
		}
	}
	if o.RunsReplicas == 0 {
		w.Membership = decide.Membership{Why: "no member pod is running"}
	}
	w.forgetEmpty()
}

// forgetEmpty removes slots without a pod and volume.
func (w *world) forgetEmpty() {
	w.Replicas = slices.DeleteFunc(w.Replicas, func(r decide.Replica) bool { return r.Pod == decide.PodAbsent && r.VolumeUID == "" })
}

// restart simulates that Kubernetes recreates a pod, on its volume or, if the volume was being deleted, on a new
// volume.
func (w *world) restart(ordinal int) {
	for i := range w.Replicas {
		if r := &w.Replicas[i]; r.Ordinal == ordinal {
			volume, token := r.VolumeUID, r.VolumeToken
			if r.VolumeTerminating {
				volume += "+"
			}
			*r = w.newReplica(ordinal)
			r.PodUID, r.VolumeUID, r.VolumeToken = r.PodUID+"+", volume, token
		}
	}
	for i := range w.Membership.Members {
		if m := &w.Membership.Members[i]; m.Name == w.ReplicaName(ordinal) {
			m.Answers, m.Version = true, w.Objects.RunsVersion
		}
	}
}

func (w *world) deleteVolume(ordinal int) {
	for i := range w.Replicas {
		r := &w.Replicas[i]
		switch {
		case r.Ordinal != ordinal:
		case r.Pod == decide.PodAbsent:
			r.VolumeUID, r.VolumeToken = "", ""
		default:
			r.VolumeTerminating = true
		}
	}
	w.forgetEmpty()
}

func (w *world) actOnEtcd(action decide.Action) error {
	list := &w.Membership
	switch a := action.(type) {
	case decide.AddLearner:
		list.Members = append(list.Members, decide.Member{ID: memberID(a.Ordinal) + 0x10, PeerURL: a.PeerURL, Learner: true})
	case decide.RemoveMember:
		if decide.NeedsAnnouncement(w.State, a.ID) {
			announced, err := decide.AnnouncedRecord(w.State, a.ID)
			if err != nil {
				return err
			}
			w.Record = announced
		}
		list.Members = slices.DeleteFunc(list.Members, func(m decide.Member) bool { return m.ID == a.ID })
		for i := range w.Replicas {
			if r := &w.Replicas[i]; w.ReplicaName(r.Ordinal) == a.Name {
				r.ClusterID = 0
			}
		}
	case decide.PromoteLearner:
		w.each(func(m *decide.Member) { m.Learner = m.Learner && m.ID != a.ID })
	case decide.MoveLeader:
		w.each(func(m *decide.Member) { m.Leader = m.ID == a.To })
	case decide.DisarmAlarm:
		list.StaleAlarms = slices.DeleteFunc(list.StaleAlarms, func(alarm decide.Alarm) bool { return alarm == decide.Alarm(a) })
		w.each(func(m *decide.Member) {
			m.Alarms = slices.DeleteFunc(m.Alarms, func(kind decide.AlarmKind) bool { return m.ID == a.ID && kind == a.Kind })
		})
	case decide.Defragment:
		w.each(func(m *decide.Member) {
			if m.ID == a.ID {
				m.DBSize, m.Defragmented = m.DBSizeInUse, decide.LastDefragmentation{At: w.Now}
			}
		})
		w.DefragmentationRequest = w.RequestToReport(a.ID)
	case decide.EnableDowngrade:
		list.Downgrade = a.Version
	case decide.CancelDowngrade:
		list.Downgrade = ""
	default:
		return fmt.Errorf("cannot carry out %v", a)
	}
	return nil
}

func (w *world) each(do func(*decide.Member)) {
	for i := range w.Membership.Members {
		do(&w.Membership.Members[i])
	}
}
