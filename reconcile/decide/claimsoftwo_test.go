package decide_test

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// TestClaimsOfTwoClustersDoNotStartTogether checks that the claims of two clusters are not started together. The record
// and status are lost, and two unmarked claims of lost cluster c1 came back alongside the claim of c2. Starting all of
// them would create two clusters, each with a quorum, under one client Service.
func TestClaimsOfTwoClustersDoNotStartTogether(t *testing.T) {
	w := &world{}
	say(t, w, "cluster a", "remove record", "remove status", "remove members", "remove pods", "set etcd known=false")
	for i, id := range []decide.ID{0xc2, theCluster, theCluster} {
		w.Replicas[i].LastUse = decide.LastUse{ClusterID: id, Version: w.Declared.Version}
	}
	w.Objects.RunsReplicas = 0
	w.Objects.Drift = []string{"ConfigMap a-members: missing", "StatefulSet a: changed at spec.replicas"}
	d := decide.Decide(w.State)
	users := map[decide.ID]bool{}
	for _, m := range decide.RequiredRecord(w.State, "t1").Members {
		users[w.Replica(m.Ordinal).LastUse.ClusterID] = true
	}
	if d.Verdict == decide.Act && len(users) > 1 {
		t.Errorf("members of %d clusters start together: %s", len(users), d)
	}
}

// TestEndedRecoveryIsNotRunAgain checks that a backup does not replace the data of new cluster c2. The record is
// restored to its state during a recovery from the backup, after c2 has used the same volume, and the status is lost.
func TestEndedRecoveryIsNotRunAgain(t *testing.T) {
	w := &world{}
	say(t, w, "cluster a", "remove status", "remove members", "remove pods", "set etcd known=false")
	w.Replicas[0].LastUse = decide.LastUse{ClusterID: 0xc2, Version: w.Declared.Version}
	w.Replicas = w.Replicas[:1]
	w.Objects.RunsReplicas = 0
	w.Record.Recovery = decide.RecordedRecovery{ClusterID: theCluster, Ordinal: 0, VolumeUID: "v0", FromBackup: true}
	var lost decide.Ordinals
	w.Declared.Recovery = decide.RecoveryOrder{ClusterID: theCluster, Ordinal: 0, Backup: "b in s3", Digest: "d", Word: "w", Lost: lost.With(0).With(1).With(2)}
	if d := decide.Decide(w.State); d.Verdict == decide.Act {
		t.Errorf("c2 used the volume last, but the decision is: %s", d)
	}
}
