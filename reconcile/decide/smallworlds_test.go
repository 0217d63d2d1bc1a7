package decide_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
	"quorate.dev/quorate/reconcile/decide/invariants"
)

// slot is the state of one ordinal in a small world.
type slot struct {
	pod    decide.PodPhase
	volume string
	member memberKind
	mode   decide.Mode // empty if not recorded
	proven bool        // ID and volume are recorded
}

type memberKind string

const (
	noMember         memberKind = ""
	answering        memberKind = "answering voter"
	silentVoter      memberKind = "silent voter"
	unstarted        memberKind = "unstarted voter"
	learning         memberKind = "answering learner"
	unstartedLearner memberKind = "unstarted learner"
)

// every returns all possible slots that keep accepts.
func every(keep func(slot) bool) []slot {
	var slots []slot
	for _, pod := range []decide.PodPhase{decide.PodAbsent, decide.PodPending, decide.PodStarting, decide.PodReady, decide.PodFailing, decide.PodTerminating} {
		for _, volume := range []string{"", "v", "other"} {
			for _, member := range []memberKind{noMember, answering, silentVoter, unstarted, learning, unstartedLearner} {
				for _, mode := range []decide.Mode{"", decide.Founding, decide.Joining, decide.Sealed} {
					slots = append(slots, slot{pod, volume, member, mode, false})
					if mode == decide.Sealed {
						slots = append(slots, slot{pod, volume, member, mode, true})
					}
				}
			}
		}
	}
	return slices.DeleteFunc(slots, func(s slot) bool { return !keep(s) })
}

func (s slot) answers() bool { return s.member == answering || s.member == learning }

// anything accepts all slots, even slots that no single observation can find.
func anything(slot) bool { return true }

// telling excludes impossible slots, and slots that make no difference in combination with others.
func telling(s slot) bool {
	impossible := s.answers() && (s.volume == "" || s.pod != decide.PodStarting && s.pod != decide.PodReady)
	return !impossible && s.pod != decide.PodPending && s.pod != decide.PodTerminating && s.mode != decide.Joining &&
		s.member != unstartedLearner && (s.volume != "other" || s.proven)
}

// coarse accepts slots that differ in their effect on the whole cluster.
func coarse(s slot) bool {
	return telling(s) && s.pod != decide.PodStarting && (s.pod == decide.PodReady) == s.answers() &&
		(s.mode != decide.Sealed || s.proven) && (s.volume != "" || s.pod == decide.PodAbsent) && s.member != learning
}

// common accepts the slots of larger clusters: recorded, with a volume.
func common(s slot) bool {
	return coarse(s) && s.volume != "" && s.mode != "" && s.pod != decide.PodAbsent
}

// around is the state of a small world outside its slots.
type around struct {
	record, status string // "", "unformed", "formed"; "", "same", "other"
	known          bool
	flag           string
}

var flags = []string{"", "drift", "drift that is undone", "rewritten", "rewritten unsafely", "no StatefulSet", "problems", "foreign", "relabelled", "suspended", "undeclared", "terminating", "irreplaceable", "locked", "stopped", "gone", "more", "newer",
	"fewer", "reshaped", "restarting", "lagging", "skipping", "back", "preparing", "orphaned", "renamed", "stranger", "alarm", "no space", "making room", "room again", "fragmented", "defragmentation requested", "defragmentation unfinished", "grown", "deleted", "left", "left over", "asleep", "old log",
	"another CA", "unrecorded CA", "unproven CA", "irreplaceable, scaled to 0", "another CA, scaled to 0",
	"worn orphan", "worn problems", "worn suspended", "worn foreign", "worn unrecorded",
	"no backup", "waits for a backup", "no backup to be had", "no last backup", "waits for a last backup", "no last backup to be had",
	"to be restored", "restore to start", "restore runs", "restore failed", "restore done", "restore of another",
	"restore without record", "restored", "restored something else",
	"recovery ordered", "recovery of one of many", "recovery to start", "recovery runs", "recovery failed",
	"recovery done", "recovery of another", "recovery taken back", "recovery without record", "recovery recovered",
	"restored in place ordered", "restored in place to start", "restored in place runs", "restored in place failed",
	"restored in place done", "restored in place of a member", "restored in place taken back",
	"refuted", "outvoted", "differing", "torn", "unheard", "stopped by check", "joining together", "about to join together", "joined together"}

