package decide

import (
	"strings"
	"testing"
	"time"
)

// slot1 changes the replica of a-1 and makes its member unresponsive.
func slot1(phase PodPhase, since time.Duration, changes ...func(*Replica)) func(*State) {
	return func(s *State) {
		s.down(phase, since, 1)
		for _, change := range changes {
			change(&s.Replicas[1])
		}
	}
}

func madeOf(hash string) func(*Replica) { return func(r *Replica) { r.PodSpecHash = hash } }

func started(ago time.Duration) func(*Replica) {
	return func(r *Replica) { r.PodStarted = noon.Add(-ago) }
}

func crashed(times int) func(*Replica) { return func(r *Replica) { r.PodCrashes = times } }

func never(r *Replica) { r.PodSince = time.Time{} }

func inContact(r *Replica) { r.ClusterID = 0xc1 }

func unlucky(r *Replica) { r.Stranded, r.StrandedSince = "its node is gone", r.PodSince }

func another(r *Replica) { r.VolumeUID = "w1" }

func onItsWay(r *Replica) { r.VolumeTerminating = true }

// founded resets the cluster to its state before any member had a vote.
func founded(s *State) {
	s.Record, s.ReportedClusterID, s.Membership = FoundingRecord("t", len(s.Replicas)), 0, Membership{}
	for i := range s.Replicas {
		s.Replicas[i].ClusterID = 0
	}
}

// first changes a-1 in a cluster in which no member has ever had a vote.
func first(phase PodPhase, since time.Duration, changes ...func(*Replica)) func(*State) {
	return both(slot1(phase, since, changes...), founded)
}

type slotCase struct {
	change func(*State)
	want   bool
}

func hold(t *testing.T, is func(State, Replica) bool, cases map[string]slotCase) {
	t.Helper()
	for what, c := range cases {
		if s := after(3, c.change); is(s, s.Replicas[1]) != c.want {
			t.Errorf("%s: want %t", what, c.want)
		}
	}
}

// TestPodThatNeverGetsItsVolume checks when a pod can never get its volume.
func TestPodThatNeverGetsItsVolume(t *testing.T) {
	unbound := func(r *Replica) { r.PodUnbound = true }
	hold(t, State.waitsInVain, map[string]slotCase{
		"volume not bound":     {slot1(PodPending, 0, unbound), true},
		"volume bound":         {slot1(PodPending, 0), false},
		"pod already starting": {slot1(PodStarting, 0, unbound), false},
		"no pod":               {slot1(PodPending, 0, unbound, func(r *Replica) { r.PodUID = "" }), false},
		"etcd responds":        {slot1(PodPending, 0, unbound, inContact), false},
		"member responds":      {both(slot1(PodPending, 0, unbound), answers), false},
	})
}

func answers(s *State) { s.Membership.Members[1].Answers = true }

