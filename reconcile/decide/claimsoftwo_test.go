package decide_test

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// TestClaimsOfTwoClustersDoNotStartTogether: record and status are lost, and the claims were last used by two
// clusters: two unmarked claims of a lost cluster c1 came back beside the one of c2. Starting all of them makes two
// clusters with a quorum each, under one client Service.
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
		t.Errorf("it starts members of %d clusters: %s", len(users), d)
	}
}

// TestEndedRecoveryIsNotRunAgain: the record is put back to what it was during a recovery from a backup, after
// the new cluster c2 has used the very volume, and the status is lost. The backup must not replace c2's data.
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
		t.Errorf("c2 used the volume last, and it decides: %s", d)
	}
}