func arounds(flags ...string) []around {
	var list []around
	for _, record := range []string{"", "unformed", "formed"} {
		for _, status := range []string{"", "same", "other"} {
			for _, known := range []bool{false, true} {
				for _, flag := range flags {
					if status == "other" && len(flags) < 10 {
						continue
					}
					list = append(list, around{record, status, known, flag})
				}
			}
		}
	}
	return list
}

// smallWorld builds a state from the slots and everything around them.
func smallWorld(slots []slot, a around) decide.State {
	w := &world{}
	w.State = decide.State{Name: "a", Now: dawn, Declared: decidetest.Declared(len(slots))}
	w.Objects.RunsVersion, w.Objects.RunsHash, w.Objects.RunsReplicas = w.Declared.Version, w.Declared.SpecHash, len(slots)
	w.Membership.Known = a.known
	if a.record != "" {
		w.Record.Token = theToken
	}
	if a.record == "formed" {
		w.Record.ClusterID, w.Record.LogVersion = theCluster, "3.6"
	}
	w.ReportedClusterID = map[string]decide.ID{"same": theCluster, "other": 0xc2}[a.status]
	for n, slot := range slots {
		w.fill(n, slot)
	}
	w.flag(a.flag)
	return w.State
}

func (w *world) fill(n int, s slot) {
	if s.pod != decide.PodAbsent || s.volume != "" {
		r := decide.Replica{Ordinal: n, Pod: s.pod, PodUID: "p", PodSince: dawn.Add(-time.Hour), VolumeUID: s.volume, VolumeToken: theToken}
		if s.pod != decide.PodAbsent {
			r.PodVersion, r.PodSpecHash = w.Declared.Version, w.Declared.SpecHash
		}
		r.NoData = s.pod == decide.PodFailing && s.volume == "other"
		if s.answers() {
			r.ClusterID = theCluster
		}
		w.Replicas = append(w.Replicas, r)
	}
	if s.mode != "" && w.Record.Token != "" {
		m := decide.RecordedMember{Ordinal: n, Mode: s.mode}
		if s.proven {
			m.ID, m.VolumeUID = memberID(n), "v"
		}
		w.Record.Members = append(w.Record.Members, m)
	}
	if s.member != noMember {
		w.Membership.ClusterID = theCluster
		w.Membership.Members = append(w.Membership.Members, decide.Member{
			ID: memberID(n), Name: w.ReplicaName(n), PeerURL: w.peerURL(n), Answers: s.answers(), Version: w.Declared.Version,
			Started: s.answers() || s.member == silentVoter,
			Learner: s.member == learning || s.member == unstartedLearner,
		})
	}
}

