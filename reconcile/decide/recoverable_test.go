package decide

import (
	"strings"
	"testing"
)

// nameless makes a three-member cluster permanently lose a-0 and a-2, its status, and the ID in its record. Only its
// claims show which cluster it is.
func nameless(s *State) {
	lostMajority(s)
	s.Record.ClusterID, s.ReportedClusterID = 0, 0
	for i := range s.Replicas {
		s.Replicas[i].LastUse.ClusterID = 0xc1
	}
}

func void(s *State) { s.Record.VoidRecovery = s.Declared.Recovery.Word }

func unconfirmedList(s *State) { s.Membership.Unconfirmed = true }

// TestClaimsIdentifyRecoverableCluster checks when the claims alone show that this is the cluster whose recovery git
// requests.
func TestClaimsIdentifyRecoverableCluster(t *testing.T) {
	usedBy := func(id ID, ordinals ...int) func(*State) {
		return func(s *State) {
			for _, i := range ordinals {
				s.Replicas[i].LastUse.ClusterID = id
			}
		}
	}
	lost := func(ordinals ...int) func(*State) {
		return func(s *State) {
			for _, i := range ordinals {
				s.Replicas[i].LostCluster = 0xc1
			}
		}
	}
	for what, c := range map[string]struct {
		change func(*State)
		want   ID
	}{
		"only the claims are left":                  {nil, 0xc1},
		"one claim names the cluster":               {usedBy(0, 1, 2), 0xc1},
		"no claim names the cluster":                {usedBy(0, 0, 1, 2), 0},
		"one claim names another cluster":           {usedBy(0xc2, 2), 0},
		"two claims name another cluster":           {usedBy(0xc2, 1, 2), 0},
		"all claims are marked with a lost cluster": {lost(0, 1, 2), 0},
		"the record names the cluster":              {func(s *State) { s.Record.ClusterID = 0xc1 }, 0},
		"the status names the cluster":              {func(s *State) { s.ReportedClusterID = 0xc1 }, 0},
		"the member list is not confirmed":          {unconfirmedList, 0},
		"the request is void":                       {void, 0},
	} {
		s := after(3, nameless)
		if c.change != nil {
			c.change(&s)
		}
		if got := s.recoverableCluster(); got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
}

// TestRefusedRecoveryIsReportedBeforeItBegins checks that a refusal is reported only if the request is for this cluster
// and its recovery has not begun.
func TestRefusedRecoveryIsReportedBeforeItBegins(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*State)
		want   string
	}{
		"the request is refused":             {refused, "no"},
		"the request is not refused":         {nil, ""},
		"the request is for another cluster": {both(refused, of(0xc9)), ""},
		"the recovery has begun":             {both(refused, begun), ""},
		"the cluster has recovered":          {both(refused, func(s *State) { s.Membership.Known = true }), ""},
	} {
		s := after(3, lostMajority)
		if c.change != nil {
			c.change(&s)
		}
		if got := s.RefusedRecovery(); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

// TestUnnamedRecoveryIsExplained checks that a message explains why a request has no effect while nothing shows that it
// is for this cluster.
func TestUnnamedRecoveryIsExplained(t *testing.T) {
	unclaimed := func(s *State) {
		for i := range s.Replicas {
			s.Replicas[i].LastUse.ClusterID = 0
		}
	}
	const claims, lost = "the claims do not show that cluster c1 used them last", "Remove spec.recovery from git"
	for what, c := range map[string]struct {
		change func(*State)
		want   string
	}{
		"no claim names the cluster":       {unclaimed, claims},
		"the request is void":              {both(unclaimed, void), lost},
		"the claims name the cluster":      {nil, ""},
		"nothing is requested":             {both(unclaimed, of(0)), ""},
		"there is no record":               {both(unclaimed, func(s *State) { s.Record.Members = nil }), ""},
		"the cluster has not formed":       {both(unclaimed, func(s *State) { s.Record = FoundingRecord("t1", 3); s.Objects = Objects{} }), ""},
		"the member list is not confirmed": {both(unclaimed, unconfirmedList), ""},
	} {
		s := after(3, nameless)
		if c.change != nil {
			c.change(&s)
		}
		got := s.unnamedRecovery()
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
		if hindered := s.describeHindered(); c.want != "" && !strings.HasPrefix(hindered, "; spec.recovery has no effect: "+got) {
			t.Errorf("%s: %q", what, hindered)
		}
	}
}

// TestRecoveryOfClusterThatMayServeIsReported checks the warning about a request that has no effect because a member
// returns a member list.
func TestRecoveryOfClusterThatMayServeIsReported(t *testing.T) {
	s := after(3, lostMajority)
	unconfirmedList(&s)
	if warnings := s.recoveryWarnings(); len(warnings) != 1 || !strings.Contains(warnings[0], "the cluster may have quorum") {
		t.Errorf("%q", warnings)
	}
}
