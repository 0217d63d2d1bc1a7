package decide_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"quorate.dev/quorate/reconcile/decide"
)

// say carries out the directives and returns all actions that act carried out.
func say(t *testing.T, w *world, lines ...string) (actions []decide.Action) {
	t.Helper()
	for _, line := range lines {
		cmd, args, err := datadriven.ParseLine(line)
		if err != nil {
			t.Fatal(err)
		}
		if cmd == "act" {
			d := decide.Decide(w.State)
			t.Log(d)
			if d.Verdict != decide.Act {
				return actions
			}
			actions = append(actions, d.Action)
		}
		if _, err := w.tell(cmd, args); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	return actions
}

// TestIncompleteRecordDoesNotTakeInAnotherClustersVolume checks that the volume of a different cluster does not get a
// pod and is not deleted if the record was recreated only from volumes, before etcd has quorum. The claim of a-3 came
// back, and was last used by lost cluster c1, from which this cluster, c2, was created. It does not belong to a member
// of c2.
func TestIncompleteRecordDoesNotTakeInAnotherClustersVolume(t *testing.T) {
	for name, record := range map[string][]string{
		"recreated from volumes": {"set a-0 id=none"},
		"lost":                   {"remove record"},
	} {
		w := &world{}
		say(t, w, "cluster a")
		w.Record.ClusterID, w.ReportedClusterID = 0xc2, 0xc2
		for i := range w.Record.Members {
			w.Record.Members[i].ID, w.Record.Members[i].VolumeUID = 0, ""
		}
		if name == "lost" {
			say(t, w, record...)
		}
		w.Replicas = append(w.Replicas, decide.Replica{Ordinal: 3, Pod: decide.PodAbsent, VolumeUID: "v3", VolumeToken: "t1",
			LastUse: decide.LastUse{ClusterID: 0xc1, Version: "3.6.16"}})
		members := w.Membership
		w.Membership = decide.Membership{Why: "timeout"}
		for i := range w.Replicas {
			w.Replicas[i].ClusterID = 0
		}
		say(t, w, "act")
		if _, recorded := w.Record.Member(3); recorded {
			t.Errorf("%s: a-3 is recorded as a member: %v", name, w.Record.Members)
		}
		members.ClusterID = 0xc2
		w.Membership = members
		for i := range w.Replicas {
			if w.Replicas[i].Ordinal < 3 {
				w.Replicas[i].ClusterID = 0xc2
			}
		}
		actions := say(t, w, "act", "act", "act", "act", "act")
		for _, a := range actions {
			if _, deletes := a.(decide.DeleteVolume); deletes {
				t.Errorf("%s: deletes the volume of the lost cluster: %v", name, a)
			}
		}
	}
}