func (w *world) flag(flag string) {
	switch flag {
	case "drift":
		w.Objects.Drift = []string{"Service a: missing", "StatefulSet a: changed"}
	case "drift that is undone":
		w.Objects.Drift = []string{"Service a: missing"}
		for range 3 {
			w.Repeated = decide.Repeats(w.State, decide.Decision{Rule: "ApplyObjects"}, true)
		}
	case "rewritten", "rewritten unsafely":
		w.Objects.Rewritten = []decide.RewrittenField{{Object: "Service a", Field: "spec.x", Accepted: flag == "rewritten"}}
	case "no StatefulSet":
		w.Objects.RunsVersion, w.Objects.RunsHash, w.Objects.RunsReplicas = "", "", 0
		w.Objects.Drift = []string{"StatefulSet a: missing"}
	case "problems":
		w.Declared.Problems = []string{"one", "two"}
	case "relabelled":
		w.Objects.Relabelled = []string{"Pod a-0 has lost a label"}
	case "foreign":
		w.Objects.Foreign = []string{"Service a", "Secret a-ca"}
	case "suspended":
		w.Declared.Suspended = true
	case "undeclared":
		w.Declared.Suspended, w.Objects.DeclarationDiffers = true, true
	case "terminating":
		w.Objects.Terminating = []string{"Service a", "Secret a-ca"}
	case "irreplaceable", "irreplaceable, scaled to 0":
		w.Objects.Irreplaceable = []string{"Secret a-ca: missing"}
		if flag != "irreplaceable" {
			w.Objects.RunsReplicas = 0
		}
	case "locked":
		w.LockHolder = "process 7"
		w.Objects.Drift = []string{"Service a: missing"}
	case "stopped":
		w.Declared.Lifecycle = "Stopped"
	case "gone":
		w.Declared.Lifecycle = "Deleted"
		w.Objects.RunsVersion, w.Objects.RunsHash, w.Objects.RunsReplicas = "", "", 0
	case "more":
		w.Declared.Replicas++
	case "newer":
		w.Declared.Version = "3.7.3"
		w.Objects.Drift = []string{"Service a: missing", "StatefulSet a: changed"}
	default:
		w.flagOfLife(flag)
	}
}

// wear makes certificates expire while a guard applies.
func (w *world) wear(guard string) {
	w.Record.CA, w.CA = "CA1", decide.CA{Secret: "CA1", Mounted: []string{"CA1"}}
	w.Certificates = []decide.Certificate{{Secret: "a-peer-tls", Key: "tls.crt", NotBefore: dawn.Add(-9 * time.Hour), NotAfter: dawn.Add(time.Hour)}}
	switch guard {
	case "orphan", "unrecorded":
		w.Declared.Orphaned = "git declares it no longer"
		if guard == "unrecorded" {
			w.Record.CA = ""
		}
	case "problems":
		w.Declared.Problems = []string{"one"}
	case "suspended":
		w.Declared.Suspended, w.Declared.Orphaned = true, "git declares it no longer"
	case "foreign":
		w.Declared.Problems, w.Objects.Foreign = []string{"one"}, []string{"Service a"}
	}
}

// proven returns the CA with which members respond, if any does.
func (w *world) proven(ca string) string {
	if decide.Answering(w.Membership.Members) == 0 {
		return ""
	}
	return ca
}

