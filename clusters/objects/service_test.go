package objects

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// TestClientService checks that the client Service opens once members can no longer bootstrap the cluster and have been
// proved to run with the restored data, and that it never closes again.
func TestClientService(t *testing.T) {
	restored := record(1, decide.Sealed)
	restored.ClusterID, restored.RestoredFrom = 0, "tuesday"
	proven := restored
	proven.ClusterID = 0xc1
	for _, test := range []struct {
		name   string
		record decide.Record
		leads  bool
		want   bool
	}{
		{"sealed", record(3, decide.Sealed), false, true},
		{"being bootstrapped", record(3, decide.Founding), false, false},
		{"being restored", record(1, decide.Restoring), false, false},
		{"restored, not yet proven", restored, false, false},
		{"restored, Service already open", restored, true, true},
		{"restored and proven", proven, false, true},
	} {
		in := input(t, "3.6.16")
		in.Record, in.Leads = test.record, test.leads
		if got := len(clientService(in).Spec.Selector) > 0; got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}
