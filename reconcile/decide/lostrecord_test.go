package decide_test

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// TestLostRecordKeepsVolumesOfLostCluster checks that the lost cluster's volumes are kept after the record was lost and
// recreated. The lost record showed that the new cluster was created from data in doubt. Without that record, this is
// unknown, and the volumes may hold the right data.
func TestLostRecordKeepsVolumesOfLostCluster(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(*world)
		deletes bool
	}{
		{"data not in doubt", func(*world) {}, true},
		{"in doubt", func(w *world) { w.Record.Recovery.Suspect = true }, false},
		{"record lost", func(w *world) { w.ReportedClusterID, w.Record = w.Record.ClusterID, decide.Record{} }, false},
	} {
		w, deleted := healthy(t), false
		keeps(w)
		w.Replicas[3].LostCluster = 0xc9
		test.change(w)
		for range 9 {
			d := decide.Decide(w.State)
			if _, is := d.Action.(decide.DeleteVolume); is {
				deleted = true
			}
			if d.Verdict != decide.Act {
				break
			}
			if err := w.act(); err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
		}
		if deleted != test.deletes {
			t.Errorf("%s: deleted is %v", test.name, deleted)
		}
		if gone := w.Record.Removed; !test.deletes && (len(gone) != 1 || gone[0].LostCluster != 0xc9) {
			t.Errorf("%s: the kept volume is not recorded: %+v", test.name, gone)
		}
	}
}
