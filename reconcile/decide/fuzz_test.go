package decide_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
)

// FuzzDecide checks the decision on any state against the invariants. It starts from the states of all stories, and
// from the inputs in testdata/fuzz, which once violated an invariant. changes modifies the state, two bytes per change.
func FuzzDecide(f *testing.F) {
	for i, s := range statesOfStories(f) {
		text, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, []byte{byte(i), byte(i >> 4)})
	}
	f.Fuzz(func(t *testing.T, text, changes []byte) {
		var s decide.State
		if json.Unmarshal(text, &s) != nil {
			t.Skip()
		}
		s = decidetest.Clone(s)
		for ; len(changes) > 1; changes = changes[2:] {
			change(&s, int(changes[0]), int(changes[1]))
		}
		if !observable(s) {
			t.Skip()
		}
		if faults := decidetest.Faults(s); len(faults) > 0 {
			text, _ := yaml.Marshal(s)
			t.Errorf("%s\n%q\n%s", decide.Decide(s), faults, text)
		}
	})
}

// since returns a relevant time not after dawn: zero, now, long ago, or a time at which a threshold is reached or
// almost reached.
func since(how int) time.Time {
	times := []time.Time{{}, dawn, dawn.Add(-48 * time.Hour)}
	for _, threshold := range decide.Thresholds() {
		if threshold.Length > 0 {
			times = append(times, dawn.Add(-threshold.Length), dawn.Add(time.Second-threshold.Length))
		}
	}
	return times[how%len(times)]
}

// mostTimes returns the largest Times of all thresholds.
func mostTimes() (most int) {
	for _, threshold := range decide.Thresholds() {
		most = max(most, threshold.Times)
	}
	return most
}

