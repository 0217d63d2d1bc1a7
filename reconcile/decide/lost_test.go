package decide

import (
	"testing"
	"time"
)

// check evaluates a-1 in a cluster of three members with changes.
func check(t *testing.T, is func(State, Member) bool, cases map[string]slotCase) {
	t.Helper()
	for what, c := range cases {
		if s := after(3, c.change); is(s, s.Membership.Members[1]) != c.want {
			t.Errorf("%s: it is not %t", what, c.want)
		}
	}
}

func unstarted(s *State) { s.Membership.Members[1].Started = false }

func noData(r *Replica) { r.NoData = true }

func gone(r *Replica) { r.VolumeUID = "" }

func inDoubt(s *State) { s.Membership.StaleAlarms = []Alarm{{unidentified, AlarmCorrupt}} }

func recordedAs(m RecordedMember) func(*State) {
	return func(s *State) { m.Ordinal = 1; s.Record = s.Record.With(m) }
}

func disagrees(s *State) { s.Membership.Members[1].Disagrees = "does not list a-0" }

// TestLost checks which members count as lost, and which members almost meet the conditions.
func TestLost(t *testing.T) {
	blindly := recordedAs(RecordedMember{Mode: Sealed})
	empty := []func(*Replica){noData, crashed(2)}
	check(t, func(s State, m Member) bool { return s.lost(m) != "" }, map[string]slotCase{
		"healthy":                           {nil, false},
		"silent":                            {slot1(PodFailing, time.Hour), false},
		"another volume, and no data":       {slot1(PodFailing, 0, another, noData), true},
		"no volume":                         {slot1(PodPending, 0, gone), true},
		"another volume, starting for long": {slot1(PodStarting, 30*time.Minute, another), true},
		"another volume, starting":          {slot1(PodStarting, 30*time.Minute-1, another), false},
		"another volume, and it answers":    {both(slot1(PodStarting, time.Hour, another), answers), false},
		"another volume, and it may serve":  {slot1(PodReady, 0, another, noData), false},
		"no volume, and another list":       {both(slot1(PodPending, 0, gone), disagrees), false},
		"outvoted":                          {holds(2, 1, 2), true},
		"outvoted, and another list":        {both(holds(2, 1, 2), disagrees), false},
		"a stranger beside a pod that is lost": {both(slot1(PodReady, 0), func(s *State) {
			s.down(PodPending, time.Hour, 0)
			s.Replicas[0].Stranded = "x"
			s.Membership.Members[1].Name = "x"
		}), false},
		"in the slot of another":               {both(slot1(PodPending, 0), unstarted, func(s *State) { s.Membership.Members[1].ID = 0xb1 }), true},
		"in the slot of another, started":      {both(slot1(PodPending, 0), func(s *State) { s.Membership.Members[1].ID = 0xb1 }), false},
		"not started":                          {both(slot1(PodPending, 0), unstarted), false},
		"on a volume that goes":                {slot1(PodAbsent, 0, onItsWay), true},
		"on a volume that goes, not started":   {both(slot1(PodAbsent, 0, onItsWay), unstarted), false},
		"blindly sealed":                       {both(slot1(PodFailing, 0), unstarted, blindly), true},
		"blindly sealed, and pending":          {both(slot1(PodPending, 0), unstarted, blindly), false},
		"blindly sealed, and started":          {both(slot1(PodFailing, 0), blindly), false},
		"it joins":                             {both(slot1(PodFailing, 0), unstarted, recordedAs(RecordedMember{Mode: Joining})), false},
		"sealed with its ID":                   {both(slot1(PodFailing, 0), unstarted, recordedAs(RecordedMember{Mode: Sealed, ID: 0xa1})), false},
		"sealed with its volume":               {both(slot1(PodFailing, 0), unstarted, recordedAs(RecordedMember{Mode: Sealed, VolumeUID: "v1"})), false},
		"no data":                              {slot1(PodFailing, time.Minute, empty...), true},
		"no data, found once":                  {slot1(PodFailing, time.Hour, noData, crashed(1)), false},
		"no data, a moment ago":                {slot1(PodFailing, time.Minute-1, empty...), false},
		"no data, and starting":                {slot1(PodStarting, time.Minute, empty...), false},
		"no data, and never started":           {both(slot1(PodFailing, time.Hour, empty...), unstarted), false},
		"no data, in doubt":                    {both(slot1(PodFailing, time.Hour, empty...), inDoubt), false},
		"stranded":                             {slot1(PodPending, 10*time.Minute, unlucky), true},
		"stranded since a moment ago":          {slot1(PodPending, time.Hour, unlucky, func(r *Replica) { r.StrandedSince = noon.Add(1 - 10*time.Minute) }), false},
		"stranded, for the first time":         {slot1(PodPending, time.Hour, unlucky, func(r *Replica) { r.StrandedSince = time.Time{} }), false},
		"stranded, and ready":                  {slot1(PodReady, time.Hour, unlucky), false},
		"stranded, in doubt":                   {both(slot1(PodPending, 10*time.Minute, unlucky), inDoubt), false},
		"crashes":                              {slot1(PodFailing, time.Minute, crashed(4)), true},
		"crashes, and never started":           {both(slot1(PodFailing, time.Minute, crashed(4)), unstarted), false},
		"crashes, in doubt":                    {both(slot1(PodFailing, time.Minute, crashed(4)), inDoubt), false},
		"crashes, and another is silent":       {both(slot1(PodFailing, time.Minute, crashed(4)), func(s *State) { s.Membership.Members[2].Answers = false }), false},
		"crashes, and another is a stranger":   {both(slot1(PodFailing, time.Minute, crashed(4)), func(s *State) { s.Membership.Members[2].Name = "x" }), false},
		"crashes, another is of another shape": {both(slot1(PodFailing, time.Minute, crashed(4)), func(s *State) { s.Replicas[2].PodSpecHash = "h0" }), false},
		"crashes, another of another version":  {both(slot1(PodFailing, time.Minute, crashed(4)), func(s *State) { s.Replicas[2].PodVersion = "3.6.17" }), false},
	})
	only := after(1, func(s *State) { s.down(PodFailing, time.Minute, 0); s.Replicas[0].PodCrashes = 4 })
	if what := only.lost(only.Membership.Members[0]); what != "" {
		t.Errorf("the only one %s", what)
	}
	two := after(2, slot1(PodFailing, time.Minute, crashed(4)))
	if two.lost(two.Membership.Members[1]) == "" {
		t.Error("one of two members crashes and the other is healthy, but it does not count as lost")
	}
}

