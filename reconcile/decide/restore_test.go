package decide

import (
	"strings"
	"testing"
)

// restores makes a cluster be created from a backup: a Job fills the volume of a-0, and nothing else exists.
func restores(s *State) {
	s.Record, s.ReportedClusterID, s.Membership, s.Objects.RunsReplicas = RestoringRecord("t"), 0, Membership{}, 0
	s.Replicas = []Replica{{Ordinal: SeedOrdinal, Pod: PodAbsent, VolumeUID: "v0", VolumeToken: "t"}}
	s.Declared.Restore = RestoreSource{From: "the newest backup", Digest: "d1"}
	s.Restore.Job = &RestoreJob{VolumeJob: VolumeJob{UID: "j1", Digest: "d1", VolumeUID: "v0", Phase: JobRuns}}
}

// TestRestoreFollowsItsJob checks the step of a restore for each state of its Job, its volume and its declaration.
func TestRestoreFollowsItsJob(t *testing.T) {
	ofJob := func(change func(*RestoreJob)) func(*State) { return func(s *State) { change(s.Restore.Job) } }
	for what, c := range map[string]struct {
		change  func(*State)
		verdict Verdict
		action  Action
		message string
	}{
		"the Job runs":                {nil, Wait, nil, "restoring"},
		"no Job exists":               {func(s *State) { s.Restore.Job = nil }, Act, StartRestore{"d1"}, "restoring the newest backup into the volume of a-0"},
		"the Job is being deleted":    {ofJob(func(j *RestoreJob) { j.Terminating = true }), Wait, nil, "Job a-restore is being deleted"},
		"the volume is being deleted": {func(s *State) { s.Replicas[0].VolumeTerminating = true }, Wait, nil, "the volume of a-0 is being deleted"},
		"the volume was replaced":     {func(s *State) { s.Replicas[0].VolumeUID = "w0" }, Act, StopRestore{"j1"}, "no longer exists"},
		"the volume no longer exists": {func(s *State) { s.Replicas = nil }, Act, StopRestore{"j1"}, "no longer exists"},
		"the Job has ended for an earlier declaration": {
			both(ofJob(func(j *RestoreJob) { j.Phase = JobSucceeded }), func(s *State) { s.Declared.Restore.Digest = "d2" }),
			Act, StopRestore{"j1"}, "the declaration has changed",
		},
		"the Job has ended": {ofJob(func(j *RestoreJob) { j.Phase, j.Restored = JobSucceeded, "b" }), Act, FinishRestore{VolumeUID: "v0", From: "b"}, "starting a-0 with it"},
		"an older record was restored": {
			func(s *State) { s.Record = s.Record.With(RecordedMember{Ordinal: 1, Mode: Sealed}) },
			Block, nil, "the record has other members",
		},
		"another volume exists":                           {func(s *State) { s.Replicas = append(s.Replicas, Replica{Ordinal: 1, Pod: PodAbsent, VolumeUID: "v1"}) }, Block, nil, "a volume of a-1 exists"},
		"another slot is empty":                           {func(s *State) { s.Replicas = append(s.Replicas, Replica{Ordinal: 1, Pod: PodAbsent}) }, Wait, nil, "restoring"},
		"the cluster has formed, according to its status": {func(s *State) { s.ReportedClusterID = 0xc1 }, "", nil, ""},
		"the cluster has formed, according to etcd":       {func(s *State) { s.Membership.ClusterID = 0xc1 }, "", nil, ""},
	} {
		s := after(3, restores)
		if c.change != nil {
			c.change(&s)
		}
		d, applies := restore(s)
		if applies != (c.verdict != "") || d.Verdict != c.verdict || d.Action != c.action || !strings.Contains(d.Message, c.message) {
			t.Errorf("%s: %s %v %q, applies %t", what, d.Verdict, d.Action, d.Message, applies)
		}
	}
}

// TestInterruptedRestoreIsRecognizedWithoutRecord checks that a running restore whose record was lost continues, but not
// beside anything that shows that the cluster has formed.
func TestInterruptedRestoreIsRecognizedWithoutRecord(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*State)
		want   bool
	}{
		"the record is lost":    {nil, true},
		"the record exists":     {func(s *State) { s.Record = RestoringRecord("t") }, false},
		"the cluster has an ID": {func(s *State) { s.ReportedClusterID = 0xc1 }, false},
		"the Job has succeeded": {func(s *State) { s.Restore.Job.Phase = JobSucceeded }, false},
		"another volume exists": {func(s *State) { s.Replicas = append(s.Replicas, Replica{Ordinal: 1, Pod: PodAbsent, VolumeUID: "v1"}) }, false},
		"no Job exists":         {func(s *State) { s.Restore.Job = nil }, false},
		"the pod of a-0 exists": {func(s *State) { s.Replicas[0].Pod = PodPending }, false},
	} {
		s := after(3, both(restores, func(s *State) { s.Record = Record{} }))
		if c.change != nil {
			c.change(&s)
		}
		if got := s.isBeingRestored(); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}

// TestRestoredClusterIsComparedOnce checks that the record of a restored cluster asks for a comparison of its members.
func TestRestoredClusterIsComparedOnce(t *testing.T) {
	data := RestoredData{ClusterID: 0xc2, MemberID: 0xb0, Revision: 7}
	r := RestoredRecord(after(3, restores), FinishRestore{VolumeUID: "v0", From: "b", Data: data})
	if m, _ := r.Member(SeedOrdinal); !r.Uncompared || r.RestoredFrom != "b" || r.Restored != data || m.Mode != Sealed || m.VolumeUID != "v0" {
		t.Errorf("%+v", r)
	}
}