// TestBroken checks when a pod of a different declaration counts as broken.
func TestBroken(t *testing.T) {
	hold(t, State.broken, map[string]slotCase{
		"failing, outdated spec":   {slot1(PodFailing, 0, madeOf("h0")), true},
		"failing, up-to-date spec": {slot1(PodFailing, 0), false},
		"pending for an hour":      {slot1(PodPending, time.Hour, madeOf("h0")), true},
		"only just pending":        {slot1(PodPending, 0, madeOf("h0")), false},
		"on a different volume":    {slot1(PodFailing, 0, madeOf("h0"), another), false},
		"volume being deleted":     {slot1(PodFailing, 0, madeOf("h0"), onItsWay), false},
		"stranded":                 {slot1(PodFailing, 0, madeOf("h0"), unlucky), false},
		"no pod":                   {slot1(PodFailing, 0, madeOf("h0"), func(r *Replica) { r.PodUID = "" }), false},
		"etcd responds":            {slot1(PodFailing, 0, madeOf("h0"), inContact), false},
		"member responds":          {both(slot1(PodFailing, 0, madeOf("h0")), answers), false},
		"member is the leader": {both(slot1(PodFailing, 0, madeOf("h0")), func(s *State) {
			s.Membership.Members[0].Leader, s.Membership.Members[1].Leader = false, true
		}), false},
		"etcd has removed it":           {both(slot1(PodFailing, 0, madeOf("h0")), without(1)), false},
		"etcd does not return its list": {both(slot1(PodFailing, 0, madeOf("h0")), without(1), unlisted), true},
		"the cluster has not formed": {both(slot1(PodFailing, 0, madeOf("h0")), func(s *State) {
			*s = State{Name: "a", Now: s.Now, Declared: s.Declared, Record: FoundingRecord("t", 3), Replicas: s.Replicas,
				Membership: Membership{Known: true}}
			for i := range s.Replicas {
				s.Replicas[i].ClusterID = 0
			}
		}), true},
	})
	unknown := func(s *State) { s.Membership.Known = false }
	hold(t, State.stuck, map[string]slotCase{
		"failing":                       {slot1(PodFailing, 0), true},
		"failing since an unknown time": {slot1(PodFailing, 0, never), true},
		"pending since an unknown time": {slot1(PodPending, 0, never), false},
		"pending for 30 seconds":        {slot1(PodPending, 30*time.Second), true},
		"pending for less":              {slot1(PodPending, 30*time.Second-1), false},
		"starting for two minutes":      {slot1(PodStarting, 2*time.Minute), true},
		"starting for less":             {slot1(PodStarting, 2*time.Minute-1), false},
		"starting, member list unknown": {both(slot1(PodStarting, time.Hour), unknown), false},
		"ready":                         {slot1(PodReady, time.Hour), false},
		"terminating":                   {slot1(PodTerminating, time.Hour), false},
	})
	hold(t, State.failsForGood, map[string]slotCase{
		"failing for two minutes":            {slot1(PodFailing, 2*time.Minute), true},
		"failing for less, three crashes":    {slot1(PodFailing, 2*time.Minute-1, crashed(3)), false},
		"failing for a minute, four crashes": {slot1(PodFailing, time.Minute, crashed(4)), true},
		"failing for less, nine crashes":     {slot1(PodFailing, time.Minute-1, crashed(9)), false},
		"failing since an unknown time":      {slot1(PodFailing, 0, never, crashed(9)), false},
		"starting, nine crashes":             {slot1(PodStarting, time.Hour, crashed(9)), false},
	})
	hold(t, State.outlastsPatience, map[string]slotCase{
		"just failed":                              {slot1(PodFailing, 0), true},
		"failing for an hour":                      {both(slot1(PodFailing, time.Hour), declaresOther), true},
		"just failed, no up-to-date pod runs":      {both(slot1(PodFailing, 0), declaresOther), false},
		"pending, not failing":                     {both(slot1(PodPending, 0), declaresOther), true},
		"just failed, member list unknown":         {both(slot1(PodFailing, 0), unknown), false},
		"just failed, no quorum":                   {both(slot1(PodFailing, 0), silence(1, 2)), false},
		"just failed, never formed":                {both(first(PodFailing, 0), declaresOther), true},
		"just failed, etcd has a cluster ID":       {both(first(PodFailing, 0), declaresOther, func(s *State) { s.Membership.ClusterID = 0xc1 }), false},
		"just failed, a pod has a cluster ID":      {both(first(PodFailing, 0), declaresOther, func(s *State) { s.Replicas[2].ClusterID = 0xc1 }), false},
		"just failed, the status has a cluster ID": {both(first(PodFailing, 0), declaresOther, func(s *State) { s.ReportedClusterID = 0xc1 }), false},
	})
}

func declaresOther(s *State) { s.Declared.SpecHash, s.Objects.RunsHash = "h2", "h2" }

// TestHoldsAsDeclared checks which pods show that the current declaration works, or does not work: it works if a pod
// serves, or has run for a minute and is only waiting for the others.
func TestHoldsAsDeclared(t *testing.T) {
	hold(t, State.runsAsDeclared, map[string]slotCase{
		"ready":                       {slot1(PodReady, 0), true},
		"member responds":             {both(slot1(PodStarting, 0), answers), true},
		"starting":                    {slot1(PodStarting, 0), false},
		"outdated spec":               {slot1(PodReady, 0, madeOf("h0")), false},
		"different version":           {slot1(PodReady, 0, func(r *Replica) { r.PodVersion = "3.6.17" }), false},
		"no pod, but member responds": {both(slot1(PodAbsent, 0), answers), false},
	})
	hold(t, State.holdsAsDeclared, map[string]slotCase{
		"ready":                          {slot1(PodReady, 0), true},
		"waiting only for other members": {slot1(PodStarting, time.Hour, inContact, started(time.Minute)), true},
		"outdated spec":                  {slot1(PodStarting, time.Hour, inContact, started(time.Minute), madeOf("h0")), false},
		"running for less than a minute": {slot1(PodStarting, time.Hour, inContact, started(time.Minute-1)), false},
		"running since an unknown time":  {slot1(PodStarting, time.Hour, inContact), false},
		"etcd not responding":            {slot1(PodStarting, time.Hour, started(time.Minute)), false},
		"failing":                        {slot1(PodFailing, time.Hour, inContact, started(time.Minute)), false},
	})
	hold(t, State.failsAsDeclared, map[string]slotCase{
		"failing for an hour":           {slot1(PodFailing, time.Hour), true},
		"just failed":                   {slot1(PodFailing, 0), false},
		"pending for an hour":           {slot1(PodPending, time.Hour), true},
		"just pending":                  {slot1(PodPending, 0), false},
		"starting for an hour":          {slot1(PodStarting, time.Hour), false},
		"outdated spec":                 {slot1(PodFailing, time.Hour, madeOf("h0")), false},
		"failing on a different volume": {slot1(PodFailing, time.Hour, another), false},
		"stranded":                      {slot1(PodPending, time.Hour, unlucky), false},
		"member not recorded":           {both(slot1(PodFailing, time.Hour), func(s *State) { s.Record.Members = s.Record.Members[:1] }), false},
	})
}

