package decide

import (
	"fmt"
	"slices"
	"time"
)

// noon is the observation time of the states in this package's tests.
var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// healthy returns an up-to-date cluster of n members; the first member leads.
func healthy(n int) State {
	s := State{
		Name: "a", Now: noon, ReportedClusterID: 0xc1,
		Declared:   Declared{Replicas: n, Version: "3.6.16", Lifecycle: "Running", SpecHash: "h1"},
		Record:     Record{Token: "t", ClusterID: 0xc1, LogVersion: "3.6"},
		Objects:    Objects{RunsVersion: "3.6.16", RunsHash: "h1", RunsReplicas: n},
		Membership: Membership{Known: true, ClusterID: 0xc1},
	}
	for i := range n {
		id, volume := ID(0xa0+i), fmt.Sprintf("v%d", i)
		s.Record.Members = append(s.Record.Members, RecordedMember{Ordinal: i, Mode: Sealed, ID: id, VolumeUID: volume})
		s.Replicas = append(s.Replicas, Replica{
			Ordinal: i, Pod: PodReady, PodUID: fmt.Sprintf("p%d", i), PodVersion: "3.6.16", PodSpecHash: "h1",
			VolumeUID: volume, VolumeToken: "t", ClusterID: 0xc1,
		})
		s.Membership.Members = append(s.Membership.Members, Member{
			ID: id, Name: s.ReplicaName(i), PeerURL: fmt.Sprintf("https://a-%d.a.b.svc:2380", i), Started: true, Answers: true, Leader: i == 0, Version: "3.6.16",
		})
	}
	return s
}

// after returns a healthy cluster of n members after a change.
func after(n int, change func(*State)) State {
	s := healthy(n)
	if change != nil {
		change(&s)
	}
	return s
}

// down makes members unresponsive, with their pods in the given phase for the given time.
func (s *State) down(phase PodPhase, ago time.Duration, ordinals ...int) {
	for i := range s.Replicas {
		if r := &s.Replicas[i]; slices.Contains(ordinals, r.Ordinal) {
			r.Pod, r.PodSince, r.ClusterID = phase, s.Now.Add(-ago), 0
		}
	}
	for _, n := range ordinals {
		s.Membership.Members[n].Answers, s.Membership.Members[n].Leader = false, false
	}
}
