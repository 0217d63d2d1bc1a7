package decide_test

import (
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// wrong is a decision that a law must not let through, in a world of three healthy members changed by change.
type wrong struct {
	law    string
	what   string
	change func(*world)
	decision
}

type decision struct {
	verdict decide.Verdict
	action  decide.Action
	message string
}

func acts(a decide.Action) decision { return decision{decide.Act, a, "because"} }

func founded(w *world) {
	w.State = decide.State{Name: "a", Now: dawn, Declared: w.Declared}
	w.found()
}

func nothing(w *world) {
	w.State = decide.State{Name: "a", Now: dawn, Declared: w.Declared}
}

func silent(ordinals ...int) func(*world) {
	return func(w *world) {
		for _, n := range ordinals {
			w.Membership.Members[n].Answers = false
		}
	}
}

func unknown(w *world) { w.Membership.Known = false }

var wrongs = []wrong{
	{"speaks", "no message", nil, decision{verdict: decide.Done}},
	{"speaks", "two lines", nil, decision{decide.Block, nil, "a\nb"}},
	{"speaks", "two lines", nil, decision{decide.Block, nil, "a\rb"}},
	{"speaks", "acts without action", nil, decision{decide.Act, nil, "because"}},
	{"speaks", "waits with action", nil, decision{decide.Wait, decide.ApplyObjects{}, "because"}},

	{"guards hold", "problems", func(w *world) { w.Declared.Problems = []string{"x"} }, acts(decide.Declare{})},
	{"guards hold", "foreign", func(w *world) { w.Objects.Foreign = []string{"x"} }, acts(decide.Declare{})},
	{"guards hold", "locked", func(w *world) { w.LockHolder = "x" }, acts(decide.Declare{})},
	{"guards hold", "suspended", func(w *world) { w.Declared.Suspended = true }, acts(decide.ApplyObjects{})},
	{"guards hold", "record and status", func(w *world) { w.ReportedClusterID = 0xc2 }, acts(decide.ApplyObjects{})},
	{"guards hold", "record and list", func(w *world) { w.Membership.ClusterID = 0xc2 }, acts(decide.ApplyObjects{})},
	{"guards hold", "record and pod", func(w *world) { w.Replicas[1].ClusterID = 0xc2 }, acts(decide.ApplyObjects{})},
	{"guards hold", "authority lost", func(w *world) { w.Objects.Irreplaceable = []string{"x"} }, acts(decide.ApplyObjects{})},
	{"guards hold", "terminating", func(w *world) { w.Objects.Terminating = []string{"x"} }, acts(decide.ApplyObjects{})},

	{"never founded twice", "formed", nil, acts(decide.Found{Replicas: 3})},
	{"never founded twice", "a member listed", func(w *world) { founded(w); w.Membership.Members = []decide.Member{w.newMember(0)} }, acts(decide.Found{Replicas: 3})},
	{"never founded twice", "a pod in a cluster", func(w *world) { founded(w); w.Replicas = []decide.Replica{w.newReplica(0)} }, acts(decide.Found{Replicas: 3})},
	{"never founded twice", "a member sealed", func(w *world) { founded(w); w.Record.Members[2].Mode = decide.Sealed }, acts(decide.Found{Replicas: 3})},
	{"never founded twice", "a volume", func(w *world) { nothing(w); w.Replicas = []decide.Replica{{Pod: decide.PodAbsent, VolumeUID: "v"}} }, acts(decide.Found{Replicas: 3})},
	{"never founded twice", "a pod", func(w *world) { nothing(w); w.Replicas = []decide.Replica{{Pod: decide.PodPending}} }, acts(decide.Found{Replicas: 3})},
	{"never founded twice", "a StatefulSet", func(w *world) { nothing(w); w.Objects.RunsHash = "h1" }, acts(decide.Found{Replicas: 3})},
	{"never founded twice", "not to run", func(w *world) { nothing(w); w.Declared.Lifecycle = "Stopped" }, acts(decide.Found{Replicas: 3})},
	{"never founded twice", "another number", nothing, acts(decide.Found{Replicas: 4})},
	{"never founded twice", "another list", func(w *world) { founded(w); w.Declared.Replicas = 5 }, acts(decide.Found{Replicas: 5})},

	{"the record only tightens", "seals who has not started", func(w *world) {
		w.Record.Members[1] = decide.RecordedMember{Ordinal: 1, Mode: decide.Founding}
		w.Membership.Members[1].Started = false
		w.Record.ClusterID, w.ReportedClusterID = 0, 0xc1
		w.Membership.Known = true
		w.Record.Members[0].Mode = decide.Founding
		w.Membership.Members[0].Started = false
		w.Record.ClusterID = 0xc2
	}, acts(decide.Seal{ClusterID: 0xc1, Members: 0b011})},
	{"the record only tightens", "another cluster ID", nil, acts(decide.Seal{ClusterID: 0xc2})},
	{"the record only tightens", "nothing left", func(w *world) { nothing(w); w.ReportedClusterID = 0xc1 }, acts(decide.ApplyObjects{})},
	{"the record only tightens", "out of nothing", nothing, acts(decide.ApplyObjects{})},

	{"unknown changes nothing", "seals", unknown, acts(decide.Seal{ClusterID: 0xc1})},
	{"unknown changes nothing", "adds", unknown, acts(decide.AddLearner{Ordinal: 3})},
	{"unknown changes nothing", "promotes", unknown, acts(decide.PromoteLearner{ID: 0xa2, Name: "a-2"})},
	{"unknown changes nothing", "removes", unknown, acts(decide.RemoveMember{ID: 0xa2, Name: "a-2"})},
	{"unknown changes nothing", "moves", unknown, acts(decide.MoveLeader{From: 0xa0, To: 0xa1})},
	{"unknown changes nothing", "restarts", unknown, acts(decide.RestartReplica{Ordinal: 2, PodUID: "p2"})},
	{"unknown changes nothing", "deletes", unknown, acts(decide.DeleteVolume{Ordinal: 2, VolumeUID: "v2"})},

	{"quorum survives", "removes one of two that answer, of which the other does not", func(w *world) {
		silent(1)(w)
		w.Membership.Members = w.Membership.Members[:2]
	}, acts(decide.RemoveMember{ID: 0xa0, Name: "a-0"})},
	{"quorum survives", "removes the last", func(w *world) { w.Membership.Members = w.Membership.Members[:1] }, acts(decide.RemoveMember{ID: 0xa0, Name: "a-0"})},
	{"quorum survives", "restarts the second of three", silent(1), acts(decide.RestartReplica{Ordinal: 2, PodUID: "p2"})},
	{"quorum survives", "restarts one of two, the other silent", func(w *world) {
		rolling(w)
		w.Membership.Members = w.Membership.Members[:2]
		silent(0)(w)
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"quorum survives", "restarts one of two that are to be three", func(w *world) {
		rolling(w)
		w.Membership.Members = w.Membership.Members[:2]
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"quorum survives", "promotes one too many", func(w *world) {
		silent(1)(w)
		w.Membership.Members = append(w.Membership.Members, w.newMember(3), w.newMember(4))
		silent(4)(w)
		w.Membership.Members[3].Learner = true
		w.Membership.Members[2].Answers = false
	}, acts(decide.PromoteLearner{ID: 0xa3, Name: "a-3"})},

	{"leader hands over first", "removes it", nil, acts(decide.RemoveMember{ID: 0xa0, Name: "a-0"})},
	{"leader hands over first", "restarts it", nil, acts(decide.RestartReplica{Ordinal: 0, PodUID: "p0"})},
	{"leader hands over first", "from a follower", nil, acts(decide.MoveLeader{From: 0xa1, To: 0xa2})},
	{"leader hands over first", "to itself", nil, acts(decide.MoveLeader{From: 0xa0, To: 0xa0})},
	{"leader hands over first", "to a learner", func(w *world) { w.Membership.Members[1].Learner = true }, acts(decide.MoveLeader{From: 0xa0, To: 0xa1})},
	{"leader hands over first", "to a silent one", silent(1), acts(decide.MoveLeader{From: 0xa0, To: 0xa1})},

	{"one learner", "adds a second", func(w *world) { w.Membership.Members[2].Learner = true }, acts(decide.AddLearner{Ordinal: 3})},

	{"a volume outlives its member", "listed", nil, acts(decide.DeleteVolume{Ordinal: 2, VolumeUID: "v2"})},
	{"a volume outlives its member", "listed without a name", func(w *world) { w.Membership.Members[2].Name = "" }, acts(decide.DeleteVolume{Ordinal: 2, VolumeUID: "v2"})},

	{"the dead go first", "adds beside a silent one", silent(1), acts(decide.AddLearner{Ordinal: 3})},

	{"lowest in, highest out", "skips a gap", func(w *world) { w.Membership.Members = w.Membership.Members[:2] }, acts(decide.AddLearner{Ordinal: 3})},
	{"lowest in, highest out", "removes from the middle", nil, acts(decide.RemoveMember{ID: 0xa1, Name: "a-1"})},

	{"hits what was seen", "another pod", nil, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p9"})},
	{"hits what was seen", "any pod", func(w *world) { w.Replicas[1].PodUID = "" }, acts(decide.RestartReplica{Ordinal: 1})},
	{"hits what was seen", "another volume", nil, acts(decide.DeleteVolume{Ordinal: 1, VolumeUID: "v9"})},
	{"hits what was seen", "any volume", func(w *world) { w.Replicas[1].VolumeUID = "" }, acts(decide.DeleteVolume{Ordinal: 1})},
	{"hits what was seen", "removes who is not listed", nil, acts(decide.RemoveMember{ID: 0xd1, Name: "a-2"})},
	{"hits what was seen", "removes another", nil, acts(decide.RemoveMember{ID: 0xa1, Name: "a-2"})},
	{"hits what was seen", "promotes a voter", nil, acts(decide.PromoteLearner{ID: 0xa2, Name: "a-2"})},
	{"hits what was seen", "promotes another", func(w *world) { w.Membership.Members[2].Learner = true }, acts(decide.PromoteLearner{ID: 0xa2, Name: "a-1"})},
	{"hits what was seen", "removes nobody", nil, acts(decide.RemoveMember{ID: 0xd1})},
	{"hits what was seen", "promotes nobody", nil, acts(decide.PromoteLearner{ID: 0xd1})},
	{"hits what was seen", "seals no cluster", func(w *world) { w.Membership.ClusterID = 0 }, acts(decide.Seal{})},
	{"hits what was seen", "seals another cluster", nil, acts(decide.Seal{ClusterID: 0xc2})},

	{"an empty slot", "a volume is left", func(w *world) { leave(w, 2) }, acts(decide.AddLearner{Ordinal: 2})},
	{"an empty slot", "the very volume is left", func(w *world) {
		leave(w, 2)
		w.Record = w.Record.WithRemoved(decide.RemovedMember{Ordinal: 2, VolumeUID: "v2"})
	}, acts(decide.AddLearner{Ordinal: 2})},
	{"an empty slot", "a pod may start on what goes", func(w *world) { leave(w, 2); w.Replicas[2].VolumeTerminating = true }, acts(decide.AddLearner{Ordinal: 2})},
	{"an empty slot", "it is not known which volume was left", func(w *world) {
		leave(w, 2)
		w.Record = w.Record.WithRemoved(decide.RemovedMember{Ordinal: 2})
	}, acts(decide.AddLearner{Ordinal: 2})},

	{"one step at a time", "another version than declared", func(w *world) { w.Declared.Version = "3.7.3" }, acts(decide.StartRollout{Version: "3.7.4", SpecHash: theHash})},
	{"one step at a time", "another shape than declared", nil, acts(decide.StartRollout{Version: "3.6.16", SpecHash: "h2"})},
	{"one step at a time", "skips one up", func(w *world) { w.Declared.Version = "3.8.0" }, acts(decide.StartRollout{Version: "3.8.0", SpecHash: theHash})},
	{"one step at a time", "skips one down", func(w *world) { w.Declared.Version = "3.4.30" }, acts(decide.StartRollout{Version: "3.4.30", SpecHash: theHash})},
	{"one step at a time", "another major version", func(w *world) { w.Declared.Version = "4.6.0" }, acts(decide.StartRollout{Version: "4.6.0", SpecHash: theHash})},
	{"one step at a time", "restarts what is as declared", nil, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"one step at a time", "restarts before new pods are as declared", func(w *world) { w.Declared.SpecHash = "h2" }, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"one step at a time", "restarts beside a silent learner", func(w *world) {
		rolling(w)
		w.Membership.Members[2].Learner, w.Membership.Members[2].Answers = true, false
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},

	{"done is done", "nothing is there", nothing, decision{decide.Done, nil, "done"}},
	{"done is done", "stopped, with a record", func(w *world) {
		w.Declared.Lifecycle = "Stopped"
		w.Objects.RunsVersion, w.Objects.RunsHash = "", ""
	}, decision{decide.Done, nil, "done"}},
	{"done is done", "another ID in the status", func(w *world) { w.ReportedClusterID = 0xc2 }, decision{decide.Done, nil, "done"}},
	{"done is done", "more recorded", func(w *world) {
		w.Record = w.Record.With(decide.RecordedMember{Ordinal: 3, Mode: decide.Sealed})
	}, decision{decide.Done, nil, "done"}},
	{"done is done", "drift", func(w *world) { w.Objects.Drift = []string{"x"} }, decision{decide.Done, nil, "done"}},
	{"done is done", "unknown", unknown, decision{decide.Done, nil, "done"}},
	{"done is done", "no ID on record", func(w *world) { w.Record.ClusterID = 0 }, decision{decide.Done, nil, "done"}},
	{"done is done", "no ID at all", func(w *world) {
		w.Record.ClusterID, w.ReportedClusterID, w.Membership.ClusterID = 0, 0, 0
		for i := range w.Replicas {
			w.Replicas[i].ClusterID = 0
		}
	}, decision{decide.Done, nil, "done"}},
	{"done is done", "more declared", func(w *world) { w.Declared.Replicas = 5 }, decision{decide.Done, nil, "done"}},
	{"done is done", "fewer listed", func(w *world) { w.Membership.Members = w.Membership.Members[:2] }, decision{decide.Done, nil, "done"}},
	{"done is done", "fewer recorded", func(w *world) { w.Record.Members = w.Record.Members[:2] }, decision{decide.Done, nil, "done"}},
	{"done is done", "not sealed", func(w *world) { w.Record.Members[1].Mode = decide.Founding }, decision{decide.Done, nil, "done"}},
	{"done is done", "a stranger in the place of one", func(w *world) { w.Membership.Members[1].Name = "x" }, decision{decide.Done, nil, "done"}},
	{"done is done", "silent", silent(1), decision{decide.Done, nil, "done"}},
	{"done is done", "not started", func(w *world) { w.Membership.Members[1].Started = false }, decision{decide.Done, nil, "done"}},
	{"done is done", "learner", func(w *world) { w.Membership.Members[1].Learner = true }, decision{decide.Done, nil, "done"}},
	{"done is done", "alarm", func(w *world) { w.Membership.Members[1].Alarms = []string{"NOSPACE"} }, decision{decide.Done, nil, "done"}},
	{"done is done", "not ready", func(w *world) { w.Replicas[1].Pod = decide.PodStarting }, decision{decide.Done, nil, "done"}},
	{"done is done", "still runs", func(w *world) { w.Declared.Lifecycle = "Stopped" }, decision{decide.Done, nil, "done"}},
	{"done is done", "its StatefulSet runs", func(w *world) { nothing(w); w.Declared.Lifecycle, w.Objects.RunsReplicas = "Deleted", 3 }, decision{decide.Done, nil, "done"}},
	{"done is done", "an object is left", func(w *world) {
		nothing(w)
		w.Declared.Lifecycle, w.Objects.Remaining = "Deleted", []string{"Service a"}
	}, decision{decide.Done, nil, "done"}},
	{"done is done", "a volume is left", func(w *world) {
		w.Declared.Lifecycle, w.Declared.Retention, w.Objects.RunsReplicas = "Deleted", "Delete", 0
		for i := range w.Replicas {
			w.Replicas[i].Pod = decide.PodAbsent
		}
	}, decision{decide.Done, nil, "done"}},
	{"done is done", "new pods would be others", func(w *world) { w.Declared.SpecHash = "h2" }, decision{decide.Done, nil, "done"}},
	{"done is done", "a pod is another", func(w *world) { w.Replicas[1].PodSpecHash = "h0" }, decision{decide.Done, nil, "done"}},
	{"done is done", "beyond what is declared", func(w *world) { move(w, 2, 5) }, decision{decide.Done, nil, "done"}},
}

// TestLawsCatch hands each law decisions that it must not let through.
func TestLawsCatch(t *testing.T) {
	caught := map[string]bool{}
	for _, c := range slices.Concat(wrongs, wrongsAboutData) {
		t.Run(c.law+"/"+c.what, func(t *testing.T) {
			w := healthy(t)
			if c.change != nil {
				c.change(w)
			}
			d := decide.Decision{Rule: "Wrong", Verdict: c.verdict, Action: c.action, Message: c.message}
			broken := decide.Broken(w.State, d)
			if !strings.Contains("\n"+strings.Join(broken, "\n"), "\n"+c.law+": ") {
				t.Errorf("the law lets it through; broken are %q", broken)
			}
			caught[c.law] = true
		})
	}
	for _, l := range decide.Laws() {
		if !caught[l.Name] {
			t.Errorf("no wrong decision tests the law %q", l.Name)
		}
	}
}

// right are decisions that no law may hold up, so that none of them holds by forbidding everything.
var right = []wrong{
	{"", "restarts a follower", rolling, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"", "restarts a silent learner", func(w *world) { w.Membership.Members[2].Learner, w.Membership.Members[2].Answers = true, false }, acts(decide.RestartReplica{Ordinal: 2, PodUID: "p2"})},
	{"", "restarts the pod of nobody", func(w *world) { w.Membership.Members = w.Membership.Members[:2] }, acts(decide.RestartReplica{Ordinal: 2, PodUID: "p2"})},
	{"", "hands over", nil, acts(decide.MoveLeader{From: 0xa0, To: 0xa1})},
	{"", "removes the highest", nil, acts(decide.RemoveMember{ID: 0xa2, Name: "a-2"})},
	{"", "removes a dead one", silent(1), acts(decide.RemoveMember{ID: 0xa1, Name: "a-1"})},
	{"", "removes the only other one, dead", func(w *world) { silent(1)(w); w.Membership.Members = w.Membership.Members[:2] }, acts(decide.RemoveMember{ID: 0xa1, Name: "a-1"})},
	{"", "adds the next", nil, acts(decide.AddLearner{Ordinal: 3})},
	{"", "fills the gap", func(w *world) {
		leave(w, 1)
		w.Replicas[1].VolumeTerminating, w.Replicas[1].Pod = true, decide.PodTerminating
	}, acts(decide.AddLearner{Ordinal: 1})},
	{"", "fills the gap on a fresh volume", func(w *world) {
		leave(w, 1)
		w.Record = w.Record.WithRemoved(decide.RemovedMember{Ordinal: 1, VolumeUID: "v0"})
	}, acts(decide.AddLearner{Ordinal: 1})},
	{"", "restarts the only one", func(w *world) {
		rolling(w)
		w.Declared.Replicas, w.Membership.Members = 1, w.Membership.Members[:1]
	}, acts(decide.RestartReplica{Ordinal: 0, PodUID: "p0"})},
	{"", "restarts one of two", func(w *world) {
		rolling(w)
		w.Declared.Replicas, w.Membership.Members = 2, w.Membership.Members[:2]
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"", "restarts what does not run, unknown", func(w *world) { rolling(w); unknown(w); silent(1)(w); w.Replicas[1].Pod = decide.PodFailing }, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"", "rolls to the next minor version", func(w *world) { w.Declared.Version = "3.7.3" }, acts(decide.StartRollout{Version: "3.7.3", SpecHash: theHash})},
	{"", "disarms", func(w *world) { w.Membership.StaleAlarms = []decide.Alarm{{ID: 0xd1, Kind: "NOSPACE"}} }, acts(decide.DisarmAlarm{ID: 0xd1, Kind: "NOSPACE"})},
	{"", "deletes a volume with the cluster", func(w *world) {
		nothing(w)
		w.Declared.Lifecycle, w.Declared.Retention = "Deleted", "Delete"
		w.Replicas = []decide.Replica{{Ordinal: 0, Pod: decide.PodAbsent, VolumeUID: "v0"}}
	}, acts(decide.DeleteVolume{Ordinal: 0, VolumeUID: "v0"})},
	{"", "done, stopped", func(w *world) {
		w.Declared.Lifecycle, w.Objects.RunsReplicas = "Stopped", 0
		for i := range w.Replicas {
			w.Replicas[i].Pod = decide.PodAbsent
		}
	}, decision{decide.Done, nil, "done"}},
	{"", "done, an orphan", func(w *world) { unknown(w); w.Declared.Orphaned = "gone" }, decision{decide.Done, nil, "done"}},
	{"", "promotes", func(w *world) { w.Membership.Members[2].Learner = true }, acts(decide.PromoteLearner{ID: 0xa2, Name: "a-2"})},
	{"", "deletes the volume of nobody", func(w *world) { w.Membership.Members = w.Membership.Members[:2] }, acts(decide.DeleteVolume{Ordinal: 2, VolumeUID: "v2"})},
	{"", "applies objects", nil, acts(decide.ApplyObjects{})},
	{"", "applies objects, keeping the pods", func(w *world) { w.Declared.Version = "3.7.3" }, acts(decide.ApplyObjects{})},
	{"", "seals again", nil, acts(decide.Seal{ClusterID: 0xc1, Members: 0b111})},
	{"", "seals while an object goes", func(w *world) { w.Objects.Terminating, w.Objects.Irreplaceable = []string{"x"}, []string{"y"} }, acts(decide.Seal{ClusterID: 0xc1})},
	{"", "declares while suspended", func(w *world) { w.Declared.Suspended = true }, acts(decide.Declare{})},
	{"", "founds", nothing, acts(decide.Found{Replicas: 3})},
	{"", "founds on what shall not run", func(w *world) { founded(w); w.Declared.Lifecycle = "Stopped" }, acts(decide.Found{Replicas: 3})},
	{"", "applies other pods to a founding", func(w *world) {
		founded(w)
		w.Declared.Version = "3.7.3"
		w.Replicas = []decide.Replica{w.newReplica(0)}
	}, acts(decide.ApplyObjects{})},
	{"", "removes a stranger", func(w *world) {
		w.Membership.Members = append(w.Membership.Members, decide.Member{ID: 0xd1, Name: "stranger", Answers: true})
	}, acts(decide.RemoveMember{ID: 0xd1, Name: "stranger"})},
	{"", "founds on", func(w *world) { founded(w); w.Declared.Replicas = 5 }, acts(decide.Found{Replicas: 3})},
	{"", "done", nil, decision{decide.Done, nil, "done"}},
	{"", "done while suspended", func(w *world) { unknown(w); w.Declared.Suspended = true }, decision{decide.Done, nil, "done"}},
	{"", "done, nothing runs", func(w *world) { nothing(w); w.Declared.Lifecycle = "Stopped" }, decision{decide.Done, nil, "done"}},
}

// TestLawsAllow hands the laws decisions that all of them must let through.
func TestLawsAllow(t *testing.T) {
	for _, c := range slices.Concat(right, rightsAboutData) {
		t.Run(c.what, func(t *testing.T) {
			w := healthy(t)
			if c.change != nil {
				c.change(w)
			}
			d := decide.Decision{Rule: "Right", Verdict: c.verdict, Action: c.action, Message: c.message}
			if broken := decide.Broken(w.State, d); len(broken) > 0 {
				t.Errorf("broken are %q", broken)
			}
		})
	}
}

// leave takes the member of an ordinal away, and leaves pod and volume.
func leave(w *world, n int) {
	_ = w.setMember(n, "etcd", "none")
	w.Record.Members = slices.DeleteFunc(w.Record.Members, func(m decide.RecordedMember) bool { return m.Ordinal == n })
}

// rolling is in the middle of a rollout: no pod is as declared yet.
func rolling(w *world) {
	w.Declared.SpecHash, w.Objects.RunsHash = "h2", "h2"
}

// move gives the replica of an ordinal another one.
func move(w *world, from, to int) {
	w.Replicas[from].Ordinal, w.Membership.Members[from].Name = to, w.ReplicaName(to)
	w.Record.Members[from].Ordinal = to
}

func healthy(t *testing.T) *world {
	t.Helper()
	w := &world{}
	if _, err := w.tell("cluster", args(t, "cluster a replicas=3")); err != nil {
		t.Fatal(err)
	}
	return w
}