// TestSilentForLong checks that passes and Kubernetes must both find a member unhealthy for the declared time.
func TestSilentForLong(t *testing.T) {
	after := func(limit, silent time.Duration) func(*State) {
		return func(s *State) {
			s.Declared.ReplaceAfter, s.Membership.Members[1].SilentSince = limit, noon.Add(-silent)
		}
	}
	long := func(s State, m Member) bool { return s.silentForLong(m, s.Replica(1)) }
	check(t, long, map[string]slotCase{
		"as git allows":           {both(slot1(PodFailing, time.Hour), after(time.Minute, time.Minute)), true},
		"less":                    {both(slot1(PodFailing, time.Hour), after(time.Minute, time.Minute-1)), false},
		"its pod less":            {both(slot1(PodFailing, time.Minute-1), after(time.Minute, time.Hour)), false},
		"a second, as git allows": {both(slot1(PodFailing, time.Second), after(time.Second, time.Second)), true},
		"a learner":               {both(slot1(PodFailing, time.Hour), after(time.Second, time.Minute), learns(1)), true},
		"a learner, less":         {both(slot1(PodFailing, time.Hour), after(time.Second, time.Minute-1), learns(1)), false},
		"git says nothing":        {both(slot1(PodFailing, time.Hour), after(0, time.Hour)), false},
		"no pass says so":         {both(slot1(PodFailing, time.Hour), after(time.Minute, 0), func(s *State) { s.Membership.Members[1].SilentSince = time.Time{} }), false},
		"its pod is ready":        {both(slot1(PodReady, time.Hour), after(time.Minute, time.Hour)), false},
		"nobody knows of its pod": {both(slot1(PodFailing, time.Hour, never), after(time.Minute, time.Hour)), false},
	})
	replaceable := func(s State, m Member) bool { return s.replaceable(m, s.Replica(1)) }
	alone := func(s *State) { s.Replicas[0].PodSpecHash, s.Replicas[2].PodSpecHash = "h0", "h0" }
	check(t, replaceable, map[string]slotCase{
		"starts, as nobody runs":       {both(slot1(PodStarting, 0), alone), true},
		"fails, as nobody runs":        {both(slot1(PodFailing, 0), alone), false},
		"pends, as nobody runs":        {both(slot1(PodPending, 0), alone), false},
		"fails, as another one runs":   {slot1(PodFailing, 0), true},
		"fails, as a stranger's might": {both(slot1(PodFailing, 0), alone, func(s *State) { s.Replicas[0].PodSpecHash = "h1"; s.Membership.Members[0].Name = "x" }), false},
		"fails, as a silent one's":     {both(slot1(PodFailing, 0), alone, func(s *State) { s.Replicas[2].PodSpecHash = "h1"; s.Membership.Members[2].Answers = false }), false},
		"never started":                {both(slot1(PodStarting, 0), unstarted), false},
		"in doubt":                     {both(slot1(PodStarting, 0), inDoubt), false},
	})
}

