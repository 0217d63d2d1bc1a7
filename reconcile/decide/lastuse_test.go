package decide

import (
	"slices"
	"strings"
	"testing"
)

// TestClaimsOfKnownMembersAreAnnotated checks that a claim is annotated only while a member is known to run on it.
func TestClaimsOfKnownMembersAreAnnotated(t *testing.T) {
	id := healthy(3).Record.ClusterID
	use := func(ordinal int, version, storage string) func(*State) {
		return func(s *State) { s.Replicas[ordinal].LastUse = LastUse{id, version, storage} }
	}
	current := both(use(0, "3.6.16", ""), use(1, "3.6.16", ""), use(2, "3.6.16", ""))
	for what, c := range map[string]struct {
		change func(*State)
		want   int // number of claims
	}{
		"no claim is annotated":           {nil, 3},
		"all claims are annotated":        {current, 0},
		"one runs another version":        {both(current, runs("3.6.16", "3.7.3", "3.6.16")), 1},
		"one has migrated its data":       {both(current, stores("", "3.6", "", "")), 1},
		"one claim is of another cluster": {both(current, func(s *State) { s.Replicas[1].LastUse.ClusterID++ }), 1},
		"a version cannot be read":        {both(runs("main", "main", "main"), createdWith(0, "main"), createdWith(1, "main"), createdWith(2, "main")), 3},
		"one does not respond":            {silence(2), 2},
		"member list unknown":             {func(s *State) { s.Membership.Known = false }, 0},
		"member list of another cluster":  {func(s *State) { s.Membership.ClusterID++ }, 0},
		"one member is not sealed":        {func(s *State) { s.Record.Members[1].Mode = Joining }, 2},
		"another member is recorded":      {func(s *State) { s.Record.Members[1].ID++ }, 2},
		"another volume is recorded":      {func(s *State) { s.Record.Members[1].VolumeUID = "v9" }, 2},
		"one member has no volume":        {func(s *State) { s.Replicas[1].VolumeUID = "" }, 2},
		"one member has no volume, none recorded": {func(s *State) {
			s.Replicas[1].VolumeUID, s.Record.Members[1].VolumeUID = "", ""
		}, 2},
		"one claim is being deleted":       {func(s *State) { s.Replicas[1].VolumeTerminating = true }, 2},
		"one claim is of a lost cluster":   {func(s *State) { s.Replicas[1].LostCluster = 1 }, 2},
		"git does not declare the cluster": {func(s *State) { s.Declared.Orphaned = "x" }, 0},
		"the cluster is suspended":         {func(s *State) { s.Declared.Suspended = true }, 0},
		"another pass holds the lease":     {func(s *State) { s.LockHolder = "x" }, 0},
	} {
		s := after(3, c.change)
		outdated := s.OutdatedUses()
		if len(outdated) != c.want {
			t.Errorf("%s: %d claims, want %d", what, len(outdated), c.want)
		}
		if !slices.IsSortedFunc(outdated, func(a, b Replica) int { return a.Ordinal - b.Ordinal }) {
			t.Errorf("%s: not in the order of the replicas: %+v", what, outdated)
		}
		for _, r := range outdated {
			m, _ := s.listedAt(r.Ordinal)
			version := m.Version
			if version == "main" {
				version = "" // unknown
			}
			if r.LastUse != (LastUse{id, version, m.StorageVersion}) {
				t.Errorf("%s: %+v", what, r.LastUse)
			}
		}
	}
}

