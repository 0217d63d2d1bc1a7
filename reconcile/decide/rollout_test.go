package decide

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRolloutRulesInIsolation checks each rollout rule by itself, without earlier rules.
func TestRolloutRulesInIsolation(t *testing.T) {
	wants := func(s *State) { s.Declared.SpecHash = "h2" }
	begun := both(wants, func(s *State) { s.Objects.RunsHash = "h2" })
	isNew := func(ordinals ...int) func(*State) {
		return func(s *State) {
			for _, n := range ordinals {
				s.Replicas[n].PodSpecHash = "h2"
			}
		}
	}
	skips := func(s *State) { s.Declared.Version, s.Objects.RunsVersion = "3.9.0", "3.9.0" }
	few := func(s *State) { s.Declared.Replicas = 3 }
	starts, restarts := StartRollout{"3.6.16", "h2"}, func(n int) Action { return RestartReplica{n, "p" + string(rune('0'+n))} }
	askAlone(t, startRollout, map[string]ruleCase{
		"the spec requires different pods": {3, wants, starts},
		"pods match the spec":              {3, nil, nil},
		"the member list is unknown":       {3, both(wants, unlisted), nil},
		"a member is not responding":       {3, both(wants, silence(1)), nil},
		"two of three members":             {2, both(wants, few), nil},
		"two of two members":               {2, wants, starts},
		"two of four members":              {2, both(wants, declared(4)), nil},
		"three of five members":            {3, both(wants, declared(5)), starts},
		"the version cannot be reached":    {3, both(wants, declares("3.9.0")), nil},
		"no StatefulSet":                   {3, both(wants, noStatefulSet), nil},
		"the cluster has not formed":       {3, both(wants, founded), nil},

		"NOSPACE":                                {3, both(wants, alarms(1, "NOSPACE"), quotas(4, 4, 4, 4)), nil},
		"NOSPACE, a larger quota":                {3, both(wants, alarms(1, "NOSPACE"), quotas(4, 2, 2, 2)), starts},
		"NOSPACE, a larger quota for one":        {3, both(wants, alarms(1, "NOSPACE"), quotas(4, 4, 2, 4)), starts},
		"NOSPACE, a smaller quota":               {3, both(wants, alarms(1, "NOSPACE"), quotas(4, 2, 2, 8)), nil},
		"NOSPACE, an unknown quota":              {3, both(wants, alarms(1, "NOSPACE"), quotas(4, 2, 2, 0)), nil},
		"NOSPACE, an unknown quota declared":     {3, both(wants, alarms(1, "NOSPACE"), quotas(0, 2, 2, 2)), nil},
		"NOSPACE, and nothing to restart":        {3, both(alarms(1, "NOSPACE"), func(s *State) { s.Objects.RunsHash = "h2" }), StartRollout{"3.6.16", "h1"}},
		"CORRUPT, a larger quota":                {3, both(wants, alarms(1, "CORRUPT"), quotas(4, 2, 2, 2)), nil},
		"an unknown alarm, a larger quota":       {3, both(wants, alarms(1, "NOSPACE", "OTHER"), quotas(4, 2, 2, 2)), nil},
		"a stale unknown alarm, a larger quota":  {3, both(wants, leftOver(0, "OTHER"), quotas(4, 2, 2, 2)), nil},
		"a stale NOSPACE alarm, a larger quota":  {3, both(wants, leftOver(0, "NOSPACE"), quotas(4, 2, 2, 2)), starts},
		"a stale NOSPACE alarm, the same quotas": {3, both(wants, leftOver(0, "NOSPACE"), quotas(2, 2, 2, 2)), nil},
	})
	askAlone(t, rollOneMember, map[string]ruleCase{
		"no pod is new":                              {3, begun, restarts(2)},
		"the highest pod is new":                     {3, both(begun, isNew(2)), restarts(1)},
		"all pods are new":                           {3, both(begun, isNew(0, 1, 2)), nil},
		"the StatefulSet still has the old template": {3, wants, nil},
		"no StatefulSet":                             {3, both(begun, noStatefulSet), nil},
		"the member list is unknown":                 {3, both(begun, unlisted), nil},
		"a member is not responding":                 {3, both(begun, silence(1)), nil},
		"two of three members":                       {2, both(begun, few), nil},
		"the version cannot be reached":              {3, both(begun, skips), nil},
		"the highest member leads":                   {3, both(begun, leads(2)), restarts(1)},
		"the highest leads, two pods are old":        {3, both(begun, leads(2), isNew(1)), restarts(0)},
		"only the leader's pod is old":               {3, both(begun, leads(2), isNew(0, 1)), MoveLeader{0xa2, 0xa0}},
		"the only member":                            {1, begun, restarts(0)},
		"one of two members, the other leads":        {2, both(begun, isNew(0)), restarts(1)},
	})
	askAlone(t, rollOneMember, map[string]ruleCase{
		"NOSPACE":                       {3, both(begun, alarms(1, "NOSPACE"), quotas(4, 4, 4, 4)), nil},
		"NOSPACE, a larger quota":       {3, both(begun, alarms(1, "NOSPACE"), quotas(4, 2, 2, 2)), restarts(2)},
		"NOSPACE, a larger quota begun": {3, both(begun, isNew(2), alarms(1, "NOSPACE"), quotas(4, 2, 2, 0)), restarts(1)},
	})
	askVerdict(t, versionRefused, map[string]verdictCase{
		"the version cannot be reached":          {3, declares("3.9.0"), Block},
		"cannot be reached, member list unknown": {3, both(declares("3.9.0"), unlisted), ""},
		"cannot be reached, but pods have it":    {3, both(declares("3.9.0"), asDeclared), ""},
		"the version can be reached":             {3, declares("3.6.17"), ""},
	})
	if (State{}).newPodsAsDeclared() {
		t.Error("without a StatefulSet, new pods count as up to date")
	}
	if s := after(3, both(wants, func(s *State) { s.Replicas = nil })); !s.rolls() {
		t.Error("without pods, no rollout is in progress")
	}
	for version, want := range map[string]bool{"3.7.3": true, "3.6.99": false, "3.5.35": false} {
		if got := after(3, declares(version)).upgrades(); got != want {
			t.Errorf("%s is an upgrade: %t", version, got)
		}
	}
	if (State{Declared: Declared{Version: "3.7.3"}}).upgrades() {
		t.Error("no version is running, but it counts as an upgrade")
	}
	if s := after(1, both(runs("3.6.16"), declares("3.7.3"))); !s.upgrades() {
		t.Error("a new version of the only member does not count as an upgrade")
	}
	for what, c := range map[string]slotCase{
		"not begun": {wants, false}, "begun": {begun, true}, "done": {both(begun, isNew(0, 1, 2)), false}, "not requested": {nil, false},
	} {
		if got := after(3, c.change).describeStoppedRollout(); (got != "") != c.want {
			t.Errorf("rollout %s: %q", what, got)
		}
	}
}

