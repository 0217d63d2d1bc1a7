package decide_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
	"quorate.dev/quorate/reconcile/decide/invariants"
)

// wrong is a decision that an invariant must reject, in a cluster of three healthy members to which change was applied.
type wrong struct {
	invariant string
	what      string
	change    func(*world)
	decision
}

type decision struct {
	verdict decide.Verdict
	action  decide.Action
	message string
}

// by returns the deciding rule in invariant tests. It matters only for invariants about one rule.
func (w wrong) by() string {
	switch w.invariant {
	case missesTheMissing:
		return "MembersMissing"
	case "lost members are replaced despite alarms":
		return "AlarmRaised"
	case renewedWhileItWaits:
		return "BackUpBeforeDeletion"
	case stopsChangedJob:
		return "Recover"
	}
	return "Wrong"
}

const (
	missesTheMissing    = "MembersMissing requires missing voters"
	renewedWhileItWaits = "certificates are renewed before a final backup"
	stopsChangedJob     = "a changed request stops its Job"
)

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

// losesVolume makes a member lose its volume.
func losesVolume(n int) func(*world) {
	return func(w *world) {
		silent(n)(w)
		w.Replicas[n].Pod, w.Replicas[n].ClusterID, w.Replicas[n].VolumeUID = decide.PodFailing, 0, "v9"
		w.Replicas[n].NoData = true
	}
}

// going marks claims as being deleted while their pods run.
func going(ordinals ...int) func(*world) {
	return func(w *world) {
		for _, n := range ordinals {
			w.Replicas[n].VolumeTerminating = true
		}
	}
}

func removed(n int) decide.RemovedMember {
	return decide.RemovedMember{Ordinal: n, VolumeUID: volumeUID(n)}
}

// down makes a member unresponsive. Its pod has been failing for the given time, and etcd has exited the given number
// of times.
func down(n, crashes int, ago time.Duration) func(*world) {
	return func(w *world) {
		silent(n)(w)
		r := &w.Replicas[n]
		r.Pod, r.ClusterID, r.PodCrashes, r.PodSince = decide.PodFailing, 0, crashes, w.Now.Add(-ago)
	}
}

func also(changes ...func(*world)) func(*world) {
	return func(w *world) {
		for _, change := range changes {
			change(w)
		}
	}
}

func replaceAfter(limit, silence time.Duration) func(*world) {
	return func(w *world) {
		w.Declared.ReplaceAfter = limit
		w.Membership.Members[2].SilentSince = w.Now.Add(-silence)
	}
}

func removes(n int) decision {
	return acts(decide.RemoveMember{ID: memberID(n), Name: fmt.Sprintf("a-%d", n)})
}

// besideNew adds a member to a cluster in which two members may join together.
func besideNew(change func(*world)) func(*world) {
	return func(w *world) {
		w.Declared.Replicas = 6
		w.Record.Token, w.Record.JoinedTogether = decide.FoundingToken(theToken, w.Declared.Version), true
		w.Membership.Members = append(w.Membership.Members,
			decide.Member{ID: 0xb3, Name: "a-3", PeerURL: w.peerURL(3), Learner: true, Started: true})
		w.Record = w.Record.With(decide.RecordedMember{Ordinal: 3, Mode: decide.Sealed, VolumeUID: "v3"})
		w.Replicas = append(w.Replicas, decide.Replica{Ordinal: 3, Pod: decide.PodStarting, VolumeUID: "v3"})
		change(w)
	}
}

func unknown(w *world) { w.Membership.Known = false }

