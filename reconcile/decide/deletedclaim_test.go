package decide_test

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// TestFoundingSurvivesDeletedClaim checks that a pass waits if the claim of an initial member is being deleted and its
// pod is gone. An initial member may start on an empty volume, which Kubernetes creates by itself.
func TestFoundingSurvivesDeletedClaim(t *testing.T) {
	for _, n := range []string{"1", "3"} {
		w := &world{}
		say(t, w, "cluster a phase=founded replicas="+n)
		w.Replicas = nil
		for i := range w.Record.Members {
			w.Replicas = append(w.Replicas, decide.Replica{Ordinal: i, Pod: decide.PodAbsent, VolumeUID: "v", VolumeTerminating: true})
		}
		t.Log("\n" + look(t, w))
		if d := decide.Decide(w.State); d.Verdict == decide.Block {
			t.Errorf("%s members: %s", n, d)
		}
	}
}
