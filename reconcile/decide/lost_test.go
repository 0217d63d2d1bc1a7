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
			t.Errorf("%s: want %t", what, c.want)
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
		"healthy":                   {nil, false},
		"not responding":            {slot1(PodFailing, time.Hour), false},
		"different volume, no data": {slot1(PodFailing, 0, another, noData), true},
		"claim gone":                {slot1(PodPending, 0, gone), true},
		"different volume, starting for 30 minutes": {slot1(PodStarting, 30*time.Minute, another), true},
		"different volume, starting for less":       {slot1(PodStarting, 30*time.Minute-1, another), false},
		"different volume, member responds":         {both(slot1(PodStarting, time.Hour, another), answers), false},
		"different volume, pod ready":               {slot1(PodReady, 0, another, noData), false},
		"claim gone, member list differs":           {both(slot1(PodPending, 0, gone), disagrees), false},
		"outvoted":                                  {holds(2, 1, 2), true},
		"outvoted, member list differs":             {both(holds(2, 1, 2), disagrees), false},
		"an unknown member, another member stranded": {both(slot1(PodReady, 0), func(s *State) {
			s.down(PodPending, time.Hour, 0)
			s.Replicas[0].Stranded = "x"
			s.Membership.Members[1].Name = "x"
		}), false},
		"different ID recorded, unstarted":              {both(slot1(PodPending, 0), unstarted, func(s *State) { s.Membership.Members[1].ID = 0xb1 }), true},
		"different ID recorded, started":                {both(slot1(PodPending, 0), func(s *State) { s.Membership.Members[1].ID = 0xb1 }), false},
		"unstarted":                                     {both(slot1(PodPending, 0), unstarted), false},
		"volume being deleted, no pod":                  {slot1(PodAbsent, 0, onItsWay), true},
		"volume being deleted, no pod, unstarted":       {both(slot1(PodAbsent, 0, onItsWay), unstarted), false},
		"sealed without an ID, unstarted, failing":      {both(slot1(PodFailing, 0), unstarted, blindly), true},
		"sealed without an ID, unstarted, pending":      {both(slot1(PodPending, 0), unstarted, blindly), false},
		"sealed without an ID, started":                 {both(slot1(PodFailing, 0), blindly), false},
		"joining":                                       {both(slot1(PodFailing, 0), unstarted, recordedAs(RecordedMember{Mode: Joining})), false},
		"sealed with its ID, unstarted":                 {both(slot1(PodFailing, 0), unstarted, recordedAs(RecordedMember{Mode: Sealed, ID: 0xa1})), false},
		"sealed with its volume, unstarted":             {both(slot1(PodFailing, 0), unstarted, recordedAs(RecordedMember{Mode: Sealed, VolumeUID: "v1"})), false},
		"no data for a minute":                          {slot1(PodFailing, time.Minute, empty...), true},
		"no data, found once":                           {slot1(PodFailing, time.Hour, noData, crashed(1)), false},
		"no data for less than a minute":                {slot1(PodFailing, time.Minute-1, empty...), false},
		"no data, starting":                             {slot1(PodStarting, time.Minute, empty...), false},
		"no data, never started":                        {both(slot1(PodFailing, time.Hour, empty...), unstarted), false},
		"no data, data in doubt":                        {both(slot1(PodFailing, time.Hour, empty...), inDoubt), false},
		"stranded for ten minutes":                      {slot1(PodPending, 10*time.Minute, unlucky), true},
		"stranded for less than ten minutes":            {slot1(PodPending, time.Hour, unlucky, func(r *Replica) { r.StrandedSince = noon.Add(1 - 10*time.Minute) }), false},
		"stranded, time not recorded":                   {slot1(PodPending, time.Hour, unlucky, func(r *Replica) { r.StrandedSince = time.Time{} }), false},
		"stranded, pod ready":                           {slot1(PodReady, time.Hour, unlucky), false},
		"stranded, data in doubt":                       {both(slot1(PodPending, 10*time.Minute, unlucky), inDoubt), false},
		"crashing":                                      {slot1(PodFailing, time.Minute, crashed(4)), true},
		"crashing, never started":                       {both(slot1(PodFailing, time.Minute, crashed(4)), unstarted), false},
		"crashing, data in doubt":                       {both(slot1(PodFailing, time.Minute, crashed(4)), inDoubt), false},
		"crashing, another member not responding":       {both(slot1(PodFailing, time.Minute, crashed(4)), func(s *State) { s.Membership.Members[2].Answers = false }), false},
		"crashing, another member is unknown":           {both(slot1(PodFailing, time.Minute, crashed(4)), func(s *State) { s.Membership.Members[2].Name = "x" }), false},
		"crashing, another pod has an outdated spec":    {both(slot1(PodFailing, time.Minute, crashed(4)), func(s *State) { s.Replicas[2].PodSpecHash = "h0" }), false},
		"crashing, another pod has a different version": {both(slot1(PodFailing, time.Minute, crashed(4)), func(s *State) { s.Replicas[2].PodVersion = "3.6.17" }), false},
	})
	only := after(1, func(s *State) { s.down(PodFailing, time.Minute, 0); s.Replicas[0].PodCrashes = 4 })
	if what := only.lost(only.Membership.Members[0]); what != "" {
		t.Errorf("the only member counts as lost: it %s", what)
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
		"as long as declared":                {both(slot1(PodFailing, time.Hour), after(time.Minute, time.Minute)), true},
		"less than declared":                 {both(slot1(PodFailing, time.Hour), after(time.Minute, time.Minute-1)), false},
		"pod failing for less than declared": {both(slot1(PodFailing, time.Minute-1), after(time.Minute, time.Hour)), false},
		"a second, as declared":              {both(slot1(PodFailing, time.Second), after(time.Second, time.Second)), true},
		"a learner, a minute":                {both(slot1(PodFailing, time.Hour), after(time.Second, time.Minute), learns(1)), true},
		"a learner, less than a minute":      {both(slot1(PodFailing, time.Hour), after(time.Second, time.Minute-1), learns(1)), false},
		"no limit declared":                  {both(slot1(PodFailing, time.Hour), after(0, time.Hour)), false},
		"not recorded by a pass":             {both(slot1(PodFailing, time.Hour), after(time.Minute, 0), func(s *State) { s.Membership.Members[1].SilentSince = time.Time{} }), false},
		"pod ready":                          {both(slot1(PodReady, time.Hour), after(time.Minute, time.Hour)), false},
		"pod failing since an unknown time":  {both(slot1(PodFailing, time.Hour, never), after(time.Minute, time.Hour)), false},
	})
	replaceable := func(s State, m Member) bool { return s.replaceable(m, s.Replica(1)) }
	alone := func(s *State) { s.Replicas[0].PodSpecHash, s.Replicas[2].PodSpecHash = "h0", "h0" }
	check(t, replaceable, map[string]slotCase{
		"starting, no up-to-date pod runs":                      {both(slot1(PodStarting, 0), alone), true},
		"failing, no up-to-date pod runs":                       {both(slot1(PodFailing, 0), alone), false},
		"pending, no up-to-date pod runs":                       {both(slot1(PodPending, 0), alone), false},
		"failing, an up-to-date pod runs":                       {slot1(PodFailing, 0), true},
		"failing, only an unknown member's pod up to date":      {both(slot1(PodFailing, 0), alone, func(s *State) { s.Replicas[0].PodSpecHash = "h1"; s.Membership.Members[0].Name = "x" }), false},
		"failing, only an unresponsive member's pod up to date": {both(slot1(PodFailing, 0), alone, func(s *State) { s.Replicas[2].PodSpecHash = "h1"; s.Membership.Members[2].Answers = false }), false},
		"never started": {both(slot1(PodStarting, 0), unstarted), false},
		"data in doubt": {both(slot1(PodStarting, 0), inDoubt), false},
	})
}

