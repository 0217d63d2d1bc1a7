package simulate_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/simulate"
)

// anHour is the number of passes in an hour of a simulated world.
const anHour = int(time.Hour / simulate.TickLength)

// heldFaults returns faults that passes cannot end. They last for the whole test.
func heldFaults(replicas int) []incident {
	list := append(incidents(replicas),
		incident{name: "no pods", do: func(w *simulate.World) { w.RefusePods(true) }},
		incident{name: "no pods, and one is killed", do: func(w *simulate.World) { w.RefusePods(true); w.KillPod(0) }},
		incident{name: "no pods, and one more is declared", do: func(w *simulate.World) { w.RefusePods(true); w.Declared.Replicas++ }},
		incident{name: "claims stay", do: func(w *simulate.World) { w.KeepClaims(true); w.DeleteVolume(0) }},
		incident{name: "claims stay, and one less is declared", do: func(w *simulate.World) { w.KeepClaims(true); w.Declared.Replicas-- }},
		incident{name: "no handover, and other options", do: func(w *simulate.World) { w.RefuseTransfer(true); w.Declared.SpecHash = "h2" }},
		incident{name: "forbidden", do: func(w *simulate.World) { w.Forbid(true) }},
		incident{name: "one more, and none catches up", do: func(w *simulate.World) { w.Declared.Replicas++; w.Slow(replicas, true) }},
		incident{name: "one more, and its node is down", do: func(w *simulate.World) { w.Declared.Replicas++; w.NodeDown(replicas, true) }},
		incident{name: "one more, and its volume hangs", do: func(w *simulate.World) { w.Declared.Replicas++; w.Hang(replicas, true) }},
	)
	for n := range replicas {
		list = append(list,
			incident{name: fmt.Sprintf("unready %d", n), do: func(w *simulate.World) { w.Unready(n, true) }},
			incident{name: fmt.Sprintf("zombie %d", n), do: func(w *simulate.World) { w.Mislead(n, true) }},
			incident{name: fmt.Sprintf("node down for good, killed %d", n), do: func(w *simulate.World) { w.NodeDown(n, true); w.KillPod(n) }},
			incident{name: fmt.Sprintf("hang for good %d", n), do: func(w *simulate.World) { w.Hang(n, true) }},
		)
	}
	return list
}

// TestNothingWaitsForever checks that, in every small world and with every permanent fault, passes do not wait or retry
// without effect for an hour. They change something, are done, or report the required manual action. With
// QUORATE_SOAK_STEPS, the test starts from all worlds; otherwise, it starts from a few.
func TestNothingWaitsForever(t *testing.T) {
	for _, replicas := range []int{1, 3} {
		worlds := map[string]*simulate.World{"formed": formed(t, replicas)}
		worlds["formed"].Unpullable, worlds["formed"].Crashing = "3.6.99", "crashing"
		for name, w := range beginnings(replicas, 1) {
			if few := name == "found, 3 writes" || name == "2 passes, tick"; few || os.Getenv("QUORATE_SOAK_STEPS") != "" {
				worlds[name] = w
			}
		}
		for name, beginning := range worlds {
			for _, b := range heldFaults(replicas) {
				if b.name == "lock" && strings.HasPrefix(name, "found, 0 writes") {
					continue // without a custom resource, waits cannot be recorded
				}
				w := beginning.Clone()
				b.do(w)
				if last, for_ := longestWait(w, 2*anHour); for_ >= anHour {
					t.Errorf("%d replicas, %s, %s: for an hour, the decision is %s", replicas, name, b.name, last)
				}
			}
		}
	}
}

// longestWait runs passes until five consecutive passes are done or blocked. most is the maximum number of passes. It
// returns the last decision of the longest wait, which is a sequence of passes without a change, and the number of
// passes in that wait.
func longestWait(w *simulate.World, most int) (decide.Decision, int) {
	var worst decide.Decision
	longest, waited, ended := 0, 0, 0
	for range most {
		d, writes := w.Pass(simulate.NoCrash)
		acted := len(writes) > 1 || len(writes) == 1 && writes[0] != "status of EtcdCluster a"
		switch {
		case d.Verdict == decide.Done, d.Verdict == decide.Block:
			waited = 0
			ended++
		case d.Verdict == decide.Act && acted:
			waited, ended = 0, 0
		default:
			waited++
			ended = 0
		}
		if waited > longest {
			longest, worst = waited, d
		}
		if ended == 5 || longest >= anHour {
			break
		}
		w.Tick()
	}
	return worst, longest
}
