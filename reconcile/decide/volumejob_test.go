package decide

import "testing"

// TestEndedJobIsDeletedOnceItsVolumeIsDispensable checks when the deletion of a claim waits for an ended Job, and when
// the Job's volume may hold the last copy of the data.
func TestEndedJobIsDeletedOnceItsVolumeIsDispensable(t *testing.T) {
	lost := func(id ID, slots Ordinals) func(*State) {
		return func(s *State) { s.Declared.Recovery = RecoveryOrder{ClusterID: id, Lost: slots} }
	}
	recovering := func(ordinal int, fromBackup bool) func(*State) {
		return func(s *State) {
			s.Record.Recovery = RecordedRecovery{ClusterID: 1, Ordinal: ordinal, FromBackup: fromBackup}
		}
	}
	job := func(change func(*RestoreJob)) func(*State) { return func(s *State) { change(s.Restore.Job) } }
	for what, c := range map[string]struct {
		change func(*State)
		want   bool
	}{
		"quorum":                               {func(s *State) { s.Membership.Known = true }, true},
		"no quorum":                            {func(*State) {}, false},
		"the member is not recorded":           {func(s *State) { s.Record.Members = s.Record.Members[:1] }, false},
		"the record is lost":                   {func(s *State) { s.Record = Record{} }, false},
		"the member is declared lost":          {lost(1, Ordinals(0).With(1)), true},
		"declared lost, for another cluster":   {lost(2, Ordinals(0).With(1)), false},
		"another member is declared lost":      {lost(1, Ordinals(0).With(0)), false},
		"declared lost, the cluster has no ID": {both(lost(0, Ordinals(0).With(1)), func(s *State) { s.Record.ClusterID = 0 }), false},
		"being restored": {func(s *State) {
			s.Record, s.Replicas = RestoringRecord("t"), s.Replicas[1:]
			s.Replicas[0].Ordinal = SeedOrdinal
		}, true},
		"being restored, but another member exists": {func(s *State) { s.Record.Members[1].Mode = Restoring }, false},
		"declared lost, in a void request":          {both(lost(1, Ordinals(0).With(1)), func(s *State) { s.Declared.Recovery.Word, s.Record.VoidRecovery = "w", "w" }), false},
		"declared lost, in a refused request":       {both(lost(1, Ordinals(0).With(1)), func(s *State) { s.Declared.Recovery.Refused = "x" }), false},
		"quorum, and the copy may be right": {func(s *State) {
			s.Membership = Membership{Known: true, Members: []Member{{ID: 2, Name: "a-1", Started: true}},
				StaleAlarms: []Alarm{{unidentified, AlarmCorrupt}}}
		}, false},
		"being recovered from a backup":             {recovering(1, true), true},
		"being recovered from its data":             {recovering(1, false), false},
		"another member is recovered from a backup": {recovering(0, true), false},
		"was recovered from a backup":               {both(recovering(1, true), func(s *State) { s.Record.ClusterID = 5 }), false},
		"the claim is kept":                         {func(s *State) { s.Membership.Known = true; s.Replicas[1].VolumeTerminating = false }, false},
		"the Job is for another volume":             {both(listsAs(1), job(func(j *RestoreJob) { j.VolumeUID = "w" })), false},
		"the Job runs":                              {both(listsAs(1), job(func(j *RestoreJob) { j.Phase = JobRuns })), false},
		"the Job is being deleted":                  {both(listsAs(1), job(func(j *RestoreJob) { j.Terminating = true })), false},
		"the Job has failed":                        {both(listsAs(1), job(func(j *RestoreJob) { j.Phase = JobFailed })), true},
	} {
		s := State{Name: "a", Record: Record{Token: "t", ClusterID: 1}}
		for n, volume := range []string{"v0", "v1"} {
			s.Record = s.Record.With(RecordedMember{Ordinal: n, Mode: Sealed, VolumeUID: volume})
			s.Replicas = append(s.Replicas, Replica{Ordinal: n, Pod: PodAbsent, VolumeUID: volume})
		}
		s.Replicas[1].VolumeTerminating = true
		s.Restore.Job = &RestoreJob{VolumeJob: VolumeJob{UID: "j", VolumeUID: "v1", Phase: JobSucceeded}}
		c.change(&s)
		if got := s.delaysDeletion(s.Restore.Job.VolumeJob); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}

// TestVolumeBeingRestoredIsDispensable checks that a volume that is being filled from a backup may go, unless the
// cluster has formed or the volume is a member's.
func TestVolumeBeingRestoredIsDispensable(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*State)
		want   bool
	}{
		"the volume is being restored":  {func(*State) {}, true},
		"the cluster has formed":        {func(s *State) { s.ReportedClusterID = 0xc1 }, false},
		"a member has used the volume":  {func(s *State) { s.Record.Members[0].Mode = Sealed }, false},
		"another volume exists":         {func(s *State) { s.Replicas = append(s.Replicas, Replica{Ordinal: 1, VolumeUID: "v1"}) }, false},
		"etcd does not list the member": {func(s *State) { s.Membership.Known, s.Record.Members[0].Mode = true, Sealed }, true},
		"etcd's list is not known":      {func(s *State) { s.Record = healthy(3).Record }, false},
	} {
		s := after(3, both(restores, c.change))
		if got := s.dispensable(SeedOrdinal); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}
