package decide

import (
	"strings"
	"testing"
)

// stopped declares the lifecycle, and removes the cluster's pods.
func stopped(lifecycle string) func(*State) {
	return func(s *State) {
		s.Declared.Lifecycle, s.Objects.RunsReplicas, s.Membership = Lifecycle(lifecycle), 0, Membership{}
		for i := range s.Replicas {
			r := &s.Replicas[i]
			r.Pod, r.PodUID, r.ClusterID = PodAbsent, "", 0
		}
	}
}

func drifts(s *State) { s.Objects.Drift = []string{"Service a: missing"} }

func noStatefulSet(s *State) {
	s.Objects.RunsVersion, s.Objects.RunsHash, s.Objects.RunsReplicas = "", "", 0
}

func forgotten(s *State) { s.Record, s.Replicas, s.Membership = Record{}, nil, Membership{} }

// TestStop checks the actions on a cluster that should not run, regardless of the rest of the state.
func TestStop(t *testing.T) {
	runs := func(s *State) { s.Declared.Lifecycle = "Stopped" }
	onePod := func(s *State) { s.Replicas[1].Pod = PodReady }
	orphans := both(stopped("Stopped"), noStatefulSet, onePod)
	for what, c := range map[string]struct {
		change func(*State)
		want   Action
		says   string // a part of the message; empty if the rule does not apply
	}{
		"should run":                                 {nil, nil, ""},
		"nothing exists":                             {both(runs, forgotten, noStatefulSet), nil, ""},
		"pods running":                               {runs, ApplyObjects{}, "stopping the pods of a-0, a-1 and a-2"},
		"members unknown, StatefulSet running":       {both(runs, forgotten), nil, "Scale the StatefulSet to 0"},
		"members unknown, scaled to 0":               {both(stopped("Stopped"), forgotten), nil, "stopped"},
		"volume being deleted":                       {both(runs, func(s *State) { s.Replicas[1].VolumeTerminating = true }), nil, "the volumes of a-1 are being deleted"},
		"volume being deleted, deletion requested":   {both(runs, func(s *State) { s.Replicas[1].VolumeTerminating = true }, deleted("Delete")), ApplyObjects{}, "stopping the pods"},
		"volume being deleted, should be retained":   {both(runs, func(s *State) { s.Replicas[1].VolumeTerminating = true }, deleted("Retain")), nil, "the volumes of a-1 are being deleted"},
		"volume being deleted, cluster only stopped": {both(runs, func(s *State) { s.Replicas[1].VolumeTerminating, s.Declared.Retention = true, "Delete" }), nil, "the volumes of a-1 are being deleted"},
		"scaled to 1":                                {both(runs, func(s *State) { s.Objects.RunsReplicas = 1 }), ApplyObjects{}, "stopping the pods"},
		"members unknown, scaled to 1":               {both(runs, forgotten, func(s *State) { s.Objects.RunsReplicas = 1 }), nil, "Scale the StatefulSet to 0"},
		"volume being deleted, no pods":              {both(stopped("Stopped"), func(s *State) { s.Replicas[1].VolumeTerminating = true }), nil, "stopped"},
		"pods without a StatefulSet":                 {orphans, ApplyObjects{}, "recreating the StatefulSet"},
		"pods without a StatefulSet, no members": {both(orphans, deleted("Retain"), func(s *State) {
			s.Record, s.Membership, s.Objects.Remaining = Record{}, Membership{Known: true}, []string{"Service a"}
		}), nil, "the pods are stopping"},
		"only member's pod, no StatefulSet":           {func(s *State) { *s = after(1, both(stopped("Stopped"), noStatefulSet)); s.Replicas[0].Pod = PodReady }, ApplyObjects{}, "recreating the StatefulSet"},
		"only member stopped, an object missing":      {func(s *State) { *s = after(1, both(stopped("Stopped"), drifts)) }, ApplyObjects{}, "Service a"},
		"pod without a StatefulSet, terminating":      {both(orphans, func(s *State) { s.Replicas[1].Pod = PodTerminating }), nil, "the pods are stopping"},
		"pod of a StatefulSet scaled to 0":            {both(stopped("Stopped"), onePod), nil, "the pods are stopping"},
		"pods without a StatefulSet, version refused": {both(orphans, declares("3.8.0"), func(s *State) { s.ReportedVersion = "3.6.16" }), nil, "the pods are stopping"},
		"stopped":                                       {stopped("Stopped"), nil, "stopped; the data of a-0, a-1 and a-2 is kept"},
		"stopped, and an object is missing":             {both(stopped("Stopped"), drifts), ApplyObjects{}, "Service a"},
		"stopped, an object missing, no record":         {both(stopped("Stopped"), drifts, forgotten), nil, "stopped"},
		"stopped, StatefulSet missing too":              {both(stopped("Stopped"), drifts, noStatefulSet), ApplyObjects{}, "Service a"},
		"stopped, StatefulSet missing, version refused": {both(stopped("Stopped"), drifts, noStatefulSet, declares("3.8.0")), nil, "stopped"},
		"stopped, StatefulSet exists, version refused":  {both(stopped("Stopped"), drifts, declares("3.8.0")), ApplyObjects{}, "Service a"},
	} {
		d, speaks := stop(after(3, c.change))
		if d.Action != c.want || speaks != (c.says != "") || !strings.Contains(d.Message, c.says) {
			t.Errorf("%s: %s", what, d)
		}
	}
}

