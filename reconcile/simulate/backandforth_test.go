package simulate_test

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/simulate"
)

// TestClusterIsStoppedAndStartedRepeatedly: git stops the cluster and starts it again, several times. Each time it runs again soon.
func TestClusterIsStoppedAndStartedRepeatedly(t *testing.T) {
	w := formed(t, 3)
	for n := range 6 {
		w.Declared.Lifecycle = decide.Stopped
		w.Converge(patienceOfTests)
		w.Declared.Lifecycle = decide.Running
		began := w.Observe().Now
		for !isWhole(w) {
			d, _ := w.Pass(simulate.NoCrash)
			w.Tick()
			if took := w.Observe().Now.Sub(began); took.Minutes() > 5 {
				t.Fatalf("start %d: not running after %s: %s", n+1, took, d)
			}
		}
		t.Logf("start %d took %s", n+1, w.Observe().Now.Sub(began))
		w.Converge(patienceOfTests)
	}
}

// TestSuspensionHoldsDuringRepairs: other controllers change objects while a member is lost. Once git suspends the cluster, passes
// write the declaration and nothing else.
func TestSuspensionHoldsDuringRepairs(t *testing.T) {
	w := formed(t, 3)
	w.LoseVolume(1)
	w.Delete("Pod a-1")
	objects := []string{"Service a-client", "PodDisruptionBudget a", "Service a", "StatefulSet a"}
	for n := 1; n < 16; n++ {
		for i, object := range objects {
			if n>>i&1 == 1 {
				w.Change(object)
			}
		}
		for _, r := range w.Observe().Repeated {
			if r.What == "preempted" && r.Times >= 5 {
				w.Declared.Suspended = true
			}
		}
		d, _ := w.Pass(simulate.NoCrash)
		t.Log(d)
		if w.Declared.Suspended && d.Rule != "Suspended" {
			t.Fatalf("suspended in git, and it does: %s", d)
		}
		w.Tick()
	}
}

// TestLostClusterDoesNotFormAgainThoughStatusIsLost is TestLostClusterDoesNotFormAgainThoughRecordIsLost, with the
// status lost as well, for instance because the custom resource was deleted together with the ConfigMap.
func TestLostClusterDoesNotFormAgainThoughStatusIsLost(t *testing.T) {
	for _, cut := range []bool{true, false} {
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
		w.passes(1)
		w.Declared.Recovery = decide.RecoveryOrder{}
		if cut {
			w.CutNetwork(true)
		} else {
			w.KillPod(2)
		}
		w.DeleteStatus()
		w.Delete("ConfigMap a-members")
		w.passes(6)
		w.CutNetwork(false)
		for range 20 {
			w.passes(1)
			if ids := w.Serving(); len(ids) > 1 {
				break
			}
		}
		s := w.Observe()
		t.Logf("cut %t: %s", cut, decide.Decide(s))
		for _, r := range s.Replicas {
			t.Logf("a-%d %s runs %s, last used by %s, mark %s", r.Ordinal, r.Pod, r.ClusterID, r.LastUse.ClusterID, r.LostCluster)
		}
		w.oneServes()
	}
}

// TestRolloutsBackAndForthHeal: git switches between two pod shapes every three minutes, and in between a member
// loses its volume: it is replaced within five minutes.
func TestRolloutsBackAndForthHeal(t *testing.T) {
	w := formed(t, 3)
	for n := range 8 {
		w.Declared.SpecHash = []string{"h2", "h1"}[n%2]
		began := w.Observe().Now
		for {
			d, _ := w.Pass(simulate.NoCrash)
			w.Tick()
			if d.Verdict == decide.Done {
				break
			}
			if took := w.Observe().Now.Sub(began); took.Minutes() > 5 {
				t.Fatalf("change %d is not rolled out after %s: %s", n, took, d)
			}
		}
		t.Logf("change %d took %s", n, w.Observe().Now.Sub(began))
	}
}

