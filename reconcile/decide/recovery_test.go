package decide

import (
	"strings"
	"testing"
	"time"
)

// lostMajority makes a cluster of three permanently lose a-0 and a-2. Git declares their data lost and requests a new
// cluster from the data of a-1. All pods are gone.
func lostMajority(s *State) {
	s.Declared.Recovery = RecoveryOrder{ClusterID: 0xc1, Ordinal: 1, Lost: 0b101, Digest: "d1", Word: "w1"}
	s.Membership, s.Objects.RunsReplicas = Membership{}, 0
	for i := range s.Replicas {
		s.Replicas[i].Pod, s.Replicas[i].PodUID, s.Replicas[i].ClusterID = PodAbsent, "", 0
	}
}

// lostAll makes a cluster of three permanently lose all members. Git requests a new cluster from a backup.
func lostAll(s *State) {
	lostMajority(s)
	s.Declared.Recovery.Backup, s.Declared.Recovery.Lost = "tuesday", 0b111
}

// begun records the requested recovery as begun, and marks the other claims.
func begun(s *State) {
	order := s.Declared.Recovery
	s.Record = RecoveringRecord(*s, s.Replica(order.Ordinal).VolumeUID)
	for i := range s.Replicas {
		if s.Replicas[i].Ordinal != order.Ordinal {
			s.Replicas[i].LostCluster = order.ClusterID
		}
	}
}

// recoveryJob adds a running Job for the requested recovery, and applies changes to the Job.
func recoveryJob(changes ...func(*RecoveryJob)) func(*State) {
	return func(s *State) {
		order := s.Declared.Recovery
		volume := s.Replica(order.Ordinal).VolumeUID
		s.Recovery.Job = &RecoveryJob{ClusterID: order.ClusterID, Ordinal: order.Ordinal, From: order.Backup,
			VolumeJob: VolumeJob{UID: "j1", Digest: order.Digest, VolumeUID: volume, Phase: JobRuns}}
		for _, change := range changes {
			change(s.Recovery.Job)
		}
	}
}

func succeeded(j *RecoveryJob) { j.Phase, j.Into = JobSucceeded, 0xc2 }

func jobGoes(j *RecoveryJob) { j.Terminating = true }

func requests(change func(*RecoveryOrder)) func(*State) {
	return func(s *State) { change(&s.Declared.Recovery) }
}

// of requests recovery of the given cluster.
func of(cluster ID) func(*State) { return requests(func(o *RecoveryOrder) { o.ClusterID = cluster }) }

func refused(s *State) { s.Declared.Recovery.Refused = "no" }

func requestsNothing(s *State) { s.Declared.Recovery = RecoveryOrder{} }

// givesUp sets the members that git declares lost.
func givesUp(lost Ordinals) func(*State) { return requests(func(o *RecoveryOrder) { o.Lost = lost }) }

// from requests recovery from the data of a different member.
func from(ordinal int, lost Ordinals) func(*State) {
	return requests(func(o *RecoveryOrder) { o.Ordinal, o.Lost = ordinal, lost })
}

func slot(ordinal int, changes ...func(*Replica)) func(*State) {
	return func(s *State) {
		for _, change := range changes {
			change(&s.Replicas[ordinal])
		}
	}
}

func phase(p PodPhase) func(*Replica) { return func(r *Replica) { r.Pod = p } }

func volume(uid string) func(*Replica) { return func(r *Replica) { r.VolumeUID = uid } }

func marked(lost ID) func(*Replica) { return func(r *Replica) { r.LostCluster = lost } }

func lastUsedBy(cluster ID) func(*Replica) { return func(r *Replica) { r.LastUse.ClusterID = cluster } }

func scaledTo(replicas int) func(*State) { return func(s *State) { s.Objects.RunsReplicas = replicas } }

// podsStart makes all pods exist again.
func podsStart(s *State) {
	s.Objects.RunsReplicas = len(s.Replicas)
	for i := range s.Replicas {
		s.Replicas[i].Pod, s.Replicas[i].PodSince = PodStarting, noon.Add(-time.Minute)
	}
}

