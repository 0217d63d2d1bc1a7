package simulate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/reconcile/simulate"
)

// befall is something that happens to a world, and whatever ends it.
type befall struct {
	name string
	do   func(*simulate.World)
	end  func(*simulate.World) // nil if it does not end
}

// befalls are all that can happen to a cluster of that many replicas.
func befalls(replicas int) []befall {
	list := []befall{
		{name: "delete status", do: (*simulate.World).DeleteStatus},
		{name: "put back record", do: (*simulate.World).PutBackRecord},
		{"cut network", func(w *simulate.World) { w.CutNetwork(true) }, func(w *simulate.World) { w.CutNetwork(false) }},
		{name: "suspend", do: func(w *simulate.World) { w.Declared.Suspended = true }},
		{name: "stop", do: func(w *simulate.World) { w.Declared.Lifecycle = "Stopped" }},
		{name: "other version", do: func(w *simulate.World) { w.Declared.Version = "3.7.3" }},
		{name: "unpullable version", do: func(w *simulate.World) { w.Declared.Version = w.Unpullable }},
		{name: "more replicas", do: func(w *simulate.World) { w.Declared.Replicas++ }},
		{name: "invalid", do: func(w *simulate.World) { w.Declared.Problems = []string{"spec.version: is not supported"} }},
		{"lock", func(w *simulate.World) { w.LockHolder = "process 7 on b" }, func(w *simulate.World) { w.LockHolder = "" }},
		{name: "delete everything", do: func(w *simulate.World) {
			w.Delete("EtcdCluster a")
			for n := range replicas {
				w.DeleteVolume(n)
			}
		}},
	}
	for _, object := range simulate.New("a", declared(1), 0).Objects() {
		list = append(list, befall{name: "delete " + object, do: func(w *simulate.World) { w.Delete(object) }},
			befall{name: "change " + object, do: func(w *simulate.World) { w.Change(object) }})
	}
	list = append(list, befall{name: "occupy", do: func(w *simulate.World) { w.Occupy("Service a-client") }})
	for n := range replicas {
		list = append(list,
			befall{name: fmt.Sprintf("kill pod %d", n), do: func(w *simulate.World) { w.KillPod(n) }},
			befall{name: fmt.Sprintf("lose volume %d", n), do: func(w *simulate.World) { w.LoseVolume(n) }},
			befall{name: fmt.Sprintf("delete claim %d", n), do: func(w *simulate.World) { w.DeleteVolume(n) }},
			befall{fmt.Sprintf("node %d down", n), func(w *simulate.World) { w.NodeDown(n, true) }, func(w *simulate.World) { w.NodeDown(n, false) }},
		)
	}
	return list
}

// beginnings are the worlds on the way from nothing to a formed cluster: after a crash after each write, and after each
// tick.
func beginnings(replicas int, seed uint64) map[string]*simulate.World {
	worlds := map[string]*simulate.World{}
	for n := range 13 {
		w := simulate.New("a", declared(replicas), seed)
		w.Unpullable = "3.6.99"
		w.Pass(n)
		worlds[fmt.Sprintf("found, %d writes", n)] = w.Clone()
		w.Tick()
		worlds[fmt.Sprintf("found, %d writes, tick", n)] = w.Clone()
	}
	w := simulate.New("a", declared(replicas), seed)
	w.Unpullable = "3.6.99"
	for n := range 7 {
		w.Pass(simulate.NoCrash)
		worlds[fmt.Sprintf("%d passes", n+1)] = w.Clone()
		w.Tick()
		worlds[fmt.Sprintf("%d passes, tick", n+1)] = w.Clone()
	}
	return worlds
}

// TestEveryBefall: from every beginning, whatever befalls it, passes come to an end that lasts, and nothing happens that
// must never happen. What has an end ends after three more passes.
func TestEveryBefall(t *testing.T) {
	for _, seed := range []uint64{0, 1, 2} {
		for _, replicas := range []int{1, 2, 3, 5} {
			t.Run(fmt.Sprintf("%d replicas, seed %d", replicas, seed), func(t *testing.T) {
				t.Parallel()
				for name, beginning := range beginnings(replicas, seed) {
					for _, b := range befalls(replicas) {
						endsWell(t, checkRoad, beginning.Clone(), name, b)
					}
				}
			})
		}
	}
}

// TestEveryTwoBefalls: the same with a second misfortune, at once and after a pass.
func TestEveryTwoBefalls(t *testing.T) {
	for _, replicas := range []int{1, 3} {
		for name, beginning := range beginnings(replicas, 1) {
			if !slices.Contains([]string{"found, 3 writes", "1 passes", "2 passes, tick", "7 passes"}, name) {
				continue
			}
			t.Run(fmt.Sprintf("%d replicas, %s", replicas, name), func(t *testing.T) {
				t.Parallel()
				for _, first := range befalls(replicas) {
					for _, second := range befalls(replicas) {
						endsWell(t, checkEnd, beginning.Clone(), name, first, second)
						w := beginning.Clone()
						first.do(w)
						w.Pass(2)
						w.Tick()
						endsWell(t, checkEnd, w, name+", "+first.name+", a pass of 2 writes", second, befall{name: "its end", do: first.finish})
					}
				}
			})
		}
	}
}

func (b befall) finish(w *simulate.World) {
	if b.end != nil {
		b.end(w)
	}
}

// endsWell lets misfortunes befall a world and walks its road to the end.
func endsWell(t *testing.T, check func(*simulate.World, int) []string, w *simulate.World, name string, misfortunes ...befall) {
	t.Helper()
	for _, b := range misfortunes {
		b.do(w)
		name += ", " + b.name
	}
	for range 3 {
		w.Pass(simulate.NoCrash)
		w.Tick()
	}
	for _, b := range misfortunes {
		b.finish(w)
	}
	if faults := check(w, patienceOfTests); len(faults) > 0 {
		t.Errorf("%s:\n%s", name, strings.Join(faults, "\n"))
	}
}