var wrongs = []wrong{
	{"a decision is complete", "no message", nil, decision{verdict: decide.Done}},
	{"a decision is complete", "two lines", nil, decision{decide.Block, nil, "a\nb"}},
	{"a decision is complete", "two lines", nil, decision{decide.Block, nil, "a\rb"}},
	{"a decision is complete", "acts without action", nil, decision{decide.Act, nil, "because"}},
	{"a decision is complete", "waits with action", nil, decision{decide.Wait, decide.ApplyObjects{}, "because"}},

	{"guards hold", "problems", func(w *world) { w.Declared.Problems = []string{"x"} }, acts(decide.Declare{})},
	{"guards hold", "foreign", func(w *world) { w.Objects.Foreign = []string{"x"} }, acts(decide.Declare{})},
	{"guards hold", "locked", func(w *world) { w.LockHolder = "x" }, acts(decide.Declare{})},
	{"guards hold", "suspended", func(w *world) { w.Declared.Suspended = true }, acts(decide.ApplyObjects{})},
	{"guards hold", "record and status", func(w *world) { w.ReportedClusterID = 0xc2 }, acts(decide.ApplyObjects{})},
	{"guards hold", "record and list", func(w *world) { w.Membership.ClusterID = 0xc2 }, acts(decide.ApplyObjects{})},
	{"guards hold", "record and pod", func(w *world) { w.Replicas[1].ClusterID = 0xc2 }, acts(decide.ApplyObjects{})},
	{"guards hold", "renews what is good", func(w *world) { worn(w, 101) }, acts(decide.RenewCertificates{})},
	{"guards hold", "renews what is suspended", func(w *world) { worn(w, 99); w.Declared.Suspended = true }, acts(decide.RenewCertificates{})},
	{"guards hold", "renews beside foreign objects", func(w *world) { worn(w, 99); w.Objects.Foreign = []string{"x"} }, acts(decide.RenewCertificates{})},
	{"guards hold", "renews between two cluster IDs", func(w *world) { worn(w, 99); w.ReportedClusterID = 0xc2 }, acts(decide.RenewCertificates{})},
	{"guards hold", "renews by a CA that nobody knows", func(w *world) { worn(w, 99); w.Record.CA = "" }, acts(decide.RenewCertificates{})},
	{"guards hold", "renews an orphan and more", func(w *world) { worn(w, 99) }, acts(decide.ApplyObjects{})},
	{"guards hold", "renews on problems and more", func(w *world) { worn(w, 99); w.Declared.Orphaned, w.Declared.Problems = "", []string{"x"} }, acts(decide.ApplyObjects{})},
	{"one CA", "renews by another one", func(w *world) { worn(w, 99); w.CA.Proven = "CA0" }, acts(decide.RenewCertificates{})},
	{"guards hold", "labels lost", func(w *world) { w.Objects.Relabelled = []string{"x"} }, acts(decide.ApplyObjects{})},
	{"guards hold", "CA lost", func(w *world) { w.Objects.Irreplaceable = []string{"x"} }, acts(decide.ApplyObjects{})},
	{"guards hold", "terminating", func(w *world) { w.Objects.Terminating = []string{"x"} }, acts(decide.ApplyObjects{})},

	{"one CA", "applies what another one issues", otherCA, acts(decide.ApplyObjects{})},
	{"one CA", "founds on with another one", func(w *world) { founded(w); otherCA(w) }, acts(decide.Bootstrap{Replicas: 3})},
	{"one CA", "rolls meanwhile", otherCA, acts(decide.StartRollout{Version: "3.6.16", SpecHash: "h1"})},
	{"one CA", "issues what etcd does not answer by", func(w *world) { otherCA(w); w.Record.CA = "CA2" }, acts(decide.ApplyObjects{})},
	{"one CA", "issues what pods are not given", func(w *world) { otherCA(w); w.Record.CA, w.CA.Proven = "", "" }, acts(decide.ApplyObjects{})},
	{"one CA", "issues before pods come", func(w *world) { otherCA(w); w.Replicas = nil }, acts(decide.ApplyObjects{})},

	{"never bootstrapped twice", "formed", nil, acts(decide.Bootstrap{Replicas: 3})},
	{"never bootstrapped twice", "a member listed", func(w *world) { founded(w); w.Membership.Members = []decide.Member{w.newMember(0)} }, acts(decide.Bootstrap{Replicas: 3})},
	{"never bootstrapped twice", "a pod in a cluster", func(w *world) { founded(w); w.Replicas = []decide.Replica{w.newReplica(0)} }, acts(decide.Bootstrap{Replicas: 3})},
	{"never bootstrapped twice", "a member sealed", func(w *world) { founded(w); w.Record.Members[2].Mode = decide.Sealed }, acts(decide.Bootstrap{Replicas: 3})},
	{"never bootstrapped twice", "a volume", func(w *world) { nothing(w); w.Replicas = []decide.Replica{{Pod: decide.PodAbsent, VolumeUID: "v"}} }, acts(decide.Bootstrap{Replicas: 3})},
	{"never bootstrapped twice", "a pod", func(w *world) { nothing(w); w.Replicas = []decide.Replica{{Pod: decide.PodPending}} }, acts(decide.Bootstrap{Replicas: 3})},
	{"never bootstrapped twice", "a StatefulSet", func(w *world) { nothing(w); w.Objects.RunsHash = "h1" }, acts(decide.Bootstrap{Replicas: 3})},
	{"never bootstrapped twice", "not to run", func(w *world) { nothing(w); w.Declared.Lifecycle = "Stopped" }, acts(decide.Bootstrap{Replicas: 3})},
	{"never bootstrapped twice", "another number", nothing, acts(decide.Bootstrap{Replicas: 4})},
	{"never bootstrapped twice", "another list", func(w *world) { founded(w); w.Declared.Replicas = 5 }, acts(decide.Bootstrap{Replicas: 5})},

	{"the record is never weakened", "seals who has not started", func(w *world) {
		w.Record.Members[1] = decide.RecordedMember{Ordinal: 1, Mode: decide.Founding}
		w.Membership.Members[1].Started = false
		w.Record.ClusterID, w.ReportedClusterID = 0, 0xc1
		w.Membership.Known = true
		w.Record.Members[0].Mode = decide.Founding
		w.Membership.Members[0].Started = false
		w.Record.ClusterID = 0xc2
	}, acts(decide.Seal{ClusterID: 0xc1, Members: 0b011})},
	{"the record is never weakened", "another cluster ID", nil, acts(decide.Seal{ClusterID: 0xc2})},
	{"the record is never weakened", "nothing left", func(w *world) { nothing(w); w.ReportedClusterID = 0xc1 }, acts(decide.ApplyObjects{})},
	{"the record is never weakened", "out of nothing", nothing, acts(decide.ApplyObjects{})},

	{"copies are kept", "stops what is to run, and volumes go", going(1), acts(decide.StopPods{})},
	{"deleted only on request", "of what is to run", nil, acts(decide.DeleteObjects{})},
	{"deleted only on request", "of what is to stop", func(w *world) { w.Declared.Lifecycle = "Stopped"; w.Replicas = nil }, acts(decide.DeleteObjects{})},
	{"deleted only on request", "of what may run", func(w *world) { w.Declared.Lifecycle = "Deleted"; w.Replicas = nil }, acts(decide.DeleteObjects{})},
	{"deleted only on request", "of what has a pod", func(w *world) { w.Declared.Lifecycle, w.Objects.RunsReplicas = "Deleted", 0 }, acts(decide.DeleteObjects{})},
	{"downgraded only on request", "which git does not declare", nil, acts(decide.EnableDowngrade{Version: "3.5"})},
	{"downgraded only on request", "by two minor versions", func(w *world) { w.Declared.Version = "3.4.1" }, acts(decide.EnableDowngrade{Version: "3.4"})},
	{"downgraded only on request", "to the version that runs above", func(w *world) { w.Declared.Version = "3.7.3" }, acts(decide.EnableDowngrade{Version: "3.7"})},
	{"downgraded only on request", "to what runs already, for the one above", func(w *world) {
		w.Declared.Version = "3.7.3"
		allRun(w, "3.5.35")
	}, acts(decide.EnableDowngrade{Version: "3.5"})},
	{"downgraded only on request", "to what all run already", func(w *world) {
		w.Declared.Version = "3.5.35"
		allRun(w, "3.5.35")
	}, acts(decide.EnableDowngrade{Version: "3.5"})},
	{"downgraded only on request", "two below what is declared, while some run that", func(w *world) {
		w.Declared.Version = "3.7.3"
		w.Membership.Members[0].Version = "3.5.35"
	}, acts(decide.EnableDowngrade{Version: "3.5"})},
	{"downgraded only on request", "while nobody says what runs", func(w *world) {
		w.Declared.Version = "3.5.35"
		allRun(w, "")
		for i := range w.Replicas {
			w.Replicas[i].PodVersion = ""
		}
	}, acts(decide.EnableDowngrade{Version: "3.5"})},
	{"downgraded only on request", "to no version", nil, acts(decide.EnableDowngrade{Version: "x"})},
	{"downgraded only on request", "taken back, although declared", func(w *world) { w.Declared.Version = "3.5.35" }, acts(decide.CancelDowngrade{Version: "3.5"})},

	{"unknown membership is not changed", "seals", unknown, acts(decide.Seal{ClusterID: 0xc1})},
	{"unknown membership is not changed", "adds", unknown, acts(decide.AddLearner{Ordinal: 3})},
	{"unknown membership is not changed", "promotes", unknown, acts(decide.PromoteLearner{ID: 0xa2, Name: "a-2"})},
	{"unknown membership is not changed", "removes", unknown, acts(decide.RemoveMember{ID: 0xa2, Name: "a-2"})},
	{"unknown membership is not changed", "moves", unknown, acts(decide.MoveLeader{From: 0xa0, To: 0xa1})},
	{"unknown membership is not changed", "restarts", unknown, acts(decide.RestartReplica{Ordinal: 2, PodUID: "p2"})},
	{"unknown membership is not changed", "deletes", unknown, acts(decide.DeleteVolume{Ordinal: 2, VolumeUID: "v2"})},

	{"quorum is preserved", "removes one of two that answer, of which the other does not", func(w *world) {
		silent(1)(w)
		w.Membership.Members = w.Membership.Members[:2]
	}, acts(decide.RemoveMember{ID: 0xa0, Name: "a-0"})},
	{"quorum is preserved", "removes the last", func(w *world) { w.Membership.Members = w.Membership.Members[:1] }, acts(decide.RemoveMember{ID: 0xa0, Name: "a-0"})},
	{"quorum is preserved", "restarts the second of three", silent(1), acts(decide.RestartReplica{Ordinal: 2, PodUID: "p2"})},
	{"quorum is preserved", "restarts one of two, the other silent", func(w *world) {
		rolling(w)
		w.Membership.Members = w.Membership.Members[:2]
		silent(0)(w)
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"quorum is preserved", "restarts one of two that are to be three", func(w *world) {
		rolling(w)
		w.Membership.Members = w.Membership.Members[:2]
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"quorum is preserved", "promotes one too many", func(w *world) {
		silent(1)(w)
		w.Membership.Members = append(w.Membership.Members, w.newMember(3), w.newMember(4))
		silent(4)(w)
		w.Membership.Members[3].Learner = true
		w.Membership.Members[2].Answers = false
	}, acts(decide.PromoteLearner{ID: 0xa3, Name: "a-3"})},

	{"pods are not moved to a failing template", "another one into what has stopped a rollout", func(w *world) { halted(w); unknown(w); fails(1, time.Hour)(w) }, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"pods are not moved to a failing template", "into what has crashed a moment ago", func(w *world) {
		halted(w)
		fails(1, time.Hour)(w)
		w.Replicas[2].Pod, w.Replicas[2].PodCrashes, w.Replicas[2].PodStarted = decide.PodStarting, 1, w.Now.Add(-time.Second)
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"the kubelet restarts containers first", "the second of three, unknown", func(w *world) { rolling(w); unknown(w); fails(1, time.Second)(w) }, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"the kubelet restarts containers first", "since nobody knows when", func(w *world) {
		rolling(w)
		unknown(w)
		fails(1, 0)(w)
		w.Replicas[1].PodSince = time.Time{}
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"the kubelet restarts containers first", "three crashes within two minutes", func(w *world) {
		rolling(w)
		silent(2)(w)
		fails(1, 90*time.Second)(w)
		w.Replicas[1].PodCrashes = 3
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},

	{"unresponsive members count", "a rollout skips a patch of one", func(w *world) {
		w.Declared.Version, w.Objects.RunsVersion, w.Replicas[1].PodVersion = "3.6.16", "3.5.35", "3.5.25"
		allRun(w, "3.5.35")
		silent(1)(w)
	}, acts(decide.StartRollout{Version: "3.6.16", SpecHash: theHash})},
	{"unresponsive members count", "a rollout to the next minor version beside one", func(w *world) {
		w.Declared.Version = "3.7.3"
		silent(1)(w)
	}, acts(decide.StartRollout{Version: "3.7.3", SpecHash: theHash})},
	{"unresponsive members count", "a rollout to the previous minor version beside one", func(w *world) {
		w.Declared.Version, w.Membership.Downgrade = "3.5.35", "3.5"
		silent(1)(w)
	}, acts(decide.StartRollout{Version: "3.5.35", SpecHash: theHash})},
	{"unresponsive members count", "a restart skips a patch", func(w *world) { w.Replicas[1].PodVersion = "3.5.25"; silent(1)(w) },
		acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"unresponsive members count", "a restart skips a minor version", func(w *world) { w.Replicas[1].PodVersion = "3.4.30"; silent(1)(w) },
		acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"unresponsive members count", "a restart goes back, and nothing is prepared", func(w *world) {
		w.Declared.Version, w.Objects.RunsVersion = "3.5.35", "3.5.35"
		silent(1)(w)
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"unresponsive members count", "a restart runs an older version on data of a newer one", func(w *world) {
		w.Replicas[1].LastUse = decide.LastUse{Version: "3.7.3", StorageVersion: "3.7"}
		silent(1)(w)
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"unresponsive members count", "a rollout skips a patch of a volume", func(w *world) {
		w.Declared.Version, w.Objects.RunsVersion, w.Replicas[1].LastUse.Version = "3.6.16", "3.5.35", "3.5.25"
		allRun(w, "3.5.35")
		silent(1)(w)
	}, acts(decide.StartRollout{Version: "3.6.16", SpecHash: theHash})},
	{"unresponsive members count", "a StatefulSet runs an older version on data of a newer one", func(w *world) {
		w.Replicas[1].LastUse = decide.LastUse{Version: "3.7.3", StorageVersion: "3.7"}
		w.Objects = decide.Objects{}
		unknown(w)
	}, acts(decide.ApplyObjects{})},

	{"leadership is transferred first", "removes it", nil, acts(decide.RemoveMember{ID: 0xa0, Name: "a-0"})},
	{"leadership is transferred first", "restarts it", nil, acts(decide.RestartReplica{Ordinal: 0, PodUID: "p0"})},
	{"leadership is transferred first", "from a follower", nil, acts(decide.MoveLeader{From: 0xa1, To: 0xa2})},
	{"leadership is transferred first", "to itself", nil, acts(decide.MoveLeader{From: 0xa0, To: 0xa0})},
	{"leadership is transferred first", "to a learner", func(w *world) { w.Membership.Members[1].Learner = true }, acts(decide.MoveLeader{From: 0xa0, To: 0xa1})},
	{"leadership is transferred first", "to a silent one", silent(1), acts(decide.MoveLeader{From: 0xa0, To: 0xa1})},

	{"one learner, or two joining together", "adds a second", func(w *world) { w.Membership.Members[2].Learner = true }, acts(decide.AddLearner{Ordinal: 3})},
	{"one learner, or two joining together", "adds a second, and nobody knows how the members were started", besideNew(func(w *world) { w.Record.Token = theToken }), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second, and the record does not tell", besideNew(func(w *world) { w.Record.JoinedTogether = false }), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second beside one that may start with its file", besideNew(func(w *world) {
		w.Record = w.Record.With(decide.RecordedMember{Ordinal: 3, Mode: decide.Joining})
	}), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second beside one on no record", besideNew(func(w *world) {
		w.Record.Members = w.Record.Members[:3]
	}), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second beside one whose pod does not run", besideNew(func(w *world) {
		w.Replicas[3].Pod = decide.PodFailing
	}), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second beside one whose volume goes", besideNew(func(w *world) {
		w.Replicas[3].VolumeTerminating = true
	}), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second beside one on another volume", besideNew(func(w *world) {
		w.Replicas[3].VolumeUID = "v9"
	}), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second beside one that has not started", besideNew(func(w *world) {
		w.Membership.Members[3].Started = false
	}), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a third", besideNew(func(w *world) {
		w.Membership.Members = append(w.Membership.Members, decide.Member{ID: 0xb4, PeerURL: w.peerURL(4), Learner: true})
	}), acts(decide.AddLearner{Ordinal: 5})},
	{"one learner, or two joining together", "adds a second to members of 3.5", besideNew(func(w *world) { w.Membership.Members[1].Version = "3.5.35" }), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second to a large database", besideNew(func(w *world) { w.Membership.Members[1].DBSize = 257 << 20 }), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second, and one does not say how much it has", besideNew(func(w *world) { w.Membership.Members[1].DBSize = 0 }), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second beside another list", besideNew(func(w *world) { w.Membership.Members[1].Disagrees = "does not list a-3" }), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second during a downgrade", besideNew(func(w *world) { w.Membership.Downgrade = "3.5" }), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "promotes one that a voter does not list", func(w *world) {
		w.Record.JoinedTogether, w.Membership.Members[2].Learner = true, true
		w.Membership.Members[1].Disagrees = "does not list a-2"
	}, acts(decide.PromoteLearner{ID: 0xa2, Name: "a-2"})},

	{"a volume outlives its member", "listed", nil, acts(decide.DeleteVolume{Ordinal: 2, VolumeUID: "v2"})},
	{"a volume outlives its member", "listed without a name", func(w *world) { w.Membership.Members[2].Name = "" }, acts(decide.DeleteVolume{Ordinal: 2, VolumeUID: "v2"})},

	{"members are added only while all respond", "adds beside a silent one", silent(1), acts(decide.AddLearner{Ordinal: 3})},

	{"lowest ordinal added, highest removed", "skips a gap", func(w *world) { w.Membership.Members = w.Membership.Members[:2] }, acts(decide.AddLearner{Ordinal: 3})},
	{"lowest ordinal added, highest removed", "adds more than declared", nil, acts(decide.AddLearner{Ordinal: 3})},
	{"lowest ordinal added, highest removed", "removes from the middle", nil, acts(decide.RemoveMember{ID: 0xa1, Name: "a-1"})},
	{"lowest ordinal added, highest removed", "removes a voter below a voter", func(w *world) { w.Declared.Replicas = 1 }, acts(decide.RemoveMember{ID: 0xa1, Name: "a-1"})},
	{"lowest ordinal added, highest removed", "removes a learner that is declared", func(w *world) { w.Membership.Members[1].Learner = true },
		acts(decide.RemoveMember{ID: 0xa1, Name: "a-1"})},

	{"actions target observed IDs", "another pod", nil, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p9"})},
	{"actions target observed IDs", "any pod", func(w *world) { w.Replicas[1].PodUID = "" }, acts(decide.RestartReplica{Ordinal: 1})},
	{"actions target observed IDs", "another volume", nil, acts(decide.DeleteVolume{Ordinal: 1, VolumeUID: "v9"})},
	{"actions target observed IDs", "any volume", func(w *world) { w.Replicas[1].VolumeUID = "" }, acts(decide.DeleteVolume{Ordinal: 1})},
	{"actions target observed IDs", "removes who is not listed", nil, acts(decide.RemoveMember{ID: 0xd1, Name: "a-2"})},
	{"actions target observed IDs", "removes another", nil, acts(decide.RemoveMember{ID: 0xa1, Name: "a-2"})},
	{"actions target observed IDs", "a loss of a volume that is there", silent(1), acts(lost(decide.VolumeLost, "v1"))},
	{"actions target observed IDs", "a loss of a volume that is not on record", func(w *world) { silent(1)(w); w.Replicas[1].VolumeUID = "v8" }, acts(lost(decide.VolumeLost, "v9"))},
	{"actions target observed IDs", "a loss of a volume under a member that answers", func(w *world) { w.Replicas[1].VolumeUID = "v9" }, acts(lost(decide.VolumeLost, "v1"))},
	{"actions target observed IDs", "a volume that stays", nil, acts(lost(decide.VolumeGoing, "v1"))},
	{"actions target observed IDs", "another volume that goes", func(w *world) { w.Replicas[1].VolumeTerminating = true }, acts(lost(decide.VolumeGoing, "v9"))},
	{"actions target observed IDs", "a volume within reach", silent(1), acts(lost(decide.VolumeStranded, "v1"))},
	{"actions target observed IDs", "the silence of one that answers", nil, acts(lost(decide.Silence, ""))},
	{"actions target observed IDs", "corruption that nobody found", nil, acts(lost(decide.Corruption, ""))},
	{"actions target observed IDs", "a loss of another kind", silent(1), acts(lost("Boredom", ""))},
	{"actions target observed IDs", "promotes a voter", nil, acts(decide.PromoteLearner{ID: 0xa2, Name: "a-2"})},
	{"actions target observed IDs", "promotes another", func(w *world) { w.Membership.Members[2].Learner = true }, acts(decide.PromoteLearner{ID: 0xa2, Name: "a-1"})},
	{"actions target observed IDs", "removes nobody", nil, acts(decide.RemoveMember{ID: 0xd1})},
	{"actions target observed IDs", "promotes nobody", nil, acts(decide.PromoteLearner{ID: 0xd1})},
	{"actions target observed IDs", "seals no cluster", func(w *world) { w.Membership.ClusterID = 0 }, acts(decide.Seal{})},
	{"actions target observed IDs", "seals another cluster", nil, acts(decide.Seal{ClusterID: 0xc2})},

	{"lost members are replaced despite alarms", "a member is missing", func(w *world) { leave(w, 1) }, decision{decide.Block, nil, "because"}},
	{"rollouts wait for alarms", "restarts without a larger quota", noSpace("NOSPACE", 4, 4), acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"rollouts wait for alarms", "lowers a quota", noSpace("NOSPACE", 4, 8), acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"rollouts wait for alarms", "does not know a quota", noSpace("NOSPACE", 4, 0), acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"rollouts wait for alarms", "restarts under CORRUPT", noSpace("CORRUPT", 4, 2), acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"rollouts wait for alarms", "starts without a larger quota", noSpace("NOSPACE", 4, 4), acts(decide.StartRollout{Version: "3.6.16", SpecHash: "h2"})},
	{"rollouts wait for alarms", "prepares a downgrade", also(noSpace("NOSPACE", 4, 4), func(w *world) { w.Declared.Version = "3.5.35" }), acts(decide.EnableDowngrade{Version: "3.5"})},
	{missesTheMissing, "nobody", nil, decision{decide.Block, nil, "because"}},
	{missesTheMissing, "a new member", func(w *world) { leave(w, 2); w.Record = decide.Record{Members: w.Record.Members[:2]} }, decision{decide.Block, nil, "because"}},
	{missesTheMissing, "a learner sealed before it answered", func(w *world) {
		w.Membership.Members[2].Learner, w.Membership.Members[2].Answers = true, false
		w.Record = w.Record.With(decide.RecordedMember{Ordinal: 2, Mode: decide.Sealed})
	}, decision{decide.Block, nil, "because"}},
	{missesTheMissing, "with the list unknown", func(w *world) { leave(w, 1); leave(w, 2); w.Membership.Known = false }, decision{decide.Block, nil, "because"}},

	{"copies are kept", "the highest of as many as declared", nil, removes(2)},
	{"copies are kept", "all but it are on volumes that go", going(0, 1, 2), removes(2)},
	{"copies are kept", "it and one more are on volumes that go", going(1, 2), removes(2)},
	{"copies are kept", "a slot is unfilled", also(five, going(4), func(w *world) { leave(w, 1) }), removes(4)},
	{"copies are kept", "the only one on a volume that stays", also(going(0, 1), func(w *world) { w.Declared.Replicas = 2 }), removes(2)},
	{"copies are kept", "the only one, beside a learner", also(going(0), func(w *world) {
		w.Declared.Replicas = 1
		w.Membership.Members = w.Membership.Members[:2]
		w.Membership.Members[0].Leader, w.Membership.Members[1].Learner = false, true
	}), removes(0)},
	{"copies are kept", "silent, and nothing else is known", silent(2), removes(2)},
	{"copies are kept", "silent to us alone", also(silent(2), replaceAfter(time.Minute, time.Hour)), removes(2)},
	{"copies are kept", "silent beside another, while the list is known", also(silent(1), down(2, 0, time.Hour), replaceAfter(time.Minute, time.Hour)), removes(2)},
	{"copies are kept", "silent for long, and now for a moment", also(down(2, 0, time.Second), replaceAfter(time.Minute, time.Hour)), removes(2)},
	{"copies are kept", "silent for a moment, and not ready for long", also(down(2, 0, time.Hour), replaceAfter(time.Minute, time.Second)), removes(2)},
	{"copies are kept", "silent, and git says nothing of it", also(down(2, 0, time.Hour), replaceAfter(0, time.Hour)), removes(2)},
	{"copies are kept", "it has crashed three times", down(2, 3, time.Hour), removes(2)},
	{"copies are kept", "it crashes since a moment ago", down(2, 9, time.Second), removes(2)},
	{"copies are kept", "it has found no data once", also(down(2, 1, time.Hour), func(w *world) { w.Replicas[2].NoData = true }), removes(2)},
	{"copies are kept", "its node is gone since a moment ago", also(down(2, 0, time.Hour), func(w *world) { w.strand(2, time.Minute) }), removes(2)},
	{"copies are kept", "on a volume that goes, and its container restarts", also(down(2, 0, time.Second), going(1, 2)), removes(2)},
	{"copies are kept", "restarts a pod on a volume that goes", also(rolling, going(1)), acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"copies are kept", "stops a pod on a volume that goes", also(going(1), func(w *world) { w.Declared.Lifecycle = "Stopped" }), acts(decide.ApplyObjects{})},
	{"deleted volumes are recorded", "not on record", func(w *world) { leave(w, 2) }, acts(decide.DeleteVolume{Ordinal: 2, VolumeUID: "v2"})},
	{"deleted volumes are recorded", "another is on record", func(w *world) {
		leave(w, 2)
		w.Record = w.Record.WithRemoved(decide.RemovedMember{Ordinal: 2, VolumeUID: "v9"})
	}, acts(decide.DeleteVolume{Ordinal: 2, VolumeUID: "v2"})},
	{"Done means nothing is left to do", "on a volume that goes", going(1), decision{decide.Done, nil, "done"}},

	{"new members get an empty slot", "a volume is left", func(w *world) { leave(w, 2) }, acts(decide.AddLearner{Ordinal: 2})},
	{"new members get an empty slot", "the very volume is left", func(w *world) {
		leave(w, 2)
		w.Record = w.Record.WithRemoved(decide.RemovedMember{Ordinal: 2, VolumeUID: "v2"})
	}, acts(decide.AddLearner{Ordinal: 2})},
	{"new members get an empty slot", "a pod may start on what goes", func(w *world) { leave(w, 2); w.Replicas[2].VolumeTerminating = true }, acts(decide.AddLearner{Ordinal: 2})},
	{"new members get an empty slot", "it is not known which volume was left", func(w *world) {
		leave(w, 2)
		w.Record = w.Record.WithRemoved(decide.RemovedMember{Ordinal: 2})
	}, acts(decide.AddLearner{Ordinal: 2})},

	{"one step at a time", "another version than declared", func(w *world) { w.Declared.Version = "3.7.3" }, acts(decide.StartRollout{Version: "3.7.4", SpecHash: theHash})},
	{"one step at a time", "another shape than declared", nil, acts(decide.StartRollout{Version: "3.6.16", SpecHash: "h2"})},
	{"one step at a time", "skips one up", func(w *world) { w.Declared.Version = "3.8.0" }, acts(decide.StartRollout{Version: "3.8.0", SpecHash: theHash})},
	{"one step at a time", "skips one down", func(w *world) { w.Declared.Version = "3.4.30" }, acts(decide.StartRollout{Version: "3.4.30", SpecHash: theHash})},
	{"one step at a time", "skips one down from a pre-release", func(w *world) { w.Declared.Version = "3.4.30"; allRun(w, "3.6.0-rc.1") }, acts(decide.StartRollout{Version: "3.4.30", SpecHash: theHash})},
	{"one step at a time", "another major version", func(w *world) { w.Declared.Version = "4.6.0" }, acts(decide.StartRollout{Version: "4.6.0", SpecHash: theHash})},
	{"one step at a time", "restarts what is as declared", nil, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"one step at a time", "restarts before new pods are as declared", func(w *world) { w.Declared.SpecHash = "h2" }, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"one step at a time", "restarts beside a silent learner", func(w *world) {
		rolling(w)
		w.Membership.Members[2].Learner, w.Membership.Members[2].Answers = true, false
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},

	{"members stay while fields are rewritten", "removes a member", func(w *world) {
		w.Objects.Rewritten = []decide.RewrittenField{{Object: "StatefulSet a", Field: "x", Accepted: true}, {Object: "StatefulSet a", Field: "y"}}
	}, acts(decide.RemoveMember{ID: memberID(1), Name: "a-1"})},

	{"Done means nothing is left to do", "nothing is there", nothing, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "stopped, with a record", func(w *world) {
		w.Declared.Lifecycle = "Stopped"
		w.Objects.RunsVersion, w.Objects.RunsHash = "", ""
	}, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "another ID in the status", func(w *world) { w.ReportedClusterID = 0xc2 }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "more recorded", func(w *world) {
		w.Record = w.Record.With(decide.RecordedMember{Ordinal: 3, Mode: decide.Sealed})
	}, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "drift", func(w *world) { w.Objects.Drift = []string{"x"} }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "unknown", unknown, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "no ID on record", func(w *world) { w.Record.ClusterID = 0 }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "no ID at all", func(w *world) {
		w.Record.ClusterID, w.ReportedClusterID, w.Membership.ClusterID = 0, 0, 0
		for i := range w.Replicas {
			w.Replicas[i].ClusterID = 0
		}
	}, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "more declared", func(w *world) { w.Declared.Replicas = 5 }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "fewer listed", func(w *world) { w.Membership.Members = w.Membership.Members[:2] }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "fewer recorded", func(w *world) { w.Record.Members = w.Record.Members[:2] }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "not sealed", func(w *world) { w.Record.Members[1].Mode = decide.Founding }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "a stranger in the place of one", func(w *world) { w.Membership.Members[1].Name = "x" }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "silent", silent(1), decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "not started", func(w *world) { w.Membership.Members[1].Started = false }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "learner", func(w *world) { w.Membership.Members[1].Learner = true }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "alarm", func(w *world) { w.Membership.Members[1].Alarms = []decide.AlarmKind{"NOSPACE"} }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "not ready", func(w *world) { w.Replicas[1].Pod = decide.PodStarting }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "still runs", func(w *world) { w.Declared.Lifecycle = "Stopped" }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "its StatefulSet runs", func(w *world) { nothing(w); w.Declared.Lifecycle, w.Objects.RunsReplicas = "Deleted", 3 }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "an object is left", func(w *world) {
		nothing(w)
		w.Declared.Lifecycle, w.Objects.Remaining = "Deleted", []string{"Service a"}
	}, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "a volume is left", func(w *world) {
		w.Declared.Lifecycle, w.Declared.Retention, w.Objects.RunsReplicas = "Deleted", "Delete", 0
		for i := range w.Replicas {
			w.Replicas[i].Pod = decide.PodAbsent
		}
	}, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "new pods would be others", func(w *world) { w.Declared.SpecHash = "h2" }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "a pod is another", func(w *world) { w.Replicas[1].PodSpecHash = "h0" }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "beyond what is declared", func(w *world) { move(w, 2, 5) }, decision{decide.Done, nil, "done"}},
}

// TestInvariantsRejectWrongDecisions checks that each invariant rejects wrong decisions.
func TestInvariantsRejectWrongDecisions(t *testing.T) {
	caught := map[string]bool{}
	for _, c := range slices.Concat(wrongs, wrongsAboutData, wrongsAboutBackups, wrongsAboutRestores, wrongsAboutRecoveries, wrongsAboutAdoptions) {
		t.Run(c.invariant+"/"+c.what, func(t *testing.T) {
			w := healthy(t)
			if c.change != nil {
				c.change(w)
			}
			d := decide.Decision{Rule: c.by(), Verdict: c.verdict, Action: c.action, Message: c.message}
			broken := invariants.Broken(w.State, d)
			if !strings.Contains("\n"+strings.Join(broken, "\n"), "\n"+c.invariant+": ") {
				t.Errorf("the invariant accepts it; violated are %q", broken)
			}
			caught[c.invariant] = true
		})
	}
	for _, l := range invariants.All() {
		if !caught[l.Name] {
			t.Errorf("no wrong decision tests the invariant %q", l.Name)
		}
	}
}

// right lists decisions that invariants must accept, so that an invariant cannot pass by forbidding everything.
var right = []wrong{
	{"", "restarts a follower for a larger quota", noSpace("NOSPACE", 4, 2), acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"", "restarts a follower", rolling, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"", "adds a second beside one that has just joined", besideNew(func(*world) {}), acts(decide.AddLearner{Ordinal: 4})},
	{"", "restarts a silent learner", func(w *world) { w.Membership.Members[2].Learner, w.Membership.Members[2].Answers = true, false }, acts(decide.RestartReplica{Ordinal: 2, PodUID: "p2"})},
	{"", "restarts the pod of nobody", func(w *world) { w.Membership.Members = w.Membership.Members[:2] }, acts(decide.RestartReplica{Ordinal: 2, PodUID: "p2"})},
	{"", "hands over", nil, acts(decide.MoveLeader{From: 0xa0, To: 0xa1})},
	{"", "removes the highest", func(w *world) { w.Declared.Replicas = 2 }, acts(decide.RemoveMember{ID: 0xa2, Name: "a-2"})},
	{"", "removes a learner that is too many below a voter", func(w *world) { w.Declared.Replicas, w.Membership.Members[1].Learner = 1, true },
		acts(decide.RemoveMember{ID: 0xa1, Name: "a-1"})},
	{"", "removes a dead one", losesVolume(1), acts(decide.RemoveMember{ID: 0xa1, Name: "a-1"})},
	{"", "removes the only other one, dead", func(w *world) { losesVolume(1)(w); w.Membership.Members = w.Membership.Members[:2] }, acts(decide.RemoveMember{ID: 0xa1, Name: "a-1"})},
	{"", "removes one without its volume", losesVolume(1), acts(lost(decide.VolumeLost, "v1"))},
	{"", "removes one out of reach", also(down(1, 0, time.Hour), func(w *world) { w.strand(1, time.Hour) }), acts(lost(decide.VolumeStranded, "v1"))},
	{"", "removes one for its silence", down(1, 4, time.Hour), acts(lost(decide.Silence, ""))},
	{"", "adds the next", func(w *world) { w.Declared.Replicas = 4 }, acts(decide.AddLearner{Ordinal: 3})},
	{"", "adds one more before others go", going(0, 1, 2), acts(decide.AddLearner{Ordinal: 3})},
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
	{"", "restarts what does not run, unknown", func(w *world) { rolling(w); unknown(w); fails(1, 3*time.Minute)(w) }, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"", "moves on where another runs well", func(w *world) { halted(w); fails(1, time.Hour)(w); w.Replicas[0].PodSpecHash = "h2" }, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"", "moves on where another lacks quorum only", func(w *world) {
		rolling(w)
		unknown(w)
		fails(1, time.Hour)(w)
		silent(2)(w)
		w.Replicas[2].Pod, w.Replicas[2].PodSpecHash = decide.PodStarting, "h2"
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"", "moves on where another lost its volume", func(w *world) { halted(w); fails(1, time.Hour)(w); w.Replicas[2].VolumeUID = "v9" }, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"", "restarts after four crashes in a minute", func(w *world) {
		rolling(w)
		unknown(w)
		fails(1, time.Minute)(w)
		w.Replicas[1].PodCrashes = 4
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"", "prepares a downgrade", func(w *world) { w.Declared.Version = "3.5.35" }, acts(decide.EnableDowngrade{Version: "3.5"})},
	{"", "prepares a downgrade from somebody's build", func(w *world) { w.Declared.Version = "3.5.35"; allRun(w, "3.6.16+acme") }, acts(decide.EnableDowngrade{Version: "3.5"})},
	{"", "prepares a downgrade from a pre-release", func(w *world) { w.Declared.Version = "3.5.35"; allRun(w, "3.6.0-rc.0") }, acts(decide.EnableDowngrade{Version: "3.5"})},
	{"", "prepares a downgrade that has begun", func(w *world) {
		w.Declared.Version = "3.5.35"
		w.Membership.Members[2].Version = "3.5.35"
	}, acts(decide.EnableDowngrade{Version: "3.5"})},
	{"", "has the log written out", func(w *world) { w.Declared.Version = "3.7.3" }, acts(decide.EnableDowngrade{Version: "3.5"})},
	{"", "takes a downgrade back", nil, acts(decide.CancelDowngrade{Version: "3.5"})},
	{"", "deletes what is left", func(w *world) {
		w.Declared.Lifecycle, w.Objects.RunsReplicas, w.Replicas, w.Membership.Members = "Deleted", 0, nil, nil
	}, acts(decide.DeleteObjects{})},
	{"", "rolls to the next minor version", func(w *world) { w.Declared.Version = "3.7.3" }, acts(decide.StartRollout{Version: "3.7.3", SpecHash: theHash})},
	{"", "removes one on a volume that goes", going(2), removes(2)},
	{"", "removes one on a volume that goes, its place taken", also(five, going(0, 1, 2), func(w *world) { w.Declared.Replicas = 3; w.Membership.Members = w.Membership.Members[:4] }), removes(2)},
	{"", "removes one on a volume that goes with its pod", also(down(2, 0, 0), going(2), func(w *world) { w.Replicas[2].Pod = decide.PodPending }), removes(2)},
	{"", "removes a silent one", also(down(2, 0, time.Hour), replaceAfter(time.Minute, time.Hour)), removes(2)},
	{"", "removes one that crashes", down(2, 4, time.Minute), removes(2)},
	{"", "removes one without data", also(down(2, 4, time.Minute), func(w *world) { w.Replicas[2].NoData = true }), removes(2)},
	{"", "removes a stranded one", also(down(2, 0, 10*time.Minute), func(w *world) { w.strand(2, 10*time.Minute) }), removes(2)},
	{"", "removes a stranded one, as git allows", also(down(2, 0, time.Minute), replaceAfter(time.Minute, 0), func(w *world) { w.strand(2, time.Minute) }), removes(2)},
	{"", "drops what a person has confirmed", func(w *world) {
		w.Membership.Members = w.Membership.Members[:1]
		w.Declared.ConfirmedMembers = w.ListToConfirm()
	}, acts(decide.ApplyObjects{})},
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
	{"", "deletes the volume of nobody", func(w *world) { leave(w, 2); w.Record = w.Record.WithRemoved(removed(2)) }, acts(decide.DeleteVolume{Ordinal: 2, VolumeUID: "v2"})},
	{"", "applies objects", nil, acts(decide.ApplyObjects{})},
	{"", "applies objects, keeping the pods", func(w *world) { w.Declared.Version = "3.7.3" }, acts(decide.ApplyObjects{})},
	{"", "seals again", nil, acts(decide.Seal{ClusterID: 0xc1, Members: 0b111})},
	{"", "seals while an object goes", func(w *world) { w.Objects.Terminating, w.Objects.Irreplaceable = []string{"x"}, []string{"y"} }, acts(decide.Seal{ClusterID: 0xc1})},
	{"", "seals while another CA is at hand", otherCA, acts(decide.Seal{ClusterID: 0xc1, Members: 0b111})},
	{"", "takes another CA that nobody trusts", func(w *world) {
		otherCA(w)
		w.CA.Mounted, w.CA.Proven, w.Replicas, w.Objects.RunsReplicas = nil, "", nil, 0
	}, acts(decide.ApplyObjects{})},
	{"", "writes down who all trust", func(w *world) {
		w.CA = decide.CA{Secret: "CA1", Mounted: []string{"CA1"}, Proven: "CA1"}
	}, acts(decide.ApplyObjects{})},
	{"", "renews an orphan", func(w *world) { worn(w, 99) }, acts(decide.RenewCertificates{})},
	{"", "renews on a broken declaration", func(w *world) { worn(w, -1); unknown(w); w.Declared.Problems = []string{"x"} }, acts(decide.RenewCertificates{})},
	{"", "declares while suspended", func(w *world) { w.Declared.Suspended = true }, acts(decide.Declare{})},
	{"", "founds", nothing, acts(decide.Bootstrap{Replicas: 3})},
	{"", "founds on what shall not run", func(w *world) { founded(w); w.Declared.Lifecycle = "Stopped" }, acts(decide.Bootstrap{Replicas: 3})},
	{"", "applies other pods to a founding", func(w *world) {
		founded(w)
		w.Declared.Version = "3.7.3"
		w.Replicas = []decide.Replica{w.newReplica(0)}
	}, acts(decide.ApplyObjects{})},
	{"", "removes a stranger", func(w *world) {
		w.Membership.Members = append(w.Membership.Members, decide.Member{ID: 0xd1, Name: "stranger", Answers: true})
	}, acts(decide.RemoveMember{ID: 0xd1, Name: "stranger"})},
	{"", "founds on", func(w *world) { founded(w); w.Declared.Replicas = 5 }, acts(decide.Bootstrap{Replicas: 3})},
	{"", "done", nil, decision{decide.Done, nil, "done"}},
	{"", "done while suspended", func(w *world) { unknown(w); w.Declared.Suspended = true }, decision{decide.Done, nil, "done"}},
	{"", "done, nothing runs", func(w *world) { nothing(w); w.Declared.Lifecycle = "Stopped" }, decision{decide.Done, nil, "done"}},
}

// halted simulates a rollout that has stopped at a-2.
func halted(w *world) {
	rolling(w)
	fails(2, time.Hour)(w)
	w.Replicas[2].PodSpecHash = "h2"
}

// fails returns a change after which the pod with ordinal n has been failing for the given time.
func fails(n int, ago time.Duration) func(*world) {
	return func(w *world) {
		silent(n)(w)
		w.Replicas[n].Pod, w.Replicas[n].PodSince, w.Replicas[n].ClusterID = decide.PodFailing, w.Now.Add(-ago), 0
	}
}

// TestInvariantsAcceptRightDecisions checks that all invariants accept right decisions.
func TestInvariantsAcceptRightDecisions(t *testing.T) {
	for _, c := range slices.Concat(right, rightsAboutData, rightsAboutAdoptions) {
		t.Run(c.what, func(t *testing.T) {
			w := healthy(t)
			if c.change != nil {
				c.change(w)
			}
			d := decide.Decision{Rule: "Right", Verdict: c.verdict, Action: c.action, Message: c.message}
			if broken := invariants.Broken(w.State, d); len(broken) > 0 {
				t.Errorf("broken are %q", broken)
			}
		})
	}
}

func five(w *world) {
	w.State = decide.State{}
	if err := w.cluster([]datadriven.CmdArg{{Key: "a"}, {Key: "replicas", Vals: []string{"5"}}}); err != nil {
		panic(err)
	}
}

// otherCA puts a different CA into the Secret.
func otherCA(w *world) {
	w.Record.CA, w.CA = "CA1", decide.CA{Secret: "CA2", Mounted: []string{"CA1"}, Proven: "CA1"}
}

// worn makes the cluster an orphan with a certificate that expires in the given number of days, of a lifetime of 300
// days.
func worn(w *world, days int) {
	w.Declared.Orphaned = "git declares it no longer"
	w.Record.CA, w.CA = "CA1", decide.CA{Secret: "CA1", Mounted: []string{"CA1"}, Proven: "CA1"}
	end := w.Now.Add(time.Duration(days) * 24 * time.Hour)
	w.Certificates = []decide.Certificate{{Secret: "a-peer-tls", Key: "tls.crt", NotBefore: end.Add(-300 * 24 * time.Hour), NotAfter: end}}
}

// lost returns the removal of a-1 for the given reason.
func lost(loss decide.Loss, volume string) decide.Action {
	return decide.RemoveMember{ID: 0xa1, Name: "a-1", Evidence: decide.LossEvidence{Loss: loss, VolumeUID: volume}}
}

// leave removes the member of an ordinal, and keeps its pod and volume.
func leave(w *world, n int) {
	_ = w.setMember(n, "etcd", "none")
	w.Record.Members = slices.DeleteFunc(w.Record.Members, func(m decide.RecordedMember) bool { return m.Ordinal == n })
}

// allRun makes all members run a version.
func allRun(w *world, version string) {
	for i := range w.Membership.Members {
		w.Membership.Members[i].Version = version
	}
}

// rolling simulates a rollout in which all pods are still outdated.
func rolling(w *world) {
	w.Declared.SpecHash, w.Objects.RunsHash = "h2", "h2"
}

// move changes the ordinal of a replica.
func move(w *world, from, to int) {
	w.Replicas[from].Ordinal, w.Membership.Members[from].Name = to, w.ReplicaName(to)
	w.Record.Members[from].Ordinal = to
}

func healthy(t *testing.T) *world {
	t.Helper()
	w := &world{}
	if _, err := decidetest.Teller(w.tell).Line("cluster a replicas=3"); err != nil {
		t.Fatal(err)
	}
	return w
}

// noSpace simulates a rollout of h2 with the declared quota while a-2 raises an alarm. All pods still run with the
// quota runs.
func noSpace(kind decide.AlarmKind, declared, runs int64) func(*world) {
	return also(rolling, func(w *world) {
		w.Declared.Quota = declared
		w.Membership.Members[2].Alarms = []decide.AlarmKind{kind}
		for n := range w.Replicas {
			w.Replicas[n].PodQuota = runs
		}
	})
}