// flagOfLife sets the state of a changing cluster.
func (w *world) flagOfLife(flag string) {
	switch flag {
	case "fewer":
		w.Declared.Replicas = max(1, w.Declared.Replicas-1)
	case "reshaped":
		w.Declared.SpecHash = "h2"
	case "restarting", "lagging":
		w.Declared.SpecHash, w.Objects.RunsHash = "h2", "h2"
		if members := w.Membership.Members; flag == "lagging" && len(members) > 0 {
			members[0].Applied, members[0].Leader = 9000, true
		}
	case "skipping":
		w.Declared.Version = "3.9.0"
	case "old log":
		w.Declared.Version, w.Record.LogVersion = "3.7.3", ""
	case "back", "preparing":
		w.Declared.Version = "3.5.35"
		if flag == "preparing" {
			w.Membership.Downgrade = "3.5"
		}
	case "orphaned":
		w.Declared.Orphaned, w.Declared.Replicas = "git declares it no longer", 9
	case "renamed":
		w.Declared.RenamedFrom = "b"
		if len(w.Replicas) > 0 {
			return
		}
		w.Objects.RunsVersion, w.Objects.RunsHash, w.Objects.RunsReplicas = "", "", 0
	case "another CA", "another CA, scaled to 0":
		if flag != "another CA" {
			w.Objects.RunsReplicas = 0
		}
		w.Record.CA, w.CA = "CA1", decide.CA{Secret: "CA2", Mounted: []string{"CA1"}, Proven: w.proven("CA1")}
		w.Objects.Drift = []string{"Secret a-peer-tls: changed"}
	case "unrecorded CA", "unproven CA":
		w.CA = decide.CA{Secret: "CA1", Mounted: []string{"CA1"}, Proven: w.proven("CA1")}
		if flag == "unproven CA" {
			w.CA = decide.CA{Secret: "CA1", Mounted: []string{"CA1", "CA2"}}
		}
	case "worn orphan", "worn problems", "worn suspended", "worn foreign", "worn unrecorded":
		w.wear(strings.TrimPrefix(flag, "worn "))
	case "no backup", "waits for a backup", "no backup to be had":
		w.wantBackup(strings.TrimPrefix(flag, "no backup"))
	case "no last backup", "waits for a last backup", "no last backup to be had":
		w.wantBackup(strings.TrimPrefix(strings.Replace(flag, "last ", "", 1), "no backup"))
		w.Declared.BacksUpBeforeUpgrade, w.Declared.Version = false, "3.6.16"
		w.Declared.BacksUpBeforeDeletion, w.Declared.Lifecycle = true, decide.Deleted
	case "to be restored", "restore to start", "restore runs", "restore failed", "restore done", "restore of another", "restore without record":
		w.wantRestore(strings.TrimPrefix(flag, "restore "))
	case "restored", "restored something else":
		w.Record.RestoredFrom, w.Record.Uncompared = "tuesday", true
		if flag != "restored" {
			w.Record.Restored = decide.RestoredData{ClusterID: theCluster, Revision: 1018}
		}
	case "recovery ordered", "recovery of one of many", "recovery to start", "recovery runs", "recovery failed", "recovery done", "recovery of another",
		"recovery taken back", "recovery without record", "recovery recovered":
		w.wantRecovery(strings.TrimPrefix(flag, "recovery "))
	case "restored in place ordered", "restored in place to start", "restored in place runs", "restored in place failed",
		"restored in place done", "restored in place of a member", "restored in place taken back":
		w.wantRestoredInPlace(strings.TrimPrefix(flag, "restored in place "))
	case "joining together", "about to join together", "joined together":
		w.joinTogether(flag)
	case "source", "source unknown", "source unfit", "source abandoned", "guest", "many guests", "guest vanished", "guest released",
		"guest leads", "silent guest", "silent guest released", "guests abandoned", "adoption taken back", "guest, stopped":
		w.flagOfAdoption(flag)
	case "asleep":
		w.Declared.Lifecycle, w.Objects.RunsReplicas = "Stopped", 0
	case "stranger":
		w.Membership.Members = append(w.Membership.Members, decide.Member{ID: 0xd1, Name: "stranger", Answers: true, Started: true})
	case "alarm":
		w.Membership.StaleAlarms = []decide.Alarm{{ID: 0xd2, Kind: "CORRUPT"}, {ID: 0xd1, Kind: "NOSPACE"}}
	case "no space":
		if members := w.Membership.Members; len(members) > 0 {
			members[0].Alarms = []decide.AlarmKind{"NOSPACE"}
		}
	case "making room", "room again":
		w.Declared.RecoversSpace, w.Declared.Quota = true, 4<<20
		for i := range w.Membership.Members {
			m := &w.Membership.Members[i]
			m.Alarms, m.DBSize = []decide.AlarmKind{"NOSPACE"}, 2<<20
			if flag == "making room" {
				m.DBSize = 4 << 20
			}
		}
	case "fragmented":
		w.Declared.Defragmentation = decide.Defragmentation{MinFreePercent: 45, MinFree: 1 << 20}
		for i := range w.Membership.Members {
			w.Membership.Members[i].DBSize = 2 << 20
		}
	case "defragmentation requested", "defragmentation unfinished":
		w.Declared.Defragmentation.Request = "now"
		if flag == "defragmentation requested" {
			return
		}
		w.DefragmentationRequest = decide.DefragmentationRequest{Request: "now", Since: dawn}
		for i := range w.Membership.Members {
			w.Membership.Members[i].DBSize = 2 << 20
			w.Membership.Members[i].Defragmented = decide.LastDefragmentation{At: dawn, Failure: decide.Unfinished}
		}
	case "grown":
		w.Declared.Storage, w.Objects.RunsStorage = "16Gi", "8Gi"
	case "deleted":
		w.Declared.Lifecycle, w.Declared.Retention, w.Objects.RunsReplicas = "Deleted", "Delete", 0
		w.Objects.Remaining = []string{"Service a", "ConfigMap a-members"}
	case "differing":
		w.doubt("outvoted")
		w.each(func(m *decide.Member) { m.Alarms = nil })
		w.Membership.StaleAlarms, w.Declared.BacksUp, w.Generation = nil, true, 2
		w.Comparison.DiffersSince = dawn
		w.Backups.Jobs = []decide.BackupJob{{Name: "a-backup-j1", DiffersSince: dawn, Phase: decide.JobRuns, CreatedAt: dawn}}
	case "refuted", "outvoted", "torn", "unheard", "stopped":
		w.doubt(flag)
	case "left", "left over":
		w.Record = w.Record.WithRemoved(decide.RemovedMember{Ordinal: w.Declared.Replicas, VolumeUID: "v"})
		w.Replicas = append(w.Replicas, decide.Replica{
			Ordinal: w.Declared.Replicas, Pod: decide.PodAbsent, VolumeUID: "v", VolumeToken: theToken, VolumeTerminating: flag == "left over",
		})
	}
}