// TestHealthRulesInIsolation checks the rules about running members, each by itself.
func TestHealthRulesInIsolation(t *testing.T) {
	wants := func(s *State) { s.Declared.SpecHash = "h2" }
	fails := func(n int) func(*State) {
		return func(s *State) { s.Replicas[n].Pod, s.Replicas[n].PodSince = PodFailing, noon.Add(-time.Hour) }
	}
	pod := func(phase PodPhase) func(*State) { return func(s *State) { s.Replicas[1].Pod = phase } }
	askVerdict(t, alarmRaised, map[string]verdictCase{
		"no alarm":                           {3, nil, ""},
		"an alarm of a member":               {3, alarms(1, "NOSPACE"), Block},
		"an alarm of an unidentified member": {3, leftOver(0, "CORRUPT"), Block},
		"an alarm of a removed member":       {3, leftOver(0xd1, "NOSPACE"), ""},
		"an alarm, member list unknown":      {3, both(alarms(1, "NOSPACE"), unlisted), ""},
		"an alarm before a rollout":          {3, both(alarms(1, "NOSPACE"), wants), Block},
	})
	askVerdict(t, State.neverReady, map[string]verdictCase{
		"healthy":                    {3, nil, ""},
		"never ready":                {3, fails(1), Block},
		"the member list is unknown": {3, both(fails(1), unlisted), ""},
		"a learner":                  {3, both(fails(1), learns(1)), ""},
		"not responding":             {3, both(fails(1), func(s *State) { s.Membership.Members[1].Answers = false }), ""},
		"an unknown member":          {3, both(fails(0), without(0), stranger(0)), ""},
		"no pod":                     {3, both(fails(1), pod(PodAbsent)), ""},
		"the pod is terminating":     {3, both(fails(1), pod(PodTerminating)), ""},
	})
	limit := func(s *State) { s.Declared.ReplaceAfter = time.Second }
	askVerdict(t, memberFailing, map[string]verdictCase{
		"healthy":                               {3, nil, ""},
		"a pod is failing":                      {3, slot1(PodFailing, time.Hour), Block},
		"a pod is failing, member list unknown": {3, both(slot1(PodFailing, time.Hour), unlisted), ""},
		"a failing member will be replaced":     {3, both(slot1(PodFailing, time.Hour), limit), ""},
		"a failing member cannot be replaced":   {3, both(slot1(PodFailing, time.Hour), silence(2), limit), Block},
		"a failing pod's member is not listed":  {3, both(slot1(PodFailing, time.Hour), without(1)), ""},
		"a failing pod has a different spec":    {3, both(slot1(PodFailing, time.Hour, madeOf("h0")), limit), Block},
	})
	grown := func(runs, storage string) func(*State) {
		return func(s *State) { s.Objects.RunsStorage, s.Declared.Storage = runs, storage }
	}
	askVerdict(t, notActedOn, map[string]verdictCase{
		"the volume size changes":                     {3, grown("8Gi", "16Gi"), Block},
		"the volume size is unchanged":                {3, grown("8Gi", "8Gi"), ""},
		"no StatefulSet":                              {3, grown("", "16Gi"), ""},
		"the volume size changes, cluster not formed": {3, both(grown("8Gi", "16Gi"), founded), ""},
	})
	stops := both(func(s *State) { s.Declared.Lifecycle = "Stopped" }, drifts)
	restoring := func(s *State) {
		s.Record, s.ReportedClusterID, s.Membership = RestoringRecord("t"), 0, Membership{}
		s.Replicas[0] = Replica{Pod: PodAbsent, VolumeUID: "v0"}
	}
	besides := func(s *State) { s.Replicas[0].Pod = PodPending }
	askVerdict(t, applyObjects, map[string]verdictCase{
		"no drift":                 {3, nil, ""},
		"drift":                    {3, drifts, Act},
		"drift, cluster must stop": {3, stops, Act},
		"drift, cluster must stop, volume being deleted": {3, both(stops, going(1)), ""},
		"drift, cluster must run, volume being deleted":  {3, both(drifts, going(1)), Act},
		"drift, cluster deleted with its volumes":        {3, both(stops, going(1), deleted("Delete")), Act},
		"drift, cluster deleted, volumes retained":       {3, both(stops, going(1), deleted("Retain")), ""},
		"drift, cluster not formed":                      {3, both(drifts, founded), ""},
		"drift, but no record, replicas or members":      {3, both(drifts, forgotten), ""},
		"drift in a cluster of one member":               {1, drifts, Act},
		"drift during a restore, a-0 has a pod":          {1, both(drifts, restoring, besides), ""},
		"drift during a restore, cluster must stop":      {1, both(drifts, restoring, besides, stops), Act},
		"drift during a restore":                         {1, both(drifts, restoring), Act},
		"no StatefulSet":                                 {3, both(drifts, noStatefulSet), Act},
		"no StatefulSet, version cannot be reached":      {3, both(drifts, noStatefulSet, declares("3.9.0")), Block},
		"a StatefulSet, version cannot be reached":       {3, both(drifts, declares("3.9.0")), Act},
	})
}

