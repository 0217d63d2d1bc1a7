package simulate_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
	"quorate.dev/quorate/reconcile/simulate"
)

// memoryOfTests is the number of ticks that a test world remembers.
const memoryOfTests = 100

// restoredVersions returns copies of a world, each with one object restored to an earlier version. The copies have
// different states.
func restoredVersions(t *testing.T, w *simulate.World) map[string]*simulate.World {
	t.Helper()
	versions, known := map[string]*simulate.World{}, map[string]bool{}
	for _, object := range []string{"EtcdCluster a", "ConfigMap a-members", "StatefulSet a"} {
		for ticks := range memoryOfTests {
			restored := w.Clone()
			restored.RestoreObject(object, ticks+1)
			state, err := json.Marshal(restored.Observe())
			if err != nil {
				t.Fatal(err)
			}
			if !known[string(state)] {
				known[string(state)] = true
				versions[fmt.Sprintf("%s of %d ticks ago", object, ticks+1)] = restored
			}
		}
	}
	return versions
}

// TestObjectRestoredDuringRecoveryKeepsOneCluster restores an object to each earlier version in each phase of a
// recovery. It checks that the lost cluster does not run alongside the new cluster, void requests are not carried out,
// and passes converge or block.
func TestObjectRestoredDuringRecoveryKeepsOneCluster(t *testing.T) {
	orders := map[string]decide.RecoveryOrder{
		"of a member": {Ordinal: 2, Lost: 0b011, Digest: "d", Word: "w"},
		"of a backup": {Ordinal: 0, Lost: 0b111, Digest: "d", Word: "w", Backup: "tuesday"},
	}
	for name, order := range orders {
		if testing.Short() && order.Backup != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := simulate.New("a", decidetest.Declared(3), 0)
			w.Remember(memoryOfTests)
			form(t, w)
			order.ClusterID, order.OldVolumes = w.Observe().Record.ClusterID, decide.Retain
			w.NodeDown(0, true)
			w.NodeDown(1, true)
			for phase := range 14 {
				switch phase {
				case 2:
					w.Declared.Recovery = order
				case 4:
					w.ForceDelete(0)
					w.ForceDelete(1)
					w.NodeDown(0, false)
					w.NodeDown(1, false)
				}
				for what, restored := range restoredVersions(t, w) {
					if phase < 4 {
						restored.NodeDown(0, false)
						restored.NodeDown(1, false)
					}
					for _, wrong := range checkEnd(restored, patienceOfTests) {
						t.Errorf("phase %d, %s: %s", phase, what, wrong)
					}
				}
				w.Pass(simulate.NoCrash)
				w.Tick()
			}
		})
	}
}

// TestRevertedRecoveryStartsNoPodBesideJob checks that a pod does not start alongside a Job that writes to the volume,
// if the spec no longer requests the recovery and the ConfigMap is restored to a version from before the recovery.
func TestRevertedRecoveryStartsNoPodBesideJob(t *testing.T) {
	w := simulate.New("a", decidetest.Declared(1), 0)
	w.Remember(memoryOfTests)
	form(t, w)
	before := w.Clone()
	w.NodeDown(0, true)
	w.Declared.Recovery = decide.RecoveryOrder{ClusterID: before.Observe().Record.ClusterID, Lost: 1, Digest: "d",
		Word: "w", Backup: "tuesday", OldVolumes: decide.Retain}
	w.RefuseRestores(true) // the Job keeps trying
	reverted := 0
	for ticks := range 14 {
		if ticks == 4 {
			w.ForceDelete(0)
			w.NodeDown(0, false)
		}
		w.Pass(simulate.NoCrash)
		if job := w.Observe().Recovery.Job; job != nil && job.Phase == decide.JobRuns {
			restored := w.Clone()
			restored.Declared.Recovery = decide.RecoveryOrder{}
			restored.RestoreObject("ConfigMap a-members", ticks+1)
			if restored.Observe().Record.Recovering() {
				t.Fatalf("tick %d: the record is not from before the recovery", ticks)
			}
			reverted++
			for _, wrong := range checkEnd(restored, patienceOfTests) {
				t.Errorf("tick %d: %s", ticks, wrong)
			}
		}
		w.Tick()
	}
	if reverted == 0 {
		t.Error("no Job was at work")
	}
}
