package decide

import (
	"slices"
	"testing"
)

// TestSupersedes checks which lost clusters a record names as the source of this cluster.
func TestSupersedes(t *testing.T) {
	from := func(lost ID) RecordedRecovery { return RecordedRecovery{ClusterID: lost} }
	kept := []RemovedMember{{Ordinal: 1, VolumeUID: "v1", LostCluster: 0xc1}}
	for what, c := range map[string]struct {
		record Record
		lost   ID
		want   bool
	}{
		"created from the lost cluster":            {Record{ClusterID: 0xc2, Recovery: from(0xc1)}, 0xc1, true},
		"created from another cluster":             {Record{ClusterID: 0xc2, Recovery: from(0xc9)}, 0xc1, false},
		"indirectly created from the lost cluster": {Record{ClusterID: 0xc3, Recovery: from(0xc2), Removed: kept}, 0xc1, true},
		"indirectly created from another cluster":  {Record{ClusterID: 0xc3, Recovery: from(0xc2), Removed: kept}, 0xc9, false},
		"never recovered":                          {Record{ClusterID: 0xc2}, 0xc1, false},
		"no lost cluster is given":                 {Record{ClusterID: 0xc2}, 0, false},
		"the record has no ID":                     {Record{Recovery: from(0xc1)}, 0xc1, false},
		"the lost cluster is this cluster":         {Record{ClusterID: 0xc1, Recovery: from(0xc1)}, 0xc1, false},
		"this cluster, with a marked volume":       {Record{ClusterID: 0xc1, Removed: kept}, 0xc1, false},
	} {
		if got := c.record.Supersedes(c.lost); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}

// TestRecoveredRecord checks the record of a new cluster: one member, the lost cluster's other volumes, and the backup
// that was restored.
func TestRecoveredRecord(t *testing.T) {
	restored := recoveryJob(succeeded, func(j *RecoveryJob) { j.Restored = "monday" })
	kept := func(ordinal int, volume string, lost ID) RemovedMember { return RemovedMember{ordinal, volume, lost} }
	two := []RemovedMember{kept(0, "v0", 0xc1), kept(2, "v2", 0xc1)}
	earlier := []RemovedMember{kept(0, "v0", 0xc9), two[1]}
	from9 := func(volume string) func(*State) {
		return func(s *State) { s.Record = s.Record.WithRemoved(kept(0, volume, 0xc9)) }
	}
	for what, c := range map[string]struct {
		change  func(*State)
		from    string
		removed []RemovedMember
	}{
		"from a member's data":                         {both(lostMajority, begun, restored), "", two},
		"from a backup":                                {both(lostAll, begun, restored), "monday", two},
		"a lost member's volume is deleted":            {both(lostMajority, slot(0, gone), begun), "", []RemovedMember{{}, two[1]}},
		"a member without a volume, not declared lost": {both(lostMajority, slot(0, gone), givesUp(0b100), begun), "", two[1:]},
		"a volume of an earlier cluster":               {both(lostMajority, from9("v0"), begun), "", earlier},
		"an earlier cluster's volume was replaced":     {both(lostMajority, from9("w0"), begun), "", two},
	} {
		r := RecoveredRecord(after(3, c.change), FinishRecovery{0xc2, "v1"})
		if r.RestoredFrom != c.from || r.Uncompared != (c.from != "") {
			t.Errorf("%s: restored from %q, uncompared is %t", what, r.RestoredFrom, r.Uncompared)
		}
		member := []RecordedMember{{Ordinal: 1, Mode: Sealed, VolumeUID: "v1"}}
		if r.ClusterID != 0xc2 || !slices.Equal(r.Members, member) || !slices.Equal(r.Removed, c.removed) {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

// TestVoidRecovery checks when a request to recover is recorded as void, and that the status reports it.
func TestVoidRecovery(t *testing.T) {
	void := func(word string) func(*State) { return func(s *State) { s.Record.VoidRecovery = word } }
	reported := func(s *State) { s.ReportedVoidRecovery = "w1" }
	ofOther := of(0xc2)
	listsOther := both(listed(true, 0, 2), func(s *State) { s.Membership.ClusterID = 0xc2 })
	for what, c := range map[string]struct {
		change func(*State)
		want   string
	}{
		"no quorum":                 {lostMajority, ""},
		"quorum":                    {both(lostMajority, listed(true, 0, 2)), "w1"},
		"quorum of another cluster": {both(lostMajority, listsOther), ""},
		"quorum of another cluster, which is requested": {both(lostMajority, ofOther, listsOther), ""},
		"quorum, and the recovery has begun":            {both(lostMajority, begun, listed(true, 0, 2)), ""},
		"already recorded as void":                      {both(lostMajority, void("w1")), "w1"},
		"already void, according to the status":         {both(lostMajority, reported), "w1"},
		"void in the status, for another cluster":       {both(lostMajority, ofOther, reported), ""},
		"another request is recorded as void":           {both(lostMajority, void("w0")), "w0"},
		"the recovery is no longer requested":           {both(lostMajority, void("w1"), requestsNothing), ""},
	} {
		s := after(3, c.change)
		if got := s.voidRecovery(s.Record).VoidRecovery; got != c.want {
			t.Errorf("%s: recorded as void: %q", what, got)
		}
		if got := s.VoidRecoveryToReport(); got != c.want {
			t.Errorf("%s: reported as void: %q", what, got)
		}
	}
	lost := after(3, both(lostMajority, func(s *State) { s.Record = Record{Token: "t", ClusterID: 0xc1} }))
	if got := lost.voidRecovery(lost.Record).VoidRecovery; got != "w1" {
		t.Errorf("the record is lost: recorded as void: %q", got)
	}
	if healthy(3).isVoid(RecoveryOrder{}) {
		t.Error("a missing request counts as void")
	}
}

// TestMarkedVolumesAreKept checks which claims count as remains of a lost cluster, so that members do not start on
// them.
func TestMarkedVolumesAreKept(t *testing.T) {
	status := func(id ID) func(*State) { return func(s *State) { s.ReportedClusterID = id } }
	mark := func(lost ID, changes ...func(*Replica)) func(*State) {
		return both(lostMajority, requestsNothing, slot(0, append(changes, marked(lost))...))
	}
	unrecorded := func(s *State) { s.Record.Members = s.Record.Members[1:] }
	starts := both(podsStart, listed(true, 0, 1, 2))
	judge(t, func(s State) bool {
		gone, known := s.keepLost(s.Record).removed(0)
		return known && gone.LostCluster == s.Replicas[0].LostCluster
	}, map[string]slotCase{
		"the claim is not marked":                        {mark(0), false},
		"an older record":                                {both(mark(0xc1), status(0xc2)), true},
		"an older record, the status is lost":            {both(mark(0xc1), status(0)), true},
		"the status names that cluster as well":          {mark(0xc1), false},
		"marked with another cluster":                    {mark(0xc7), false},
		"marked with another cluster, slot not recorded": {both(mark(0xc7), unrecorded), true},
		"another volume":                                 {mark(0xc1, volume("w0")), true},
		"another volume, a pod is ready":                 {mark(0xc1, volume("w0"), phase(PodReady)), false},
		"another volume, and etcd lists the member":      {both(mark(0xc1, volume("w0")), starts), false},
		"another volume, and the member list is unknown": {both(mark(0xc1, volume("w0")), starts, unlisted), true},
		"another volume, and the member is not listed":   {both(mark(0xc1, volume("w0")), starts, without(0)), true},
		"no claim":             {both(mark(0xc7, gone), unrecorded), false},
		"a recovery has begun": {both(lostMajority, begun, status(0)), false},
	})
}

// TestJobRestoresRecordedRecovery checks when a recovery that is missing from the record is restored from its Job:
// never if the Job may not be Quorate's, or if the cluster has had quorum since.
func TestJobRestoresRecordedRecovery(t *testing.T) {
	job := both(lostMajority, recoveryJob())
	pods := both(job, podsStart)
	void := func(s *State) { s.Record.VoidRecovery = "w1" }
	unrecorded := func(s *State) { s.Record.Members = nil }
	onA2 := func(j *RecoveryJob) { j.Ordinal, j.VolumeUID = 2, "v2" }
	changes := func(change func(*RecoveryJob)) func(*State) { return func(s *State) { change(s.Recovery.Job) } }
	none, begins := RecordedRecovery{}, RecordedRecovery{ClusterID: 0xc1, Ordinal: 1, VolumeUID: "v1"}
	restores := begins
	restores.FromBackup = true
	noID := func(s *State) { s.Record.ClusterID, s.Recovery.Job.ClusterID = 0, 0 }
	for what, c := range map[string]struct {
		change func(*State)
		want   RecordedRecovery
	}{
		"no Job":                                     {lostMajority, none},
		"a Job for the requested recovery":           {job, begins},
		"a Job for the requested backup recovery":    {both(lostAll, recoveryJob()), restores},
		"etcd lists its members":                     {both(job, listed(true, 0, 2)), none},
		"a Job for another cluster":                  {both(job, changes(ofC9)), none},
		"Job and record without a cluster ID":        {both(job, requestsNothing, noID), none},
		"not requested":                              {both(job, requestsNothing), none},
		"not requested, and the record is lost":      {both(job, requestsNothing, unrecorded), begins},
		"the request is void":                        {both(job, void), none},
		"the Job uses another volume":                {both(job, changed(another)), none},
		"the volume is deleted":                      {both(job, changed(gone)), none},
		"the Job names no volume, volume is deleted": {both(lostMajority, changed(gone), recoveryJob()), none},
		"pods run, restored during the recovery":     {pods, begins},
		"pods run, for another request":              {both(pods, changes(func(j *RecoveryJob) { j.Digest = "d0" })), none},
		"another recovery has begun":                 {both(lostMajority, begun, recoveryJob(onA2)), begins},
	} {
		s := after(3, c.change)
		if got := s.takeUpRecovery(s.Record).Recovery; got != c.want {
			t.Errorf("%s: %+v", what, got)
		}
	}
	judge(t, func(s State) bool { return s.restoredDuring(*s.Recovery.Job) }, map[string]slotCase{
		"pods run":                                {pods, true},
		"not requested":                           {both(pods, of(0)), false},
		"for another request":                     {both(pods, changes(func(j *RecoveryJob) { j.Digest = "d0" })), false},
		"the status names another cluster":        {both(pods, func(s *State) { s.ReportedClusterID = 0xc2 }), false},
		"the status is lost":                      {both(pods, func(s *State) { s.ReportedClusterID = 0 }), false},
		"a majority responds":                     {both(pods, listed(false, 0, 2)), false},
		"a minority responds":                     {both(pods, listed(false, 0)), true},
		"a pod is ready":                          {both(pods, slot(2, phase(PodReady))), false},
		"the new cluster has used a volume":       {both(pods, changes(succeeded), changed(lastUsedBy(0xc2))), false},
		"only the lost cluster has used a volume": {both(pods, changes(succeeded), changed(lastUsedBy(0xc1))), true},
	})
}

// TestVolumesOfLostClusterAreKept checks that a lost cluster's volume is deleted only if git requests it, all other
// members are healthy, and no other slot must be filled first.
func TestVolumesOfLostClusterAreKept(t *testing.T) {
	givenUp := func(s *State) {
		s.Declared.Replicas = 4
		s.Declared.Recovery = RecoveryOrder{ClusterID: 0xc9, OldVolumes: Delete}
		s.Record.Recovery = RecordedRecovery{ClusterID: 0xc9, Ordinal: 1, VolumeUID: "v1"}
		s.Record = s.Record.WithRemoved(RemovedMember{Ordinal: 3, VolumeUID: "v3", LostCluster: 0xc9})
		s.Replicas = append(s.Replicas, Replica{Ordinal: 3, Pod: PodAbsent, VolumeUID: "v3", VolumeToken: "t"})
	}
	ofLost := func(s *State) { s.Record.ClusterID, s.ReportedClusterID, s.Membership.ClusterID = 0xc9, 0xc9, 0xc9 }
	notNext := func(s *State) { s.Record = s.Record.WithRemoved(RemovedMember{Ordinal: 2}) }
	judge(t, func(s State) bool { return s.Keeps(3) }, map[string]slotCase{
		"not a lost cluster's volume":               {nil, false},
		"git requests its deletion":                 {givenUp, false},
		"git requests deletion for another cluster": {both(givenUp, of(0xc8)), true},
		"git requests to keep it":                   {both(givenUp, func(s *State) { s.Declared.Recovery.OldVolumes = Retain }), true},
		"the lost cluster is the recorded cluster":  {both(givenUp, ofLost), true},
		"the new cluster's data is suspect":         {both(givenUp, func(s *State) { s.Record.Recovery.Suspect = true }), true},
		"another recovery is recorded":              {both(givenUp, func(s *State) { s.Record.Recovery.ClusterID = 0xc8 }), true},
		"a member is unhealthy":                     {both(givenUp, slot1(PodStarting, 0)), true},
		"the member list is unknown":                {both(givenUp, unlisted), true},
		"another slot is filled first":              {both(givenUp, without(2), notNext), true},
		"all slots have members":                    {both(givenUp, declared(3)), false},
	})
}
