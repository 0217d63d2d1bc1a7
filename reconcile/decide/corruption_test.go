package decide

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// holds sets the members' hashes at one point, in order; zero means unknown.
func holds(sums ...uint32) func(*State) {
	return func(s *State) {
		for i, sum := range sums {
			if s.Membership.Members[i].Hash = (Hash{}); sum > 0 {
				s.Membership.Members[i].Hash = Hash{Revision: 120, CompactRevision: 100, Sum: sum}
			}
		}
	}
}

func alarms(n int, kinds ...AlarmKind) func(*State) {
	return func(s *State) { s.Membership.Members[n].Alarms = kinds }
}

func leftOver(id ID, kind AlarmKind) func(*State) {
	return func(s *State) { s.Membership.StaleAlarms = append(s.Membership.StaleAlarms, Alarm{id, kind}) }
}

func learns(n int) func(*State) { return func(s *State) { s.Membership.Members[n].Learner = true } }

// halts simulates a pod whose etcd has kept exiting for the given time because a peer's data differs.
func halts(n, times int, ago time.Duration) func(*State) {
	return func(s *State) {
		s.down(PodFailing, ago, n)
		s.Replicas[n].PodStoppedByCheck, s.Replicas[n].PodCrashes = true, times
	}
}

func TestHash(t *testing.T) {
	one := Hash{Revision: 120, CompactRevision: 100, Sum: 1}
	for _, c := range []struct {
		a, b Hash
		want bool
	}{
		{one, one, false},
		{one, Hash{Revision: 120, CompactRevision: 100, Sum: 2}, true},
		{one, Hash{Revision: 119, CompactRevision: 100, Sum: 2}, false},
		{one, Hash{Revision: 120, CompactRevision: 99, Sum: 2}, false},
		{one, Hash{}, false},
		{Hash{}, Hash{Sum: 2}, false},
	} {
		if c.a.differs(c.b) != c.want || c.b.differs(c.a) != c.want {
			t.Errorf("whether %s and %s differ: want %t", c.a, c.b, c.want)
		}
	}
}

// TestAgreed checks that only responding voters count, and only a majority of all voters.
func TestAgreed(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*State)
		want   uint32
	}{
		"no hash known":                    {nil, 0},
		"all agree":                        {holds(2, 2, 2), 2},
		"two of three agree":               {holds(1, 2, 2), 2},
		"two agree, the third is unknown":  {holds(0, 2, 2), 2},
		"only one hash known":              {holds(0, 0, 2), 0},
		"three different hashes":           {holds(1, 2, 3), 0},
		"two agree, one is not responding": {both(holds(1, 2, 2), silence(2)), 0},
		"two agree, one is a learner":      {both(holds(1, 2, 2), learns(2)), 0},
		"hash at a different revision":     {both(holds(0, 2, 2), func(s *State) { s.Membership.Members[1].Hash.Revision = 119 }), 0},
		"hash at a different compaction":   {both(holds(0, 2, 2), func(s *State) { s.Membership.Members[1].Hash.CompactRevision = 99 }), 0},
	} {
		if got := after(3, c.change).Membership.agreed(); got.Sum != c.want {
			t.Errorf("%s: %s", what, got)
		}
	}
}

// TestDoubts checks which signs show that members may hold different data.
func TestDoubts(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*State)
		want   int
	}{
		"all agree":                           {holds(1, 1, 1), 0},
		"a CORRUPT alarm":                     {alarms(1, "NOSPACE", "CORRUPT"), 1},
		"only NOSPACE alarms":                 {both(alarms(1, "NOSPACE"), leftOver(0xd1, "NOSPACE"), leftOver(0, "NOSPACE")), 0},
		"a CORRUPT alarm of no member":        {leftOver(0, "CORRUPT"), 1},
		"a CORRUPT alarm of a removed member": {leftOver(0xd1, "CORRUPT"), 1},
		"a voter differs":                     {holds(1, 1, 2), 1},
		"a learner differs":                   {both(holds(1, 1, 2), learns(2)), 0},
		"a voter stopped by its check":        {halts(1, 1, 0), 1},
		"a learner stopped by its check":      {both(halts(1, 1, 0), learns(1)), 0},
		"stopped earlier, responds again":     {func(s *State) { s.Replicas[1].PodStoppedByCheck = true }, 0},
		"stopped pod of no member":            {both(halts(0, 1, 0), func(s *State) { s.Membership.Members[0].Name = "x" }), 0},
		"a voter not responding":              {silence(1), 0},
		"all signs together":                  {both(holds(1, 1, 2), alarms(0, "CORRUPT"), leftOver(0, "CORRUPT"), halts(1, 1, 0)), 4},
	} {
		if facts := after(3, c.change).doubts(); len(facts) != c.want {
			t.Errorf("%s: %q", what, facts)
		}
	}
}

