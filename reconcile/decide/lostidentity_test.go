package decide_test

import (
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// onlyClaimsLeft returns a cluster that has lost its majority, its record and its status. The claim of a-2 remains, and
// was last used by that cluster.
func onlyClaimsLeft(t *testing.T, lastUse decide.ID) *world {
	w := &world{}
	say(t, w, "cluster a", "remove members", "remove status", "remove record", "set etcd known=false why=timeout cluster=none",
		"set a-0 volume=none pod=Absent", "set a-1 volume=none pod=Absent", "set a-2 used=3.6.16/3.6 pod=Pending")
	w.Replicas[2].LastUse.ClusterID = lastUse
	return w
}

// settle runs passes until a pass makes no changes.
func settle(t *testing.T, w *world) decide.Decision {
	for range 9 {
		if d := decide.Decide(w.State); d.Verdict != decide.Act || d.Rule == "Recover" {
			return d
		}
		say(t, w, "act")
	}
	return decide.Decide(w.State)
}

// TestRecoveryOfClusterNamedOnlyByClaims checks that a cluster can be recovered after its record and its status were
// lost, if its claims show which cluster it is and git requests that recovery afterwards.
func TestRecoveryOfClusterNamedOnlyByClaims(t *testing.T) {
	w := onlyClaimsLeft(t, 0xc1)
	settle(t, w)
	say(t, w, "set spec recovery=(c1 2) lost=(0 1)")
	settle(t, w)
	say(t, w, "set a-2 pod=Starting cluster=c1 since=3h", "clock +2h")
	if d := settle(t, w); d.Rule != "Recover" {
		t.Errorf("got %s", d)
	}
}

// TestRecoveryOfUnidentifiedClusterSaysWhy checks that a message explains why a request has no effect: it is older than
// the loss of the record, or nothing shows that this is the cluster that the request names.
func TestRecoveryOfUnidentifiedClusterSaysWhy(t *testing.T) {
	const later, never = "Remove spec.recovery from git, run a pass, and declare it again",
		"kubectl annotate pvc data-a-2 etcd.quorate.dev/cluster-id=c1"
	order := "set spec recovery=(c1 2) lost=(0 1)"
	for name, c := range map[string]struct {
		lastUse decide.ID
		before  bool // requested before the record was recreated
		want    string
	}{
		"requested before":                      {0xc1, true, later},
		"never used":                            {0, false, never},
		"used by a later cluster":               {0xc2, false, never},
		"used by a later cluster, request void": {0xc2, true, later},
	} {
		w := onlyClaimsLeft(t, c.lastUse)
		if c.before {
			say(t, w, order)
		}
		settle(t, w)
		say(t, w, order)
		d := settle(t, w)
		if d.Rule == "Recover" || w.Record.ClusterID != 0 {
			t.Errorf("%s: cluster %s, %s", name, w.Record.ClusterID, d)
		}
		if warnings := w.State.Warnings(); !strings.Contains(strings.Join(warnings, "\n"), c.want) {
			t.Errorf("%s: warnings %q", name, warnings)
		}
	}
}