// TestOnTrial checks which pods have not yet shown whether they come up with the declared spec.
func TestOnTrial(t *testing.T) {
	going := func(in time.Duration) func(*Replica) { return func(r *Replica) { r.PodGoing = noon.Add(in) } }
	failing := func(s *State) { s.down(PodFailing, time.Hour, 2) }
	hold(t, State.onTrial, map[string]slotCase{
		"just failed":                                    {slot1(PodFailing, 0), true},
		"failing for an hour":                            {slot1(PodFailing, time.Hour), false},
		"just pending":                                   {slot1(PodPending, 0), true},
		"pending for an hour":                            {slot1(PodPending, time.Hour), false},
		"ready":                                          {slot1(PodReady, 0), false},
		"just failed, outdated spec":                     {slot1(PodFailing, 0, madeOf("h0")), false},
		"just pending, outdated spec":                    {slot1(PodPending, 0, madeOf("h0")), false},
		"just failed, different volume":                  {slot1(PodFailing, 0, another), false},
		"stranded":                                       {slot1(PodFailing, 0, unlucky), false},
		"member not recorded":                            {both(slot1(PodFailing, 0), func(s *State) { s.Record.Members = s.Record.Members[:1] }), false},
		"not created yet":                                {slot1(PodAbsent, 0), true},
		"not created yet, refused by quota":              {slot1(PodAbsent, 0, func(r *Replica) { r.PodRefused = "exceeded quota" }), false},
		"not created yet, volume being deleted":          {slot1(PodAbsent, 0, onItsWay), false},
		"terminating":                                    {slot1(PodTerminating, 0, going(1)), true},
		"termination due":                                {slot1(PodTerminating, 0, going(0)), false},
		"starting for less than ten seconds":             {slot1(PodStarting, 0, started(10*time.Second-1)), true},
		"starting for ten seconds":                       {slot1(PodStarting, 0, started(10*time.Second)), false},
		"starting, etcd responds":                        {slot1(PodStarting, 0, started(0), inContact), false},
		"restarted less than a minute ago":               {slot1(PodStarting, 0, started(time.Minute-1), crashed(1), inContact), true},
		"restarted a minute ago":                         {slot1(PodStarting, 0, started(time.Minute), crashed(1), inContact), false},
		"starting while another pod fails":               {both(slot1(PodStarting, 0, started(time.Minute-1)), failing), true},
		"never formed, just failed":                      {first(PodFailing, 0), true},
		"never formed, failing for an hour":              {first(PodFailing, time.Hour), false},
		"never formed, outdated spec":                    {first(PodFailing, 0, madeOf("h0")), false},
		"never formed, starting":                         {first(PodStarting, 0, started(0)), false},
		"never formed, restarted less than a minute ago": {first(PodStarting, 0, started(time.Minute-1), crashed(1)), true},
		"never formed, restarted a minute ago":           {first(PodStarting, 0, started(time.Minute), crashed(1)), false},
		"never formed, pending":                          {first(PodPending, 0, started(0), crashed(1)), false},
		"never formed, not created yet":                  {first(PodAbsent, 0), false},
	})
}

// TestRestartBroken checks which pod is recreated, and when.
func TestRestartBroken(t *testing.T) {
	broken := slot1(PodFailing, time.Hour, madeOf("h0"))
	unready := func(n int) func(*State) { return func(s *State) { s.down(PodFailing, 0, n) } }
	askAlone(t, restartBroken, map[string]ruleCase{
		"broken":                                 {3, broken, RestartReplica{1, "p1"}},
		"broken, and not recorded":               {3, both(broken, gapOf(1)), nil},
		"one pod works, another has just failed": {3, both(broken, unready(2)), RestartReplica{1, "p1"}},
		"new pods would be outdated":             {3, both(broken, func(s *State) { s.Objects.RunsHash = "h0" }), StartRollout{"3.6.16", "h1"}},
		"the declared version is refused":        {3, both(broken, declares("3.9.0")), nil},
		"no StatefulSet":                         {3, both(broken, noStatefulSet), nil},
	})
	if d, _ := restartBroken(after(3, both(broken, unready(0), unready(2)))); d.Verdict != Wait {
		t.Errorf("no pod works, and two have just failed: %s", d)
	}
}

