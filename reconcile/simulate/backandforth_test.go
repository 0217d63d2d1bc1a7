package simulate_test

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/simulate"
)

// TestClusterIsStoppedAndStartedRepeatedly checks that a cluster that is stopped and started several times runs again
// within five minutes of each start.
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

// TestSuspensionHoldsDuringRepairs checks that every pass decides Suspended once the spec suspends the cluster, even if
// a member is lost and other controllers keep changing objects.
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

// TestLostClusterDoesNotFormAgainThoughStatusIsLost checks the same as
// TestLostClusterDoesNotFormAgainThoughRecordIsLost if the status is also lost, for example because the custom resource
// was deleted together with the ConfigMap.
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

// TestRolloutsBackAndForthComplete checks that each rollout is completed within five minutes if the declared pod template
// keeps switching between two versions.
func TestRolloutsBackAndForthComplete(t *testing.T) {
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

// TestReplicasBackAndForth checks that each change is completed within eight minutes if the declared size keeps
// switching between three and five members.
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

// TestMembersLostOneAfterAnotherAreReplaced checks that a member that loses its volume is replaced within eight
// minutes, even if the members repeatedly lose their volumes one after another.
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

// TestDeletedObjectsAreRecreatedRepeatedly checks that passes repair the cluster within four minutes each time an
// object is deleted, even if it is deleted repeatedly, as chaos tests do.
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

// TestDeletedServiceComesBackWhileQuorumIsLost checks that the cluster is healthy again within a minute each time the
// headless Service is deleted, even if this happens every five minutes. Without that Service, members do not find each
// other.
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

// TestMemberIsReplacedAfterRecordWasDeleted checks that a member that loses its volume is replaced within three
// minutes, even if the ConfigMap is deleted at the same time and was deleted three times in the previous fifteen
// minutes.
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
