package simulate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/decide/decidetest"
	"quorate.dev/quorate/reconcile/simulate"
)

// incident is an event in a world, with the event that ends it.
type incident struct {
	name string
	do   func(*simulate.World)
	end  func(*simulate.World) // nil if it does not end
}

// incidents returns all incidents for a cluster with the given number of replicas.
func incidents(replicas int) []incident {
	list := append(changesOfGit(), faultsOfObjects()...)
	list = append(list,
		incident{"cut network", func(w *simulate.World) { w.CutNetwork(true) }, func(w *simulate.World) { w.CutNetwork(false) }},
		incident{"lock", func(w *simulate.World) { w.LockHolder = "process 7 on b" }, func(w *simulate.World) { w.LockHolder = "" }},
		incident{name: "nameless alarm", do: (*simulate.World).RaiseNameless},
		incident{"full database", (*simulate.World).FillDatabase, (*simulate.World).Heal},
		incident{"full database, recovered", func(w *simulate.World) {
			w.Declared.RecoversSpace, w.Declared.Quota = true, 2<<30
			w.FillDatabase()
		}, (*simulate.World).Compact},
		incident{"stranger", (*simulate.World).AddStranger, (*simulate.World).Heal},
		incident{name: "delete everything", do: func(w *simulate.World) {
			w.Delete("EtcdCluster a")
			for n := range replicas {
				w.DeleteVolume(n)
			}
		}},
	)
	for n := range replicas {
		list = append(list, faultsOfReplica(n)...)
	}
	for name, do := range map[string]func(*simulate.World, int){"add member": (*simulate.World).AddMember, "add learner": (*simulate.World).AddLearner} {
		list = append(list, incident{name: name, do: func(w *simulate.World) { do(w, replicas) }})
	}
	return list
}

func changesOfGit() []incident {
	return []incident{
		{name: "suspend", do: func(w *simulate.World) { w.Declared.Suspended = true }},
		{name: "stop", do: func(w *simulate.World) { w.Declared.Lifecycle = "Stopped" }},
		{"stop and start", func(w *simulate.World) { w.Declared.Lifecycle = "Stopped" }, func(w *simulate.World) { w.Declared.Lifecycle = "Running" }},
		{name: "delete", do: func(w *simulate.World) { w.Declared.Lifecycle, w.Declared.Retention = "Deleted", "Delete" }},
		{name: "delete and retain", do: func(w *simulate.World) { w.Declared.Lifecycle, w.Declared.Retention = "Deleted", "Retain" }},
		{name: "delete after a backup", do: func(w *simulate.World) {
			w.Declared.Lifecycle, w.Declared.Retention, w.Declared.BacksUpBeforeDeletion = "Deleted", "Delete", true
		}},
		{name: "orphan", do: func(w *simulate.World) { w.Declared.Orphaned = "git does not declare it" }},
		{name: "newer version", do: func(w *simulate.World) { w.Declared.Version = "3.7.3" }},
		{name: "older version", do: func(w *simulate.World) { w.Declared.Version = "3.5.35" }},
		{name: "unpullable version", do: func(w *simulate.World) { w.Declared.Version = w.Unpullable }},
		{"unpullable version, and back", func(w *simulate.World) { w.Declared.Version = w.Unpullable }, func(w *simulate.World) { w.Declared.Version = "3.6.16" }},
		{name: "other options", do: func(w *simulate.World) { w.Declared.SpecHash = "h2" }},
		{name: "broken options", do: func(w *simulate.World) { w.Declared.SpecHash = w.Crashing }},
		{"broken options, and back", func(w *simulate.World) { w.Declared.SpecHash = w.Crashing }, func(w *simulate.World) { w.Declared.SpecHash = "h1" }},
		{name: "more replicas", do: func(w *simulate.World) { w.Declared.Replicas++ }},
		{name: "one replica", do: func(w *simulate.World) { w.Declared.Replicas = 1 }},
		{name: "invalid", do: func(w *simulate.World) { w.Declared.Problems = []string{"spec.version: is not supported"} }},
	}
}

