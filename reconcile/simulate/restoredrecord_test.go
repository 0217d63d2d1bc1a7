package simulate_test

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
	"quorate.dev/quorate/reconcile/simulate"
)

// lostMajority is a cluster that permanently loses members and is recovered.
type lostMajority struct {
	*testing.T
	*simulate.World
}

func formedWith(t *testing.T, replicas int) lostMajority {
	t.Helper()
	w := simulate.New("a", decidetest.Declared(replicas), 0)
	w.Remember(memoryOfTests)
	form(t, w)
	w.Converge(5)
	return lostMajority{t, w}
}

// passes runs passes, with a tick after each.
func (w lostMajority) passes(n int) {
	for range n {
		w.Pass(simulate.NoCrash)
		w.Tick()
	}
}

// order returns a request for a new cluster from the data of a survivor.
func (w lostMajority) order(survivor int, lost decide.Ordinals, word string) decide.RecoveryOrder {
	return decide.RecoveryOrder{ClusterID: w.Observe().Record.ClusterID, Ordinal: survivor, Lost: lost, Digest: word,
		Word: word, OldVolumes: decide.Retain}
}

// lose takes down the nodes of the lost members and requests the recovery. It then deletes the pods and the given
// claims, and brings back the nodes.
func (w lostMajority) lose(order decide.RecoveryOrder, claims ...int) {
	for _, n := range order.Lost.List() {
		w.NodeDown(n, true)
	}
	w.Declared.Recovery = order
	w.passes(1)
	for _, n := range order.Lost.List() {
		w.ForceDelete(n)
		w.NodeDown(n, false)
	}
	for _, n := range claims {
		w.LoseVolume(n)
	}
}

// oneServes checks that there are no violations and that clients reach at most one cluster.
func (w lostMajority) oneServes() {
	w.Helper()
	for _, violation := range w.Violations() {
		w.Error(violation)
	}
	if ids := w.Serving(); len(ids) > 1 {
		w.Errorf("clients reach clusters %v", ids)
	}
}

// TestRestoredFoundingRecordFormsNoSecondCluster checks that members with empty volumes do not form another cluster if
// the bootstrap record is restored after a recovery, whether members of the lost cluster are stopped or missing.
func TestRestoredFoundingRecordFormsNoSecondCluster(t *testing.T) {
	w := formedWith(t, 5)
	w.lose(w.order(4, 0b01111, "w"), 2, 3)
	w.passes(25)
	w.PutBackRecord()
	w.passes(4)
	w.oneServes()

	w = formedWith(t, 3)
	w.lose(w.order(2, 0b011, "w"), 0, 1)
	w.passes(7)
	w.PutBackRecord()
	w.passes(4)
	w.oneServes()
}

// TestRestoredJoiningRecordKeepsVoterData checks that the data of a voter counts even if, according to a restored
// record, the voter is still joining.
func TestRestoredJoiningRecordKeepsVoterData(t *testing.T) {
	w := formedWith(t, 3)
	w.LoseVolume(1)
	var joining decide.Record
	for range 25 {
		w.passes(1)
		if r := w.Observe().Record; len(r.Members) == 3 && r.Members[1].Mode == decide.Joining {
			joining = r
		}
	}
	w.NodeDown(0, true)
	w.NodeDown(1, true)
	w.Tick()
	w.RestoreRecord(joining)
	w.lose(w.order(2, 0b001, "w"))
	w.ForceDelete(1)
	w.passes(10)
	w.oneServes()
}

// TestRecordFromTwoRecoveriesAgoStartsNoOldMember checks that members of the second cluster do not start alongside the
// third cluster if the record of the first cluster is restored, whether or not Quorate can reach the members.
func TestRecordFromTwoRecoveriesAgoStartsNoOldMember(t *testing.T) {
	for _, reached := range []bool{true, false} {
		w := formedWith(t, 3)
		first := w.Observe().Record
		order := w.order(2, 0b011, "w")
		order.OldVolumes = decide.Delete
		w.lose(order)
		w.Converge(60)
		w.lose(w.order(2, 0b011, "w2"))
		w.passes(15)
		w.RestoreRecord(first)
		w.Mute(0, !reached)
		w.Mute(1, !reached)
		w.passes(5)
		w.oneServes()
	}
}