// wantBackup requires a backup before new pods get a different version. The state determines whether that backup has
// been started.
func (w *world) wantBackup(state string) {
	w.Declared.BacksUp, w.Declared.BacksUpBeforeUpgrade, w.Declared.Version = true, true, "3.6.17"
	w.Generation = 2
	if state == "" {
		return
	}
	job := decide.BackupJob{Name: "a-backup-gen2", Generation: 2, Phase: decide.JobRuns, CreatedAt: dawn.Add(-time.Minute)}
	if state == " to be had" {
		job.Phase, job.Message = decide.JobFailed, "the store refuses"
	}
	w.Backups = decide.Backups{Jobs: []decide.BackupJob{{Name: "a-backup-1", Phase: decide.JobSucceeded}, job},
		Last: &decide.Backup{ClusterID: theCluster, StartedAt: dawn.Add(-time.Hour)}}
}

// wantRestore declares a restore. Either it has not begun, or its first member is recorded as being restored, with a
// Job in the given phase.
func (w *world) wantRestore(state string) {
	w.Declared.Restore = decide.RestoreSource{From: "tuesday", Digest: "d1"}
	if state == "without record" {
		w.Record, w.Objects.RunsReplicas = decide.Record{}, 0
		w.Restore.Job = &decide.RestoreJob{From: "tuesday", VolumeJob: w.volumeJob(0, decide.JobRuns)}
	}
	if state == "to be restored" || w.Record.Token == "" {
		return
	}
	w.Record = w.Record.With(decide.RecordedMember{Ordinal: 0, Mode: decide.Restoring})
	w.Objects.RunsReplicas = 0
	phase := map[string]decide.JobPhase{"runs": decide.JobRuns, "failed": decide.JobFailed, "done": decide.JobSucceeded, "of another": decide.JobSucceeded}[state]
	if phase == "" {
		return
	}
	w.Restore.Job = &decide.RestoreJob{From: "tuesday", VolumeJob: w.volumeJob(0, phase)}
	if state == "of another" {
		w.Restore.Job.Digest = "d2"
	}
}

// volumeJob returns a Job for the declaration on the volume of a slot.
func (w *world) volumeJob(ordinal int, phase decide.JobPhase) decide.VolumeJob {
	return decide.VolumeJob{UID: "j1", Digest: "d1", VolumeUID: w.Replica(ordinal).VolumeUID, Phase: phase}
}