// TestDoubtfulDataIsCopiedOnlyFromMajority checks that, while data is in doubt, data is copied only from the majority,
// and a copy that may be right is kept.
func TestDoubtfulDataIsCopiedOnlyFromMajority(t *testing.T) {
	doubted := alarms(1, "CORRUPT")
	for what, c := range map[string]struct {
		change       func(*State)
		from, counts bool // for a-0
	}{
		"no doubt":                           {nil, true, false},
		"no hash known":                      {doubted, false, true},
		"in the majority":                    {both(doubted, holds(2, 2, 1)), true, false},
		"outvoted":                           {both(doubted, holds(1, 2, 2)), false, false},
		"hash unknown, others agree":         {both(doubted, holds(0, 2, 2)), false, false},
		"no majority":                        {both(doubted, holds(1, 2, 3)), false, true},
		"a learner":                          {both(doubted, learns(0)), false, false},
		"stopped by its check, others agree": {both(holds(0, 2, 2), halts(0, 1, 0)), false, true},
		"not responding, others agree":       {both(doubted, holds(0, 2, 2), silence(0)), false, false},
	} {
		s := after(3, c.change)
		if got := s.mayCopyFrom(s.Membership.Members[0]); got != c.from {
			t.Errorf("%s: members may copy from it: %t", what, got)
		}
		if got := s.copyCounts(s.Membership.Members[0]); got != c.counts {
			t.Errorf("%s: its copy counts: %t", what, got)
		}
	}
}

// TestCorruptMinority checks which member is outvoted and which is removed first.
func TestCorruptMinority(t *testing.T) {
	const other, stopped, from, alarm = "holds different data", "has repeatedly stopped", "with data from a-0", "etcd reports"
	since := func(at time.Time) func(*State) { return func(s *State) { s.Replicas[1].PodSince = at } }
	for what, c := range map[string]struct {
		members int
		change  func(*State)
		want    string // for a-1
	}{
		"no hash known":                         {3, alarms(1, "CORRUPT"), ""},
		"a follower differs":                    {3, holds(2, 1, 2), other},
		"in the majority":                       {3, both(holds(1, 2, 2), alarms(1, "CORRUPT")), ""},
		"three different hashes":                {3, holds(3, 1, 2), ""},
		"differs, but is not responding":        {3, both(holds(2, 1, 2), silence(1)), ""},
		"the leader differs":                    {3, both(holds(2, 1, 2), leads(1)), other},
		"differs like the leader":               {5, holds(1, 1, 2, 2, 2), ""},
		"the leader's hash is unknown":          {5, both(holds(0, 1, 2, 2, 2), alarms(1, "CORRUPT")), ""},
		"a learner differs":                     {4, both(holds(2, 1, 2, 2), learns(1)), ""},
		"a learner with an alarm, others agree": {4, both(holds(2, 0, 2, 2), learns(1), alarms(1, "CORRUPT")), alarm},
		"a learner with an alarm, no hashes":    {4, both(learns(1), alarms(1, "CORRUPT")), ""},
		"a learner whose leader is outvoted":    {4, both(holds(1, 0, 2, 2), learns(1)), from},
		"stopped by its check twice":            {3, both(holds(2, 0, 2), halts(1, 2, time.Minute)), stopped},
		"stopped by its check once":             {3, both(holds(2, 0, 2), halts(1, 1, time.Minute)), ""},
		"stopped for less than a minute":        {3, both(holds(2, 0, 2), halts(1, 2, 59*time.Second)), ""},
		"stopped at an unknown time":            {3, both(holds(2, 0, 2), halts(1, 2, time.Minute), since(time.Time{})), ""},
		"stopped, pod terminating":              {3, both(holds(2, 0, 2), halts(1, 2, time.Minute), func(s *State) { s.Replicas[1].Pod = PodTerminating }), ""},
		"crashed for a different reason":        {3, both(holds(2, 0, 2), alarms(0, "CORRUPT"), halts(1, 2, time.Minute), func(s *State) { s.Replicas[1].PodStoppedByCheck = false }), ""},
		"stopped, one of four others differs":   {5, both(holds(2, 0, 2, 2, 1), halts(1, 2, time.Minute)), ""},
		"stopped, one of four others unknown":   {5, both(holds(2, 0, 2, 2, 0), halts(1, 2, time.Minute)), ""},
		"stopped, the only voter":               {3, both(func(s *State) { s.Membership.Members[0].Learner, s.Membership.Members[2].Learner = true, true }, halts(1, 2, time.Minute)), ""},
	} {
		s := after(c.members, c.change)
		got := s.corruptMinority(s.Membership.Members[1])
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", what, got)
		}
		if outvoted := s.Outvoted(0xa1); outvoted != (got != "") {
			t.Errorf("%s: outvoted %t", what, outvoted)
		}
	}
	if s := after(3, holds(2, 1, 2)); s.Outvoted(0xd1) {
		t.Error("a member that is not listed counts as outvoted")
	}
}