// listed makes etcd list the members again, and sets which of them respond.
func listed(known bool, answering ...int) func(*State) {
	return func(s *State) {
		s.Membership = healthy(len(s.Replicas)).Membership
		s.Membership.Known = known
		for i := range s.Membership.Members {
			s.Membership.Members[i].Answers = false
		}
		for _, i := range answering {
			s.Membership.Members[i].Answers = true
		}
	}
}

// judge evaluates a condition in clusters of three members with changes.
func judge(t *testing.T, is func(State) bool, cases map[string]slotCase) {
	t.Helper()
	for what, c := range cases {
		if is(after(3, c.change)) != c.want {
			t.Errorf("%s: want %t", what, c.want)
		}
	}
}

type outcome struct {
	change  func(*State)
	verdict Verdict // empty if the rule does not apply
	action  Action
}

// recoverAlone evaluates the rule Recover without earlier rules.
func recoverAlone(t *testing.T, cases map[string]outcome) {
	t.Helper()
	for what, c := range cases {
		d, applies := recoverCluster(after(3, c.change))
		if d.Verdict != c.verdict || d.Action != c.action || applies != (c.verdict != "") {
			t.Errorf("%s: %s", what, d)
		}
	}
}

// TestRecoveryBegins checks the conditions for stopping pods for a recovery, and for starting its Job.
func TestRecoveryBegins(t *testing.T) {
	recovers := StartRecovery{1, "d1"}
	recoverAlone(t, map[string]outcome{
		"requested":                            {lostMajority, Act, recovers},
		"requested, from a backup":             {lostAll, Act, recovers},
		"the cluster must not run":             {both(lostMajority, func(s *State) { s.Declared.Lifecycle = Stopped }), "", nil},
		"the StatefulSet runs a pod":           {both(lostMajority, scaledTo(1)), Act, StopPods{}},
		"a pod terminates":                     {both(lostMajority, slot(2, phase(PodTerminating))), Wait, nil},
		"no StatefulSet":                       {both(lostMajority, noStatefulSet), Act, recovers},
		"no StatefulSet, but a pod exists":     {both(lostMajority, slot(2, phase(PodStarting)), noStatefulSet), "", nil},
		"no StatefulSet, and a pod terminates": {both(lostMajority, slot(2, phase(PodTerminating)), noStatefulSet), Wait, nil},
		"the recovery is not allowed":          {both(lostMajority, refused), "", nil},
		"a Job works on another volume": {both(lostMajority, recoveryJob(func(j *RecoveryJob) { j.VolumeUID = "w1" })), Act,
			StopRecovery{"j1"}},
	})
}

// TestRecordIsRestoredBeforeRecoveryContinues checks that a recovery does not begin, continue or stop while its record
// is missing: the record is written first.
func TestRecordIsRestoredBeforeRecoveryContinues(t *testing.T) {
	recoverAlone(t, map[string]outcome{
		"a recovery Job works on the volume": {both(lostMajority, recoveryJob()), "", nil},
		"the whole record is lost, and a Job works on no member's volume": {
			both(lostMajority, recoveryJob(func(j *RecoveryJob) { j.VolumeUID = "v9" }), requestsNothing,
				func(s *State) { s.Record = Record{} }), "", nil},
	})
}

// TestLostClusterIsNotStartedAgain checks that pods of a lost cluster are not started if marks show that a new cluster
// was created from it.
func TestLostClusterIsNotStartedAgain(t *testing.T) {
	marks := both(lostMajority, requestsNothing, slot(0, marked(0xc1)))
	recoverAlone(t, map[string]outcome{
		"no pods exist":           {marks, Block, nil},
		"no claim is marked":      {both(marks, slot(0, marked(0))), "", nil},
		"pods are about to start": {both(marks, scaledTo(3)), "", nil},
		"a pod terminates":        {both(marks, slot(2, phase(PodTerminating))), "", nil},
	})
}

