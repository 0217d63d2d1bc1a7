package decide_test

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// TestLostClustersClaimInMembersSlotIsKept checks that a claim that lost cluster c1 last used is kept when the member
// of c2 in its slot is replaced, as in a slot without a member (followVolumes). Cluster c2 was created from c1. The
// claim of a-1 is lost, and the old claim of c1's a-1 comes back with the same name because its PersistentVolume was
// retained. Its node is not available, so the pod does not start.
func TestLostClustersClaimInMembersSlotIsKept(t *testing.T) {
	for name, lines := range map[string][]string{
		"a voter lost its volume":        {"set a-1 etcd=silent pod=Pending since=3h volume=w1"},
		"a learner was removed manually": {"set a-1 etcd=none pod=Pending since=1m volume=w1 mode=Joining"},
	} {
		w := &world{}
		say(t, w, "cluster a")
		w.Record.Recovery = decide.RecordedRecovery{ClusterID: 0xc9, Ordinal: 0, VolumeUID: "v0"}
		say(t, w, lines...)
		w.Replicas[1].LastUse = decide.LastUse{ClusterID: 0xc9, Version: "3.6.16", StorageVersion: "3.6"}
		w.Replicas[1].VolumeToken = w.Record.Token
		for range 8 {
			d := decide.Decide(w.State)
			if a, deletes := d.Action.(decide.DeleteVolume); deletes && a.VolumeUID == "w1" {
				t.Errorf("%s: %s, whose claim was last used by cluster c9", name, d)
			}
			if d.Verdict != decide.Act {
				break
			}
			say(t, w, "act")
		}
	}
}