// TestMemberIsReplacedAtMostThreeTimesADay checks that a member that could come back is not replaced a fourth time
// within a day.
func TestMemberIsReplacedAtMostThreeTimesADay(t *testing.T) {
	times := func(n int, ago time.Duration) func(*State) {
		return func(s *State) { s.Record.Replaced = []Replacements{{1, n, noon.Add(-ago)}} }
	}
	check(t, func(s State, m Member) bool { return s.replacedAgainAndAgain(m) != "" }, map[string]slotCase{
		"never replaced":                   {slot1(PodFailing, 0), false},
		"replaced twice":                   {both(slot1(PodFailing, 0), times(2, 0)), false},
		"replaced three times":             {both(slot1(PodFailing, 0), times(3, 24*time.Hour-1)), true},
		"replaced three times, a day ago":  {both(slot1(PodFailing, 0), times(3, 24*time.Hour)), false},
		"different volume":                 {both(slot1(PodFailing, 0, another), times(3, 0)), false},
		"volume being deleted":             {both(slot1(PodAbsent, 0, onItsWay), times(3, 0)), false},
		"stranded":                         {both(slot1(PodPending, 0, unlucky), times(3, 0)), false},
		"a learner's volume being deleted": {both(learns(1), going(1), times(3, 0)), false},
	})
}

// TestVolumeGoesWithPod checks that a volume being deleted counts as gone once pods no longer run on it.
func TestVolumeGoesWithPod(t *testing.T) {
	hold(t, State.volumeGoesWithPod, map[string]slotCase{
		"no pod":                           {slot1(PodAbsent, 0, onItsWay), true},
		"pending for less than 30 seconds": {slot1(PodPending, 30*time.Second-1, onItsWay), false},
		"pending for 30 seconds":           {slot1(PodPending, 30*time.Second, onItsWay), true},
		"failing for two minutes":          {slot1(PodFailing, 2*time.Minute, onItsWay), true},
		"terminating":                      {slot1(PodTerminating, 0, onItsWay), true},
		"starting":                         {slot1(PodStarting, 0, onItsWay), false},
		"just failed":                      {slot1(PodFailing, 0, onItsWay), false},
		"ready":                            {slot1(PodReady, 0, onItsWay), false},
		"volume kept":                      {slot1(PodAbsent, 0), false},
		"no volume":                        {slot1(PodAbsent, 0, onItsWay, gone), false},
	})
	hold(t, func(s State, r Replica) bool { return s.unrecoverable(r.Ordinal) }, map[string]slotCase{
		"ready for an hour":             {slot1(PodReady, time.Hour), false},
		"failing for two minutes":       {slot1(PodFailing, 2*time.Minute), true},
		"failing for less":              {slot1(PodFailing, 2*time.Minute-1), false},
		"pending for half an hour":      {slot1(PodPending, 30*time.Minute), true},
		"pending for less":              {slot1(PodPending, 30*time.Minute-1), false},
		"failing since an unknown time": {slot1(PodFailing, 0, never), false},
		"stranded":                      {slot1(PodPending, 0, unlucky), true},
		"different volume":              {slot1(PodPending, 0, another), true},
		"volume deleted, no pod":        {slot1(PodAbsent, 0, onItsWay), true},
		"volume deleted, in use":        {slot1(PodStarting, 0, onItsWay), false},
	})
}