// TestRecoveryIsOrderedForLostClusterOnly checks that only a request for exactly this cluster counts, and only without
// quorum.
func TestRecoveryIsOrderedForLostClusterOnly(t *testing.T) {
	judge(t, State.ordersRecovery, map[string]slotCase{
		"the cluster is lost":                 {lostMajority, true},
		"not requested":                       {both(lostMajority, requestsNothing), false},
		"requested for another cluster":       {both(lostMajority, of(0xc2)), false},
		"etcd lists its members":              {both(lostMajority, listed(true)), false},
		"a majority responds":                 {both(lostMajority, listed(false, 0, 2)), false},
		"a minority responds":                 {both(lostMajority, listed(false, 1)), true},
		"the status names another cluster":    {both(lostMajority, func(s *State) { s.ReportedClusterID = 0xc2 }), false},
		"a pod responds from another cluster": {both(lostMajority, slot(2, func(r *Replica) { r.ClusterID = 0xc2 })), false},
	})
}

// TestRecoveryIsHindered checks which requests are not carried out.
func TestRecoveryIsHindered(t *testing.T) {
	blindly, starts := recordedAs(RecordedMember{Mode: Sealed}), slot(2, phase(PodStarting))
	judge(t, func(s State) bool { return s.hindersRecovery() != "" }, map[string]slotCase{
		"from the remaining member":                    {lostMajority, false},
		"the recovery is not allowed":                  {both(lostMajority, refused), true},
		"the request is void":                          {both(lostMajority, func(s *State) { s.Record.VoidRecovery = "w1" }), true},
		"the request is void, according to the status": {both(lostMajority, func(s *State) { s.ReportedVoidRecovery = "w1" }), true},
		"another request was void":                     {both(lostMajority, func(s *State) { s.Record.VoidRecovery = "w0" }), false},
		"from a volume being deleted":                  {both(lostMajority, going(1)), true},
		"from an unknown member":                       {both(lostMajority, from(3, 0b111)), true},
		"from a learner":                               {both(lostMajority, recordedAs(RecordedMember{Mode: Joining})), true},
		"from a volume that was replaced":              {both(lostMajority, changed(another)), true},
		"from a member without a recorded volume":      {both(lostMajority, blindly), false},
		"no volume exists, and none is recorded":       {both(lostMajority, blindly, changed(gone)), true},
		"from a member that is declared lost":          {both(lostMajority, givesUp(0b111)), true},
		"the cluster was already recovered":            {both(lostMajority, slot(0, marked(0xc1))), true},
		"a pod is ready":                               {both(lostMajority, slot(2, phase(PodReady))), true},
		"a starting pod's volume is being deleted":     {both(lostMajority, givesUp(0b001), going(2), starts), true},
		"from a backup":                                {lostAll, false},
		"from a backup, the volume is being deleted":   {both(lostAll, going(1)), false},
		"from a backup, the volume is missing":         {both(lostAll, changed(gone)), false},
		"from a backup, for an unknown member":         {both(lostAll, from(3, 0b1111)), true},
	})
}