// TestDistrustedCA checks the reasons why certificates must not be issued from a CA, and when a CA is recorded.
func TestDistrustedCA(t *testing.T) {
	seen := func(recorded string, a CA) func(*State) {
		return func(s *State) { s.Record.CA, s.CA = recorded, a }
	}
	one, idle := []string{"CA1"}, func(s *State) { s.Replicas, s.Objects.RunsReplicas = nil, 0 }
	for what, c := range map[string]struct {
		change   func(*State)
		distrust string // a part of it
		record   string
	}{
		"no CA":                                   {nil, "", ""},
		"the CA is missing, no pods run":          {both(seen("CA1", CA{}), idle), "", "CA1"},
		"the CA is missing":                       {seen("CA1", CA{}), "", "CA1"},
		"the CA is missing, but pods mount it":    {seen("", CA{Mounted: one}), "", ""},
		"all sources agree":                       {seen("CA1", CA{"CA1", one, "CA1"}), "", "CA1"},
		"not recorded yet":                        {seen("", CA{"CA1", one, "CA1"}), "", "CA1"},
		"not recorded, member list unknown":       {both(seen("", CA{"CA1", one, "CA1"}), unlisted), "", ""},
		"not recorded, and not proven":            {seen("", CA{"CA1", one, ""}), "", ""},
		"not recorded, and not mounted":           {seen("", CA{"CA1", nil, "CA1"}), "", ""},
		"not recorded, another CA is mounted too": {seen("", CA{"CA1", []string{"CA1", "CA2"}, "CA1"}), "", ""},
		"not proven, another CA is mounted too":   {seen("", CA{"CA1", []string{"CA1", "CA2"}, ""}), "pods mount CA CA2", ""},
		"recorded, another CA is mounted too":     {seen("CA1", CA{"CA1", []string{"CA1", "CA2"}, ""}), "", "CA1"},
		"another CA is recorded":                  {seen("CA2", CA{"CA1", nil, ""}), "CA CA2 is recorded", "CA2"},
		"an outdated record names another CA":     {seen("CA2", CA{"CA1", one, "CA1"}), "although members use the CA in the Secret", "CA2"},
		"members use another CA":                  {seen("CA1", CA{"CA1", one, "CA2"}), "members use CA CA2", "CA1"},
		"another CA is recorded, no pods run":     {both(seen("CA2", CA{"CA1", nil, ""}), idle), "", "CA1"},
		"another CA is recorded, a pod must run":  {both(seen("CA2", CA{"CA1", nil, ""}), idle, func(s *State) { s.Objects.RunsReplicas = 1 }), "CA CA2 is recorded", "CA2"},
	} {
		s := after(3, c.change)
		if got := s.Distrusted(); (got == "") != (c.distrust == "") || !strings.Contains(got, c.distrust) {
			t.Errorf("%s: distrusted because %q", what, got)
		}
		if got := s.UnderCA(s.Record).CA; got != c.record {
			t.Errorf("%s: recorded CA is %q", what, got)
		}
	}
	if got := after(3, seen("CA2", CA{"CA1", one, "CA1"})).UnderCA(Record{}).CA; got != "" {
		t.Errorf("while the record in the cluster names another CA, a new record names %s", got)
	}
	const whole, long = "01:23:45:67:89:AB:CD:EF", "01:23:45:67:89:AB:CD:EF:01"
	if short(whole) != whole || short(long) != whole+":…" {
		t.Errorf("%s is shortened to %s, and %s to %s", whole, short(whole), long, short(long))
	}
}