// TestLastUseOfClaimsLimitsVersions checks that the versions recorded on claims limit the allowed versions like the
// versions of pods.
func TestLastUseOfClaimsLimitsVersions(t *testing.T) {
	used := func(version, storage string) func(*State) {
		return func(s *State) { s.Replicas[2].LastUse = LastUse{1, version, storage} }
	}
	allUsed := func(version, storage string) func(*State) {
		return func(s *State) {
			for i := range s.Replicas {
				s.Replicas[i].LastUse = LastUse{1, version, storage}
			}
		}
	}
	alone := func(s *State) {
		s.Record, s.Membership, s.Objects = Record{}, Membership{}, Objects{}
		s.ReportedVersion, s.ReportedClusterID = "", 0
		for i := range s.Replicas {
			s.Replicas[i] = Replica{Ordinal: i, Pod: PodAbsent, VolumeUID: s.Replicas[i].VolumeUID, LastUse: s.Replicas[i].LastUse}
		}
	}
	for what, c := range map[string]struct {
		change  func(*State)
		refused bool
	}{
		"one does not respond, and has used 3.5.25":  {both(used("3.5.25", ""), silence(2)), true},
		"one does not respond, and has used 3.5.26":  {both(used("3.5.26", ""), silence(2)), false},
		"one does not respond, and has data of 3.7":  {both(used("3.7.3", "3.7"), silence(2)), true},
		"one does not respond, and has data of 3.6":  {both(used("3.6.16", "3.6"), silence(2)), false},
		"one responds, whatever its claim says":      {used("3.5.25", "3.7"), false},
		"only volumes, used by the declared version": {both(allUsed("3.6.16", "3.6"), alone), false},
		"only volumes, used by a newer version":      {both(allUsed("3.7.3", "3.7"), alone), true},
		"only volumes, used by an older version":     {both(allUsed("3.5.35", ""), alone, declares("3.7.3")), true},
		"only volumes, one shows its version":        {both(used("3.6.16", "3.6"), alone), true},
		"only volumes, none shows its version":       {alone, true},
		"only volumes, cluster stopped":              {both(alone, func(s *State) { s.Declared.Lifecycle = Stopped }), false},
		"only volumes of a lost cluster": {both(alone, func(s *State) {
			for i := range s.Replicas {
				s.Replicas[i].LostCluster = 1
			}
		}), false},
	} {
		if refusal, prepared := after(3, c.change).judgeVersion(); (refusal != "") != c.refused || prepared == c.refused {
			t.Errorf("%s: %q, prepared %t", what, refusal, prepared)
		}
	}
}

// TestUnknownLastVersionIsReported checks when an unknown last etcd version is reported: only volumes remain of a
// cluster, and their claims do not show which version used them.
func TestUnknownLastVersionIsReported(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*State)
		want   bool
	}{
		"volumes":                           {func(*State) {}, true},
		"no volumes":                        {func(s *State) { s.Replicas = nil }, false},
		"a slot without a volume":           {func(s *State) { s.Replicas[0].VolumeUID = "" }, false},
		"volumes of a lost cluster":         {func(s *State) { s.Replicas[0].LostCluster = 7 }, false},
		"a StatefulSet":                     {func(s *State) { s.Objects.RunsVersion = "3.6.16" }, false},
		"a pod":                             {func(s *State) { s.Replicas[0].Pod = PodPending }, false},
		"the cluster is stopped":            {func(s *State) { s.Declared.Lifecycle = Stopped }, false},
		"the cluster is being bootstrapped": {func(s *State) { s.Record, s.ReportedClusterID = FoundingRecord("t", 1), 0 }, false},
		"the cluster is being restored":     {func(s *State) { s.Record.Members[0].Mode = Restoring }, false},
		"the cluster is being recovered":    {func(s *State) { s.Record.Recovery.ClusterID = s.Record.ClusterID }, false},
		"a restore, and no record": {func(s *State) {
			s.Record, s.ReportedClusterID, s.Restore.Job = Record{}, 0, &RestoreJob{VolumeJob: VolumeJob{Phase: JobRuns}}
		}, false},
		"no record": {func(s *State) { s.Record, s.ReportedClusterID = Record{}, 0 }, true},
	} {
		s := healthy(1)
		s.Objects, s.Membership = Objects{}, Membership{}
		s.Replicas[0] = Replica{Pod: PodAbsent, VolumeUID: "v0"}
		c.change(&s)
		if got := s.lastVersionUnknown() != ""; got != c.want {
			t.Errorf("%s: reported is %t", what, got)
		}
	}
}

// TestClaimsWithoutVersionPreventStart checks that, if only a cluster's volumes and possibly its record are left, no
// version starts on the volumes unless a quorum of their claims shows which version used them: the data may be newer
// than the declared version. A claim that is being deleted does not count.
func TestClaimsWithoutVersionPreventStart(t *testing.T) {
	for _, recordLost := range []bool{true, false} {
		for _, lost := range [][]int{{}, {0}, {0, 1}} {
			for _, going := range []bool{false, true} {
				s := healthy(3)
				s.Membership, s.Objects, s.ReportedVersion = Membership{}, Objects{}, ""
				if recordLost {
					s.Record, s.ReportedClusterID = Record{}, 0
				}
				for i := range s.Replicas {
					s.Replicas[i] = Replica{Ordinal: i, Pod: PodAbsent, VolumeUID: s.Replicas[i].VolumeUID, LastUse: LastUse{1, "3.6.16", ""}}
				}
				for _, i := range lost {
					s.Replicas[i].LastUse.Version = ""
				}
				s.Replicas[2].VolumeTerminating = going
				volumes, named := 3, 3-len(lost)
				if going {
					volumes, named = 2, 2-len(lost)
				}
				refusal, prepared := s.judgeVersion()
				if prepared != (named >= Quorum(volumes)) || (refusal != "") == prepared || strings.Contains(refusal, s.ReplicaName(2)) {
					t.Errorf("record lost %t, %v without a version, one terminating %t: %q, prepared %t", recordLost, lost, going, refusal, prepared)
				}
			}
		}
	}
}