func leads(n int) func(*State) {
	return func(s *State) {
		for i := range s.Membership.Members {
			s.Membership.Members[i].Leader = i == n
		}
	}
}

// TestRefuted checks that an alarm is disarmed once all voters hold the same data, and that a single voter cannot
// refute its own alarm.
func TestRefuted(t *testing.T) {
	same := holds(1, 1, 1)
	for what, c := range map[string]struct {
		members int
		change  func(*State)
		want    []Alarm
	}{
		"all voters agree":                      {3, both(same, alarms(1, "NOSPACE", "CORRUPT")), []Alarm{{0xa1, "CORRUPT"}}},
		"alarm of a removed member":             {3, both(same, leftOver(0xd1, "CORRUPT")), []Alarm{{0xd1, "CORRUPT"}}},
		"alarm of no member":                    {3, both(same, leftOver(0, "CORRUPT")), []Alarm{{0, "CORRUPT"}}},
		"only NOSPACE alarms":                   {3, both(same, alarms(1, "NOSPACE"), leftOver(0xd1, "NOSPACE")), nil},
		"one voter differs":                     {3, both(holds(1, 1, 2), alarms(1, "CORRUPT"), leftOver(0xd1, "CORRUPT")), nil},
		"one hash is unknown":                   {3, both(holds(1, 1, 0), alarms(1, "CORRUPT"), leftOver(0xd1, "CORRUPT")), nil},
		"one voter is not responding":           {3, both(same, silence(2), alarms(1, "CORRUPT"), leftOver(0xd1, "CORRUPT")), nil},
		"no hash known":                         {3, both(alarms(1, "CORRUPT"), leftOver(0xd1, "CORRUPT")), nil},
		"alarm of one of two voters":            {2, both(holds(1, 1), alarms(1, "CORRUPT")), []Alarm{{0xa1, "CORRUPT"}}},
		"alarms of one voter and no member":     {2, both(holds(1, 1), alarms(1, "CORRUPT"), leftOver(0, "CORRUPT")), []Alarm{{0, "CORRUPT"}, {0xa1, "CORRUPT"}}},
		"alarm of a learner":                    {3, both(same, learns(2), alarms(2, "CORRUPT")), nil},
		"only voter, its own alarm":             {1, both(holds(1), alarms(0, "CORRUPT"), leftOver(0, "CORRUPT")), nil},
		"only voter, alarm of a removed member": {1, both(holds(1), leftOver(0xd1, "CORRUPT")), []Alarm{{0xd1, "CORRUPT"}}},
		"no voters":                             {1, both(holds(1), learns(0), leftOver(0xd1, "CORRUPT")), nil},
	} {
		s := after(c.members, c.change)
		if got := s.refuted(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v", what, got)
		}
		for _, alarm := range c.want {
			if !s.Refuted(alarm) || s.Refuted(Alarm{alarm.ID, "NOSPACE"}) {
				t.Errorf("%s: Refuted is wrong for %v", what, alarm)
			}
		}
	}
}

