package simulate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// TickLength is the time that passes with one tick.
const TickLength = 10 * time.Second

// World is one cluster and all around it.
type World struct {
	// Declared is what git asks for. Change it at will.
	Declared decide.Declared
	// LockHolder is who else holds the lease of the cluster.
	LockHolder string
	// Unpullable is a version of etcd whose image cannot be had.
	Unpullable string

	name    string
	now     time.Time
	dice    rand.PCG
	hurried bool // everything happens at the first tick that allows it
	serial  int  // of UIDs, tokens and member IDs

	objects map[string]object
	applied decide.Declared // what the custom resource says
	status  decide.ID
	record  decide.Record // what the ConfigMap says
	set     statefulSet
	pods    map[int]pod
	volumes map[int]volume
	rafts   map[decide.ID]*raft
	cut     bool
	down    map[int]bool // nodes, by the ordinal of the pod that they run
	putBack bool         // the record was put back by hand, and no pass could know better yet

	violations []string
}

// New returns a world without anything in it but what git asks for. With seed 0 everything happens as soon as it
// can; with another, pods take their time.
func New(name string, declared decide.Declared, seed uint64) *World {
	return &World{
		Declared: declared,
		name:     name,
		now:      time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC),
		dice:     *rand.NewPCG(seed, seed),
		hurried:  seed == 0,
		objects:  map[string]object{},
		pods:     map[int]pod{},
		volumes:  map[int]volume{},
		rafts:    map[decide.ID]*raft{},
		down:     map[int]bool{},
	}
}

// Clone returns a copy that shares nothing with the world.
func (w *World) Clone() *World {
	c := *w
	c.record.Members = slices.Clone(w.record.Members)
	c.objects, c.pods, c.volumes, c.down = maps.Clone(w.objects), maps.Clone(w.pods), maps.Clone(w.volumes), maps.Clone(w.down)
	c.rafts = map[decide.ID]*raft{}
	for id, r := range w.rafts {
		c.rafts[id] = r.clone()
	}
	c.violations = slices.Clone(w.violations)
	return &c
}

// Violations are the things that happened and must never happen: a second cluster under the name of the first, a voter
// that forgot its votes, a volume deleted whose member is listed, a quorum given away.
func (w *World) Violations() []string { return slices.Clone(w.violations) }

func (w *World) violate(format string, args ...any) {
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

// Tick lets time pass: Kubernetes and etcd do what they do by themselves.
func (w *World) Tick() {
	w.now = w.now.Add(TickLength)
	w.collectGarbage()
	w.runStatefulSet()
	w.runPods()
	w.runEtcd()
	w.judgePods()
}

// Pass observes, decides, acts and reports once. It dies after that many writes; NoCrash: it does not. It returns the
// decision and the writes.
func (w *World) Pass(crashAfter int) (decide.Decision, []string) {
	s := w.Observe()
	if s.ReportedClusterID != 0 {
		w.putBack = false
	}
	d := decide.Decide(s)
	var writes []string
	if d.Verdict == decide.Act {
		writes = w.Do(d.Action, crashAfter)
	}
	if died := len(writes) == crashAfter; !died && w.report(s) {
		writes = append(writes, "status of "+w.customResource())
	}
	return d, writes
}

// report writes the cluster ID on record into the status of the custom resource, and says whether that was news.
func (w *World) report(s decide.State) bool {
	if s.Record.ClusterID == 0 || w.status == s.Record.ClusterID || !w.exists(w.customResource()) {
		return false
	}
	w.status = s.Record.ClusterID
	return true
}

func (w *World) next(kind string) string {
	w.serial++
	return fmt.Sprintf("%s%d", kind, w.serial)
}

// delay is how many more ticks something takes that takes up to most.
func (w *World) delay(most int) int {
	if w.hurried {
		return 0
	}
	return int(w.dice.Uint64() % uint64(most+1))
}

func (w *World) replicaName(ordinal int) string { return fmt.Sprintf("%s-%d", w.name, ordinal) }

// ordinals are those of pods and volumes, ascending.
func (w *World) ordinals() []int {
	all := slices.Concat(slices.Collect(maps.Keys(w.pods)), slices.Collect(maps.Keys(w.volumes)))
	slices.Sort(all)
	return slices.Compact(all)
}