// TestReplicasBackAndForth: git switches between three and five members.
func TestReplicasBackAndForth(t *testing.T) {
	w := formed(t, 3)
	for n := range 10 {
		w.Declared.Replicas = []int{5, 3}[n%2]
		began := w.Observe().Now
		for {
			d, _ := w.Pass(simulate.NoCrash)
			w.Tick()
			if d.Verdict == decide.Done {
				break
			}
			if took := w.Observe().Now.Sub(began); took.Minutes() > 8 {
				t.Fatalf("change %d is not done after %s: %s", n, took, d)
			}
		}
		t.Logf("change %d took %s", n, w.Observe().Now.Sub(began))
	}
}

// TestMembersLostOneAfterAnotherAreReplaced: a member loses its volume again and again, each time another one.
func TestMembersLostOneAfterAnotherAreReplaced(t *testing.T) {
	w := formed(t, 3)
	for n := range 12 {
		w.LoseVolume(n % 3)
		w.KillPod(n % 3)
		began := w.Observe().Now
		for {
			d, _ := w.Pass(simulate.NoCrash)
			w.Tick()
			if d.Verdict == decide.Done && isWhole(w) {
				break
			}
			if took := w.Observe().Now.Sub(began); took.Minutes() > 8 {
				t.Fatalf("loss %d is not healed after %s: %s", n, took, d)
			}
		}
		t.Logf("loss %d took %s", n, w.Observe().Now.Sub(began))
	}
}

// TestDeletedObjectsAreRecreatedRepeatedly: somebody deletes the StatefulSet every three minutes, as chaos tests do.
func TestDeletedObjectsAreRecreatedRepeatedly(t *testing.T) {
	for _, object := range []string{"StatefulSet a", "Service a", "ConfigMap a-members"} {
		w := formed(t, 3)
		for n := range 6 {
			w.Delete(object)
			if object == "StatefulSet a" {
				w.KillPod(n % 3)
			}
			began := w.Observe().Now
			for {
				d, _ := w.Pass(simulate.NoCrash)
				w.Tick()
				if d.Verdict == decide.Done {
					break
				}
				if took := w.Observe().Now.Sub(began); took.Minutes() > 4 {
					t.Errorf("%s deleted %d times, not whole after %s: %s", object, n+1, took, d)
					break
				}
			}
			for range 17 {
				w.Pass(simulate.NoCrash)
				w.Tick()
			}
		}
	}
}

// TestDeletedServiceComesBackWhileQuorumIsLost: somebody who may only delete Services deletes the headless one
// every five minutes. Each time it is created again within a minute: without it, members do not find each other.
func TestDeletedServiceComesBackWhileQuorumIsLost(t *testing.T) {
	w := formed(t, 3)
	for n := range 6 {
		w.Delete("Service a")
		began := w.Observe().Now
		for range 30 { // five minutes
			d, _ := w.Pass(simulate.NoCrash)
			w.Tick()
			if took := w.Observe().Now.Sub(began); took.Minutes() > 1 && !isWhole(w) {
				t.Fatalf("deleted %d times, down for %s, and it decides: %s", n+1, took, d)
			}
		}
	}
}

// TestMemberIsReplacedAfterRecordWasDeleted: a person deletes the ConfigMap three times in fifteen minutes, and it
// is written again each time and lasts. Then a member loses its volume: it is replaced within three minutes.
func TestMemberIsReplacedAfterRecordWasDeleted(t *testing.T) {
	w := formed(t, 3)
	for range 3 {
		w.Delete("ConfigMap a-members")
		for range 30 {
			w.Pass(simulate.NoCrash)
			w.Tick()
		}
	}
	w.Delete("ConfigMap a-members")
	w.LoseVolume(1)
	w.KillPod(1)
	began := w.Observe().Now
	for {
		d, _ := w.Pass(simulate.NoCrash)
		w.Tick()
		if d.Verdict == decide.Done && isWhole(w) {
			return
		}
		if took := w.Observe().Now.Sub(began); took.Minutes() > 3 {
			t.Fatalf("a lost member is not replaced after %s: %s", took, d)
		}
	}
}
