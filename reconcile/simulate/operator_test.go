package simulate_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
	"quorate.dev/quorate/reconcile/simulate"
)

// act is a manual action or an incident, and the line that ends it. Both are lines of a path.
type act struct{ do, end string }

// place is a world and the path that leads to it.
type place struct {
	script []string
	path   path
}

// begin returns the place after the first line of a path.
func begin(line string) place { return place{}.after(line) }

// after returns the place after more lines. Empty lines are ignored.
func (p place) after(lines ...string) place {
	next := place{script: slices.Clone(p.script)}
	if p.path.World != nil {
		next.path.World = p.path.Clone()
	}
	for _, line := range lines {
		if line == "" {
			continue
		}
		if _, err := decidetest.Teller(next.path.tell).Line(line); err != nil {
			panic(err)
		}
		next.script = append(next.script, line)
	}
	return next
}

// deeds returns all manual actions on a cluster with the given number of replicas.
func deeds(replicas int) []act {
	list := []act{
		{do: "person delete-claims"},
		{do: "person delete=(EtcdCluster a) delete-claims"},
		{do: "person disarm=CORRUPT"},
		{do: "person scale=0"}, {do: "person scale=1"}, {do: "person scale=" + fmt.Sprint(replicas+1)},
		{do: "person add-stranger", end: "fault heal"},
		{do: "person delete-orphaning=(EtcdCluster a)"},
		{do: "person delete-orphaning=(StatefulSet a)"},
		{do: fmt.Sprintf("person add-member=a-%d", replicas)},
		{do: fmt.Sprintf("person add-learner=a-%d", replicas)},
		{do: "person delete-status"},
		{do: "person put-back-record"},
		{do: "set spec lifecycle=Stopped", end: "set spec lifecycle=Running"},
	}
	for _, object := range simulate.New("a", decidetest.Declared(1), 0).Objects() {
		list = append(list, act{do: fmt.Sprintf("person delete=(%s)", object)}, act{do: fmt.Sprintf("person change=(%s)", object)})
	}
	for _, ticks := range []int{1, 2, 4, 8} {
		list = append(list, act{do: fmt.Sprintf("person restore=%d", ticks)})
		for _, object := range []string{"EtcdCluster a", "ConfigMap a-members", "StatefulSet a"} {
			list = append(list, act{do: fmt.Sprintf("person restore-object=(%d %s)", ticks, object)})
		}
	}
	for n := range replicas {
		list = append(list, deedsTo(n)...)
	}
	return list
}

// deedsTo returns the actions that affect one member or its pod, claim or node.
func deedsTo(n int) []act {
	list := []act{
		{do: "person kill-pod=a-%d"}, {do: "person delete-claim=a-%d"}, {do: "person delete-claim=a-%d kill-pod=a-%d"},
		{do: "fault lose-volume=a-%d"}, {do: "fault replace-claim=a-%d"},
		{"person unlist-claim=a-%d", "person relist-claim=a-%d"}, {"person disown-claim=a-%d", "person own-claim=a-%d"},
		{"person unlist-claim=a-%d kill-pod=a-%d", "person relist-claim=a-%d"},
		{"person disown-claim=a-%d kill-pod=a-%d", "person own-claim=a-%d"},
		{"person unlist-pod=a-%d", "person relist-pod=a-%d"},
		{do: "fault strand=a-%d"}, {"fault strand=a-%d", "person register-node=a-%d"},
		{do: "person remove-member=a-%d"}, {do: "person promote=a-%d"}, {do: "person force-new-cluster=a-%d"},
	}
	for i := range list {
		list[i].do, list[i].end = strings.ReplaceAll(list[i].do, "%d", fmt.Sprint(n)), strings.ReplaceAll(list[i].end, "%d", fmt.Sprint(n))
	}
	return list
}

