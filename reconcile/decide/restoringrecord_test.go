package decide_test

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// TestRestoringRecordIsOldIfClaimWasUsed checks that the annotations of a claim outweigh an outdated record of a
// restore, just as they outweigh an outdated bootstrap record (formedBefore): the member may start with its data, and
// the StatefulSet is not scaled to 0. A cluster of one member was created from a backup and has formed, as the
// annotations of its claim prove. Its ConfigMap is restored to its state before the cluster formed, its status is lost,
// and its pod is being replaced (its node is drained).
func TestRestoringRecordIsOldIfClaimWasUsed(t *testing.T) {
	for name, mode := range map[string]string{"bootstrap": "Founding", "restore": "Restoring"} {
		w := &world{}
		say(t, w, "cluster a replicas=1", "remove members", "remove status", "set record cluster=none",
			"set etcd known=false why=timeout cluster=none", "set a-0 pod=Absent used=3.6.16/3.6 mode="+mode)
		w.Replicas[0].LastUse.ClusterID = 0xc1
		w.Record.Members = []decide.RecordedMember{{Mode: decide.Mode(mode)}}
		// The required record's objects differ from the existing objects, as compare would find:
		if required := decide.RequiredRecord(w.State, ""); required.Restoring() {
			say(t, w, "add drift=(StatefulSet a: changed at spec.replicas)")
			t.Errorf("%s: the member counts as being restored: %v", name, required.Members)
		}
		t.Log("\n" + look(t, w))
		say(t, w, "remove drift")
		t.Log("\nafter that:\n" + look(t, w))
		if d := decide.Decide(w.State); d.Verdict == decide.Block {
			t.Errorf("%s: %s", name, d)
		}
	}
}