// TestMayBeJudged checks that a majority may still form by itself only while a member is starting, or Quorate is still
// waiting for a member.
func TestMayBeJudged(t *testing.T) {
	unready := func(n int) func(*State) {
		return func(s *State) { s.Replicas[n].Pod = PodStarting; s.Replicas[n].PodSince = noon }
	}
	stranger := func(s *State) { s.Membership.Members = append(s.Membership.Members, Member{ID: 0xd1, Name: "x"}) }
	for what, c := range map[string]struct {
		members int
		change  func(*State)
		want    bool
	}{
		"all respond, three different hashes":           {3, holds(1, 2, 3), false},
		"all respond, a majority agrees":                {3, holds(1, 2, 2), false},
		"a majority agrees, one is unhealthy":           {3, both(holds(1, 2, 2), func(s *State) { s.Membership.Members[2].Disagrees = "x" }), true},
		"no majority, one pod is not ready":             {3, both(holds(1, 2, 3), unready(2)), false},
		"one is starting":                               {3, both(holds(1, 2, 0), func(s *State) { s.down(PodStarting, time.Minute, 2) }), true},
		"one has failed for an hour":                    {3, both(holds(1, 2, 0), func(s *State) { s.down(PodFailing, time.Hour, 2) }), false},
		"one is starting, one has failed":               {4, both(holds(1, 2, 0, 0), func(s *State) { s.down(PodStarting, time.Minute, 2); s.down(PodFailing, time.Hour, 3) }), false},
		"an unknown member is not responding":           {3, both(holds(1, 2, 3), stranger, func(s *State) { s.Replicas[0].Stranded = "x" }), true},
		"one stopped by its check, others agree":        {3, both(holds(2, 2, 0), halts(2, 1, 29*time.Minute)), true},
		"one member stopped at an unknown time":         {3, both(holds(2, 2, 0), halts(2, 1, 0), func(s *State) { s.Replicas[2].PodSince = time.Time{} }), true},
		"one stopped for half an hour":                  {3, both(holds(2, 2, 0), halts(2, 1, 30*time.Minute)), false},
		"one stopped, others differ":                    {5, both(holds(2, 2, 2, 1, 0), halts(4, 1, time.Minute)), false},
		"one stopped, no majority":                      {3, both(holds(1, 2, 0), halts(2, 1, time.Minute)), false},
		"one stopped at an unknown time, others differ": {5, both(holds(2, 2, 2, 1, 0), halts(4, 1, 0), func(s *State) { s.Replicas[4].PodSince = time.Time{} }), false},
		"one is starting, another stopped":              {4, both(holds(1, 2, 0, 0), halts(3, 1, time.Minute), func(s *State) { s.down(PodStarting, time.Minute, 2) }), true},
		"one stopped, no majority, one is starting":     {4, both(holds(1, 2, 0, 0), halts(2, 1, time.Minute), func(s *State) { s.down(PodStarting, time.Minute, 3) }), true},
		"the only member stopped":                       {1, halts(0, 1, time.Minute), false},
	} {
		if got := after(c.members, both(alarms(0, "CORRUPT"), c.change)).mayBeJudged(); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}

// TestWithoutDoubt checks that only the signs of differing data are removed, and only from the copy.
func TestWithoutDoubt(t *testing.T) {
	s := after(3, both(holds(1, 2, 2), alarms(1, "NOSPACE", "CORRUPT"), leftOver(0xd1, "CORRUPT"), leftOver(0xd1, "NOSPACE")))
	got, want := s.withoutDoubt(), after(3, both(alarms(1, "NOSPACE"), leftOver(0xd1, "NOSPACE")))
	for i := range got.Membership.Members {
		if len(got.Membership.Members[i].Alarms) == 0 {
			got.Membership.Members[i].Alarms = nil
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if len(s.doubts()) != 3 {
		t.Errorf("the original state has changed: %q", s.doubts())
	}
	s.Membership.Known = false
	if d, speaks := dataInDoubt(s); speaks {
		t.Errorf("the rule applies although the member list is unknown: %s", d)
	}
}

// TestUnreadyByAlarm checks that only a CORRUPT alarm explains an unready pod, and only a starting pod.
func TestUnreadyByAlarm(t *testing.T) {
	for what, c := range map[string]struct {
		pod    PodPhase
		change func(*State)
		want   bool
	}{
		"a CORRUPT alarm":                     {PodStarting, alarms(2, "CORRUPT"), true},
		"a CORRUPT alarm of a removed member": {PodStarting, leftOver(0xd1, "CORRUPT"), true},
		"only NOSPACE alarms":                 {PodStarting, both(alarms(2, "NOSPACE"), leftOver(0xd1, "NOSPACE")), false},
		"a failing pod":                       {PodFailing, alarms(2, "CORRUPT"), false},
	} {
		if got := after(3, c.change).unreadyByAlarm(Replica{Pod: c.pod}); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}