// quotas sets the declared quota, and the quotas of the pods.
func quotas(declared int64, pods ...int64) func(*State) {
	return func(s *State) {
		s.Declared.Quota = declared
		for n, quota := range pods {
			s.Replicas[n].PodQuota = quota
		}
	}
}

// TestAlarmsAreWarnings checks that each active alarm is a warning, regardless of the decision.
func TestAlarmsAreWarnings(t *testing.T) {
	rolls := func(s *State) { s.Declared.Version = "3.7.3" }
	for what, c := range map[string]struct {
		change func(*State)
		want   []string
	}{
		"no alarm":                           {rolls, nil},
		"an alarm of one member":             {both(rolls, alarms(1, "NOSPACE")), []string{"a-1 has a NOSPACE alarm"}},
		"alarms of two members":              {both(rolls, alarms(0, "NOSPACE"), alarms(1, "CORRUPT")), []string{"a-0 has a NOSPACE alarm", "a-1 has a CORRUPT alarm"}},
		"an alarm of an unidentified member": {leftOver(0, "CORRUPT"), []string{"a CORRUPT alarm is active for an unidentified member"}},
		"an alarm of a removed member":       {leftOver(0xd1, "NOSPACE"), []string{"the NOSPACE alarm of removed member"}},
		"another member is not responding":   {both(silence(2), alarms(1, "NOSPACE")), []string{"a-1 has a NOSPACE alarm"}},
		"the cluster must stop":              {both(alarms(1, "NOSPACE"), func(s *State) { s.Declared.Lifecycle = Stopped }), []string{"a-1 has a NOSPACE alarm"}},
	} {
		if got := after(3, c.change).Warnings(); !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}