// change makes a change of the given kind; how selects the entry and the value.
func change(s *decide.State, kind, how int) {
	if n := len(s.Replicas); n > 0 && kind%4 == 0 {
		changeReplica(&s.Replicas[how%n], kind/4, how/n)
		return
	}
	if n := len(s.Membership.Members); n > 0 && kind%4 == 1 {
		changeMember(&s.Membership.Members[how%n], kind/4, how/n)
		return
	}
	if n := len(s.Record.Members); n > 0 && kind%4 == 2 {
		m := &s.Record.Members[how%n]
		m.Mode = []decide.Mode{decide.Founding, decide.Joining, decide.Sealed}[kind/4%3]
		m.ID, m.VolumeUID = decide.ID(0xa0+how%3), []string{"", "v0", "v1"}[how/3%3]
		return
	}
	ids := []decide.ID{0, 0xc1, 0xc2}
	text := []string{"", "t1", "t2", "3.6.16", "h1", "Stopped", "Running", "Deleted", "3.7.3", "3.5.35", "Delete"}[how%11]
	changes := []func(){
		func() { s.Record.Token = text },
		func() { s.Record.ClusterID = ids[how%3] },
		func() { s.Record.Members = nil },
		func() { s.ReportedClusterID = ids[how%3] },
		func() { s.Membership.ClusterID = ids[how%3] },
		func() { s.Membership.Known = !s.Membership.Known },
		func() {
			s.Membership.Known, s.Membership.Unconfirmed, s.Membership.Disputed = false, true, how%2 == 0
		},
		func() { s.Membership.Members = nil },
		func() { s.Replicas = append(s.Replicas, decide.Replica{Ordinal: how % 8, Pod: decide.PodAbsent}) },
		func() {
			s.Membership.Members = append(s.Membership.Members, decide.Member{ID: decide.ID(how), Name: s.ReplicaName(how % 8)})
		},
		func() { s.Declared.Replicas = how%9 - 1 },
		func() { s.Declared.Lifecycle = decide.Lifecycle(text) },
		func() { s.Declared.Version = text },
		func() { s.Objects.RunsVersion = text },
		func() { s.Objects.RunsHash = text },
		func() { s.Objects.Drift, s.Objects.Remaining = []string{"b", "a"}, []string{"b", "a"}[:how%3] },
		func() { s.Objects.Drift = nil },
		func() { s.Objects.Terminating = []string{"b", "a"}[:how%3] },
		func() { s.Declared.Suspended, s.Objects.DeclarationDiffers = how%2 == 0, how%3 == 0 },
		func() { s.LockHolder = text },
		func() { s.Declared.Retention = decide.Retention(text) },
		func() { s.Declared.SpecHash = text },
		func() { s.Objects.RunsReplicas = how % 4 },
		func() { s.Membership.Downgrade = []string{"", "3.5", "3.6"}[how%3] },
		func() {
			s.Membership.StaleAlarms = []decide.Alarm{{ID: 0xd1, Kind: "NOSPACE"}, {Kind: "CORRUPT"}}[:how%3]
		},
		func() {
			s.Record = s.Record.WithRemoved(decide.RemovedMember{Ordinal: how % 6, VolumeUID: []string{"", "v0", "v9"}[how/6%3]})
		},
		func() {
			s.Certificates = []decide.Certificate{{Secret: "a-peer-tls", Key: "tls.crt", NotBefore: dawn.Add(-time.Hour), NotAfter: dawn.Add(time.Duration(how%50-10) * time.Minute)}}
		},
		func() { s.Record.CA = []string{"", "CA1", "CA2"}[how%3] },
		func() {
			s.CA.Secret, s.CA.Proven = []string{"", "CA1", "CA2"}[how%3], []string{"", "CA1", "CA2"}[how/3%3]
			s.CA.Mounted = []string{"CA1", "CA2"}[how/9%2 : 1+how/9%2+how/18%2*(1-how/9%2)]
		},
		func() {
			s.Waited = []decide.Waited{{Rule: decide.Decide(*s).Rule, For: text, Since: dawn.Add(-time.Hour), Seen: dawn}}[:how%2]
		},
		func() { s.Membership.Forbidden = []string{"", "pods/portforward"}[how%2] },
		func() {
			s.Declared.BacksUp, s.Declared.BacksUpBeforeUpgrade = how%2 == 0, how/2%2 == 0
			s.Declared.BacksUpBeforeDeletion = how/12%2 == 0
			s.Generation = int64(how / 4 % 3)
		},
		func() {
			s.Backups.Jobs = []decide.BackupJob{{Name: "a-backup-gen2", UID: "j1", Generation: int64(how % 3), EndedAt: dawn.Add(-time.Duration(how/9) * time.Minute),
				Phase:     []decide.JobPhase{decide.JobRuns, decide.JobFailed, decide.JobSucceeded}[how/3%3],
				CreatedAt: dawn.Add(-time.Minute)}}
		},
		func() {
			s.Backups.Last = &decide.Backup{ClusterID: ids[how%3], StartedAt: dawn.Add(time.Duration(how/3-5) * []time.Duration{20 * time.Second, 3 * time.Hour}[how%2])}
		},
		func() {
			s.Backups.BeforeDeletion = &decide.Backup{ClusterID: ids[how%3], Generation: int64(how / 3 % 3), StartedAt: dawn.Add(-time.Duration(how/9-3) * 3 * time.Minute)}
			s.Declared.VerifiesBackups, s.Backups.BeforeDeletion.Verified = how/9%2 == 0, how/18%2 == 0
		},
		func() {
			s.Backups.Hidden, s.Backups.Foreign = []string{"", "forbidden"}[how%2], []string{"", "CronJob"}[how/2%2]
			s.Backups.Drift = []string{"b", "a"}[:how/4%3]
		},
		func() {
			s.Declared.Restore = []decide.RestoreSource{{}, {From: text, Digest: "d1"}, {From: text, Digest: "d2"}}[how%3]
			if how/3%2 == 0 {
				s.Record = s.Record.With(decide.RecordedMember{Mode: decide.Restoring})
			}
		},
		func() {
			s.Restore = decide.Restore{JobSight: sight(how)}
			if how/8%2 == 0 {
				s.Restore.Job = &decide.RestoreJob{Restored: text, VolumeJob: volumeJob(how/16, s.Replica(0).VolumeUID, text)}
			}
		},
		func() {
			lost := []decide.Ordinals{0, 0b010, 0b110, 0b111, 0b101}[how%5]
			s.Declared.Recovery = decide.RecoveryOrder{ClusterID: ids[how/5%3], Ordinal: how / 15 % 2, Lost: lost, Digest: "d1",
				OldVolumes: []decide.Retention{decide.Retain, decide.Delete}[how/30%2], Word: []string{"", "w1", "w2"}[how/60%3],
				Backup: []string{"", "tuesday"}[how/540%2]}
			s.Record.VoidRecovery = []string{"", "w1", "w2"}[how/180%3]
		},
		func() {
			s.Record.Recovery = decide.RecordedRecovery{ClusterID: ids[how%3], Ordinal: how / 3 % 2, VolumeUID: s.Replica(how / 3 % 2).VolumeUID, Suspect: how/18%2 == 1,
				FromBackup: how/36%2 == 1}
			for i := range s.Record.Removed {
				s.Record.Removed[i].LostCluster = ids[how/6%3]
			}
		},
		func() {
			s.Recovery = decide.Recovery{JobSight: sight(how)}
			if ordinal := how / 24 % 2; how/8%3 > 0 {
				s.Recovery.Job = &decide.RecoveryJob{ClusterID: ids[how/8%3], Ordinal: ordinal, Into: ids[how/48%3], From: []string{"", "tuesday"}[how/144%2],
					VolumeJob: volumeJob(how/16, s.Replica(ordinal).VolumeUID, text)}
			}
		},
		func() { s.Declared.ReplaceAfter = time.Duration(how%2) * time.Minute },
		func() {
			s.Declared.CorruptionCheck = time.Duration(how%2) * 24 * time.Hour
			s.Comparison = decide.Comparison{At: since(how / 2), DiffersSince: since(how / 7), Failure: []string{"", "no"}[how/3%2]}
			for i := range s.Backups.Jobs {
				s.Backups.Jobs[i].DiffersSince = s.Comparison.DiffersSince
			}
		},
	}
	changes[kind/4%len(changes)]()
}

