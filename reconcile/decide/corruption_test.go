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
		"nobody says":               {nil, 0},
		"all":                       {holds(2, 2, 2), 2},
		"two of three":              {holds(1, 2, 2), 2},
		"two, of one it is unknown": {holds(0, 2, 2), 2},
		"one alone":                 {holds(0, 0, 2), 0},
		"three opinions":            {holds(1, 2, 3), 0},
		"one of the two is silent":  {both(holds(1, 2, 2), silence(2)), 0},
		"one of the two is none":    {both(holds(1, 2, 2), learns(2)), 0},
		"one of another revision":   {both(holds(0, 2, 2), func(s *State) { s.Membership.Members[1].Hash.Revision = 119 }), 0},
		"one compacted otherwise":   {both(holds(0, 2, 2), func(s *State) { s.Membership.Members[1].Hash.CompactRevision = 99 }), 0},
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
		"nothing":                      {holds(1, 1, 1), 0},
		"an alarm":                     {alarms(1, "NOSPACE", "CORRUPT"), 1},
		"a lack of space":              {both(alarms(1, "NOSPACE"), leftOver(0xd1, "NOSPACE"), leftOver(0, "NOSPACE")), 0},
		"an alarm of nobody":           {leftOver(0, "CORRUPT"), 1},
		"an alarm of one that is gone": {leftOver(0xd1, "CORRUPT"), 1},
		"other data":                   {holds(1, 1, 2), 1},
		"other data of a learner":      {both(holds(1, 1, 2), learns(2)), 0},
		"one has stopped":              {halts(1, 1, 0), 1},
		"a learner has":                {both(halts(1, 1, 0), learns(1)), 0},
		"one had, and answers again":   {func(s *State) { s.Replicas[1].PodStoppedByCheck = true }, 0},
		"the pod in nobody's slot":     {both(halts(0, 1, 0), func(s *State) { s.Membership.Members[0].Name = "x" }), 0},
		"one is silent":                {silence(1), 0},
		"all of it":                    {both(holds(1, 1, 2), alarms(0, "CORRUPT"), leftOver(0, "CORRUPT"), halts(1, 1, 0)), 4},
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
		"no doubt":                  {nil, true, false},
		"nobody says":               {doubted, false, true},
		"of the majority":           {both(doubted, holds(2, 2, 1)), true, false},
		"outvoted":                  {both(doubted, holds(1, 2, 2)), false, false},
		"unknown beside a majority": {both(doubted, holds(0, 2, 2)), false, false},
		"no majority":               {both(doubted, holds(1, 2, 3)), false, true},
		"a learner":                 {both(doubted, learns(0)), false, false},
		"stopped beside a majority": {both(holds(0, 2, 2), halts(0, 1, 0)), false, true},
		"silent beside a majority":  {both(doubted, holds(0, 2, 2), silence(0)), false, false},
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
		"nobody says":                            {3, alarms(1, "CORRUPT"), ""},
		"a follower":                             {3, holds(2, 1, 2), other},
		"of the majority":                        {3, both(holds(1, 2, 2), alarms(1, "CORRUPT")), ""},
		"three opinions":                         {3, holds(3, 1, 2), ""},
		"silent by now":                          {3, both(holds(2, 1, 2), silence(1)), ""},
		"the leader":                             {3, both(holds(2, 1, 2), leads(1)), other},
		"the leader is another one":              {5, holds(1, 1, 2, 2, 2), ""},
		"the leader's are not known":             {5, both(holds(0, 1, 2, 2, 2), alarms(1, "CORRUPT")), ""},
		"a learner":                              {4, both(holds(2, 1, 2, 2), learns(1)), ""},
		"a learner, by an alarm":                 {4, both(holds(2, 0, 2, 2), learns(1), alarms(1, "CORRUPT")), alarm},
		"a learner, by an alarm alone":           {4, both(learns(1), alarms(1, "CORRUPT")), ""},
		"a learner of a leader that is outvoted": {4, both(holds(1, 0, 2, 2), learns(1)), from},
		"stopped":                                {3, both(holds(2, 0, 2), halts(1, 2, time.Minute)), stopped},
		"stopped once":                           {3, both(holds(2, 0, 2), halts(1, 1, time.Minute)), ""},
		"stopped a moment ago":                   {3, both(holds(2, 0, 2), halts(1, 2, 59*time.Second)), ""},
		"stopped, since nobody knows when":       {3, both(holds(2, 0, 2), halts(1, 2, time.Minute), since(time.Time{})), ""},
		"stopped, and on its way out":            {3, both(holds(2, 0, 2), halts(1, 2, time.Minute), func(s *State) { s.Replicas[1].Pod = PodTerminating }), ""},
		"crashed":                                {3, both(holds(2, 0, 2), alarms(0, "CORRUPT"), halts(1, 2, time.Minute), func(s *State) { s.Replicas[1].PodStoppedByCheck = false }), ""},
		"stopped, one of four others differs":    {5, both(holds(2, 0, 2, 2, 1), halts(1, 2, time.Minute)), ""},
		"stopped, of one other nobody knows":     {5, both(holds(2, 0, 2, 2, 0), halts(1, 2, time.Minute)), ""},
		"stopped, the only one":                  {3, both(func(s *State) { s.Membership.Members[0].Learner, s.Membership.Members[2].Learner = true, true }, halts(1, 2, time.Minute)), ""},
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
		t.Error("one that is not listed is outvoted")
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
		"all the same":                   {3, both(same, alarms(1, "NOSPACE", "CORRUPT")), []Alarm{{0xa1, "CORRUPT"}}},
		"of one that is gone":            {3, both(same, leftOver(0xd1, "CORRUPT")), []Alarm{{0xd1, "CORRUPT"}}},
		"of nobody":                      {3, both(same, leftOver(0, "CORRUPT")), []Alarm{{0, "CORRUPT"}}},
		"a lack of space":                {3, both(same, alarms(1, "NOSPACE"), leftOver(0xd1, "NOSPACE")), nil},
		"one differs":                    {3, both(holds(1, 1, 2), alarms(1, "CORRUPT"), leftOver(0xd1, "CORRUPT")), nil},
		"one does not say":               {3, both(holds(1, 1, 0), alarms(1, "CORRUPT"), leftOver(0xd1, "CORRUPT")), nil},
		"one is silent":                  {3, both(same, silence(2), alarms(1, "CORRUPT"), leftOver(0xd1, "CORRUPT")), nil},
		"nobody says":                    {3, both(alarms(1, "CORRUPT"), leftOver(0xd1, "CORRUPT")), nil},
		"one of two":                     {2, both(holds(1, 1), alarms(1, "CORRUPT")), []Alarm{{0xa1, "CORRUPT"}}},
		"one of two, and nobody":         {2, both(holds(1, 1), alarms(1, "CORRUPT"), leftOver(0, "CORRUPT")), []Alarm{{0, "CORRUPT"}, {0xa1, "CORRUPT"}}},
		"of a learner":                   {3, both(same, learns(2), alarms(2, "CORRUPT")), nil},
		"the only one, of itself":        {1, both(holds(1), alarms(0, "CORRUPT"), leftOver(0, "CORRUPT")), nil},
		"the only one, of one that went": {1, both(holds(1), leftOver(0xd1, "CORRUPT")), []Alarm{{0xd1, "CORRUPT"}}},
		"no voters":                      {1, both(holds(1), learns(0), leftOver(0xd1, "CORRUPT")), nil},
	} {
		s := after(c.members, c.change)
		if got := s.refuted(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v", what, got)
		}
		for _, alarm := range c.want {
			if !s.Refuted(alarm) || s.Refuted(Alarm{alarm.ID, "NOSPACE"}) {
				t.Errorf("%s: not refuted is %v", what, alarm)
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
		"all answer, three opinions":                       {3, holds(1, 2, 3), false},
		"all answer, a majority":                           {3, holds(1, 2, 2), false},
		"a majority, and one is not well":                  {3, both(holds(1, 2, 2), func(s *State) { s.Membership.Members[2].Disagrees = "x" }), true},
		"no majority, and one is not well":                 {3, both(holds(1, 2, 3), unready(2)), false},
		"one starts":                                       {3, both(holds(1, 2, 0), func(s *State) { s.down(PodStarting, time.Minute, 2) }), true},
		"one fails for good":                               {3, both(holds(1, 2, 0), func(s *State) { s.down(PodFailing, time.Hour, 2) }), false},
		"one starts, one fails for good":                   {4, both(holds(1, 2, 0, 0), func(s *State) { s.down(PodStarting, time.Minute, 2); s.down(PodFailing, time.Hour, 3) }), false},
		"a stranger is silent":                             {3, both(holds(1, 2, 3), stranger, func(s *State) { s.Replicas[0].Stranded = "x" }), true},
		"one stops, all others agree":                      {3, both(holds(2, 2, 0), halts(2, 1, 29*time.Minute)), true},
		"one member stopped at an unknown time":            {3, both(holds(2, 2, 0), halts(2, 1, 0), func(s *State) { s.Replicas[2].PodSince = time.Time{} }), true},
		"one stops for half an hour":                       {3, both(holds(2, 2, 0), halts(2, 1, 30*time.Minute)), false},
		"one stops, others differ":                         {5, both(holds(2, 2, 2, 1, 0), halts(4, 1, time.Minute)), false},
		"one stops, no majority":                           {3, both(holds(1, 2, 0), halts(2, 1, time.Minute)), false},
		"one stops since nobody knows when, others differ": {5, both(holds(2, 2, 2, 1, 0), halts(4, 1, 0), func(s *State) { s.Replicas[4].PodSince = time.Time{} }), false},
		"one starts, and another one stops":                {4, both(holds(1, 2, 0, 0), halts(3, 1, time.Minute), func(s *State) { s.down(PodStarting, time.Minute, 2) }), true},
		"one stops, no majority, and one starts":           {4, both(holds(1, 2, 0, 0), halts(2, 1, time.Minute), func(s *State) { s.down(PodStarting, time.Minute, 3) }), true},
		"the only one stops":                               {1, halts(0, 1, time.Minute), false},
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
		t.Errorf("the state itself has changed: %q", s.doubts())
	}
	s.Membership.Known = false
	if d, speaks := dataInDoubt(s); speaks {
		t.Errorf("it is not known what etcd lists: %s", d)
	}
}

// TestUnreadyByAlarm checks that only a CORRUPT alarm explains an unready pod, and only a starting pod.
func TestUnreadyByAlarm(t *testing.T) {
	for what, c := range map[string]struct {
		pod    PodPhase
		change func(*State)
		want   bool
	}{
		"an alarm":                     {PodStarting, alarms(2, "CORRUPT"), true},
		"an alarm of one that is gone": {PodStarting, leftOver(0xd1, "CORRUPT"), true},
		"a lack of space":              {PodStarting, both(alarms(2, "NOSPACE"), leftOver(0xd1, "NOSPACE")), false},
		"a pod that fails":             {PodFailing, alarms(2, "CORRUPT"), false},
	} {
		if got := after(3, c.change).unreadyByAlarm(Replica{Pod: c.pod}); got != c.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}