// wantRecovery requests a new cluster from the first member's data, with the other members' data declared lost. Either
// the recovery has not begun, or it is recorded, with a Job in the given phase.
func (w *world) wantRecovery(state string) {
	lost := decide.Ordinals(0)
	for n := range w.Declared.Replicas {
		if n > 0 && state != "of one of many" {
			lost = lost.With(n)
		}
	}
	w.Declared.Recovery = decide.RecoveryOrder{ClusterID: theCluster, Lost: lost, Digest: "d1", OldVolumes: decide.Retain}
	if state == "ordered" || state == "of one of many" {
		return
	}
	w.Objects.RunsReplicas = 0
	if state == "to start" {
		return
	}
	w.Recovery.Job = &decide.RecoveryJob{ClusterID: theCluster, VolumeJob: w.volumeJob(0, decide.JobRuns)}
	if state == "without record" {
		w.Record = decide.Record{}
		return
	}
	w.Record.Recovery = decide.RecordedRecovery{ClusterID: theCluster, VolumeUID: w.Replica(0).VolumeUID}
	switch state {
	case "failed":
		w.Recovery.Job.Phase = decide.JobFailed
	case "done", "of another":
		w.Recovery.Job.Phase = decide.JobSucceeded
		if state == "of another" {
			w.Recovery.Job.Digest = "d2"
		}
	case "taken back":
		w.Declared.Recovery = decide.RecoveryOrder{}
	case "recovered":
		w.recovered()
	}
}

// wantRestoredInPlace requests a new cluster from a backup in place of the first member, with all members' data
// declared lost.
func (w *world) wantRestoredInPlace(state string) {
	as := map[string]string{"of a member": "done"}[state]
	w.wantRecovery(cmp.Or(as, state))
	taken := w.Declared.Recovery.ClusterID == 0
	if !taken {
		w.Declared.Recovery.Backup = "tuesday"
		w.Declared.Recovery.Lost = w.Declared.Recovery.Lost.With(0)
	}
	if w.Record.Recovery.ClusterID != 0 {
		w.Record.Recovery.FromBackup = true
	}
	if w.Recovery.Job != nil && state != "of a member" {
		w.Recovery.Job.From = "tuesday"
	}
	if w.Recovery.Job != nil && w.Recovery.Job.Phase == decide.JobSucceeded {
		w.Recovery.Job.Into = 0xc0
	}
}

// recovered makes the first member run in the new cluster, alongside volumes of the lost cluster.
func (w *world) recovered() {
	w.Record.Recovery.ClusterID = 0xc0
	w.Declared.Recovery.ClusterID, w.Declared.Recovery.OldVolumes = 0xc0, decide.Delete
	w.Objects.RunsReplicas = 1
	for i := range w.Record.Removed {
		w.Record.Removed[i].LostCluster = 0xc0
	}
	for i := range w.Replicas {
		if w.Replicas[i].Ordinal > 0 {
			w.Replicas[i].LostCluster = 0xc0
		}
	}
}

// joinTogether allows two members to join together, and adds a member that has started or is about to start while
// another is missing. Alternatively, it makes a member's list differ after two members have joined.
func (w *world) joinTogether(flag string) {
	if w.Record.Token != "" {
		w.Record.Token = decide.FoundingToken(theToken, w.Declared.Version)
	}
	for i := range w.Replicas {
		w.Replicas[i].VolumeToken = w.Record.Token
	}
	for i := range w.Membership.Members {
		w.Membership.Members[i].DBSize = 20 << 20
	}
	w.Record.JoinedTogether = true
	if flag == "joined together" {
		if n := len(w.Membership.Members); n > 0 && w.Membership.Members[0].Answers {
			w.Membership.Members[0].Disagrees = "does not list a-1"
		}
		return
	}
	n := w.Declared.Replicas
	first := decide.Member{ID: memberID(n), PeerURL: w.peerURL(n), Learner: true}
	mode := decide.Joining
	if flag == "joining together" {
		first.Name, first.Started, mode = w.ReplicaName(n), true, decide.Sealed
	}
	if w.Record.Token != "" {
		w.Record = w.Record.With(decide.RecordedMember{Ordinal: n, Mode: mode})
	}
	w.Membership.Members = append(w.Membership.Members, first)
	w.Replicas = append(w.Replicas, decide.Replica{Ordinal: n, Pod: decide.PodStarting, PodUID: "p", VolumeUID: "v", VolumeToken: w.Record.Token,
		PodVersion: w.Declared.Version, PodSpecHash: w.Declared.SpecHash})
	w.Declared.Replicas = n + 2
}