func faultsOfObjects() []incident {
	list := []incident{
		{name: "delete status", do: (*simulate.World).DeleteStatus},
		{name: "put back record", do: (*simulate.World).PutBackRecord},
		{name: "occupy", do: func(w *simulate.World) { w.Occupy("Service a-client") }},
	}
	for _, object := range simulate.New("a", decidetest.Declared(1), 0).Objects() {
		list = append(list, incident{name: "delete " + object, do: func(w *simulate.World) { w.Delete(object) }},
			incident{name: "change " + object, do: func(w *simulate.World) { w.Change(object) }})
	}
	return list
}

func faultsOfReplica(n int) []incident {
	alarm := func(kind decide.AlarmKind) func(*simulate.World) {
		return func(w *simulate.World) { w.RaiseAlarm(n, kind) }
	}
	list := []incident{
		{name: "kill pod", do: func(w *simulate.World) { w.KillPod(n) }},
		{name: "crash", do: func(w *simulate.World) { w.Crash(n) }},
		{name: "lose volume", do: func(w *simulate.World) { w.LoseVolume(n) }},
		{name: "replace claim", do: func(w *simulate.World) { w.ReplaceClaim(n) }},
		{name: "delete claim", do: func(w *simulate.World) { w.DeleteVolume(n) }},
		{name: "recreate claim", do: func(w *simulate.World) { w.RecreateClaim(n) }},
		{name: "strand", do: func(w *simulate.World) { w.Strand(n) }},
		{name: "corrupt", do: func(w *simulate.World) { w.Corrupt(n) }},
		{"hang", func(w *simulate.World) { w.Hang(n, true); w.Declared.ReplaceAfter = time.Minute }, func(w *simulate.World) { w.Hang(n, false) }},
		{name: "corrupt alarm", do: alarm("CORRUPT")},
		{name: "differ", do: func(w *simulate.World) { w.Differ(n) }},
		{name: "differ, and checked", do: func(w *simulate.World) { w.Differ(n); w.ChecksData = true }},
		{name: "differ, and compared", do: func(w *simulate.World) { w.Differ(n); w.Declared.CorruptionCheck = 24 * time.Hour }},
		{name: "differ, and compared, with backups", do: func(w *simulate.World) {
			w.Differ(n)
			w.Declared.CorruptionCheck, w.Declared.BacksUp = 24*time.Hour, true
		}},
		{name: "differ, and restart another", do: func(w *simulate.World) { w.Differ(n); w.KillPod((n + 1) % 3) }},
		{"no space", alarm("NOSPACE"), func(w *simulate.World) { w.ClearAlarms("NOSPACE") }},
		{name: "remove member", do: func(w *simulate.World) { w.RemoveMember(n) }},
		{"node down", func(w *simulate.World) { w.NodeDown(n, true) }, func(w *simulate.World) { w.NodeDown(n, false) }},
		{"mute", func(w *simulate.World) { w.Mute(n, true) }, func(w *simulate.World) { w.Mute(n, false) }},
		{"slow", func(w *simulate.World) { w.Slow(n, true) }, func(w *simulate.World) { w.Slow(n, false) }},
	}
	for i := range list {
		list[i].name += fmt.Sprintf(" %d", n)
	}
	return list
}

// beginnings returns the worlds on the way to a formed cluster: after a crash at each write, and after each tick.
func beginnings(replicas int, seed uint64) map[string]*simulate.World {
	worlds := map[string]*simulate.World{}
	for n := range 13 {
		w := simulate.New("a", decidetest.Declared(replicas), seed)
		w.Unpullable, w.Crashing = "3.6.99", "crashing"
		w.Pass(n)
		worlds[fmt.Sprintf("found, %d writes", n)] = w.Clone()
		w.Tick()
		worlds[fmt.Sprintf("found, %d writes, tick", n)] = w.Clone()
	}
	w := simulate.New("a", decidetest.Declared(replicas), seed)
	w.Unpullable, w.Crashing = "3.6.99", "crashing"
	for n := range 7 {
		w.Pass(simulate.NoCrash)
		worlds[fmt.Sprintf("%d passes", n+1)] = w.Clone()
		w.Tick()
		worlds[fmt.Sprintf("%d passes, tick", n+1)] = w.Clone()
	}
	return worlds
}

