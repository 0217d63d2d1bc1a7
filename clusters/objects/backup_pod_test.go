package objects

import (
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// TestBackupNamesPossibleVoters checks that backup pods list the members that may be voters, but not a member that is
// about to join, because a majority of the listed members must return the same member list. If there are guests, their
// endpoints are listed as well.
func TestBackupNamesPossibleVoters(t *testing.T) {
	in := Input{Cluster: &v1alpha1.EtcdCluster{}, Record: decide.FoundingRecord("t1", 2)}
	in.Cluster.Name, in.Cluster.Namespace = "a", "b"
	in.Cluster.Spec.Backup = &v1alpha1.BackupSpec{To: v1alpha1.BackupDestination{Volume: &v1alpha1.VolumeDestination{ClaimName: "b"}}}
	in.Record = in.Record.With(decide.RecordedMember{Ordinal: 2, Mode: decide.Joining})
	in.GuestEndpoints = []string{"http://old-0.old.b.svc:2379"}
	for _, want := range [][]string{{"a-0", "a-1"}, {"a-0", "a-1", in.GuestEndpoints[0]}} {
		var names []string
		for _, arg := range backupArgs(in) {
			if member, is := strings.CutPrefix(arg, "--member="); is {
				name, _, _ := strings.Cut(member, "=")
				names = append(names, name)
			}
		}
		if !slices.Equal(names, want) {
			t.Errorf("with guests %v: got %q, want %q", in.Record.Guests, names, want)
		}
		in.Record.Guests = []decide.ID{1}
	}
}
