package simulate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// TickLength is the duration of a tick.
const TickLength = 10 * time.Second

// World is one cluster and its environment.
type World struct {
	// Declared is the spec. Callers may change it at any time.
	Declared decide.Declared
	// LockHolder is the other process that holds the cluster's lease, or empty.
	LockHolder string
	// Unpullable is an etcd version whose image cannot be pulled.
	Unpullable string
	// ChecksData is true if the spec makes the leader compare the members' data periodically.
	ChecksData bool
	// Crashing is a SpecHash with which etcd cannot start, or empty.
	Crashing string

	name string
	// namespace is the namespace of the state from which the world was made.
	namespace string
	now       time.Time
	dice      rand.PCG
	hurried   bool // everything happens at the first possible tick
	serial    int  // last serial number used in UIDs, tokens and member IDs

	objects map[string]object
	applied decide.Declared // the content of the custom resource
	status  status
	record  decide.Record // the content of the ConfigMap
	// certificates holds the CA and the issuers of the certificates.
	certificates cas
	initial      []decide.ID // the members listed in the configuration files of joining members
	set          statefulSet
	pods         map[int]pod
	volumes      map[int]volume
	rafts        map[decide.ID]*raft
	cut          bool
	down         map[int]bool // nodes, by the ordinal of the pod that they run
	mute         map[int]bool // members that Quorate cannot reach
	slow         map[int]bool // members that do not keep up
	apart        map[int]bool // members that the other members cannot reach
	unready      map[int]bool // pods that are not ready, regardless of their etcd
	stuck        stalls
	backups      backups
	restores     *restore  // the restore Job, or nil
	recovers     *recovery // the recovery Job, or nil
	// storeGivesNothing is true while backups cannot be read.
	storeGivesNothing bool
	rewriting         rewriting
	// startsElsewhere is true if etcd runs with data older than the restored data.
	startsElsewhere bool
	recoveriesFail  bool
	dbSize          int64  // database size of every member, in bytes
	filled          bool   // FillDatabase was called, so that voters whose database reaches its quota raise NOSPACE
	voided          string // the Word of a recovery request that a pass found although the cluster had quorum
	foundedWith     int    // number of initial members
	// founds is the ID of the cluster that the recorded members bootstrap, copied from the state that the world was
	// built from.
	founds struct {
		token string
		id    decide.ID
	}
	// guestNames maps the ordinals of guests to their names. asksSource is set in a world whose guests respond
	// regardless of the record.
	guestNames map[int]string
	asksSource bool
	oldData    map[int]bool // ordinals whose next volume holds data of a different cluster
	letGo      bool         // the StatefulSet was deleted without its pods
	putBack    bool         // the record was reverted manually, and passes cannot detect it yet

	// windowClosed is true if the maintenance window for defragmentation is closed.
	windowClosed bool

	// Together is true if the cluster is bootstrapped so that two members may join at the same time.
	Together bool

	memory int // number of moments to keep
	past   []moment

	violations []string
}

// Name returns the name of the cluster.
func (w *World) Name() string { return w.name }

// New returns a world that is empty except for the spec. With seed 0, everything happens as soon as possible. With any
// other seed, some events are delayed at random.
func New(name string, declared decide.Declared, seed uint64) *World {
	return &World{
		Declared:     declared,
		name:         name,
		now:          time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC),
		dice:         *rand.NewPCG(seed, seed),
		hurried:      seed == 0,
		dbSize:       usualSize,
		objects:      map[string]object{},
		certificates: cas{tls: true, issuers: map[string]string{}, worn: map[string]bool{}},
		status:       status{silent: map[decide.ID]time.Time{}},
		pods:         map[int]pod{},
		volumes:      map[int]volume{},
		rafts:        map[decide.ID]*raft{},
		down:         map[int]bool{},
		mute:         map[int]bool{},
		slow:         map[int]bool{},
		apart:        map[int]bool{},
		unready:      map[int]bool{},
		oldData:      map[int]bool{},
		guestNames:   map[int]string{},
	}
}

