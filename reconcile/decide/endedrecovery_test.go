package decide_test

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// recoveredAndGrown returns cluster c2, which was created from a-2 of lost cluster c1 within the last day, and has
// grown to three members again; the claims of all its members show that c2 used them. No pods run, etcd does not
// respond, and the Job still exists.
func recoveredAndGrown(t *testing.T, lines ...string) *world {
	w := &world{}
	say(t, w, "cluster a", "remove members", "remove pods", "set objects replicas=0", "set etcd known=false why=timeout cluster=none",
		"set a-0 volume=w0", "set a-1 volume=w1", "set spec recovery=(c1 2) lost=(0 1) old-volumes=Delete",
		"set recovery phase=Succeeded of=(c1 2) volume=v2 into=c2")
	for i := range w.Replicas {
		w.Replicas[i].LastUse = decide.LastUse{ClusterID: 0xc2, Version: "3.6.16", StorageVersion: "3.6"}
	}
	say(t, w, lines...)
	return w
}

// TestFinishedRecoveryIsNotTakenUpAgain checks that a finished recovery is not resumed. The ConfigMap, status and
// StatefulSet are restored to their state during the recovery (pods stopped, record and status of c1). The claims prove
// that c2 has since run on all three volumes: the recovery is over, and a-0 and a-1 are its voters. The same applies
// while pods run (restoredDuring).
func TestFinishedRecoveryIsNotTakenUpAgain(t *testing.T) {
	for name, lines := range map[string][]string{
		"record and status restored to c1":               nil,
		"record and status are lost":                     {"remove record", "remove status"},
		"record and status lost, recovery not requested": {"remove record", "remove status", "set spec recovery=none"},
	} {
		w := recoveredAndGrown(t, lines...)
		t.Log("\n" + name + "\n" + look(t, w))
		if decide.RequiredRecord(w.State, "").Recovering() {
			t.Errorf("%s: the recovery is resumed", name)
		}
		for range 8 {
			d := decide.Decide(w.State)
			if a, finishes := d.Action.(decide.FinishRecovery); finishes {
				t.Errorf("%s: %s; then recorded: %+v; marks: %+v", name, d, decide.RecoveredRecord(w.State, a),
					w.State.RecoveryMarks(w.Record.Recovery))
				break
			}
			if d.Verdict != decide.Act {
				t.Log(d)
				break
			}
			say(t, w, "act")
		}
	}
}

// TestLostRecordIsNotNamedAfterFinishedJob checks that a recreated record does not name c1. Cluster c2 runs on three
// volumes, as its claims show. The record and status are lost while a pass cannot reach etcd; the Job that created c2
// from c1 still exists.
func TestLostRecordIsNotNamedAfterFinishedJob(t *testing.T) {
	w := recoveredAndGrown(t, "remove record", "remove status", "set objects replicas=3", "set a-0 pod=Ready", "set a-1 pod=Ready",
		"set a-2 pod=Ready", "set spec recovery=none")
	for range 3 {
		say(t, w, "act")
	}
	if id := w.Record.ClusterID; id != 0 && id != 0xc2 {
		t.Errorf("the record names cluster %s", id)
	}
	// etcd can be reached again.
	w.Membership = decide.Membership{Known: true, ClusterID: 0xc2}
	for i := range 3 {
		w.Replicas[i].ClusterID = 0xc2
		w.Membership.Members = append(w.Membership.Members, decide.Member{ID: decide.ID(0xa0 + i), Name: w.ReplicaName(i),
			PeerURL: "https://" + w.ReplicaName(i) + ".a.b.svc:2380", Started: true, Answers: true, Leader: i == 0, Version: "3.6.16"})
	}
	if d := decide.Decide(w.State); d.Verdict == decide.Block {
		t.Errorf("%s", d)
	}
}

// TestRecoveryDoesNotApplyTwice checks the sentence "It names one cluster ID, so it cannot apply ... twice"
// (how-it-works.md). The record and status are restored to those of c1, and git still names c1. All claims show that c2
// used them.
func TestRecoveryDoesNotApplyTwice(t *testing.T) {
	for name, lines := range map[string][]string{
		"its Job is gone, nothing runs (a run with --allow-recovery)": {"set recovery job=none"},
		"the Job's pod is gone, and with it the result; no pod is ready": {"set objects replicas=3",
			"set a-0 pod=Starting", "set a-1 pod=Starting", "set a-2 pod=Starting"},
	} {
		w := recoveredAndGrown(t, lines...)
		if w.Recovery.Job != nil && name[:3] == "the" {
			w.Recovery.Job.Into = 0
		}
		for range 5 {
			d := decide.Decide(w.State)
			switch d.Action.(type) {
			case decide.StartRecovery, decide.FinishRecovery, decide.StopPods, decide.StopRecovery:
				t.Errorf("%s: %s", name, d)
			}
			if d.Verdict != decide.Act {
				t.Log(name, d)
				break
			}
			say(t, w, "act")
		}
	}
}
