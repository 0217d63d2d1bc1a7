package decide

import (
	"strings"
	"testing"
	"time"
)

// TestEmpty checks that a slot is reused only if pods cannot start on the previous member's volume.
func TestEmpty(t *testing.T) {
	for what, c := range map[string]struct {
		slot    Replica
		removed string
		want    bool
	}{
		"nothing":                        {Replica{Pod: PodAbsent}, "", true},
		"a pod":                          {Replica{Pod: PodPending}, "v1", true},
		"a volume":                       {Replica{Pod: PodAbsent, VolumeUID: "v1"}, "", false},
		"the volume that was left":       {Replica{Pod: PodAbsent, VolumeUID: "v1"}, "v1", false},
		"another one than was left":      {Replica{Pod: PodPending, VolumeUID: "w1"}, "v1", true},
		"a volume that goes":             {Replica{Pod: PodAbsent, VolumeUID: "v1", VolumeTerminating: true}, "v1", true},
		"one that goes, and its pod":     {Replica{Pod: PodTerminating, VolumeUID: "v1", VolumeTerminating: true}, "v1", true},
		"one that goes, and a pod stays": {Replica{Pod: PodPending, VolumeUID: "v1", VolumeTerminating: true}, "v1", false},
		"another that goes, a pod stays": {Replica{Pod: PodPending, VolumeUID: "w1", VolumeTerminating: true}, "v1", false},
	} {
		c.slot.Ordinal = 1
		s := State{Replicas: []Replica{c.slot}, Record: Record{Token: "t"}.WithRemoved(RemovedMember{Ordinal: 1, VolumeUID: c.removed})}
		if got := s.empty(1); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}

// TestSurplus checks that the member with the highest ordinal is surplus if etcd lists more members than declared.
func TestSurplus(t *testing.T) {
	without := func(ordinals ...int) func(*State) {
		return func(s *State) {
			for _, n := range ordinals {
				s.Membership.Members[n].Name = "x"
			}
		}
	}
	declared := func(n int) func(*State) { return func(s *State) { s.Declared.Replicas = n } }
	for what, c := range map[string]struct {
		members int
		change  func(*State)
		name    string // empty if there is no surplus
	}{
		"as declared":                  {3, nil, ""},
		"one too many":                 {4, declared(3), "a-3"},
		"as many, one beyond":          {4, both(declared(3), without(1)), ""},
		"one too many, a slot is free": {5, both(declared(3), without(1)), "a-4"},
		"one for none declared":        {1, declared(0), ""},
		"two for one":                  {2, declared(1), "a-1"},
		"nobody":                       {1, both(declared(1), without(0)), ""},
		"strangers do not count":       {3, both(declared(2), without(0)), ""},
	} {
		m, is := after(c.members, c.change).surplus()
		if is != (c.name != "") || is && m.Name != c.name {
			t.Errorf("%s: %s, %t", what, m.Name, is)
		}
	}
}

// TestGoesDown checks that a needless member beyond the declared number is removed before a voter above it, unless a
// volume is being deleted.
func TestGoesDown(t *testing.T) {
	silent := func(n int) func(*State) { return func(s *State) { s.Membership.Members[n].Answers = false } }
	learner := func(n int) func(*State) { return func(s *State) { s.Membership.Members[n].Learner = true } }
	goes := func(n int) func(*State) { return func(s *State) { s.Replicas[n].VolumeTerminating = true } }
	for what, c := range map[string]struct {
		change func(*State)
		name   string
	}{
		"all are well":                  {nil, "a-4"},
		"one below is silent":           {silent(3), "a-3"},
		"one below is a learner":        {learner(3), "a-3"},
		"both are silent":               {both(silent(3), silent(4)), "a-4"},
		"one that stays is silent":      {silent(1), "a-4"},
		"silent, and the volume of one": {both(silent(3), goes(0)), "a-4"},
	} {
		s := after(5, c.change)
		s.Declared.Replicas = 3
		if m, is := s.goesDown(); !is || m.Name != c.name {
			t.Errorf("%s: %s, %t", what, m.Name, is)
		}
	}
}

// TestPeerURL checks that a new member's peer URL is derived from a URL that contains a member's pod name.
func TestPeerURL(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*State)
		want   string
	}{
		"the first":           {nil, "https://a-3.a.b.svc:2380"},
		"a stranger's is not": {func(s *State) { s.Membership.Members[0] = Member{Name: "x", PeerURL: "http://x.y:1"} }, "https://a-3.a.b.svc:2380"},
		"nor one by address":  {func(s *State) { s.Membership.Members[0].PeerURL = "https://10.0.0.1:2380" }, "https://a-3.a.b.svc:2380"},
		"only once":           {func(s *State) { s.Membership.Members[0].PeerURL = "https://a-0.x//a-0" }, "https://a-3.x//a-0"},
		"a stranger's alone":  {func(s *State) { s.Membership.Members = []Member{{Name: "x", PeerURL: "http://x.y:1"}} }, ""},
		"of nobody":           {func(s *State) { s.Membership.Members = nil }, ""},
	} {
		if got := after(3, c.change).peerURL(3); got != c.want {
			t.Errorf("%s: %q", what, got)
		}
	}
}