// doubt puts the members' data in doubt and sets their hashes unless flag is unheard: all equal, one different, or
// every second hash different.
func (w *world) doubt(flag string) {
	members := w.Membership.Members
	w.Membership.StaleAlarms = []decide.Alarm{{Kind: "CORRUPT"}}
	for i := range members {
		m := &members[i]
		if m.Leader = i == 0 && m.Answers; !m.Answers || flag == "unheard" {
			continue
		}
		m.Hash = decide.Hash{Revision: 120, CompactRevision: 100, Sum: 2}
		if flag == "torn" && i%2 == 0 || flag == "outvoted" && i == len(members)-1 {
			m.Hash.Sum = 1
		}
	}
	if flag != "stopped" {
		return
	}
	w.Membership.StaleAlarms = nil
	for i := range w.Replicas {
		r := &w.Replicas[i]
		r.PodStoppedByCheck, r.PodCrashes = r.Pod == decide.PodFailing, 5
	}
}

// choices calls do with every combination of n slots, regardless of their order.
func choices(slots []slot, n int, do func([]slot)) {
	chosen := make([]slot, 0, n)
	var choose func(from int)
	choose = func(from int) {
		if len(chosen) == n {
			do(chosen)
			return
		}
		for i := from; i < len(slots); i++ {
			chosen = append(chosen, slots[i])
			choose(i)
			chosen = chosen[:len(chosen)-1]
		}
	}
	choose(0)
}

// thorough enables the larger runs.
var thorough = os.Getenv("QUORATE_SOAK_PEOPLE") != ""

// TestEverySmallWorld checks the decision on every small state against the invariants: one ordinal with all possible
// slots, two and three ordinals with telling slots, and four ordinals (five in "make soak") with common slots. With
// several ordinals, only every third state is checked, or every 19th in the two largest sets. The results of single
// rules, and decisions in which repairs come first, are checked only in some of these states (see sampled). "make soak"
// checks everything in all states.
func TestEverySmallWorld(t *testing.T) {
	seen := &tally{said: map[[2]string]bool{}}
	for _, size := range []struct {
		ordinals int
		keep     func(slot) bool
		flags    []string
		sampled
	}{
		{1, anything, flags, full},
		{1, telling, flagsOfAdoption, full},
		{2, coarse, flagsOfAdoption, most},
		{2, telling, []string{"", "drift", "fewer", "restarting", "torn", "joining together", "about to join together", "joined together"}, few},
		{3, coarse, []string{"", "restarting", "outvoted", "stopped", "joining together"}, few},
		{3, common, []string{"differing"}, full},
		{4, common, []string{"", "drift", "torn"}, most},
		{5, common, []string{"", "outvoted"}, most},
	} {
		if testing.Short() && size.ordinals > 1 || size.ordinals == 5 && !thorough {
			continue
		}
		for i, part := range parts(arounds(size.flags...)) {
			t.Run(fmt.Sprintf("%d ordinals, part %d", size.ordinals, i), func(t *testing.T) {
				t.Parallel()
				seen.holdAll(t, every(size.keep), size.ordinals, part, size.sampled)
			})
		}
	}
	t.Cleanup(func() { seen.compare(t) })
}

// sampled specifies which states are checked unless the run is thorough.
type sampled struct {
	every int // each surrounding state is combined with every nth choice of slots
	whole int // the results of single rules are also checked in every nth checked state
}

var full, most, few = sampled{1, 23}, sampled{3, 5}, sampled{19, 3}

// parts divides the list into up to four parts, which are tested in parallel.
func parts(list []around) [][]around {
	return slices.Collect(slices.Chunk(list, (len(list)+3)/4))
}

// tally collects the decisions in all small worlds.
type tally struct {
	sync.Mutex
	states int
	said   map[[2]string]bool
}