// faultsTo returns the faults that affect one member and are not manual actions.
func faultsTo(n int) []act {
	list := []act{
		{"fault mute=a-%d", "fault unmute=a-%d"}, {"fault slow=a-%d", "fault fast=a-%d"}, {"fault apart=a-%d", "fault together=a-%d"},
		{"fault unready=a-%d", "fault ready-again=a-%d"}, {"fault node-down=a-%d", "fault node-up=a-%d"}, {"fault hang=a-%d", "fault unhang=a-%d"},
		{do: "fault corrupt=a-%d"}, {do: "fault corrupt-alarm=a-%d"},
	}
	for i := range list {
		list[i].do, list[i].end = strings.ReplaceAll(list[i].do, "%d", fmt.Sprint(n)), strings.ReplaceAll(list[i].end, "%d", fmt.Sprint(n))
	}
	return list
}

// glimpses returns passes with an incomplete or outdated view.
func glimpses(replicas int) []act {
	list := []act{{do: "pass 1 old-kubernetes=1"}, {do: "pass 1 old-kubernetes=2"}, {do: "pass 1 old-etcd=1"}, {do: "pass 1 old-etcd=2"}, {do: "tick 2"}}
	for n := range replicas {
		list = append(list, act{do: fmt.Sprintf("pass 1 missing-claim=a-%d", n)}, act{do: fmt.Sprintf("pass 1 missing-pod=a-%d", n)})
	}
	return list
}

// beginningsOf returns the worlds on the way to a formed cluster, and the world of a cluster that has run for a while.
func beginningsOf(replicas int, seed uint64) []place {
	start := begin(fmt.Sprintf("cluster a replicas=%d seed=%d phase=nothing", replicas, seed))
	places := []place{start}
	for n := range 11 {
		places = append(places, start.after(fmt.Sprintf("pass 1 crash=%d", n)))
	}
	for n := 1; n <= 6; n++ {
		places = append(places, start.after(fmt.Sprintf("pass %d", n)))
	}
	return append(places, begin(fmt.Sprintf("cluster a replicas=%d seed=%d", replicas, seed)).after("pass 3"))
}

// changesOf lists changes to a running cluster of three members.
var changesOf = []string{
	"set spec replicas=5", "set spec replicas=2", "set spec replicas=1", "fault lose-volume=a-1", "person delete-claim=a-0", "set spec hash=h2", "set spec version=3.7.3", "set spec version=3.5.35",
	"set spec lifecycle=Stopped", "fault corrupt=a-2",
}

// momentsOf returns the worlds during a change: the world before each pass, and the world at the end.
func momentsOf(change string, seed uint64) []place {
	here := begin(fmt.Sprintf("cluster a together=true seed=%d", seed)).after("pass 2", change)
	var places []place
	for range here.path.Clone().Converge(patienceOfTests) {
		places = append(places, here)
		here = here.after("pass 1")
	}
	return append(places, here)
}

// table counts faults by kind and, after a single action, also by that action. It keeps the shortest path to each kind.
type table struct {
	mu     sync.Mutex
	worlds int
	kinds  map[string]failing
}

type failing struct {
	fault  string
	script []string
	worlds int
}

func (b *table) add(faults []string, script []string, acts ...act) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.worlds++
	if b.kinds == nil {
		b.kinds = map[string]failing{}
	}
	seen := map[string]bool{}
	for _, fault := range faults {
		kind := kindOf(fault)
		if len(acts) == 1 {
			kind += ", after " + numbers.ReplaceAllString(acts[0].do, "")
		}
		if seen[kind] {
			continue
		}
		seen[kind] = true
		before, known := b.kinds[kind]
		if !known || len(script) < len(before.script) {
			before.fault, before.script = fault, script
		}
		before.worlds++
		b.kinds[kind] = before
	}
}

// report fails the test with one error for each kind of fault.
func (b *table) report(t *testing.T) {
	t.Helper()
	t.Logf("%d worlds", b.worlds)
	for _, kind := range slices.Sorted(maps.Keys(b.kinds)) {
		k := b.kinds[kind]
		t.Errorf("%d of %d worlds: %s\nto replay it, put this into a file in testdata/converge:\n\n%s\n", k.worlds, b.worlds, k.fault, strings.Join(k.script, "\n"))
	}
}