// TestNear checks that a member that is 1,000 entries behind has caught up, but a member that is 1,001 entries behind
// has not.
func TestNear(t *testing.T) {
	s := healthy(3)
	s.Membership.Members[0].Applied = 5000
	for applied, want := range map[uint64]bool{3999: false, 4000: true, 4001: true, 5001: true} {
		if got := s.near(Member{Applied: applied}); got != want {
			t.Errorf("at %d: %t", applied, got)
		}
	}
}

// TestUnsettled checks that any deviation from health delays membership changes.
func TestUnsettled(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*State)
		want   int
	}{
		"health":          {nil, 0},
		"no list":         {func(s *State) { s.Membership.Members, s.Record.Members = nil, nil }, 1},
		"no ID on record": {func(s *State) { s.Record.ClusterID = 0 }, 1},
		"one is silent":   {func(s *State) { s.down(PodStarting, time.Second, 1) }, 1},
		"one is unlisted": {func(s *State) { s.Membership.Members = s.Membership.Members[:2] }, 1},
		"data in doubt":   {func(s *State) { s.Membership.Members[0].Alarms = []AlarmKind{"CORRUPT"} }, 1},
		"a lack of space": {func(s *State) { s.Membership.Members[0].Alarms = []AlarmKind{"NOSPACE"} }, 0},
		"a silent member with ID 1": {both(silence(1), func(s *State) {
			s.Membership.Members[1].ID, s.Record.Members[1].ID = 1, 1
		}), 1},
		"a silent member without ID": {both(silence(1), func(s *State) {
			s.Membership.Members[1].ID, s.Record.Members[1].ID = 0, 0
		}), 1},
	} {
		if facts := after(3, c.change).unsettled(); len(facts) != c.want {
			t.Errorf("%s: %q", what, facts)
		}
	}
}