// TestMemberIsReplacedAtMostThreeTimesADay checks that a member that could come back is not replaced a fourth time
// within a day.
func TestMemberIsReplacedAtMostThreeTimesADay(t *testing.T) {
	times := func(n int, ago time.Duration) func(*State) {
		return func(s *State) { s.Record.Replaced = []Replacements{{1, n, noon.Add(-ago)}} }
	}
	check(t, func(s State, m Member) bool { return s.replacedAgainAndAgain(m) != "" }, map[string]slotCase{
		"never":                  {slot1(PodFailing, 0), false},
		"twice":                  {both(slot1(PodFailing, 0), times(2, 0)), false},
		"three times":            {both(slot1(PodFailing, 0), times(3, 24*time.Hour-1)), true},
		"three times, a day ago": {both(slot1(PodFailing, 0), times(3, 24*time.Hour)), false},
		"another volume":         {both(slot1(PodFailing, 0, another), times(3, 0)), false},
		"a volume that goes":     {both(slot1(PodAbsent, 0, onItsWay), times(3, 0)), false},
		"stranded":               {both(slot1(PodPending, 0, unlucky), times(3, 0)), false},
		"a learner's that goes":  {both(learns(1), going(1), times(3, 0)), false},
	})
}

// TestVolumeGoesWithPod checks that a volume being deleted counts as gone once pods no longer run on it.
func TestVolumeGoesWithPod(t *testing.T) {
	hold(t, State.volumeGoesWithPod, map[string]slotCase{
		"no pod":         {slot1(PodAbsent, 0, onItsWay), true},
		"pending":        {slot1(PodPending, 30*time.Second-1, onItsWay), false},
		"pending still":  {slot1(PodPending, 30*time.Second, onItsWay), true},
		"failing still":  {slot1(PodFailing, 2*time.Minute, onItsWay), true},
		"on its way out": {slot1(PodTerminating, 0, onItsWay), true},
		"starting":       {slot1(PodStarting, 0, onItsWay), false},
		"failing":        {slot1(PodFailing, 0, onItsWay), false},
		"ready":          {slot1(PodReady, 0, onItsWay), false},
		"it stays":       {slot1(PodAbsent, 0), false},
		"there is none":  {slot1(PodAbsent, 0, onItsWay, gone), false},
	})
	hold(t, func(s State, r Replica) bool { return s.unrecoverable(r.Ordinal) }, map[string]slotCase{
		"ready, though since long": {slot1(PodReady, time.Hour), false},
		"failing for two minutes":  {slot1(PodFailing, 2*time.Minute), true},
		"failing for less":         {slot1(PodFailing, 2*time.Minute-1), false},
		"pending for half an hour": {slot1(PodPending, 30*time.Minute), true},
		"pending for less":         {slot1(PodPending, 30*time.Minute-1), false},
		"since nobody knows when":  {slot1(PodFailing, 0, never), false},
		"stranded":                 {slot1(PodPending, 0, unlucky), true},
		"another volume":           {slot1(PodPending, 0, another), true},
		"volume deleted, no pod":   {slot1(PodAbsent, 0, onItsWay), true},
		"volume deleted, in use":   {slot1(PodStarting, 0, onItsWay), false},
	})
}