// TestVolumesThatMayHoldMoreDataPreventRecovery checks which volumes git must declare lost before a recovery: volumes
// that may hold data of the lost cluster that the source does not have.
func TestVolumesThatMayHoldMoreDataPreventRecovery(t *testing.T) {
	unrecorded := func(changes ...func(*Replica)) func(*State) {
		r := Replica{Ordinal: 3, Pod: PodAbsent, VolumeUID: "v3", VolumeToken: "t"}
		for _, change := range changes {
			change(&r)
		}
		return both(lostMajority, func(s *State) { s.Replicas = append(s.Replicas, r) })
	}
	removed := func(volume string, lost ID) func(*State) {
		return func(s *State) { s.Record = s.Record.WithRemoved(RemovedMember{3, volume, lost}) }
	}
	joins := both(lostMajority, givesUp(0b001), func(s *State) {
		s.Record = s.Record.With(RecordedMember{Ordinal: 2, Mode: Joining})
	})
	judge(t, func(s State) bool { return s.hinderedByOthers() != "" }, map[string]slotCase{
		"all other members are declared lost":           {lostMajority, false},
		"a member is not declared lost":                 {both(lostMajority, givesUp(0b001)), true},
		"a-2 without a volume is not declared lost":     {both(lostMajority, givesUp(0b001), slot(2, gone)), false},
		"a-2 on another volume is not declared lost":    {both(lostMajority, givesUp(0b001), slot(2, volume("w2"))), true},
		"a learner with an unused claim":                {joins, false},
		"a learner whose claim the cluster has used":    {both(joins, slot(2, lastUsedBy(0xc1))), true},
		"a learner whose claim an earlier cluster used": {both(joins, slot(2, lastUsedBy(0xc9))), false},
		"an unknown volume":                             {unrecorded(), true},
		"an unknown volume, declared lost":              {both(unrecorded(), givesUp(0b1101)), false},
		"an unknown volume, marked as this cluster's":   {unrecorded(marked(0xc1)), true},
		"an unknown volume of an earlier lost cluster":  {unrecorded(marked(0xc9)), false},
		"a removed member's volume":                     {both(unrecorded(), removed("v3", 0)), false},
		"a removed member's volume, marked later":       {both(unrecorded(marked(0xc1)), removed("v3", 0)), false},
		"not the removed member's volume":               {both(unrecorded(), removed("w3", 0)), true},
		"recorded as kept from this cluster":            {both(unrecorded(marked(0xc1)), removed("v3", 0xc1)), true},
		"from a backup, all members are declared lost":  {lostAll, false},
		"from a backup, a-1 is not declared lost":       {both(lostAll, givesUp(0b101)), true},
	})
}

// TestReadyPodsDelayRecovery checks in which cases a requested recovery is waiting only for Kubernetes to report
// all pods as not ready.
func TestReadyPodsDelayRecovery(t *testing.T) {
	ready := both(lostMajority, slot(1, phase(PodReady)))
	judge(t, State.awaitsUnready, map[string]slotCase{
		"a pod is ready":  {ready, true},
		"no pod is ready": {lostMajority, false},
		"a pod is ready, no recovery is requested": {both(ready, requestsNothing), false},
		"a pod is ready, the recovery has begun":   {both(ready, begun), false},
		"a pod is ready, a-2 is not declared lost": {both(ready, givesUp(0b001)), false},
		"a pod is ready, another waits for a volume": {
			both(ready, givesUp(0b001), slot(2, gone, phase(PodPending))), true},
	})
}

// TestBegunRecoveryContinues checks the action after a recovery has begun, when its volume may already hold the new
// cluster's data.
func TestBegunRecoveryContinues(t *testing.T) {
	recovery, restoration := both(lostMajority, begun), both(lostAll, begun)
	backup := requests(func(o *RecoveryOrder) { o.Backup, o.Lost = "tuesday", 0b111 })
	again, stops := StartRecovery{1, "d1"}, StopRecovery{"j1"}
	recoverAlone(t, map[string]outcome{
		"no Job": {recovery, Act, again},
		"no Job, and the recovery is not allowed":   {both(recovery, refused), Block, nil},
		"the Job is running":                        {both(recovery, recoveryJob()), Wait, nil},
		"the Job is running, but is not allowed":    {both(recovery, recoveryJob(), refused), Wait, nil},
		"etcd lists its members":                    {both(recovery, podsStart, listed(true)), Block, nil},
		"a pod is ready":                            {both(recovery, podsStart, slot(1, phase(PodReady))), Block, nil},
		"pods start":                                {both(recovery, podsStart), Act, StopPods{}},
		"pods start, one on a volume being deleted": {both(recovery, podsStart, givesUp(0b001), going(2)), Block, nil},
		"the recovery is no longer requested":       {both(recovery, requestsNothing), Block, nil},
		"a member is no longer declared lost":       {both(recovery, givesUp(0b001)), Block, nil},
		"the volume is deleted":                     {both(recovery, changed(gone)), Block, nil},
		"the volume was replaced":                   {both(recovery, changed(another)), Block, nil},
		"the volume is being deleted":               {both(recovery, going(1)), Block, nil},
		"the volume is deleted, now from a backup":  {both(recovery, changed(gone), backup), Act, again},
		"the volume is deleted, now from a-2": {both(recovery, changed(gone), slot(2, marked(0)), from(2, 0b011)), Act,
			StartRecovery{2, "d1"}},
		"now from a-2, whose volume was replaced":           {both(recovery, slot(2, volume("w2")), from(2, 0b011)), Block, nil},
		"from a backup, no Job":                             {restoration, Act, again},
		"from a backup, the volume is deleted":              {both(restoration, changed(gone)), Act, again},
		"from a backup, the volume was replaced":            {both(restoration, changed(another)), Act, again},
		"from a backup, the volume is being deleted":        {both(restoration, going(1)), Wait, nil},
		"from a backup, running Job's volume being deleted": {both(restoration, recoveryJob(), going(1)), Act, stops},
	})
}

