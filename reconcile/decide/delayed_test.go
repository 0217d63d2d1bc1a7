package decide_test

import (
	"fmt"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// delayedReplacement returns a cluster in which five other actions have delayed the replacement of a lost member.
func delayedReplacement(t *testing.T) *world {
	w := &world{}
	say(t, w, "cluster a", "set a-1 etcd=silent pod=Failing volume=v9")
	for pass := range 5 {
		w.Objects.Drift = []string{fmt.Sprint("Service a-client: changed at spec.ports by m", pass)}
		w.Repeated = decide.Repeats(w.State, decide.Decide(w.State), true)
		w.Now = w.Now.Add(time.Second)
	}
	return w
}

// TestSuspensionPrecedesDelayedRepairs checks that only the declaration is written once the cluster is suspended in
// git, even if five other actions have delayed the replacement of a lost member.
func TestSuspensionPrecedesDelayedRepairs(t *testing.T) {
	w := delayedReplacement(t)
	w.Objects.Drift = nil
	w.Declared.Suspended, w.Objects.DeclarationDiffers = true, true
	if d := decide.Decide(w.State); d.Rule != "Suspended" {
		t.Errorf("suspended in git, but the decision is: %s", d)
	}
}

// TestSuspensionKeepsRemovedVolumeDespiteDelay checks the same for the deletion of a removed member's volume, which
// suspending the cluster must prevent.
func TestSuspensionKeepsRemovedVolumeDespiteDelay(t *testing.T) {
	w := &world{}
	say(t, w, "cluster a", "set a-2 etcd=none", "set a-2 mode=none", "set a-2 pod=Absent", "set a-2 removed=v2")
	for pass := range 5 {
		w.Objects.Drift = []string{fmt.Sprint("Service a-client: changed at spec.ports by m", pass)}
		d := decide.Decide(w.State)
		if d.Rule != "ApplyObjects" {
			t.Fatal(d)
		}
		w.Repeated = decide.Repeats(w.State, d, true)
		w.Now = w.Now.Add(time.Second)
	}
	w.Declared.Suspended, w.Objects.DeclarationDiffers = true, true
	if d := decide.Decide(w.State); d.Rule != "Suspended" {
		t.Errorf("suspended in git, but the decision is: %s", d)
	}
}

// TestStopPrecedesDelayedRepairs checks that the membership does not change before a cluster is stopped on git's
// request.
func TestStopPrecedesDelayedRepairs(t *testing.T) {
	w := delayedReplacement(t)
	w.Objects.Drift, w.Declared.Lifecycle = []string{"StatefulSet a: changed at spec.replicas"}, "Stopped"
	if d := decide.Decide(w.State); d.Rule != "Stop" {
		t.Errorf("stopped in git, but the decision is: %s", d)
	}
}

// TestGitMayGoBackAndForth checks that each pass applies the current declaration if git switches between two
// declarations every two minutes: this does not count as reverting actions.
func TestGitMayGoBackAndForth(t *testing.T) {
	w := &world{}
	say(t, w, "cluster a")
	for n := range 8 {
		w.Declared.Digest = string(rune('a' + n%2))
		w.Objects.Drift = []string{"EtcdCluster a: spec differs from git"}
		d := decide.Decide(w.State)
		if d.Rule != "ApplyObjects" || d.Verdict != decide.Act {
			t.Fatalf("push %d: %s", n, d)
		}
		w.Repeated = decide.Repeats(w.State, d, true)
		w.Objects.Drift, w.Now = nil, w.Now.Add(time.Second)
		w.Repeated = decide.Repeats(w.State, decide.Decide(w.State), false)
		w.Now = w.Now.Add(2 * time.Minute)
	}
}

// TestStoppedClusterStartsAgain checks that the cluster starts every time if git stops and starts it every few minutes.
func TestStoppedClusterStartsAgain(t *testing.T) {
	w := &world{}
	say(t, w, "cluster a")
	for n := range 6 {
		// The cluster is stopped, and its pods are gone.
		say(t, w, "remove members", "remove pods", "set etcd known=false")
		w.Objects.RunsReplicas, w.Now = 0, w.Now.Add(2*time.Minute)
		w.Declared.Lifecycle, w.Declared.Digest, w.Objects.Drift = "Stopped", "stopped", nil
		w.Repeated = decide.Repeats(w.State, decide.Decide(w.State), false)
		// The cluster is started.
		w.Now = w.Now.Add(time.Second)
		w.Declared.Lifecycle, w.Declared.Digest = "Running", "running"
		w.Objects.Drift = []string{"EtcdCluster a: differs", "StatefulSet a: changed at spec.replicas"}
		d := decide.Decide(w.State)
		if d.Rule != "ApplyObjects" || d.Verdict != decide.Act {
			t.Fatalf("start %d: the cluster stays down: %s", n+1, d)
		}
		w.Repeated = decide.Repeats(w.State, d, true)
		// The cluster is running.
		now, repeated := w.Now.Add(time.Second), w.Repeated
		say(t, w, "cluster a")
		w.Now, w.Repeated, w.Declared.Digest = now, repeated, "running"
		if d := decide.Decide(w.State); d.Rule != decide.Converged {
			t.Fatal(d)
		}
		w.Repeated = decide.Repeats(w.State, decide.Decide(w.State), false)
	}
}

// revertedSeal returns a cluster whose member a-2 is sealed again and again, because another controller reverts the
// seal.
func revertedSeal(t *testing.T) *world {
	w := &world{}
	say(t, w, "cluster a", "set a-2 mode=Founding")
	for range 3 {
		d := decide.Decide(w.State)
		if d.Rule != "Seal" {
			t.Fatal(d)
		}
		if w.Repeated = decide.Repeats(w.State, d, true); len(w.Repeated) != 1 {
			t.Fatalf("one Seal is recorded as %+v", w.Repeated)
		}
		w.Now = w.Now.Add(time.Second)
	}
	return w
}

// TestCertificatesAreRenewedWhileSealIsReverted checks that expiring certificates are reissued even if everything else
// is blocked: otherwise all members and clients would reject each other.
func TestCertificatesAreRenewedWhileSealIsReverted(t *testing.T) {
	w := revertedSeal(t)
	w.Record.CA, w.CA = "CA1", decide.CA{Secret: "CA1", Mounted: []string{"CA1"}}
	w.Certificates = []decide.Certificate{{Secret: "a-peer-tls", Key: "tls.crt", NotBefore: w.Now.Add(-300 * 24 * time.Hour), NotAfter: w.Now.Add(24 * time.Hour)}}
	w.Objects.Drift = []string{"Secret a-peer-tls: the certificate expires soon"}
	if d := decide.Decide(w.State); d.Verdict != decide.Act {
		t.Errorf("certificates expire tomorrow, but the decision is: %s", d)
	}
}

// TestClusterIsStoppedWhileSealIsReverted checks that git can stop a cluster whose record keeps being reverted.
func TestClusterIsStoppedWhileSealIsReverted(t *testing.T) {
	w := revertedSeal(t)
	w.Declared.Lifecycle = "Stopped"
	w.Objects.Drift = []string{"StatefulSet a: changed at spec.replicas"}
	if d := decide.Decide(w.State); d.Verdict != decide.Act {
		t.Errorf("stopped in git, but the decision is: %s", d)
	}
}

// TestWrongRecoveryIsStoppedWhileSealIsReverted checks that a Job that would create a second cluster although the first
// has quorum is stopped, regardless of other problems.
func TestWrongRecoveryIsStoppedWhileSealIsReverted(t *testing.T) {
	w := revertedSeal(t)
	w.Recovery.Job = &decide.RecoveryJob{ClusterID: theCluster, Ordinal: 1}
	w.Recovery.Job.UID, w.Recovery.Job.Phase, w.Recovery.Job.VolumeUID = "j", decide.JobRuns, "v1"
	if d := decide.Decide(w.State); d.Verdict != decide.Act {
		t.Errorf("a Job is about to create a second cluster, but the decision is: %s", d)
	}
}