func sight(how int) decide.JobSight {
	return decide.JobSight{Hidden: []string{"", "forbidden"}[how%2], Foreign: []string{"", "Job"}[how/2%2], Stopping: []string{"x"}[:how/4%2]}
}

func volumeJob(how int, volume, message string) decide.VolumeJob {
	return decide.VolumeJob{UID: "j1", Digest: "d1", VolumeUID: volume, Message: message,
		Phase: []decide.JobPhase{decide.JobRuns, decide.JobFailed, decide.JobSucceeded}[how%3], Terminating: how/3%2 == 1}
}

func changeReplica(r *decide.Replica, kind, how int) {
	phases := []decide.PodPhase{decide.PodAbsent, decide.PodPending, decide.PodStarting, decide.PodReady, decide.PodFailing, decide.PodTerminating}
	switch kind % 15 {
	case 14:
		r.LostCluster = []decide.ID{0, theCluster, 0xc2, 0xc9}[how%4]
	case 10:
		r.PodStarted = since(how)
	case 11:
		r.PodGoing = since(how)
	case 12:
		r.PodRefused = []string{"", "exceeded quota"}[how%2]
	case 13:
		r.PodStoppedByCheck = how%2 == 1
	case 6:
		r.PodVersion, r.PodSpecHash = []string{"3.6.16", "3.7.3"}[how%2], []string{"", "h1", "h2"}[how/2%3]
	case 7:
		r.PodCrashes = how % (mostTimes() + 2)
	case 9:
		r.PodUnbound = how%2 == 1
	case 8:
		r.Stranded = []string{"", "its node is gone"}[how%2]
		r.StrandedSince = since(how / 2)
	case 0:
		r.Pod = phases[how%len(phases)]
	case 1:
		r.VolumeUID = []string{"", "v0", "v9"}[how%3]
	case 2:
		r.VolumeToken = []string{"", "t1", "t2"}[how%3]
	case 3:
		r.VolumeTerminating = !r.VolumeTerminating
	case 4:
		r.ClusterID = []decide.ID{0, 0xc1, 0xc2}[how%3]
	case 5:
		r.PodSince = since(how)
	}
}

