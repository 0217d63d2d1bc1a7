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
	{"a decision is complete", "acts without an action", nil, decision{decide.Act, nil, "because"}},
	{"a decision is complete", "waits with an action", nil, decision{decide.Wait, decide.ApplyObjects{}, "because"}},

	{"guards hold", "invalid spec", func(w *world) { w.Declared.Problems = []string{"x"} }, acts(decide.Declare{})},
	{"guards hold", "unmanaged objects", func(w *world) { w.Objects.Foreign = []string{"x"} }, acts(decide.Declare{})},
	{"guards hold", "locked by another process", func(w *world) { w.LockHolder = "x" }, acts(decide.Declare{})},
	{"guards hold", "suspended", func(w *world) { w.Declared.Suspended = true }, acts(decide.ApplyObjects{})},
	{"guards hold", "record and status have different IDs", func(w *world) { w.ReportedClusterID = 0xc2 }, acts(decide.ApplyObjects{})},
	{"guards hold", "record and member list have different IDs", func(w *world) { w.Membership.ClusterID = 0xc2 }, acts(decide.ApplyObjects{})},
	{"guards hold", "record and pod have different IDs", func(w *world) { w.Replicas[1].ClusterID = 0xc2 }, acts(decide.ApplyObjects{})},
	{"guards hold", "renews valid certificates", func(w *world) { worn(w, 101) }, acts(decide.RenewCertificates{})},
	{"guards hold", "renews while suspended", func(w *world) { worn(w, 99); w.Declared.Suspended = true }, acts(decide.RenewCertificates{})},
	{"guards hold", "renews with unmanaged objects", func(w *world) { worn(w, 99); w.Objects.Foreign = []string{"x"} }, acts(decide.RenewCertificates{})},
	{"guards hold", "renews with two cluster IDs", func(w *world) { worn(w, 99); w.ReportedClusterID = 0xc2 }, acts(decide.RenewCertificates{})},
	{"guards hold", "renews from an unrecorded CA", func(w *world) { worn(w, 99); w.Record.CA = "" }, acts(decide.RenewCertificates{})},
	{"guards hold", "applies objects of an orphan", func(w *world) { worn(w, 99) }, acts(decide.ApplyObjects{})},
	{"guards hold", "applies objects of an invalid spec", func(w *world) { worn(w, 99); w.Declared.Orphaned, w.Declared.Problems = "", []string{"x"} }, acts(decide.ApplyObjects{})},
	{"one CA", "renews from a CA members do not use", func(w *world) { worn(w, 99); w.CA.Proven = "CA0" }, acts(decide.RenewCertificates{})},
	{"guards hold", "labels lost", func(w *world) { w.Objects.Relabelled = []string{"x"} }, acts(decide.ApplyObjects{})},
	{"guards hold", "CA lost", func(w *world) { w.Objects.Irreplaceable = []string{"x"} }, acts(decide.ApplyObjects{})},
	{"guards hold", "objects being deleted", func(w *world) { w.Objects.Terminating = []string{"x"} }, acts(decide.ApplyObjects{})},

	{"one CA", "applies certificates of a different CA", otherCA, acts(decide.ApplyObjects{})},
	{"one CA", "continues bootstrap with a different CA", func(w *world) { founded(w); otherCA(w) }, acts(decide.Bootstrap{Replicas: 3})},
	{"one CA", "rolls out with a different CA", otherCA, acts(decide.StartRollout{Version: "3.6.16", SpecHash: "h1"})},
	{"one CA", "issues from a CA etcd does not use", func(w *world) { otherCA(w); w.Record.CA = "CA2" }, acts(decide.ApplyObjects{})},
	{"one CA", "issues from a CA pods do not mount", func(w *world) { otherCA(w); w.Record.CA, w.CA.Proven = "", "" }, acts(decide.ApplyObjects{})},
	{"one CA", "issues before pods exist", func(w *world) { otherCA(w); w.Replicas = nil }, acts(decide.ApplyObjects{})},

	{"never bootstrapped twice", "a formed cluster", nil, acts(decide.Bootstrap{Replicas: 3})},
	{"never bootstrapped twice", "a member is listed", func(w *world) { founded(w); w.Membership.Members = []decide.Member{w.newMember(0)} }, acts(decide.Bootstrap{Replicas: 3})},
	{"never bootstrapped twice", "a pod has a cluster ID", func(w *world) { founded(w); w.Replicas = []decide.Replica{w.newReplica(0)} }, acts(decide.Bootstrap{Replicas: 3})},
	{"never bootstrapped twice", "a member is sealed", func(w *world) { founded(w); w.Record.Members[2].Mode = decide.Sealed }, acts(decide.Bootstrap{Replicas: 3})},
	{"never bootstrapped twice", "a volume", func(w *world) { nothing(w); w.Replicas = []decide.Replica{{Pod: decide.PodAbsent, VolumeUID: "v"}} }, acts(decide.Bootstrap{Replicas: 3})},
	{"never bootstrapped twice", "a pod", func(w *world) { nothing(w); w.Replicas = []decide.Replica{{Pod: decide.PodPending}} }, acts(decide.Bootstrap{Replicas: 3})},
	{"never bootstrapped twice", "a StatefulSet", func(w *world) { nothing(w); w.Objects.RunsHash = "h1" }, acts(decide.Bootstrap{Replicas: 3})},
	{"never bootstrapped twice", "the cluster must not run", func(w *world) { nothing(w); w.Declared.Lifecycle = "Stopped" }, acts(decide.Bootstrap{Replicas: 3})},
	{"never bootstrapped twice", "number differs from the spec", nothing, acts(decide.Bootstrap{Replicas: 4})},
	{"never bootstrapped twice", "members differ from the record", func(w *world) { founded(w); w.Declared.Replicas = 5 }, acts(decide.Bootstrap{Replicas: 5})},

	{"the record is never weakened", "seals an unstarted member", func(w *world) {
		w.Record.Members[1] = decide.RecordedMember{Ordinal: 1, Mode: decide.Founding}
		w.Membership.Members[1].Started = false
		w.Record.ClusterID, w.ReportedClusterID = 0, 0xc1
		w.Membership.Known = true
		w.Record.Members[0].Mode = decide.Founding
		w.Membership.Members[0].Started = false
		w.Record.ClusterID = 0xc2
	}, acts(decide.Seal{ClusterID: 0xc1, Members: 0b011})},
	{"the record is never weakened", "seals a different cluster ID", nil, acts(decide.Seal{ClusterID: 0xc2})},
	{"the record is never weakened", "nothing left", func(w *world) { nothing(w); w.ReportedClusterID = 0xc1 }, acts(decide.ApplyObjects{})},
	{"the record is never weakened", "out of nothing", nothing, acts(decide.ApplyObjects{})},

	{"copies are kept", "stops a running cluster, volume being deleted", going(1), acts(decide.StopPods{})},
	{"deleted only on request", "of a cluster that should run", nil, acts(decide.DeleteObjects{})},
	{"deleted only on request", "of what is to stop", func(w *world) { w.Declared.Lifecycle = "Stopped"; w.Replicas = nil }, acts(decide.DeleteObjects{})},
	{"deleted only on request", "of a cluster not scaled to 0", func(w *world) { w.Declared.Lifecycle = "Deleted"; w.Replicas = nil }, acts(decide.DeleteObjects{})},
	{"deleted only on request", "of a cluster with pods", func(w *world) { w.Declared.Lifecycle, w.Objects.RunsReplicas = "Deleted", 0 }, acts(decide.DeleteObjects{})},
	{"downgraded only on request", "to a version not declared", nil, acts(decide.EnableDowngrade{Version: "3.5"})},
	{"downgraded only on request", "by two minor versions", func(w *world) { w.Declared.Version = "3.4.1" }, acts(decide.EnableDowngrade{Version: "3.4"})},
	{"downgraded only on request", "to a newer version", func(w *world) { w.Declared.Version = "3.7.3" }, acts(decide.EnableDowngrade{Version: "3.7"})},
	{"downgraded only on request", "to the running version, newer declared", func(w *world) {
		w.Declared.Version = "3.7.3"
		allRun(w, "3.5.35")
	}, acts(decide.EnableDowngrade{Version: "3.5"})},
	{"downgraded only on request", "to the version all members run", func(w *world) {
		w.Declared.Version = "3.5.35"
		allRun(w, "3.5.35")
	}, acts(decide.EnableDowngrade{Version: "3.5"})},
	{"downgraded only on request", "two minor versions below the declared version", func(w *world) {
		w.Declared.Version = "3.7.3"
		w.Membership.Members[0].Version = "3.5.35"
	}, acts(decide.EnableDowngrade{Version: "3.5"})},
	{"downgraded only on request", "while the running version is unknown", func(w *world) {
		w.Declared.Version = "3.5.35"
		allRun(w, "")
		for i := range w.Replicas {
			w.Replicas[i].PodVersion = ""
		}
	}, acts(decide.EnableDowngrade{Version: "3.5"})},
	{"downgraded only on request", "to an invalid version", nil, acts(decide.EnableDowngrade{Version: "x"})},
	{"downgraded only on request", "canceled although declared", func(w *world) { w.Declared.Version = "3.5.35" }, acts(decide.CancelDowngrade{Version: "3.5"})},

	{"unknown membership is not changed", "seals", unknown, acts(decide.Seal{ClusterID: 0xc1})},
	{"unknown membership is not changed", "adds", unknown, acts(decide.AddLearner{Ordinal: 3})},
	{"unknown membership is not changed", "promotes", unknown, acts(decide.PromoteLearner{ID: 0xa2, Name: "a-2"})},
	{"unknown membership is not changed", "removes", unknown, acts(decide.RemoveMember{ID: 0xa2, Name: "a-2"})},
	{"unknown membership is not changed", "moves the leader", unknown, acts(decide.MoveLeader{From: 0xa0, To: 0xa1})},
	{"unknown membership is not changed", "restarts", unknown, acts(decide.RestartReplica{Ordinal: 2, PodUID: "p2"})},
	{"unknown membership is not changed", "deletes", unknown, acts(decide.DeleteVolume{Ordinal: 2, VolumeUID: "v2"})},

	{"quorum is preserved", "removes the only responding member of two", func(w *world) {
		silent(1)(w)
		w.Membership.Members = w.Membership.Members[:2]
	}, acts(decide.RemoveMember{ID: 0xa0, Name: "a-0"})},
	{"quorum is preserved", "removes the last member", func(w *world) { w.Membership.Members = w.Membership.Members[:1] }, acts(decide.RemoveMember{ID: 0xa0, Name: "a-0"})},
	{"quorum is preserved", "restarts one of three, another not responding", silent(1), acts(decide.RestartReplica{Ordinal: 2, PodUID: "p2"})},
	{"quorum is preserved", "restarts one of two, the other not responding", func(w *world) {
		rolling(w)
		w.Membership.Members = w.Membership.Members[:2]
		silent(0)(w)
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"quorum is preserved", "restarts one of two, three declared", func(w *world) {
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

	{"pods are not moved to a failing template", "another pod, after the rollout has stopped", func(w *world) { halted(w); unknown(w); fails(1, time.Hour)(w) }, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"pods are not moved to a failing template", "another pod, after one has just crashed", func(w *world) {
		halted(w)
		fails(1, time.Hour)(w)
		w.Replicas[2].Pod, w.Replicas[2].PodCrashes, w.Replicas[2].PodStarted = decide.PodStarting, 1, w.Now.Add(-time.Second)
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"the kubelet restarts containers first", "just failed, member list unknown", func(w *world) { rolling(w); unknown(w); fails(1, time.Second)(w) }, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"the kubelet restarts containers first", "failing since an unknown time", func(w *world) {
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

	{"unresponsive members count", "a rollout skips a required patch", func(w *world) {
		w.Declared.Version, w.Objects.RunsVersion, w.Replicas[1].PodVersion = "3.6.16", "3.5.35", "3.5.25"
		allRun(w, "3.5.35")
		silent(1)(w)
	}, acts(decide.StartRollout{Version: "3.6.16", SpecHash: theHash})},
	{"unresponsive members count", "a rollout to the next minor version", func(w *world) {
		w.Declared.Version = "3.7.3"
		silent(1)(w)
	}, acts(decide.StartRollout{Version: "3.7.3", SpecHash: theHash})},
	{"unresponsive members count", "a rollout to the previous minor version", func(w *world) {
		w.Declared.Version, w.Membership.Downgrade = "3.5.35", "3.5"
		silent(1)(w)
	}, acts(decide.StartRollout{Version: "3.5.35", SpecHash: theHash})},
	{"unresponsive members count", "a restart skips a required patch", func(w *world) { w.Replicas[1].PodVersion = "3.5.25"; silent(1)(w) },
		acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"unresponsive members count", "a restart skips a minor version", func(w *world) { w.Replicas[1].PodVersion = "3.4.30"; silent(1)(w) },
		acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"unresponsive members count", "a restart downgrades without preparation", func(w *world) {
		w.Declared.Version, w.Objects.RunsVersion = "3.5.35", "3.5.35"
		silent(1)(w)
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"unresponsive members count", "a restart runs newer data with an older version", func(w *world) {
		w.Replicas[1].LastUse = decide.LastUse{Version: "3.7.3", StorageVersion: "3.7"}
		silent(1)(w)
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"unresponsive members count", "a rollout skips a patch required by a volume", func(w *world) {
		w.Declared.Version, w.Objects.RunsVersion, w.Replicas[1].LastUse.Version = "3.6.16", "3.5.35", "3.5.25"
		allRun(w, "3.5.35")
		silent(1)(w)
	}, acts(decide.StartRollout{Version: "3.6.16", SpecHash: theHash})},
	{"unresponsive members count", "a StatefulSet runs newer data with an older version", func(w *world) {
		w.Replicas[1].LastUse = decide.LastUse{Version: "3.7.3", StorageVersion: "3.7"}
		w.Objects = decide.Objects{}
		unknown(w)
	}, acts(decide.ApplyObjects{})},

	{"leadership is transferred first", "removes the leader", nil, acts(decide.RemoveMember{ID: 0xa0, Name: "a-0"})},
	{"leadership is transferred first", "restarts the leader", nil, acts(decide.RestartReplica{Ordinal: 0, PodUID: "p0"})},
	{"leadership is transferred first", "from a follower", nil, acts(decide.MoveLeader{From: 0xa1, To: 0xa2})},
	{"leadership is transferred first", "to itself", nil, acts(decide.MoveLeader{From: 0xa0, To: 0xa0})},
	{"leadership is transferred first", "to a learner", func(w *world) { w.Membership.Members[1].Learner = true }, acts(decide.MoveLeader{From: 0xa0, To: 0xa1})},
	{"leadership is transferred first", "to a member not responding", silent(1), acts(decide.MoveLeader{From: 0xa0, To: 0xa1})},

	{"one learner, or two joining together", "adds a second", func(w *world) { w.Membership.Members[2].Learner = true }, acts(decide.AddLearner{Ordinal: 3})},
	{"one learner, or two joining together", "adds a second, bootstrap version unknown", besideNew(func(w *world) { w.Record.Token = theToken }), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second, joining together not recorded", besideNew(func(w *world) { w.Record.JoinedTogether = false }), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second, the first recorded as joining", besideNew(func(w *world) {
		w.Record = w.Record.With(decide.RecordedMember{Ordinal: 3, Mode: decide.Joining})
	}), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second, the first not recorded", besideNew(func(w *world) {
		w.Record.Members = w.Record.Members[:3]
	}), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second, the first pod failing", besideNew(func(w *world) {
		w.Replicas[3].Pod = decide.PodFailing
	}), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second, the first volume being deleted", besideNew(func(w *world) {
		w.Replicas[3].VolumeTerminating = true
	}), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second, the first on a different volume", besideNew(func(w *world) {
		w.Replicas[3].VolumeUID = "v9"
	}), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second, the first not started", besideNew(func(w *world) {
		w.Membership.Members[3].Started = false
	}), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a third", besideNew(func(w *world) {
		w.Membership.Members = append(w.Membership.Members, decide.Member{ID: 0xb4, PeerURL: w.peerURL(4), Learner: true})
	}), acts(decide.AddLearner{Ordinal: 5})},
	{"one learner, or two joining together", "adds a second to members of 3.5", besideNew(func(w *world) { w.Membership.Members[1].Version = "3.5.35" }), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second to a large database", besideNew(func(w *world) { w.Membership.Members[1].DBSize = 257 << 20 }), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second, one database size unknown", besideNew(func(w *world) { w.Membership.Members[1].DBSize = 0 }), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second, one member list differs", besideNew(func(w *world) { w.Membership.Members[1].Disagrees = "does not list a-3" }), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "adds a second during a downgrade", besideNew(func(w *world) { w.Membership.Downgrade = "3.5" }), acts(decide.AddLearner{Ordinal: 4})},
	{"one learner, or two joining together", "promotes a learner that a voter does not list", func(w *world) {
		w.Record.JoinedTogether, w.Membership.Members[2].Learner = true, true
		w.Membership.Members[1].Disagrees = "does not list a-2"
	}, acts(decide.PromoteLearner{ID: 0xa2, Name: "a-2"})},

	{"a volume outlives its member", "the member is listed", nil, acts(decide.DeleteVolume{Ordinal: 2, VolumeUID: "v2"})},
	{"a volume outlives its member", "the member is listed without a name", func(w *world) { w.Membership.Members[2].Name = "" }, acts(decide.DeleteVolume{Ordinal: 2, VolumeUID: "v2"})},

	{"members are added only while all respond", "adds while a member is not responding", silent(1), acts(decide.AddLearner{Ordinal: 3})},

	{"lowest ordinal added, highest removed", "skips a gap", func(w *world) { w.Membership.Members = w.Membership.Members[:2] }, acts(decide.AddLearner{Ordinal: 3})},
	{"lowest ordinal added, highest removed", "adds more than declared", nil, acts(decide.AddLearner{Ordinal: 3})},
	{"lowest ordinal added, highest removed", "removes from the middle", nil, acts(decide.RemoveMember{ID: 0xa1, Name: "a-1"})},
	{"lowest ordinal added, highest removed", "removes a voter below a voter", func(w *world) { w.Declared.Replicas = 1 }, acts(decide.RemoveMember{ID: 0xa1, Name: "a-1"})},
	{"lowest ordinal added, highest removed", "removes a learner that is declared", func(w *world) { w.Membership.Members[1].Learner = true },
		acts(decide.RemoveMember{ID: 0xa1, Name: "a-1"})},

	{"actions target observed IDs", "restarts a different pod", nil, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p9"})},
	{"actions target observed IDs", "restarts a pod without a UID", func(w *world) { w.Replicas[1].PodUID = "" }, acts(decide.RestartReplica{Ordinal: 1})},
	{"actions target observed IDs", "deletes a different volume", nil, acts(decide.DeleteVolume{Ordinal: 1, VolumeUID: "v9"})},
	{"actions target observed IDs", "deletes a volume without a UID", func(w *world) { w.Replicas[1].VolumeUID = "" }, acts(decide.DeleteVolume{Ordinal: 1})},
	{"actions target observed IDs", "removes an unlisted member", nil, acts(decide.RemoveMember{ID: 0xd1, Name: "a-2"})},
	{"actions target observed IDs", "removes with mismatched ID and name", nil, acts(decide.RemoveMember{ID: 0xa1, Name: "a-2"})},
	{"actions target observed IDs", "loss of a volume that exists", silent(1), acts(lost(decide.VolumeLost, "v1"))},
	{"actions target observed IDs", "loss of a volume that is not recorded", func(w *world) { silent(1)(w); w.Replicas[1].VolumeUID = "v8" }, acts(lost(decide.VolumeLost, "v9"))},
	{"actions target observed IDs", "loss of a responding member's volume", func(w *world) { w.Replicas[1].VolumeUID = "v9" }, acts(lost(decide.VolumeLost, "v1"))},
	{"actions target observed IDs", "deletion of a volume that is kept", nil, acts(lost(decide.VolumeGoing, "v1"))},
	{"actions target observed IDs", "deletion of a different volume", func(w *world) { w.Replicas[1].VolumeTerminating = true }, acts(lost(decide.VolumeGoing, "v9"))},
	{"actions target observed IDs", "stranding of a reachable volume", silent(1), acts(lost(decide.VolumeStranded, "v1"))},
	{"actions target observed IDs", "silence of a responding member", nil, acts(lost(decide.Silence, ""))},
	{"actions target observed IDs", "corruption that was not found", nil, acts(lost(decide.Corruption, ""))},
	{"actions target observed IDs", "unknown kind of loss", silent(1), acts(lost("Boredom", ""))},
	{"actions target observed IDs", "promotes a voter", nil, acts(decide.PromoteLearner{ID: 0xa2, Name: "a-2"})},
	{"actions target observed IDs", "promotes with mismatched ID and name", func(w *world) { w.Membership.Members[2].Learner = true }, acts(decide.PromoteLearner{ID: 0xa2, Name: "a-1"})},
	{"actions target observed IDs", "removes an unlisted member without a name", nil, acts(decide.RemoveMember{ID: 0xd1})},
	{"actions target observed IDs", "promotes an unlisted member", nil, acts(decide.PromoteLearner{ID: 0xd1})},
	{"actions target observed IDs", "seals without a cluster ID", func(w *world) { w.Membership.ClusterID = 0 }, acts(decide.Seal{})},
	{"actions target observed IDs", "seals another cluster", nil, acts(decide.Seal{ClusterID: 0xc2})},

	{"lost members are replaced despite alarms", "a member is missing", func(w *world) { leave(w, 1) }, decision{decide.Block, nil, "because"}},
	{"rollouts wait for alarms", "restarts without a larger quota", noSpace("NOSPACE", 4, 4), acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"rollouts wait for alarms", "lowers a quota", noSpace("NOSPACE", 4, 8), acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"rollouts wait for alarms", "quota unknown", noSpace("NOSPACE", 4, 0), acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"rollouts wait for alarms", "restarts under CORRUPT", noSpace("CORRUPT", 4, 2), acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"rollouts wait for alarms", "starts without a larger quota", noSpace("NOSPACE", 4, 4), acts(decide.StartRollout{Version: "3.6.16", SpecHash: "h2"})},
	{"rollouts wait for alarms", "prepares a downgrade", also(noSpace("NOSPACE", 4, 4), func(w *world) { w.Declared.Version = "3.5.35" }), acts(decide.EnableDowngrade{Version: "3.5"})},
	{missesTheMissing, "no member is missing", nil, decision{decide.Block, nil, "because"}},
	{missesTheMissing, "a new member", func(w *world) { leave(w, 2); w.Record = decide.Record{Members: w.Record.Members[:2]} }, decision{decide.Block, nil, "because"}},
	{missesTheMissing, "a sealed learner does not respond", func(w *world) {
		w.Membership.Members[2].Learner, w.Membership.Members[2].Answers = true, false
		w.Record = w.Record.With(decide.RecordedMember{Ordinal: 2, Mode: decide.Sealed})
	}, decision{decide.Block, nil, "because"}},
	{missesTheMissing, "the member list is unknown", func(w *world) { leave(w, 1); leave(w, 2); w.Membership.Known = false }, decision{decide.Block, nil, "because"}},

	{"copies are kept", "removes a declared member", nil, removes(2)},
	{"copies are kept", "all volumes are being deleted", going(0, 1, 2), removes(2)},
	{"copies are kept", "two of three volumes are being deleted", going(1, 2), removes(2)},
	{"copies are kept", "volume being deleted, a slot is empty", also(five, going(4), func(w *world) { leave(w, 1) }), removes(4)},
	{"copies are kept", "the only volume that is kept", also(going(0, 1), func(w *world) { w.Declared.Replicas = 2 }), removes(2)},
	{"copies are kept", "the only voter, and a learner", also(going(0), func(w *world) {
		w.Declared.Replicas = 1
		w.Membership.Members = w.Membership.Members[:2]
		w.Membership.Members[0].Leader, w.Membership.Members[1].Learner = false, true
	}), removes(0)},
	{"copies are kept", "not responding, pod ready", silent(2), removes(2)},
	{"copies are kept", "not responding for an hour, pod ready", also(silent(2), replaceAfter(time.Minute, time.Hour)), removes(2)},
	{"copies are kept", "two not responding, member list known", also(silent(1), down(2, 0, time.Hour), replaceAfter(time.Minute, time.Hour)), removes(2)},
	{"copies are kept", "silent for an hour, pod just failed", also(down(2, 0, time.Second), replaceAfter(time.Minute, time.Hour)), removes(2)},
	{"copies are kept", "silent briefly, pod failing for an hour", also(down(2, 0, time.Hour), replaceAfter(time.Minute, time.Second)), removes(2)},
	{"copies are kept", "silent for an hour, no limit declared", also(down(2, 0, time.Hour), replaceAfter(0, time.Hour)), removes(2)},
	{"copies are kept", "crashed only three times", down(2, 3, time.Hour), removes(2)},
	{"copies are kept", "crashing for only a second", down(2, 9, time.Second), removes(2)},
	{"copies are kept", "found no data only once", also(down(2, 1, time.Hour), func(w *world) { w.Replicas[2].NoData = true }), removes(2)},
	{"copies are kept", "stranded for only a minute", also(down(2, 0, time.Hour), func(w *world) { w.strand(2, time.Minute) }), removes(2)},
	{"copies are kept", "volume being deleted, container restarting", also(down(2, 0, time.Second), going(1, 2)), removes(2)},
	{"copies are kept", "restarts a pod, volume being deleted", also(rolling, going(1)), acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"copies are kept", "stops a pod, volume being deleted", also(going(1), func(w *world) { w.Declared.Lifecycle = "Stopped" }), acts(decide.ApplyObjects{})},
	{"deleted volumes are recorded", "volume not recorded", func(w *world) { leave(w, 2) }, acts(decide.DeleteVolume{Ordinal: 2, VolumeUID: "v2"})},
	{"deleted volumes are recorded", "a different volume is recorded", func(w *world) {
		leave(w, 2)
		w.Record = w.Record.WithRemoved(decide.RemovedMember{Ordinal: 2, VolumeUID: "v9"})
	}, acts(decide.DeleteVolume{Ordinal: 2, VolumeUID: "v2"})},
	{"Done means nothing is left to do", "a volume is being deleted", going(1), decision{decide.Done, nil, "done"}},

	{"new members get an empty slot", "a volume is left", func(w *world) { leave(w, 2) }, acts(decide.AddLearner{Ordinal: 2})},
	{"new members get an empty slot", "the recorded volume is left", func(w *world) {
		leave(w, 2)
		w.Record = w.Record.WithRemoved(decide.RemovedMember{Ordinal: 2, VolumeUID: "v2"})
	}, acts(decide.AddLearner{Ordinal: 2})},
	{"new members get an empty slot", "a pod may use a volume being deleted", func(w *world) { leave(w, 2); w.Replicas[2].VolumeTerminating = true }, acts(decide.AddLearner{Ordinal: 2})},
	{"new members get an empty slot", "which volume was left is unknown", func(w *world) {
		leave(w, 2)
		w.Record = w.Record.WithRemoved(decide.RemovedMember{Ordinal: 2})
	}, acts(decide.AddLearner{Ordinal: 2})},

	{"one step at a time", "not the declared version", func(w *world) { w.Declared.Version = "3.7.3" }, acts(decide.StartRollout{Version: "3.7.4", SpecHash: theHash})},
	{"one step at a time", "not the declared spec", nil, acts(decide.StartRollout{Version: "3.6.16", SpecHash: "h2"})},
	{"one step at a time", "upgrade skips a minor version", func(w *world) { w.Declared.Version = "3.8.0" }, acts(decide.StartRollout{Version: "3.8.0", SpecHash: theHash})},
	{"one step at a time", "downgrade skips a minor version", func(w *world) { w.Declared.Version = "3.4.30" }, acts(decide.StartRollout{Version: "3.4.30", SpecHash: theHash})},
	{"one step at a time", "downgrade from a pre-release skips a version", func(w *world) { w.Declared.Version = "3.4.30"; allRun(w, "3.6.0-rc.1") }, acts(decide.StartRollout{Version: "3.4.30", SpecHash: theHash})},
	{"one step at a time", "a different major version", func(w *world) { w.Declared.Version = "4.6.0" }, acts(decide.StartRollout{Version: "4.6.0", SpecHash: theHash})},
	{"one step at a time", "restarts an up-to-date pod", nil, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"one step at a time", "restarts before the template is updated", func(w *world) { w.Declared.SpecHash = "h2" }, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"one step at a time", "restarts while a learner is not responding", func(w *world) {
		rolling(w)
		w.Membership.Members[2].Learner, w.Membership.Members[2].Answers = true, false
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},

	{"members stay while fields are rewritten", "removes a member", func(w *world) {
		w.Objects.Rewritten = []decide.RewrittenField{{Object: "StatefulSet a", Field: "x", Accepted: true}, {Object: "StatefulSet a", Field: "y"}}
	}, acts(decide.RemoveMember{ID: memberID(1), Name: "a-1"})},

	{"Done means nothing is left to do", "nothing exists", nothing, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "stopped, with a record", func(w *world) {
		w.Declared.Lifecycle = "Stopped"
		w.Objects.RunsVersion, w.Objects.RunsHash = "", ""
	}, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "the status has a different ID", func(w *world) { w.ReportedClusterID = 0xc2 }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "more members recorded", func(w *world) {
		w.Record = w.Record.With(decide.RecordedMember{Ordinal: 3, Mode: decide.Sealed})
	}, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "drift", func(w *world) { w.Objects.Drift = []string{"x"} }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "member list unknown", unknown, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "no cluster ID recorded", func(w *world) { w.Record.ClusterID = 0 }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "no cluster ID anywhere", func(w *world) {
		w.Record.ClusterID, w.ReportedClusterID, w.Membership.ClusterID = 0, 0, 0
		for i := range w.Replicas {
			w.Replicas[i].ClusterID = 0
		}
	}, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "more members declared", func(w *world) { w.Declared.Replicas = 5 }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "fewer members listed", func(w *world) { w.Membership.Members = w.Membership.Members[:2] }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "fewer members recorded", func(w *world) { w.Record.Members = w.Record.Members[:2] }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "a member is not sealed", func(w *world) { w.Record.Members[1].Mode = decide.Founding }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "an unknown member replaces a member", func(w *world) { w.Membership.Members[1].Name = "x" }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "a member is not responding", silent(1), decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "a member has not started", func(w *world) { w.Membership.Members[1].Started = false }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "a member is a learner", func(w *world) { w.Membership.Members[1].Learner = true }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "a member has an alarm", func(w *world) { w.Membership.Members[1].Alarms = []decide.AlarmKind{"NOSPACE"} }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "a pod is not ready", func(w *world) { w.Replicas[1].Pod = decide.PodStarting }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "stopped, but still running", func(w *world) { w.Declared.Lifecycle = "Stopped" }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "deleted, but StatefulSet not scaled to 0", func(w *world) { nothing(w); w.Declared.Lifecycle, w.Objects.RunsReplicas = "Deleted", 3 }, decision{decide.Done, nil, "done"}},
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
	{"Done means nothing is left to do", "new pods would be outdated", func(w *world) { w.Declared.SpecHash = "h2" }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "a pod is outdated", func(w *world) { w.Replicas[1].PodSpecHash = "h0" }, decision{decide.Done, nil, "done"}},
	{"Done means nothing is left to do", "an ordinal beyond the declared size", func(w *world) { move(w, 2, 5) }, decision{decide.Done, nil, "done"}},
}

func everyWrong() []wrong {
	return slices.Concat(wrongs, wrongsAboutData, wrongsAboutBackups, wrongsAboutRestores, wrongsAboutRecoveries,
		wrongsAboutAdoptions, wrongsAboutDefragmentation)
}

// TestInvariantsRejectWrongDecisions checks that each invariant rejects wrong decisions.
func TestInvariantsRejectWrongDecisions(t *testing.T) {
	caught := map[string]bool{}
	for _, c := range everyWrong() {
		t.Run(c.invariant+"/"+c.what, func(t *testing.T) {
			w := healthy(t)
			if c.change != nil {
				c.change(w)
			}
			d := decide.Decision{Rule: c.by(), Verdict: c.verdict, Action: c.action, Message: c.message}
			broken := invariants.Broken(w.State, d)
			if !strings.Contains("\n"+strings.Join(broken, "\n"), "\n"+c.invariant+": ") {
				t.Errorf("the invariant accepts the decision; violated: %q", broken)
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
	{"", "adds a second learner after one has started", besideNew(func(*world) {}), acts(decide.AddLearner{Ordinal: 4})},
	{"", "restarts a learner that is not responding", func(w *world) { w.Membership.Members[2].Learner, w.Membership.Members[2].Answers = true, false }, acts(decide.RestartReplica{Ordinal: 2, PodUID: "p2"})},
	{"", "restarts a pod without a member", func(w *world) { w.Membership.Members = w.Membership.Members[:2] }, acts(decide.RestartReplica{Ordinal: 2, PodUID: "p2"})},
	{"", "transfers leadership", nil, acts(decide.MoveLeader{From: 0xa0, To: 0xa1})},
	{"", "removes the highest ordinal", func(w *world) { w.Declared.Replicas = 2 }, acts(decide.RemoveMember{ID: 0xa2, Name: "a-2"})},
	{"", "removes a surplus learner below a voter", func(w *world) { w.Declared.Replicas, w.Membership.Members[1].Learner = 1, true },
		acts(decide.RemoveMember{ID: 0xa1, Name: "a-1"})},
	{"", "removes a member that lost its volume", losesVolume(1), acts(decide.RemoveMember{ID: 0xa1, Name: "a-1"})},
	{"", "removes the lost member of two", func(w *world) { losesVolume(1)(w); w.Membership.Members = w.Membership.Members[:2] }, acts(decide.RemoveMember{ID: 0xa1, Name: "a-1"})},
	{"", "removes a member for its lost volume", losesVolume(1), acts(lost(decide.VolumeLost, "v1"))},
	{"", "removes a member for its stranded volume", also(down(1, 0, time.Hour), func(w *world) { w.strand(1, time.Hour) }), acts(lost(decide.VolumeStranded, "v1"))},
	{"", "removes a member for its silence", down(1, 4, time.Hour), acts(lost(decide.Silence, ""))},
	{"", "adds the next member", func(w *world) { w.Declared.Replicas = 4 }, acts(decide.AddLearner{Ordinal: 3})},
	{"", "adds a spare before others are removed", going(0, 1, 2), acts(decide.AddLearner{Ordinal: 3})},
	{"", "fills the gap", func(w *world) {
		leave(w, 1)
		w.Replicas[1].VolumeTerminating, w.Replicas[1].Pod = true, decide.PodTerminating
	}, acts(decide.AddLearner{Ordinal: 1})},
	{"", "fills the gap on a fresh volume", func(w *world) {
		leave(w, 1)
		w.Record = w.Record.WithRemoved(decide.RemovedMember{Ordinal: 1, VolumeUID: "v0"})
	}, acts(decide.AddLearner{Ordinal: 1})},
	{"", "restarts the only member", func(w *world) {
		rolling(w)
		w.Declared.Replicas, w.Membership.Members = 1, w.Membership.Members[:1]
	}, acts(decide.RestartReplica{Ordinal: 0, PodUID: "p0"})},
	{"", "restarts one of two members", func(w *world) {
		rolling(w)
		w.Declared.Replicas, w.Membership.Members = 2, w.Membership.Members[:2]
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"", "restarts a failing pod, member list unknown", func(w *world) { rolling(w); unknown(w); fails(1, 3*time.Minute)(w) }, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"", "restarts while another new pod works", func(w *world) { halted(w); fails(1, time.Hour)(w); w.Replicas[0].PodSpecHash = "h2" }, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"", "restarts while another only lacks quorum", func(w *world) {
		rolling(w)
		unknown(w)
		fails(1, time.Hour)(w)
		silent(2)(w)
		w.Replicas[2].Pod, w.Replicas[2].PodSpecHash = decide.PodStarting, "h2"
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"", "restarts while another lost its volume", func(w *world) { halted(w); fails(1, time.Hour)(w); w.Replicas[2].VolumeUID = "v9" }, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"", "restarts after four crashes in a minute", func(w *world) {
		rolling(w)
		unknown(w)
		fails(1, time.Minute)(w)
		w.Replicas[1].PodCrashes = 4
	}, acts(decide.RestartReplica{Ordinal: 1, PodUID: "p1"})},
	{"", "prepares a downgrade", func(w *world) { w.Declared.Version = "3.5.35" }, acts(decide.EnableDowngrade{Version: "3.5"})},
	{"", "prepares a downgrade from a custom build", func(w *world) { w.Declared.Version = "3.5.35"; allRun(w, "3.6.16+acme") }, acts(decide.EnableDowngrade{Version: "3.5"})},
	{"", "prepares a downgrade from a pre-release", func(w *world) { w.Declared.Version = "3.5.35"; allRun(w, "3.6.0-rc.0") }, acts(decide.EnableDowngrade{Version: "3.5"})},
	{"", "prepares a downgrade that has begun", func(w *world) {
		w.Declared.Version = "3.5.35"
		w.Membership.Members[2].Version = "3.5.35"
	}, acts(decide.EnableDowngrade{Version: "3.5"})},
	{"", "prepares an upgrade", func(w *world) { w.Declared.Version = "3.7.3" }, acts(decide.EnableDowngrade{Version: "3.5"})},
	{"", "cancels a downgrade", nil, acts(decide.CancelDowngrade{Version: "3.5"})},
	{"", "deletes the remaining objects", func(w *world) {
		w.Declared.Lifecycle, w.Objects.RunsReplicas, w.Replicas, w.Membership.Members = "Deleted", 0, nil, nil
	}, acts(decide.DeleteObjects{})},
	{"", "rolls to the next minor version", func(w *world) { w.Declared.Version = "3.7.3" }, acts(decide.StartRollout{Version: "3.7.3", SpecHash: theHash})},
	{"", "removes a member, volume being deleted", going(2), removes(2)},
	{"", "removes a replaced member, volume being deleted", also(five, going(0, 1, 2), func(w *world) { w.Declared.Replicas = 3; w.Membership.Members = w.Membership.Members[:4] }), removes(2)},
	{"", "removes a pending member, volume being deleted", also(down(2, 0, 0), going(2), func(w *world) { w.Replicas[2].Pod = decide.PodPending }), removes(2)},
	{"", "removes a member not responding", also(down(2, 0, time.Hour), replaceAfter(time.Minute, time.Hour)), removes(2)},
	{"", "removes a crashing member", down(2, 4, time.Minute), removes(2)},
	{"", "removes a member without data", also(down(2, 4, time.Minute), func(w *world) { w.Replicas[2].NoData = true }), removes(2)},
	{"", "removes a stranded member", also(down(2, 0, 10*time.Minute), func(w *world) { w.strand(2, 10*time.Minute) }), removes(2)},
	{"", "removes a stranded member after the limit", also(down(2, 0, time.Minute), replaceAfter(time.Minute, 0), func(w *world) { w.strand(2, time.Minute) }), removes(2)},
	{"", "applies a confirmed member list", func(w *world) {
		w.Membership.Members = w.Membership.Members[:1]
		w.Declared.ConfirmedMembers = w.ListToConfirm()
	}, acts(decide.ApplyObjects{})},
	{"", "disarms a removed member's alarm", func(w *world) { w.Membership.StaleAlarms = []decide.Alarm{{ID: 0xd1, Kind: "NOSPACE"}} }, acts(decide.DisarmAlarm{ID: 0xd1, Kind: "NOSPACE"})},
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
	{"", "promotes a learner", func(w *world) { w.Membership.Members[2].Learner = true }, acts(decide.PromoteLearner{ID: 0xa2, Name: "a-2"})},
	{"", "deletes a removed member's volume", func(w *world) { leave(w, 2); w.Record = w.Record.WithRemoved(removed(2)) }, acts(decide.DeleteVolume{Ordinal: 2, VolumeUID: "v2"})},
	{"", "applies objects", nil, acts(decide.ApplyObjects{})},
	{"", "applies objects, keeping the pods", func(w *world) { w.Declared.Version = "3.7.3" }, acts(decide.ApplyObjects{})},
	{"", "seals again", nil, acts(decide.Seal{ClusterID: 0xc1, Members: 0b111})},
	{"", "seals while an object is being deleted", func(w *world) { w.Objects.Terminating, w.Objects.Irreplaceable = []string{"x"}, []string{"y"} }, acts(decide.Seal{ClusterID: 0xc1})},
	{"", "seals with a different CA in the Secret", otherCA, acts(decide.Seal{ClusterID: 0xc1, Members: 0b111})},
	{"", "uses a new CA if none is trusted", func(w *world) {
		otherCA(w)
		w.CA.Mounted, w.CA.Proven, w.Replicas, w.Objects.RunsReplicas = nil, "", nil, 0
	}, acts(decide.ApplyObjects{})},
	{"", "records the CA that all trust", func(w *world) {
		w.CA = decide.CA{Secret: "CA1", Mounted: []string{"CA1"}, Proven: "CA1"}
	}, acts(decide.ApplyObjects{})},
	{"", "renews an orphan's certificates", func(w *world) { worn(w, 99) }, acts(decide.RenewCertificates{})},
	{"", "renews with an invalid spec", func(w *world) { worn(w, -1); unknown(w); w.Declared.Problems = []string{"x"} }, acts(decide.RenewCertificates{})},
	{"", "declares while suspended", func(w *world) { w.Declared.Suspended = true }, acts(decide.Declare{})},
	{"", "bootstraps", nothing, acts(decide.Bootstrap{Replicas: 3})},
	{"", "continues the bootstrap of a stopped cluster", func(w *world) { founded(w); w.Declared.Lifecycle = "Stopped" }, acts(decide.Bootstrap{Replicas: 3})},
	{"", "applies a new version during bootstrap", func(w *world) {
		founded(w)
		w.Declared.Version = "3.7.3"
		w.Replicas = []decide.Replica{w.newReplica(0)}
	}, acts(decide.ApplyObjects{})},
	{"", "removes an unknown member", func(w *world) {
		w.Membership.Members = append(w.Membership.Members, decide.Member{ID: 0xd1, Name: "stranger", Answers: true})
	}, acts(decide.RemoveMember{ID: 0xd1, Name: "stranger"})},
	{"", "continues the bootstrap", func(w *world) { founded(w); w.Declared.Replicas = 5 }, acts(decide.Bootstrap{Replicas: 3})},
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
	for _, c := range slices.Concat(right, rightsAboutData, rightsAboutAdoptions, rightsAboutDefragmentation) {
		t.Run(c.what, func(t *testing.T) {
			w := healthy(t)
			if c.change != nil {
				c.change(w)
			}
			d := decide.Decision{Rule: "Right", Verdict: c.verdict, Action: c.action, Message: c.message}
			if broken := invariants.Broken(w.State, d); len(broken) > 0 {
				t.Errorf("violated invariants: %q", broken)
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