func TestKeepsGoingVolume(t *testing.T) {
	hold(t, State.keepsGoingVolume, map[string]slotCase{
		"volume being deleted":                  {changed(onItsWay), true},
		"volume kept":                           {nil, false},
		"claim gone, volume being deleted":      {changed(gone, onItsWay), true},
		"no claim":                              {slot1(PodPending, 0, gone), false},
		"volume being deleted, pod terminating": {slot1(PodTerminating, 0, onItsWay), false},
		"volume being deleted, no pod":          {slot1(PodAbsent, 0, onItsWay), false},
	})
}

func deleted(retention string) func(*State) {
	return func(s *State) { s.Declared.Lifecycle, s.Declared.Retention = Deleted, Retention(retention) }
}

// TestDelete checks that the declaration is stored, then objects are deleted, and volumes only if requested.
func TestDelete(t *testing.T) {
	gone := func(retention string) func(*State) {
		return both(stopped("Deleted"), deleted(retention), noStatefulSet, func(s *State) { s.Record = Record{} })
	}
	for what, c := range map[string]struct {
		change func(*State)
		want   Action
	}{
		"a record":                        {both(gone("Delete"), func(s *State) { s.Record = healthy(3).Record }), DeleteObjects{}},
		"a StatefulSet":                   {both(gone("Delete"), func(s *State) { s.Objects.RunsHash = "h1" }), DeleteObjects{}},
		"an object":                       {both(gone("Delete"), func(s *State) { s.Objects.Remaining = []string{"Service a"} }), DeleteObjects{}},
		"declaration not stored":          {both(gone("Delete"), func(s *State) { s.Objects.DeclarationDiffers = true }), Declare{}},
		"only volumes":                    {gone("Delete"), DeleteVolume{0, "v0"}},
		"only volumes, one being deleted": {both(gone("Delete"), func(s *State) { s.Replicas[0].VolumeTerminating = true }), DeleteVolume{1, "v1"}},
		"only volumes, one gone":          {both(gone("Delete"), func(s *State) { s.Replicas[0].VolumeUID = "" }), DeleteVolume{1, "v1"}},
		"only volumes, retained":          {gone("Retain"), nil},
	} {
		if d, speaks := after(3, c.change).deleteRest(); d.Action != c.want || !speaks {
			t.Errorf("%s: %s", what, d)
		}
	}
	for what, c := range map[string]struct {
		change func(*State)
		left   bool
	}{
		"an object of a deleted cluster": {both(gone("Retain"), func(s *State) { s.Objects.Remaining = []string{"Service a"} }), true},
		"an object of a stopped cluster": {both(gone(""), stopped("Stopped"), func(s *State) { s.Objects.Remaining = []string{"Service a"} }), false},
		"volumes to delete":              {gone("Delete"), true},
		"volumes to retain":              {gone("Retain"), false},
		"nothing":                        {both(gone("Delete"), func(s *State) { s.Replicas = nil }), false},
		"a pod without a volume":         {both(gone("Delete"), func(s *State) { s.Replicas = []Replica{{Pod: PodReady}} }), false},
		"volumes of a stopped cluster":   {both(gone("Delete"), stopped("Stopped")), false},
	} {
		if got := after(3, c.change).anythingLeft(); got != c.left {
			t.Errorf("%s: anything left is %t", what, got)
		}
	}
}

// TestRenameBlocksOnlyBeforeBootstrap checks that a cluster that seems renamed is blocked only before it exists.
func TestRenameBlocksOnlyBeforeBootstrap(t *testing.T) {
	renamed := func(s *State) { s.Declared.RenamedFrom = "b/a" }
	for what, c := range map[string]struct {
		change func(*State)
		blocks bool
	}{
		"new":                   {func(s *State) { *s = State{} }, false},
		"renamed":               {func(s *State) { *s = State{}; renamed(s) }, true},
		"formed":                {both(renamed, func(s *State) { s.Record = Record{} }), false},
		"already bootstrapping": {func(s *State) { *s = State{Record: FoundingRecord("t", 3)}; renamed(s) }, false},
	} {
		if d, speaks := renamedInGit(after(3, c.change)); speaks != c.blocks {
			t.Errorf("%s: %s", what, d)
		}
	}
}