func changeMember(m *decide.Member, kind, how int) {
	switch kind % 10 {
	case 9:
		m.Hash = []decide.Hash{{}, {Revision: 120, Sum: 1}, {Revision: 120, Sum: 2}, {Revision: 119, Sum: 1}, {Revision: 120, CompactRevision: 100, Sum: 1}}[how%5]
	case 5:
		m.PeerURL = []string{"", "https://a-5.a.b.svc:2380", "https://x.a.b.svc:2380"}[how%3]
	case 6:
		m.Leader, m.Applied = how%2 == 0, uint64(how)*100
	case 7:
		m.Version = []string{"", "3.5.35", "3.6.16", "3.7.3", "3.6.16+acme.1", "3.7.0-rc.0", "3.5.26-k3s1", "main"}[how%8]
		m.StorageVersion = []string{"", "3.5", "3.6"}[how/8%3]
	case 8:
		m.SilentSince = since(how)
	case 0:
		m.Started = !m.Started
	case 1:
		m.Answers = !m.Answers
	case 2:
		m.Learner = !m.Learner
	case 3:
		m.Name = []string{"", "stranger", "a-7", "a-07", "a-70"}[how%5]
	case 4:
		m.Alarms = []decide.AlarmKind{"NOSPACE", "CORRUPT"}[:how%3]
	}
}

// observable reports whether a state can be observed at all: names, ordinals and IDs are unique, a record with members
// has a token and ordered members, and the cluster does not have more replicas than can be distinguished.
func observable(s decide.State) bool {
	replicas, ids, names := map[int]bool{}, map[decide.ID]bool{}, map[string]bool{}
	leads, runs := false, false
	for _, r := range s.Replicas {
		runs = runs || r.Pod != decide.PodAbsent
		if replicas[r.Ordinal] || r.Ordinal < 0 || r.Ordinal > 63 {
			return false
		}
		replicas[r.Ordinal] = true
	}
	if !runs && len(s.Membership.Members) > 0 {
		return false // etcd is queried only in existing pods
	}
	for _, m := range s.Membership.Members {
		name := m.Name
		if ordinal, ours := s.OrdinalOf(m); ours {
			name = s.ReplicaName(ordinal)
		} else if s.Record.Hosts(m.ID) {
			name = "guest " + m.ID.String() // its name may be a replica's name
		}
		if ids[m.ID] || name != "" && names[name] || m.Started && m.Name == "" {
			return false
		}
		ids[m.ID], names[name] = true, true
		if m.Leader && (leads || !m.Answers) { // an unresponsive member is not treated as the leader
			return false
		}
		leads = leads || m.Leader
	}
	if s.Record.Restoring() && (len(s.Record.Members) > 1 || s.Record.ClusterID != 0) {
		return false // such a record is not read
	}
	for _, gone := range s.Record.Removed {
		if m, recorded := s.Record.Member(gone.Ordinal); recorded && m.Mode != decide.Joining {
			return false
		}
	}
	last := -1
	for _, m := range s.Record.Members {
		if m.Ordinal <= last || m.Ordinal > 63 || s.Record.Token == "" {
			return false
		}
		last = m.Ordinal
	}
	return s.Name != "" && s.Declared.Replicas <= 64
}

// statesOfStories returns the states in the stories.
func statesOfStories(f testing.TB) []decide.State {
	f.Helper()
	files, err := filepath.Glob(stories + "/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	var states []decide.State
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		w := &world{}
		for line := range strings.Lines(string(text)) {
			cmd, args, err := datadriven.ParseLine(strings.TrimSpace(line))
			if err != nil || line[0] == ' ' || !isDirective[cmd] {
				continue
			}
			if _, err := w.tell(cmd, args); err != nil {
				f.Fatalf("%s: %s: %v", file, line, err)
			}
			if cmd == "decide" {
				states = append(states, decidetest.Clone(w.State))
			}
		}
	}
	return states
}

var isDirective = map[string]bool{"cluster": true, "set": true, "add": true, "remove": true, "clock": true, "act": true, "report": true, "decide": true}