// TestClaimIsAnnotatedWithVersionThatStarts checks that a claim names the newer version of a pod that has started etcd,
// before its member responds: all other evidence may be lost by the time it responds, and etcd may have changed the
// data.
func TestClaimIsAnnotatedWithVersionThatStarts(t *testing.T) {
	for what, c := range map[string]struct {
		pod     PodPhase
		crashes int32
		version string
		last    string
		want    bool
	}{
		"it starts":                  {PodStarting, 0, "3.7.3", "3.6.16", true},
		"it is ready":                {PodReady, 0, "3.7.3", "3.6.16", true},
		"it crashes":                 {PodFailing, 1, "3.7.3", "3.6.16", true},
		"it cannot get its image":    {PodFailing, 0, "3.7.3", "3.6.16", false},
		"it waits for a node":        {PodPending, 0, "3.7.3", "3.6.16", false},
		"it starts an older version": {PodStarting, 0, "3.5.35", "3.6.16", false},
		"it starts the same version": {PodStarting, 0, "3.6.16", "3.6.16", false},
		"the last use is unknown":    {PodStarting, 0, "3.7.3", "", false},
		"the version is not known":   {PodStarting, 0, "main", "3.6.16", false},
	} {
		for _, listed := range []bool{true, false} {
			s := after(3, silence(0, 1, 2))
			use := LastUse{s.Record.ClusterID, c.last, "3.6"}
			for i := range s.Replicas {
				s.Replicas[i].LastUse = use
			}
			r := &s.Replicas[1]
			r.Pod, r.PodCrashes, r.PodVersion = c.pod, int(c.crashes), c.version
			if !listed {
				s.Membership = Membership{}
			}
			got := s.OutdatedUses()
			if c.want != (len(got) == 1) {
				t.Errorf("%s, listed %t: %+v", what, listed, got)
			}
			if use.Version = c.version; len(got) == 1 && (got[0].Ordinal != 1 || got[0].LastUse != use) {
				t.Errorf("%s, listed %t: %+v", what, listed, got[0])
			}
		}
	}
}

// TestBegunUpgradeIsFinishedIfOnlyClaimsRemain checks that a cluster that has only its volumes left can be brought back
// with the version to which its members were being upgraded, if some claims show that version.
func TestBegunUpgradeIsFinishedIfOnlyClaimsRemain(t *testing.T) {
	for what, c := range map[string]struct {
		change   func(*State)
		declared string
		want     bool
	}{
		"to the newer version":   {func(*State) {}, "3.7.3", true},
		"back to the older":      {func(*State) {}, "3.6.16", false},
		"none shows the newer":   {func(s *State) { s.Replicas[0].LastUse.Version = "3.6.16" }, "3.7.3", false},
		"a pod exists":           {func(s *State) { s.Replicas[1].Pod, s.Replicas[1].PodVersion = PodStarting, "3.6.16" }, "3.7.3", false},
		"the status remains":     {func(s *State) { s.ReportedVersion = "3.6.16" }, "3.7.3", false},
		"the record remains":     {func(s *State) { s.Record = healthy(3).Record; s.Record.LogVersion = "" }, "3.7.3", false},
		"etcd lists the members": {func(s *State) { s.Membership = after(3, runs("3.7.3", "3.6.16", "3.6.16")).Membership }, "3.7.3", false},
		"all show the newer": {func(s *State) {
			for i := range s.Replicas {
				s.Replicas[i].LastUse.Version = "3.7.3"
			}
		}, "3.7.3", true},
	} {
		s := healthy(3)
		s.Record, s.Membership, s.Objects, s.ReportedVersion, s.ReportedClusterID = Record{}, Membership{}, Objects{}, "", 0
		for i := range s.Replicas {
			s.Replicas[i] = Replica{Ordinal: i, Pod: PodAbsent, VolumeUID: s.Replicas[i].VolumeUID, LastUse: LastUse{0xc1, "3.6.16", "3.6"}}
		}
		s.Replicas[0].LastUse.Version = "3.7.3"
		c.change(&s)
		s.Declared.Version = c.declared
		if got := s.mayRoll(); got != c.want {
			refusal, _ := s.judgeVersion()
			t.Errorf("%s: got %t (%s)", what, got, refusal)
		}
	}
}