// TestScalingRulesInIsolation checks each scaling rule by itself, without earlier rules.
func TestScalingRulesInIsolation(t *testing.T) {
	unknown := func(s *State) { s.Membership.Known = false }
	more := func(s *State) { s.Declared.Replicas = 4 }
	fewer := func(s *State) { s.Declared.Replicas = 2 }
	learner := func(n int) func(*State) { return func(s *State) { s.Membership.Members[n].Learner = true } }
	going := func(n int) func(*State) { return func(s *State) { s.Replicas[n].VolumeTerminating = true } }
	slot := func(change func(*Replica)) func(*State) {
		return both(more, func(s *State) {
			r := Replica{Ordinal: 3, Pod: PodPending, VolumeUID: "v3", VolumeToken: "t"}
			change(&r)
			s.Replicas = append(s.Replicas, r)
		})
	}
	kept := func(s *State) {
		s.Record = s.Record.WithRemoved(RemovedMember{Ordinal: 3, VolumeUID: "v3", LostCluster: 7})
	}
	askVerdict(t, scaleUp, map[string]verdictCase{
		"a volume that nobody knows": {3, slot(func(*Replica) {}), Block},
		"a volume that was left":     {3, both(slot(func(*Replica) {}), removed(3, "v3")), Wait},
		"a volume that goes":         {3, slot(onItsWay), Wait},
		"a volume that is kept":      {3, both(slot(func(*Replica) {}), kept), Block},
		"a kept volume that goes":    {3, both(slot(onItsWay), kept), Wait},
		"no volume":                  {3, slot(gone), Act},
	})
	for what, c := range map[string]struct {
		rule   func(State) (Decision, bool)
		change func(*State)
		want   Action
	}{
		"up":                           {scaleUp, more, AddLearner{3, "https://a-3.a.b.svc:2380"}},
		"up, unknown":                  {scaleUp, both(more, unknown), nil},
		"up beside one that is silent": {scaleUp, both(more, silence(2)), nil},
		"down":                         {scaleDown, fewer, RemoveMember{ID: 0xa2, Name: "a-2"}},
		"down, unknown":                {scaleDown, both(fewer, unknown), nil},
		"scale down while another member is not responding": {scaleDown, both(fewer, silence(1)), nil},
		"down from a silent one":                            {scaleDown, both(fewer, silence(2)), RemoveMember{ID: 0xa2, Name: "a-2"}},
		"down, silent to us alone":                          {scaleDown, both(fewer, func(s *State) { s.Membership.Members[2].Answers = false }), nil},
		"down to what does not answer":                      {scaleDown, both(fewer, silence(1, 2)), nil},
		"a learner beside one that is silent":               {scaleDown, both(fewer, learner(2), silence(1)), nil},
		"a learner beside as many as declared":              {scaleDown, both(fewer, learner(2)), RemoveMember{ID: 0xa2, Name: "a-2"}},
		"a voter in place of a learner":                     {scaleDown, both(fewer, learner(1)), nil},
		"a silent voter, and one is a learner":              {scaleDown, both(fewer, learner(1), silence(2)), nil},
		"a learner, silent to us alone":                     {scaleDown, both(fewer, learner(2), func(s *State) { s.Membership.Members[2].Answers = false }), RemoveMember{ID: 0xa2, Name: "a-2"}},
		"a learner that occupies a slot":                    {scaleDown, both(fewer, learner(2), going(0)), nil},
		"a voter that takes a place":                        {scaleDown, both(fewer, going(0)), nil},
		"a healthy voter, and one goes":                     {scaleDown, both(declared(2), going(0)), nil},
		"a silent one that would take none":                 {scaleDown, both(fewer, going(0), silence(2)), RemoveMember{ID: 0xa2, Name: "a-2"}},
		"a silent learner that would":                       {scaleDown, both(fewer, going(0), learner(2), silence(2)), nil},
		"the only copy that may be good": {scaleDown, both(fewer, silence(2), func(s *State) {
			s.Membership.StaleAlarms = []Alarm{{unidentified, AlarmCorrupt}}
		}), nil},
	} {
		d, speaks := c.rule(after(3, c.change))
		if d.Action != c.want || speaks != (c.want != nil) {
			t.Errorf("%s: %s", what, d)
		}
	}
}

// TestMissingMembersAreNamed checks when declared members that etcd does not list are reported.
func TestMissingMembersAreNamed(t *testing.T) {
	more := declared(4)
	for what, c := range map[string]struct {
		change func(*State)
		want   string
	}{
		"none is missing":                {nil, ""},
		"one is missing":                 {more, "a-3"},
		"one is surplus":                 {declared(2), ""},
		"the list is unknown":            {both(more, func(s *State) { s.Membership.Known = false }), ""},
		"the list is of another cluster": {both(more, func(s *State) { s.Membership.ClusterID++ }), ""},
		"the cluster has no ID yet":      {both(more, func(s *State) { s.Record.ClusterID, s.Membership.ClusterID = 0, 0 }), ""},
		"the cluster is stopped":         {both(more, func(s *State) { s.Declared.Lifecycle = Stopped }), ""},
		"the declaration is invalid":     {both(more, func(s *State) { s.Declared.Problems = []string{"x"} }), ""},
	} {
		text := after(3, c.change).describeUnfilled()
		if (text == "") != (c.want == "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %q, want %q", what, text, c.want)
		}
	}
}

// TestMembersOutOfReachAreNamed checks that a surplus member is kept, and that the message names the voters whose
// volumes cannot be used.
func TestMembersOutOfReachAreNamed(t *testing.T) {
	s := after(4, both(declared(3), func(s *State) {
		s.Replicas[0].Stranded = "x"
		s.Membership.Members[1].Learner = true
	}))
	text := s.copiesWithout(s.Membership.Members[3])
	if !strings.Contains(text, "a-0") || strings.Contains(text, "a-1") || strings.Contains(text, "a-3") {
		t.Errorf("got %q", text)
	}
}
