package decide_test

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// stopsJob reports whether the decision deletes a Job that keeps a volume.
func stopsJob(d decide.Decision) bool {
	switch d.Action.(type) {
	case decide.StopRestore, decide.StopRecovery:
		return true
	}
	return false
}

// TestJobStaysWhileRecordIsOld checks that an ended restore Job is kept while the record may be outdated. The cluster
// was created from a backup today, and has grown to three members. Its ConfigMap and status are restored to their state
// before it formed, etcd does not respond, the claim of a-0 is being deleted by mistake, and only the pod of the ended
// restore Job keeps its volume. The volumes of a-1 and a-2 exist, so this may be the cluster's own data.
func TestJobStaysWhileRecordIsOld(t *testing.T) {
	w := &world{}
	say(t, w, "cluster a", "set spec restore=(tuesday of b/a)", "remove members", "remove status", "remove record",
		"set etcd known=false why=timeout cluster=none",
		"set a-0 pod=Absent volume=terminating mode=Restoring used=3.6.16/3.6", "set a-1 pod=Absent", "set a-2 pod=Absent",
		"set restore phase=Succeeded of=(tuesday of b/a) volume=v0")
	t.Log("\n" + look(t, w))
	if d := decide.Decide(w.State); stopsJob(d) {
		t.Errorf("%s", d)
	}
}

// TestJobStaysUnderVoidRequest checks that a void request for recovery does not discard any data. The request is void
// because the cluster has had quorum since it was made.
func TestJobStaysUnderVoidRequest(t *testing.T) {
	w := &world{}
	say(t, w, "cluster a", "set spec recovery=(c1 1) lost=(0 2)", "act", "act")
	say(t, w, "remove members", "set etcd known=false why=timeout cluster=none", "set a-0 pod=Absent volume=terminating",
		"set restore phase=Succeeded of=(tuesday of b/a) volume=v0", "set a-1 pod=Absent", "set a-2 pod=Absent")
	t.Log("\n"+look(t, w), "void: ", w.Record.VoidRecovery)
	if d := decide.Decide(w.State); stopsJob(d) {
		t.Errorf("%s", d)
	}
}

func look(t *testing.T, w *world) string {
	out, err := w.tell("state", nil)
	if err != nil {
		t.Fatal(err)
	}
	decision, err := w.tell("decide", nil)
	if err != nil {
		t.Fatal(err)
	}
	return out + decision
}

// TestJobStaysWhileItsVolumeMayDecide checks that a copy is kept until it is known which data is right, as for the
// member itself (copyCounts). Two voters hold different data. The third copy, which determines which data is right, is
// on a claim that was deleted and that only the pod of the ended restore Job keeps.
func TestJobStaysWhileItsVolumeMayDecide(t *testing.T) {
	w := &world{}
	say(t, w, "cluster a", "set spec restore=(tuesday of b/a)",
		"set a-1 hash=11111111@120/100 alarms=(CORRUPT)", "set a-2 hash=22222222@120/100",
		"set a-0 etcd=silent pod=Absent volume=terminating", "set etcd leader=a-1",
		"set restore phase=Succeeded of=(tuesday of b/a) volume=v0")
	t.Log("\n" + look(t, w))
	if d := decide.Decide(w.State); stopsJob(d) {
		t.Errorf("%s", d)
	}
}

// TestRecoveryJobStaysOnMemberThatOldRecordLacks checks that a recovery Job on the last copy is kept although the
// record lacks its member. Cluster c1 had grown to three members, lost a-0 and a-1, and was being recovered from a-2.
// The Job has created c2. The ConfigMap is restored to its state before a-2 joined, and a-2's
// claim has been deleted, and exists only as long as the Job's pod uses it.
func TestRecoveryJobStaysOnMemberThatOldRecordLacks(t *testing.T) {
	for name, old := range map[string]bool{"newest record": false, "older record": true} {
		w := &world{}
		say(t, w, "cluster a", "remove members", "remove pods", "set objects replicas=0",
			"set etcd known=false why=timeout cluster=none",
			"set spec recovery=(c1 2) lost=(0 1)", "set a-0 volume=none", "set a-1 volume=none",
			"set a-2 volume=terminating", "set recovery phase=Succeeded of=(c1 2) volume=v2 into=c2")
		if old {
			say(t, w, "set a-2 mode=none")
		}
		t.Log("\n" + look(t, w))
		if d := decide.Decide(w.State); stopsJob(d) {
			t.Errorf("%s: %s", name, d)
		}
	}
}
