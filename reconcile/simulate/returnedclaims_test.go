package simulate_test

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/simulate"
)

// TestRestoredClaimIsKeptThoughRecordIsLost checks the same as TestRestoredClaimIsKept, but some time after the
// recovery. A claim of the lost cluster comes back in a slot that the new cluster does not use. Then the ConfigMap is
// deleted while passes cannot reach etcd. The claim is still kept, because its annotation shows that a different
// cluster used it.
func TestRestoredClaimIsKeptThoughRecordIsLost(t *testing.T) {
	for _, out := range []int{0, 1, 2} { // passes during which the record is lost and etcd cannot be reached
		w := formedWith(t, 5)
		before := w.Clone()
		order := w.order(2, 0b11011, "w")
		order.OldVolumes = decide.Delete
		w.lose(order, 3, 4)
		w.Declared.Replicas = 3
		w.passes(120)
		t.Log(decide.Decide(w.Observe()))
		w.Declared.Recovery = decide.RecoveryOrder{}
		w.passes(3)
		w.RestoreVolume(3, before)
		back := w.Observe().Replica(3)
		t.Logf("%s back: %+v", back.VolumeUID, back.LastUse)
		w.passes(2)
		if out > 0 {
			w.CutNetwork(true)
			w.Delete("ConfigMap a-members")
			w.passes(out)
			w.CutNetwork(false)
		}
		for range 15 {
			d, _ := w.Pass(simulate.NoCrash)
			if a, deletes := d.Action.(decide.DeleteVolume); deletes && a.VolumeUID == back.VolumeUID {
				t.Errorf("%d passes without etcd: %s, last used by cluster %s", out, a, back.LastUse.ClusterID)
			}
			w.Tick()
		}
		if d := decide.Decide(w.Observe()); d.Verdict != decide.Done {
			t.Errorf("%d passes without etcd: %s", out, d)
		}
		w.oneServes()
	}
}

// TestRestoredRecordOfEndedRecoveryIsNamed checks that a Block reports an old record, and that claims of the new
// cluster are not marked. Some time after a recovery, the ConfigMap, the status and the StatefulSet are restored to the
// state that they had during the recovery, while all pods were stopped.
func TestRestoredRecordOfEndedRecoveryIsNamed(t *testing.T) {
	w := formedWith(t, 3)
	order := w.order(2, 0b011, "w")
	order.OldVolumes = decide.Delete
	w.lose(order)
	w.Remember(1000)
	during := -1
	for i := range 120 {
		w.Pass(simulate.NoCrash)
		w.Tick()
		if s := w.Observe(); during < 0 && s.Record.Recovering() && s.Objects.RunsReplicas == 0 {
			during = i
		}
	}
	t.Log(decide.Decide(w.Observe()))
	if !isWhole(w.World) {
		t.Fatal("not whole after the recovery")
	}
	ago := 120 - during
	for _, name := range []string{"EtcdCluster a", "StatefulSet a", "ConfigMap a-members"} {
		w.RestoreObject(name, ago)
	}
	for range 60 {
		d, _ := w.Pass(simulate.NoCrash)
		if d.Verdict == decide.Act {
			t.Log(d)
		}
		w.Tick()
	}
	if d := decide.Decide(w.Observe()); d.Rule != "Recover" || d.Verdict != decide.Block {
		t.Errorf("the old record is not named: %s", d)
	}
	for _, r := range w.Observe().Replicas {
		if r.VolumeUID == "" || r.LostCluster != 0 {
			t.Errorf("a voter of the new cluster counts as lost: %+v", r)
		}
	}
}

// TestScaledUpByHandWhileRecordIsBlind checks that pods that were added with kubectl scale and are not members are
// cleaned up without manual action, even if the record is incomplete. The record was recreated only from volumes, and
// the StatefulSet was scaled before etcd could be reached again.
func TestScaledUpByHandWhileRecordIsBlind(t *testing.T) {
	for _, replicas := range []int{1, 3} {
		for _, blind := range []bool{false, true} {
			w := formedWith(t, replicas)
			w.CutNetwork(true)
			if blind {
				w.Delete("ConfigMap a-members")
			}
			w.passes(1)
			w.Scale(2*replicas + 1)
			w.Tick()
			w.passes(3)
			w.CutNetwork(false)
			w.passes(40)
			if d := decide.Decide(w.Observe()); d.Verdict != decide.Done {
				t.Errorf("%d replicas, blind %t: %s", replicas, blind, d)
			}
			w.oneServes()
		}
	}
}

// TestLostClusterDoesNotFormAgainThoughRecordIsLost checks that a lost cluster does not serve again. Right after a
// recovery from a-2, the claims of a-0 and a-1, a majority of the lost cluster, come back with their data and with
// annotations that name the lost cluster. Then the ConfigMap is deleted while passes cannot reach etcd.
func TestLostClusterDoesNotFormAgainThoughRecordIsLost(t *testing.T) {
	for _, recordLost := range []bool{false, true} {
		w := formedWith(t, 3)
		before := w.Clone()
		w.lose(w.order(2, 0b011, "w"), 0, 1)
		for range 30 {
			d, _ := w.Pass(simulate.NoCrash)
			w.Tick()
			if _, seals := d.Action.(decide.Seal); seals {
				w.RestoreVolume(0, before)
				w.RestoreVolume(1, before)
				break
			}
		}
		if recordLost {
			w.CutNetwork(true)
			w.Delete("ConfigMap a-members")
			w.passes(6)
			w.CutNetwork(false)
		}
		for range 20 {
			w.passes(1)
			if ids := w.Serving(); len(ids) > 1 {
				break
			}
		}
		s := w.Observe()
		t.Logf("record lost %t: %s", recordLost, decide.Decide(s))
		for _, r := range s.Replicas {
			t.Logf("a-%d %s runs %s, last used by %s", r.Ordinal, r.Pod, r.ClusterID, r.LastUse.ClusterID)
		}
		w.oneServes()
	}
}

// TestNoMemberJoinsOnLostClustersClaim checks that a member is not added to a slot whose claim names the lost cluster.
// Otherwise, a learner that can never start would block the new cluster. After a recovery, a claim of the new cluster
// is manually replaced with the lost cluster's claim of the same name.
func TestNoMemberJoinsOnLostClustersClaim(t *testing.T) {
	w := formedWith(t, 3)
	before := w.Clone()
	w.lose(w.order(2, 0b011, "w"), 0, 1)
	back := false
	for range 30 {
		d, _ := w.Pass(simulate.NoCrash)
		t.Log(d)
		if a, adds := d.Action.(decide.AddLearner); adds && back && a.Ordinal == 0 {
			t.Errorf("%s: on %+v", d, w.Observe().Replica(0).LastUse)
		}
		w.Tick()
		if _, seals := d.Action.(decide.Seal); seals && !back {
			w.RestoreVolume(0, before)
			back = true
		}
	}
	w.oneServes()
}
