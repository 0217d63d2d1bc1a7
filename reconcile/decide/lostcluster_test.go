package decide

import "testing"

// restoredRecord returns the state of cluster 2, created from cluster 1, after the record of cluster 1 was restored:
// the volumes of a-0 and a-1 still carry the mark, and their pods start with the restored files.
func restoredRecord() State {
	s := State{Name: "a", ReportedClusterID: 2, Record: Record{Token: "t", ClusterID: 1}}
	for n, volume := range []string{"v0", "v1", "v2"} {
		s.Record = s.Record.With(RecordedMember{Ordinal: n, Mode: Sealed, VolumeUID: volume})
		s.Replicas = append(s.Replicas, Replica{Ordinal: n, Pod: PodStarting, VolumeUID: volume, LostCluster: 1})
	}
	s.Replicas[2].LostCluster, s.Replicas[2].ClusterID = 0, 2
	return s
}

// newRecord sets the record of cluster 2, which keeps the volumes of cluster 1.
func newRecord(s *State) {
	s.Record = Record{Token: "t", ClusterID: 2, Recovery: RecordedRecovery{ClusterID: 1, Ordinal: 2, VolumeUID: "v2"}}.
		With(RecordedMember{Ordinal: 2, Mode: Sealed, VolumeUID: "v2"}).
		WithRemoved(RemovedMember{Ordinal: 0, VolumeUID: "v0", LostCluster: 1}).
		WithRemoved(RemovedMember{Ordinal: 1, VolumeUID: "v1", LostCluster: 1})
}

// listsAs makes etcd list a-1 as a member of the given cluster.
func listsAs(id ID) func(*State) {
	return func(s *State) {
		s.Membership = Membership{Known: true, ClusterID: id, Members: []Member{{ID: 0xa1, Name: "a-1", Started: true}}}
	}
}

// TestPodsOfLostClusterAreStopped checks which pods on marked volumes are stopped, and which are left unchanged.
func TestPodsOfLostClusterAreStopped(t *testing.T) {
	runs := func(n int, id ID) func(*State) { return func(s *State) { s.Replicas[n].ClusterID = id } }
	ready := func(s *State) { s.Replicas[1].Pod = PodReady }
	for what, c := range map[string]struct {
		change func(*State)
		want   string
	}{
		"both start":                                     {func(*State) {}, "0,1"},
		"a-1 has no volume":                              {func(s *State) { s.Replicas[1].VolumeUID = "" }, "0"},
		"a-1 has no pod":                                 {func(s *State) { s.Replicas[1].Pod = PodAbsent }, "0"},
		"the pod of a-1 terminates":                      {func(s *State) { s.Replicas[1].Pod = PodTerminating }, "0"},
		"a-1 has no mark":                                {func(s *State) { s.Replicas[1].LostCluster = 0 }, "0"},
		"a-1 belongs to a different lost cluster":        {func(s *State) { s.Replicas[1].LostCluster = 3 }, "0"},
		"a-1 is not recorded":                            {func(s *State) { s.Record.Members = s.Record.Members[:1] }, "0"},
		"a-1 is in the lost cluster":                     {both(newRecord, runs(1, 1)), "1"},
		"a-1 is in the new cluster":                      {runs(1, 2), "0"},
		"the new cluster lists a-1":                      {listsAs(2), "0"},
		"the lost cluster lists a-1":                     {listsAs(1), "0,1"},
		"the member list is unknown":                     {both(listsAs(2), func(s *State) { s.Membership.Known = false }), "0,1"},
		"no new cluster is known":                        {func(s *State) { s.ReportedClusterID = 1 }, ""},
		"new record, a-1 not ready":                      {newRecord, ""},
		"new record, a-1 ready":                          {both(newRecord, ready), "1"},
		"new record, a different volume kept":            {both(newRecord, ready, func(s *State) { s.Record.Removed[1].VolumeUID = "w" }), ""},
		"new record, volume of a different lost cluster": {both(newRecord, ready, func(s *State) { s.Record.Removed[1].LostCluster = 3 }), ""},
		"new record, a-1 ready in the new cluster":       {both(newRecord, ready, runs(1, 2)), ""},
		"new record names a-1 as a member": {both(newRecord, func(s *State) {
			s.Record = s.Record.With(RecordedMember{Ordinal: 1, Mode: Joining})
		}), ""},
	} {
		s := restoredRecord()
		c.change(&s)
		if slots, _ := s.runsOfLost(); slots.String() != c.want {
			t.Errorf("%s: %q is stopped, want %q", what, slots, c.want)
		}
	}
}

// TestNewClusterIsKnownDespiteRestoredRecord checks which sources identify a cluster that was created from a lost
// cluster.
func TestNewClusterIsKnownDespiteRestoredRecord(t *testing.T) {
	abandoned := func(s *State) { s.ReportedClusterID, s.Membership.ClusterID = 1, 2 }
	for what, c := range map[string]struct {
		change func(*State)
		want   ID
	}{
		"the status":                                 {func(*State) {}, 2},
		"the status, before etcd":                    {func(s *State) { s.Membership.ClusterID = 3 }, 2},
		"etcd, without a status":                     {func(s *State) { s.ReportedClusterID, s.Membership.ClusterID = 0, 3 }, 3},
		"nothing":                                    {func(s *State) { s.ReportedClusterID = 0 }, 0},
		"the lost cluster itself":                    {func(s *State) { s.ReportedClusterID, s.Membership.ClusterID = 1, 1 }, 0},
		"the record of the new cluster":              {both(newRecord, func(s *State) { s.ReportedClusterID = 0 }), 2},
		"etcd, after an abandoned recovery":          {abandoned, 0},
		"etcd, and a claim of its cluster":           {both(abandoned, func(s *State) { s.Replicas[2].LastUse.ClusterID = 2 }), 2},
		"etcd, and a claim of a different cluster":   {both(abandoned, func(s *State) { s.Replicas[2].LastUse.ClusterID = 3 }), 0},
		"etcd, while it is being recovered":          {both(abandoned, func(s *State) { s.Record.Recovery.ClusterID = 1 }), 2},
		"etcd, with a record of a different cluster": {both(abandoned, func(s *State) { s.Record.ClusterID = 4 }), 2},
	} {
		s := restoredRecord()
		c.change(&s)
		if got := s.madeOf(1); got != c.want {
			t.Errorf("%s: cluster %s, want %s", what, got, c.want)
		}
	}
}