// holdAll checks the decision for the combinations of slots and surrounding state (see around).
func (all *tally) holdAll(t *testing.T, slots []slot, ordinals int, list []around, sampled sampled) {
	mine, choice := tally{said: map[[2]string]bool{}}, 0
	choices(slots, ordinals, func(chosen []slot) {
		choice++
		for i, a := range list {
			if (choice+i)%sampled.every != 0 && !thorough {
				continue
			}
			s := smallWorld(chosen, a)
			d := decide.Decide(s)
			mine.states++
			mine.said[[2]string{string(d.Verdict), d.Rule}] = true
			var faults []string
			if mine.states%sampled.whole == 0 || thorough { // the results of single rules in neighboring states are much the same
				faults = append(decidetest.Faults(s), outOfOrder(s, d)...)
			} else {
				faults = invariants.Broken(s, d)
			}
			if faults = append(faults, endless(s, d)...); len(faults) > 0 {
				text, _ := yaml.Marshal(s) // a story can be created from it
				t.Fatalf("%q\n%s\n%s", faults, d, text)
			}
		}
	})
	all.Lock()
	defer all.Unlock()
	all.states += mine.states
	maps.Copy(all.said, mine.said)
}

// outOfOrder returns the problems with a decision if every repair comes first because objects keep changing.
func outOfOrder(s decide.State, d decide.Decision) []string {
	if d.Verdict != decide.Act {
		return nil
	}
	s.Repeated = slices.Clone(s.Repeated)
	for _, rule := range []string{"CancelDowngrade", "RestartBroken", "CleanUp", "ReplaceMember", "JoinTogether", "PromoteLearner", "ScaleUp"} {
		s.Repeated = append(s.Repeated, decide.Repeated{Rule: rule, What: "preempted", Times: 9, Last: s.Now})
	}
	if first := decide.Decide(s); first.Rule != d.Rule {
		return invariants.Broken(s, first)
	}
	return nil
}

// endless returns the problems with a decision to wait after half an hour: it must then be a Block of the same rule,
// unless passes have not run since.
func endless(s decide.State, d decide.Decision) []string {
	if d.Verdict != decide.Wait {
		return nil
	}
	s.Waited = decide.Waits(s, d, false)
	s.Waited[0].Since = s.Now.Add(-30 * time.Minute)
	late := decide.Decide(s)
	faults := invariants.Broken(s, late)
	if late.Verdict != decide.Block || late.Rule != d.Rule {
		faults = append(faults, fmt.Sprintf("after half an hour it says %s", late))
	}
	s.Waited[0].Seen = s.Now.Add(-time.Hour)
	if later := decide.Decide(s); later != d {
		faults = append(faults, fmt.Sprintf("after an hour in which nobody has looked it says %s", later))
	}
	return faults
}

// compare checks that every rule applied somewhere, and that every decision occurs in a story.
func (all *tally) compare(t *testing.T) {
	if t.Failed() || testing.Short() {
		return
	}
	t.Logf("%d states", all.states)
	told := toldInStories(t)
	for said := range all.said {
		if _, found := told[said[0]+" "+said[1]]; !found {
			t.Errorf("no story contains %q", said)
		}
	}
	for said := range told {
		verdict, rule, _ := strings.Cut(said, " ")
		if !all.said[[2]string{verdict, rule}] && !slices.Contains(outOfReach, said) {
			t.Errorf("a story contains %q, but no small world does", said)
		}
	}
}

// outOfReach lists decisions that require more than a small world contains, such as alarms, lagging members,
// contradictory objects or long waits.
var outOfReach = []string{"Block AlarmRaised", "Act AlarmRaised", "Wait AlarmRaised", "Block Stop", "Wait RollOneMember", "Wait ScaleUp", "Wait ScaleDown", "Block ApplyObjects", "Wait PrepareUpgrade",
	"Block WaitForMembers", "Block ScaleUp", "Block ScaleDown", "Block LockedElsewhere", "Act DataInDoubt", "Block ReplaceMember",
	"Act CALost", "Act CAChanged", "Wait ApplyObjects", "Act LostClusterRuns",
}