// goesOn performs acts in a world, runs three passes, ends the acts, and runs passes until the cluster converges or is
// blocked. It adds the faults to the table.
func (b *table) goesOn(p place, acts ...act) {
	ends := []string{"pass 3"}
	for _, a := range acts {
		p = p.after(a.do)
		ends = append(ends, a.end)
	}
	p = p.after(ends...)
	b.add(faultsOf(p), append(p.script, "converge"), acts...)
}

// patienceOfPeople is the number of passes within which every path must end. It is longer than any wait.
const patienceOfPeople = 250

// faultsOf returns the faults on the path to a world and in the passes after it.
func faultsOf(p place) []string {
	w := p.path.World
	steps := w.Converge(patienceOfPeople)
	faults := w.Violations()
	if last := steps[len(steps)-1].Decision; last.Verdict != decide.Done && last.Verdict != decide.Block {
		faults = append(faults, fmt.Sprintf("no end after %d passes: %s", patienceOfPeople, last))
	}
	return faults
}

// thorough reports whether QUORATE_SOAK_PEOPLE requests the larger runs.
func thorough() bool { return os.Getenv("QUORATE_SOAK_PEOPLE") != "" }

// taken reports whether to try the nth of many combinations. Thorough runs try all combinations, and other runs try
// every 15th.
func taken(n int) bool { return thorough() || n%15 == 0 }

// TestEveryDeed checks that Quorate's writes do not lose recoverable data after any manual action at any beginning.
// Unless the run is thorough, only some combinations are tried with two or more replicas.
func TestEveryDeed(t *testing.T) {
	sizes, seeds := []int{1, 2, 3, 5}, uint64(1)
	if thorough() {
		seeds = 4
	}
	if testing.Short() {
		sizes = []int{3}
	}
	var found table
	t.Run("all", func(t *testing.T) {
		for seed := range seeds {
			for _, replicas := range sizes {
				t.Run(fmt.Sprintf("%d replicas, seed %d", replicas, seed), func(t *testing.T) {
					t.Parallel()
					for i, p := range beginningsOf(replicas, seed) {
						for j, deed := range deeds(replicas) {
							if replicas == 1 || replicas < 5 && (i+j)%4 == 0 || taken(i+j) {
								found.goesOn(p, deed)
							}
						}
					}
				})
			}
		}
	})
	found.report(t)
}

// TestEveryDeedAtEveryMoment checks the same at every moment of a change to a running cluster.
func TestEveryDeedAtEveryMoment(t *testing.T) {
	seeds := uint64(1)
	if thorough() {
		seeds = 4
	}
	var found table
	t.Run("all", func(t *testing.T) {
		for seed := range seeds {
			for i, change := range changesOf {
				if testing.Short() && i > 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s, seed %d", change, seed), func(t *testing.T) {
					t.Parallel()
					for i, p := range momentsOf(change, seed) {
						for j, deed := range deeds(3) {
							if taken(i + j) {
								found.goesOn(p, deed)
							}
						}
					}
				})
			}
		}
	})
	found.report(t)
}

// TestEveryTwoDeeds checks the same for two actions, together or a few passes apart, in small clusters.
func TestEveryTwoDeeds(t *testing.T) {
	if testing.Short() {
		t.Skip("pairs take a long time")
	}
	sizes := []int{1, 3}
	if thorough() {
		sizes = []int{1, 2, 3}
	}
	var found table
	t.Run("all", func(t *testing.T) {
		for _, replicas := range sizes {
			p := begin(fmt.Sprintf("cluster a replicas=%d seed=1", replicas)).after("pass 3")
			for i, first := range deeds(replicas) {
				t.Run(fmt.Sprintf("%d replicas, %s", replicas, first.do), func(t *testing.T) {
					t.Parallel()
					for j, second := range deeds(replicas) {
						for apart := range 3 {
							if !thorough() && (i+j)%75 != apart {
								continue
							}
							between := ""
							if apart > 0 {
								between = fmt.Sprintf("pass %d", 2*apart)
							}
							found.goesOn(p, first, act{do: between}, second)
						}
					}
				})
			}
		}
	})
	found.report(t)
}
