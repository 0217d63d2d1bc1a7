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
		"no pod and no volume":                         {Replica{Pod: PodAbsent}, "", true},
		"a pod without a volume":                       {Replica{Pod: PodPending}, "v1", true},
		"a volume":                                     {Replica{Pod: PodAbsent, VolumeUID: "v1"}, "", false},
		"the removed member's volume":                  {Replica{Pod: PodAbsent, VolumeUID: "v1"}, "v1", false},
		"not the removed member's volume":              {Replica{Pod: PodPending, VolumeUID: "w1"}, "v1", true},
		"a volume being deleted":                       {Replica{Pod: PodAbsent, VolumeUID: "v1", VolumeTerminating: true}, "v1", true},
		"a volume being deleted, pod is terminating":   {Replica{Pod: PodTerminating, VolumeUID: "v1", VolumeTerminating: true}, "v1", true},
		"a volume being deleted, pod is pending":       {Replica{Pod: PodPending, VolumeUID: "v1", VolumeTerminating: true}, "v1", false},
		"another volume being deleted, pod is pending": {Replica{Pod: PodPending, VolumeUID: "w1", VolumeTerminating: true}, "v1", false},
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
		"as many members as declared":        {3, nil, ""},
		"one member too many":                {4, declared(3), "a-3"},
		"as many as declared, with a gap":    {4, both(declared(3), without(1)), ""},
		"one member too many, one slot free": {5, both(declared(3), without(1)), "a-4"},
		"one member, none declared":          {1, declared(0), ""},
		"two members, one declared":          {2, declared(1), "a-1"},
		"only an unknown member":             {1, both(declared(1), without(0)), ""},
		"unknown members do not count":       {3, both(declared(2), without(0)), ""},
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
		"all members are healthy":                        {nil, "a-4"},
		"a-3 is not responding":                          {silent(3), "a-3"},
		"a-3 is a learner":                               {learner(3), "a-3"},
		"a-3 and a-4 are not responding":                 {both(silent(3), silent(4)), "a-4"},
		"a remaining member is not responding":           {silent(1), "a-4"},
		"a-3 not responding, a-0's volume being deleted": {both(silent(3), goes(0)), "a-4"},
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
		"derived from the first member":  {nil, "https://a-3.a.b.svc:2380"},
		"not from an unknown member":     {func(s *State) { s.Membership.Members[0] = Member{Name: "x", PeerURL: "http://x.y:1"} }, "https://a-3.a.b.svc:2380"},
		"not from an IP address":         {func(s *State) { s.Membership.Members[0].PeerURL = "https://10.0.0.1:2380" }, "https://a-3.a.b.svc:2380"},
		"the name is replaced only once": {func(s *State) { s.Membership.Members[0].PeerURL = "https://a-0.x//a-0" }, "https://a-3.x//a-0"},
		"only an unknown member":         {func(s *State) { s.Membership.Members = []Member{{Name: "x", PeerURL: "http://x.y:1"}} }, ""},
		"no members":                     {func(s *State) { s.Membership.Members = nil }, ""},
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
		"all members are healthy":           {nil, 0},
		"no members are listed or recorded": {func(s *State) { s.Membership.Members, s.Record.Members = nil, nil }, 1},
		"no cluster ID is recorded":         {func(s *State) { s.Record.ClusterID = 0 }, 1},
		"a member is not responding":        {func(s *State) { s.down(PodStarting, time.Second, 1) }, 1},
		"a member is not listed":            {func(s *State) { s.Membership.Members = s.Membership.Members[:2] }, 1},
		"a CORRUPT alarm":                   {func(s *State) { s.Membership.Members[0].Alarms = []AlarmKind{"CORRUPT"} }, 1},
		"a NOSPACE alarm":                   {func(s *State) { s.Membership.Members[0].Alarms = []AlarmKind{"NOSPACE"} }, 0},
		"an unresponsive member with ID 1": {both(silence(1), func(s *State) {
			s.Membership.Members[1].ID, s.Record.Members[1].ID = 1, 1
		}), 1},
		"an unresponsive member without an ID": {both(silence(1), func(s *State) {
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
		"an unknown volume":           {3, slot(func(*Replica) {}), Block},
		"a removed member's volume":   {3, both(slot(func(*Replica) {}), removed(3, "v3")), Wait},
		"a volume being deleted":      {3, slot(onItsWay), Wait},
		"a kept volume":               {3, both(slot(func(*Replica) {}), kept), Block},
		"a kept volume being deleted": {3, both(slot(onItsWay), kept), Wait},
		"no volume":                   {3, slot(gone), Act},
	})
	for what, c := range map[string]struct {
		rule   func(State) (Decision, bool)
		change func(*State)
		want   Action
	}{
		"scale up":                                                 {scaleUp, more, AddLearner{3, "https://a-3.a.b.svc:2380"}},
		"scale up, member list unknown":                            {scaleUp, both(more, unknown), nil},
		"scale up, a member is not responding":                     {scaleUp, both(more, silence(2)), nil},
		"scale down":                                               {scaleDown, fewer, RemoveMember{ID: 0xa2, Name: "a-2"}},
		"scale down, member list unknown":                          {scaleDown, both(fewer, unknown), nil},
		"scale down while another member is not responding":        {scaleDown, both(fewer, silence(1)), nil},
		"scale down, a-2 is not responding":                        {scaleDown, both(fewer, silence(2)), RemoveMember{ID: 0xa2, Name: "a-2"}},
		"scale down, only Quorate cannot reach a-2":                {scaleDown, both(fewer, func(s *State) { s.Membership.Members[2].Answers = false }), nil},
		"scale down, only a-0 responds":                            {scaleDown, both(fewer, silence(1, 2)), nil},
		"keep a learner, a-1 is not responding":                    {scaleDown, both(fewer, learner(2), silence(1)), nil},
		"remove a learner, enough voters":                          {scaleDown, both(fewer, learner(2)), RemoveMember{ID: 0xa2, Name: "a-2"}},
		"keep a voter, a-1 is a learner":                           {scaleDown, both(fewer, learner(1)), nil},
		"keep an unresponsive voter, a-1 is a learner":             {scaleDown, both(fewer, learner(1), silence(2)), nil},
		"remove a learner that Quorate cannot reach":               {scaleDown, both(fewer, learner(2), func(s *State) { s.Membership.Members[2].Answers = false }), RemoveMember{ID: 0xa2, Name: "a-2"}},
		"keep a learner that can replace a-0":                      {scaleDown, both(fewer, learner(2), going(0)), nil},
		"keep a voter that can replace a-0":                        {scaleDown, both(fewer, going(0)), nil},
		"keep a healthy voter, a-0's volume being deleted":         {scaleDown, both(declared(2), going(0)), nil},
		"remove an unresponsive voter, a-0's volume being deleted": {scaleDown, both(fewer, going(0), silence(2)), RemoveMember{ID: 0xa2, Name: "a-2"}},
		"keep an unresponsive learner, a-0's volume being deleted": {scaleDown, both(fewer, going(0), learner(2), silence(2)), nil},
		"keep the only copy that may be right": {scaleDown, both(fewer, silence(2), func(s *State) {
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
		"no member is missing":           {nil, ""},
		"one member is missing":          {more, "a-3"},
		"one member is surplus":          {declared(2), ""},
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