// TestBegunRecoveryAdvice checks which commands are suggested if etcd responds although a new cluster is being created:
// a volume is to be deleted only if it may hold the new cluster's data, and only while etcd has a quorum without it.
func TestBegunRecoveryAdvice(t *testing.T) {
	const job, claim = "kubectl delete job", "kubectl delete pvc"
	serves := both(lostMajority, begun, podsStart, slot(0, phase(PodReady)))
	for what, c := range map[string]struct {
		change func(*State)
		want   string
	}{
		"the Job runs":                       {both(serves, recoveryJob()), job},
		"the Job runs, and etcd serves":      {both(serves, recoveryJob(), listed(true, 0, 2)), job},
		"the Job has ended":                  {both(serves, recoveryJob(succeeded), listed(true, 0, 2)), claim},
		"the Job is being deleted":           {both(serves, recoveryJob(jobGoes), listed(true, 0, 2)), claim},
		"no Job":                             {both(serves, listed(true, 0, 2)), claim},
		"all members respond":                {both(serves, listed(true, 0, 1, 2)), ""},
		"etcd does not return a member list": {both(serves, listed(false, 0, 2)), ""},
	} {
		got := after(3, c.change).firstGiveUp()
		for _, command := range []string{job, claim} {
			if strings.Contains(got, command) != (c.want == command) {
				t.Errorf("%s: %q", what, got)
			}
		}
	}
}

// TestRecoveryThatHasNotBegunIsExplained checks when a cluster without quorum reports why the requested recovery has
// not begun, and when there is a warning about it.
func TestRecoveryThatHasNotBegunIsExplained(t *testing.T) {
	hindered := both(lostMajority, givesUp(0b001))
	judge(t, func(s State) bool { return s.describeHindered() != "" }, map[string]slotCase{
		"hindered":                {hindered, true},
		"hindered, not requested": {both(hindered, requestsNothing), false},
		"not hindered":            {lostMajority, false},
		"hindered, and begun":     {both(lostMajority, begun, givesUp(0b001)), false},
	})
	judge(t, func(s State) bool { return len(s.recoveryWarnings()) > 0 }, map[string]slotCase{
		"hindered":                      {hindered, true},
		"hindered, and begun":           {both(lostMajority, begun, givesUp(0b001)), false},
		"not hindered":                  {lostMajority, false},
		"not requested":                 {nil, false},
		"the cluster has quorum":        {both(lostMajority, func(s *State) { s.Membership.Known = true }), true},
		"requested for another cluster": {both(lostMajority, of(0xc9)), true},
		"the recovery was carried out":  {both(of(0xc9), func(s *State) { s.Record.Recovery.ClusterID = 0xc9 }), false},
		"the record is lost":            {both(lostMajority, func(s *State) { s.Record = Record{} }), false},
	})
	s := after(3, both(lostAll, begun, requestsNothing))
	if s.describeBegun() == "" {
		t.Error("once git no longer names the backup, the source of a recovery that has begun is not named")
	}
}