// TestDescribeHeldBack checks that only pods that are held back are reported, and only if the declaration is the
// reason.
func TestDescribeHeldBack(t *testing.T) {
	broken := both(slot1(PodFailing, time.Hour, madeOf("h0")), func(s *State) { s.down(PodFailing, time.Hour, 0, 2) })
	for what, c := range map[string]slotCase{
		"held back":                               {broken, true},
		"new pods would be outdated":              {both(broken, func(s *State) { s.Objects.RunsHash = "h0" }), false},
		"an up-to-date pod is ready":              {both(broken, func(s *State) { s.Replicas[2].Pod = PodReady }), false},
		"all pods are up to date":                 {both(broken, func(s *State) { s.Replicas[1].PodSpecHash = "h1" }), false},
		"the broken pod's member is not recorded": {both(broken, func(s *State) { s.Record.Members = append(s.Record.Members[:1:1], s.Record.Members[2]) }), false},
	} {
		if words := after(3, c.change).describeHeldBack(); (words != "") != c.want {
			t.Errorf("%s: %q", what, words)
		}
	}
}

// TestBlockNamesLackingBackup checks that a Block for a member that only an upgrade can repair also names the backup
// that delays the upgrade.
func TestBlockNamesLackingBackup(t *testing.T) {
	fails := func(s *State) {
		s.Backups.Jobs = []BackupJob{{Name: "a-backup-gen2", Generation: 2, Phase: JobFailed,
			CreatedAt: s.Now.Add(-time.Hour), Message: "the store is gone"}}
	}
	for what, delays := range map[string]func(*State){
		"the backup failed":      fails,
		"a CronJob is unmanaged": func(s *State) { s.Backups.Foreign = "CronJob a-backup was not created by Quorate" },
		"the version is refused, but the rollout has begun": both(fails, func(s *State) {
			s.down(PodStarting, time.Hour, 3)
			s.Replicas[3].LastUse = LastUse{ClusterID: s.Record.ClusterID, Version: "3.7.3", StorageVersion: "3.7"}
		}),
	} {
		s := after(5, both(declares("3.6.17"), func(s *State) {
			s.Generation, s.Declared.BacksUp, s.Declared.BacksUpBeforeUpgrade = 2, true, true
			s.down(PodFailing, time.Hour, 2)
		}, delays))
		if d := Decide(s); d.Verdict != Block || !strings.Contains(d.Message, "backup") {
			t.Errorf("%s: %s", what, d)
		}
		s.Declared.BacksUpBeforeUpgrade = false
		if d := Decide(s); d.Verdict != Act {
			t.Errorf("%s, but no backup is required: %s", what, d)
		}
	}
}

// TestReasonIsGivenForKeptVersion checks when a message explains why a member that is not running keeps its etcd
// version.
func TestReasonIsGivenForKeptVersion(t *testing.T) {
	broken := slot1(PodFailing, time.Hour, madeOf("h0"))
	// The pod of a-1 also has an outdated version, from which the minor version must not be skipped.
	skips := both(broken, declares("3.7.3"), asDeclared, createdWith(1, "3.5.35"),
		func(s *State) { s.Replicas[1].LastUse = LastUse{1, "3.5.35", ""} })
	waits := both(broken, declares("3.7.3"))
	for what, c := range map[string]slotCase{
		"healthy":                          {nil, false},
		"broken":                           {broken, false},
		"a minor version would be skipped": {skips, true},
		"a minor version skipped, member not recorded": {both(skips, gapOf(1)), false},
		"the version cannot be read":                   {both(skips, declares("main")), false},
		"a rollout waits for the member":               {waits, true},
		"the rollout has begun":                        {both(waits, func(s *State) { s.Objects.RunsVersion = "3.7.2" }), false},
		"the version is refused":                       {both(broken, declares("3.9.0")), true},
		"its data has the declared version":            {both(broken, declares("3.6.17")), false},
	} {
		if words := after(3, c.change).describeNotMoved(); (words != "") != c.want {
			t.Errorf("%s: %q", what, words)
		}
	}
}