// TestEveryIncident checks that, from every beginning and after every incident, passes reach a stable end without
// violations. Temporary incidents last for three passes. Unless the run is thorough, only some combinations are tried.
func TestEveryIncident(t *testing.T) {
	sizes := []int{1, 2, 3, 5}
	if testing.Short() {
		sizes = []int{2}
	}
	for seed := range uint64(2) {
		for _, replicas := range sizes {
			if replicas == 5 && seed != 0 && !thorough() {
				continue
			}
			t.Run(fmt.Sprintf("%d replicas, seed %d", replicas, seed), func(t *testing.T) {
				t.Parallel()
				all := beginnings(replicas, seed)
				for i, name := range slices.Sorted(maps.Keys(all)) {
					for j, b := range incidents(replicas) {
						if replicas == 1 && seed == 0 && (i+j)%3 == 0 || taken(i+j+int(seed)) {
							endsWell(t, checkPath, all[name].Clone(), name, b)
						}
					}
				}
			})
		}
	}
}

// TestEveryTwoIncidents checks the same as TestEveryIncident with a second incident, immediately or after a pass. The
// end need not be stable. Unless the run is thorough, each incident is combined only with every 45th incident.
func TestEveryTwoIncidents(t *testing.T) {
	if testing.Short() {
		t.Skip("pairs take a long time")
	}
	for _, replicas := range []int{1, 3} {
		for name, beginning := range beginnings(replicas, 1) {
			if !slices.Contains([]string{"found, 3 writes", "1 passes", "2 passes, tick", "7 passes"}, name) {
				continue
			}
			t.Run(fmt.Sprintf("%d replicas, %s", replicas, name), func(t *testing.T) {
				t.Parallel()
				for i, first := range incidents(replicas) {
					for j, second := range incidents(replicas) {
						if !thorough() && (i-j)%45 != 0 {
							continue
						}
						if (i+j)%2 == 0 {
							endsWell(t, checkEnd, beginning.Clone(), name, first, second)
							continue
						}
						w := beginning.Clone()
						first.do(w)
						w.Pass(2)
						w.Tick()
						endsWell(t, checkEnd, w, name+", "+first.name+", a pass of 2 writes", second, incident{name: "its end", do: first.finish})
					}
				}
			})
		}
	}
}

// TestEveryMoment checks the same for one incident at every moment of a change to a running cluster.
func TestEveryMoment(t *testing.T) {
	for name, begin := range map[string]func(*simulate.World){
		"scale up":      func(w *simulate.World) { w.Declared.Replicas = 4 },
		"join together": func(w *simulate.World) { w.Declared.Replicas = 5 },
		"scale down":    func(w *simulate.World) { w.Declared.Replicas = 2 },
		"replace":       func(w *simulate.World) { w.LoseVolume(1) },
		"roll":          func(w *simulate.World) { w.Declared.SpecHash = "h2" },
		"upgrade":       func(w *simulate.World) { w.Declared.Version = "3.7.3" },
		"downgrade":     func(w *simulate.World) { w.Declared.Version = "3.5.35" },
		"stop":          func(w *simulate.World) { w.Declared.Lifecycle = "Stopped" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := formedTogether(t, 3)
			w.Unpullable, w.Crashing = "3.6.99", "crashing"
			begin(w)
			for n, step := range w.Clone().Converge(patienceOfTests) {
				if testing.Short() && n%4 != 0 {
					continue
				}
				for j, b := range incidents(3) {
					if !taken(n + j) {
						continue
					}
					endsWell(t, checkEnd, w.Clone(), fmt.Sprintf("%s, before pass %d (%s)", name, n+1, step.Decision.Rule), b)
				}
				w.Pass(simulate.NoCrash)
				w.Tick()
			}
		})
	}
}

func (b incident) finish(w *simulate.World) {
	if b.end != nil {
		b.end(w)
	}
}

// endsWell applies incidents to a world, runs passes to the end, and reports the faults that check finds.
func endsWell(t *testing.T, check func(*simulate.World, int) []string, w *simulate.World, name string, misfortunes ...incident) {
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
