package objects

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// TestClientService: clients are led to members once none of them founds the cluster, or has to show yet that
// it runs on what was restored; and never away again.
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
		{"being founded", record(3, decide.Founding), false, false},
		{"being restored", record(1, decide.Restoring), false, false},
		{"restored", restored, false, false},
		{"restored, and led to before", restored, true, true},
		{"proven", proven, false, true},
	} {
		in := input(t, "3.6.16")
		in.Record, in.Leads = test.record, test.leads
		if got := len(clientService(in).Spec.Selector) > 0; got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}