// TestRestoredVoidOrderStartsNoPodBesideJob checks that a pod does not start alongside a Job, even if, according to a
// restored record, the request that the Job carries out is void.
func TestRestoredVoidOrderStartsNoPodBesideJob(t *testing.T) {
	w := formedWith(t, 1)
	order := w.order(0, 1, "w")
	order.Backup = "tuesday"
	w.Declared.Recovery = order // too early: the cluster has quorum
	w.passes(2)
	void := w.Observe().Record
	w.Declared.Recovery = decide.RecoveryOrder{}
	w.passes(2)
	w.RefuseRestores(true) // the Job keeps trying
	w.lose(order)
	w.passes(2)
	w.RestoreRecord(void)
	w.passes(5)
	w.oneServes()
}

// TestRestoredRecordAndStatefulSetKeepOneCluster checks that the lost cluster does not serve alongside the new cluster
// if the record and the StatefulSet are restored to their state before the recovery. They are restored just before or
// just after the record of the new cluster is written.
func TestRestoredRecordAndStatefulSetKeepOneCluster(t *testing.T) {
	for _, finished := range []bool{false, true} {
		w := formedWith(t, 3)
		before := w.Observe().Record
		w.lose(w.order(2, 0b011, "w"))
		for {
			d, _ := w.Pass(simulate.NoCrash)
			w.Tick()
			job := w.Observe().Recovery.Job
			_, is := d.Action.(decide.FinishRecovery)
			if is || !finished && job != nil && job.Phase == decide.JobSucceeded {
				break
			}
		}
		w.RestoreRecord(before)
		w.Scale(3)
		w.passes(6)
		w.oneServes()
	}
}

// TestRestoredClaimIsKept checks that a claim of the lost cluster that comes back right after the recovery is kept, as
// requested by the spec.
func TestRestoredClaimIsKept(t *testing.T) {
	w := formedWith(t, 3)
	before := w.Clone()
	w.lose(w.order(2, 0b011, "w"), 0)
	back := before.Observe().Replica(0)
	for range 15 {
		d, _ := w.Pass(simulate.NoCrash)
		if _, finishes := d.Action.(decide.FinishRecovery); finishes {
			w.RestoreVolume(0, before)
		}
		if a, deletes := d.Action.(decide.DeleteVolume); deletes && a.VolumeUID == back.VolumeUID {
			t.Errorf("%s, last used by cluster %s", a, back.LastUse.ClusterID)
		}
		w.Tick()
	}
}

// TestRecoveryKeepsPodOnTerminatingVolume checks that a recovery in progress does not stop a pod if its volume would be
// deleted with it.
func TestRecoveryKeepsPodOnTerminatingVolume(t *testing.T) {
	w := formedWith(t, 3)
	w.RefuseRecoveries(true)
	w.lose(w.order(2, 0b011, "w"))
	w.passes(3)
	w.Scale(3)
	w.Tick()
	w.DeleteVolume(2)
	for _, fault := range decidetest.Faults(w.Observe()) {
		t.Error(fault)
	}
}

// TestFoundingRecordRestoredAnytimeFormsNoCluster checks that members with empty volumes do not form a new cluster if
// the bootstrap record is restored at any time during or after a recovery, even if the status is also missing. The
// status, the claims or a Job identify the existing cluster.
func TestFoundingRecordRestoredAnytimeFormsNoCluster(t *testing.T) {
	for _, withStatus := range []bool{true, false} {
		for passes := range 26 {
			w := formedWith(t, 3)
			w.lose(w.order(2, 0b011, "w"), 0, 1)
			w.passes(passes)
			w.PutBackRecord()
			if !withStatus {
				w.DeleteStatus()
			}
			w.passes(6)
			w.oneServes()
			if t.Failed() {
				t.Fatalf("restored after %d passes, with status %t", passes, withStatus)
			}
		}
	}
}

// TestFinishedJobDoesNotBlockReplacement checks that a member whose claim and pod are deleted after a recovery is
// replaced, although the pod of the finished recovery Job still uses the claim.
func TestFinishedJobDoesNotBlockReplacement(t *testing.T) {
	w := formedWith(t, 3)
	w.lose(w.order(2, 0b011, "w"), 0, 1)
	w.Converge(100)
	if job := w.Observe().Recovery.Job; job == nil || job.Phase != decide.JobSucceeded {
		t.Fatalf("the recovery Job is %+v", job)
	}
	w.DeleteVolume(2)
	w.KillPod(2)
	w.passes(40)
	w.oneServes()
	if !isWhole(w.World) {
		t.Error(decidetest.Table(w.Observe()))
	}
}