// Clone returns an independent copy of the world.
func (w *World) Clone() *World {
	c := *w
	c.record.Members, c.record.Removed = slices.Clone(w.record.Members), slices.Clone(w.record.Removed)
	c.initial = slices.Clone(w.initial)
	c.status.silent = maps.Clone(w.status.silent)
	c.objects, c.pods, c.volumes = maps.Clone(w.objects), maps.Clone(w.pods), maps.Clone(w.volumes)
	c.rewriting = w.rewriting.clone()
	c.down, c.mute, c.slow = maps.Clone(w.down), maps.Clone(w.mute), maps.Clone(w.slow)
	c.apart, c.unready = maps.Clone(w.apart), maps.Clone(w.unready)
	c.oldData = maps.Clone(w.oldData)
	c.past = slices.Clone(w.past)
	c.backups.jobs = slices.Clone(w.backups.jobs)
	if w.restores != nil {
		restores := *w.restores
		c.restores = &restores
	}
	if w.recovers != nil {
		recovers := *w.recovers
		c.recovers = &recovers
	}
	c.rafts = map[decide.ID]*raft{}
	for id, r := range w.rafts {
		c.rafts[id] = r.clone()
	}
	c.certificates.issuers, c.certificates.worn = maps.Clone(w.certificates.issuers), maps.Clone(w.certificates.worn)
	c.violations = slices.Clone(w.violations)
	return &c
}

// Violations returns the events that have happened although they must never happen. Examples are a second cluster with
// the name of the first, a voter that forgot its votes, lost acknowledged data, a deleted volume of a listed member, an
// action that loses quorum, and a skipped minor version.
func (w *World) Violations() []string { return slices.Clone(w.violations) }

func (w *World) violate(format string, args ...any) {
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

// Tick advances the time: Kubernetes and etcd make progress, and clients write.
func (w *World) Tick() {
	w.now = w.now.Add(TickLength)
	w.collectGarbage()
	w.runBackups()
	w.runRestore()
	w.runRecovery()
	w.runStatefulSet()
	w.runPods()
	w.runEtcd()
	for _, id := range w.clusters() {
		w.replicate(w.rafts[id])
		w.raiseNoSpace(w.rafts[id])
		w.settleVersion(w.rafts[id])
		w.checkData(w.rafts[id])
	}
	w.judgePods()
	w.remember()
}

// Pass observes, decides, acts and reports once. It dies after crashAfter writes of the action, unless crashAfter is
// NoCrash. It returns the decision and the writes.
func (w *World) Pass(crashAfter int) (decide.Decision, []string) {
	s, d, writes := w.act(crashAfter)
	died, changed := len(writes) == crashAfter, len(writes) > 0
	switch {
	case died:
	case changed:
		d = decide.Retried(s, d)
	default:
		d = decide.NoProgress(s, d, "the write is rejected")
	}
	if !died && w.report(s, d, changed) {
		writes = append(writes, "status of "+w.customResource())
	}
	return d, writes
}

// PassFailing runs a pass whose action fails after the given number of successful writes. The failing write does not
// change anything. The pass still reports.
func (w *World) PassFailing(after int) (decide.Decision, []string) {
	s, d, writes := w.act(after)
	if w.report(s, d, len(writes) > 0) {
		writes = append(writes, "status of "+w.customResource())
	}
	return d, writes
}

// act observes, decides, and executes the action. most is the maximum number of writes.
func (w *World) act(most int) (decide.State, decide.Decision, []string) {
	s := w.Observe()
	w.rewriting.seen = nil
	if s.ReportedClusterID != 0 {
		w.putBack = false
	}
	d := decide.Decide(s)
	w.judgeDone(d)
	if d.Verdict != decide.Act {
		return s, d, nil
	}
	return s, d, w.Do(d.Action, most)
}

func (w *World) next(kind string) string {
	w.serial++
	return fmt.Sprintf("%s%d", kind, w.serial)
}

// delay returns a random number of additional ticks, from 0 to most. It returns 0 if the world is hurried.
func (w *World) delay(most int) int {
	if w.hurried {
		return 0
	}
	return int(w.dice.Uint64() % uint64(most+1))
}

func (w *World) replicaName(ordinal int) string { return fmt.Sprintf("%s-%d", w.name, ordinal) }

// ordinals returns the ordinals of pods and volumes, ascending.
func (w *World) ordinals() []int {
	all := slices.Concat(slices.Collect(maps.Keys(w.pods)), slices.Collect(maps.Keys(w.volumes)))
	slices.Sort(all)
	return slices.Compact(all)
}
