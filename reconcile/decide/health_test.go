package decide

import (
	"strings"
	"testing"
	"time"
)

// TestVersionToReturnWithoutStatefulSet checks which version the message names if the StatefulSet is gone and the
// cluster cannot start with the declared version: a running version with which all members can return.
func TestVersionToReturnWithoutStatefulSet(t *testing.T) {
	bare := both(noStatefulSet, declares("3.9.0"))
	for what, c := range map[string]struct {
		change func(*State)
		want   string // a part of the message, or empty
	}{
		"one version runs":                  {bare, "3.6.16"},
		"two patches run":                   {both(bare, runs("3.6.15", "3.6.16", "3.6.15")), "3.6.16"},
		"two minor versions run":            {both(bare, runs("3.6.16", "3.7.3", "3.6.16")), "3.6.16"},
		"versions two apart run":            {both(bare, runs("3.5.35", "3.7.3", "3.5.35")), ""},
		"nothing is known to run":           {both(bare, runs("main", "main", "main"), createdWith(0, "x"), createdWith(1, "x"), createdWith(2, "x")), ""},
		"two run, and one does not respond": {both(bare, runs("3.6.16", "3.7.3", "3.6.16"), silence(2)), "3.6.16"},
	} {
		if got := after(3, c.change).versionToReturnWith(); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

// TestVolumeInTheWayOfAllVersionsIsNamed checks that the message names the volume beyond the declared number that alone
// prevents every version, and how to keep its data.
func TestVolumeInTheWayOfAllVersionsIsNamed(t *testing.T) {
	volumes := func(versions ...string) func(*State) {
		return func(s *State) {
			*s = State{Name: "a", Now: s.Now, Declared: s.Declared}
			for n, v := range versions {
				s.Replicas = append(s.Replicas, Replica{Ordinal: n, Pod: PodAbsent, VolumeUID: "v", LastUse: LastUse{1, v, ""}})
			}
		}
	}
	surplus := both(declares("3.6.16"), declared(1), volumes("3.6.16", "3.4.0"))
	for what, c := range map[string]struct {
		change func(*State)
		want   string
	}{
		"a surplus volume":                       {surplus, "data-a-1"},
		"the volume's ordinal is declared":       {both(surplus, declared(2)), ""},
		"the volume's member is recorded":        {both(surplus, func(s *State) { s.Record = s.Record.With(RecordedMember{Ordinal: 1, Mode: Sealed}) }), ""},
		"the volume is gone":                     {both(surplus, func(s *State) { s.Replicas[1].VolumeUID = "" }), ""},
		"the others return with theirs":          {both(surplus, declares("3.8.0")), "data-a-1"},
		"a second volume prevents every version": {both(declares("3.6.16"), declared(1), volumes("3.4.0", "3.6.16", "3.8.0")), ""},
	} {
		got := after(1, c.change).surplusInTheWay()
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

// TestFailingMemberIsReplacedInTime checks whether a failing member will be replaced soon, in which case it is not
// reported.
func TestFailingMemberIsReplacedInTime(t *testing.T) {
	limit := func(d time.Duration) func(*State) { return func(s *State) { s.Declared.ReplaceAfter = d } }
	fails := slot1(PodFailing, time.Hour)
	hold(t, func(s State, r Replica) bool { return s.replacedInTime(r.Ordinal) }, map[string]slotCase{
		"a limit is declared":            {both(fails, limit(time.Second)), true},
		"the shortest limit is declared": {both(fails, limit(1)), true},
		"no limit is declared":           {fails, false},
		"the others have no quorum":      {both(fails, limit(time.Second), silence(2)), false},
		"its own member list differs":    {both(fails, limit(time.Second), func(s *State) { s.Membership.Members[1].Disagrees = "x" }), true},
	})
}

// TestLearnerWaitsForPodsThatCanJoin checks the decision if new pods are too old to join the cluster.
func TestLearnerWaitsForPodsThatCanJoin(t *testing.T) {
	old := func(s *State) { s.Objects.RunsVersion = "3.5.35" }
	for what, c := range map[string]struct {
		change func(*State)
		want   Verdict
	}{
		"new pods are new enough":               {nil, ""},
		"new pods are newer":                    {func(s *State) { s.Objects.RunsVersion = "3.7.3" }, ""},
		"new pods are too old":                  {old, Act},
		"no StatefulSet":                        {noStatefulSet, ""},
		"nothing is known to run":               {both(old, runs("x", "x", "x"), createdWith(0, "x"), createdWith(1, "x"), createdWith(2, "x"), func(s *State) { s.ReportedVersion = "" }), ""},
		"one member runs, and new pods are old": {both(func(s *State) { *s = healthy(1) }, old), Act},
		"the declared version is too old too":   {both(old, declares("3.5.35")), Block},
		"the declared version is refused":       {both(old, declares("3.9.0")), Block},
		"an alarm holds back the rollout":       {both(old, alarms(1, "CORRUPT"), func(s *State) { s.Replicas[0].PodSpecHash = "h0" }), Block},
	} {
		if d, _ := after(3, c.change).cannotJoin(3, "x"); d.Verdict != c.want {
			t.Errorf("%s: %s", what, d)
		}
	}
}
