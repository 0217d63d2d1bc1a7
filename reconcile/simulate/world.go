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
	// Declared is the spec. Change it freely.
	Declared decide.Declared
	// LockHolder is the other process that holds the cluster's lease.
	LockHolder string
	// Unpullable is an etcd version whose image cannot be pulled.
	Unpullable string
	// ChecksData is true if the spec makes the leader compare the members' data periodically.
	ChecksData bool
	// Crashing is a SpecHash with which etcd does not start, or empty.
	Crashing string

	name    string
	now     time.Time
	dice    rand.PCG
	hurried bool // everything happens at the first possible tick
	serial  int  // of UIDs, tokens and member IDs

	objects map[string]object
	applied decide.Declared // the content of the custom resource
	status  status
	record  decide.Record // the content of the ConfigMap
	// certificates and their issuers
	certificates cas
	initial      []decide.ID // the members that its joining files list
	set          statefulSet
	pods         map[int]pod
	volumes      map[int]volume
	rafts        map[decide.ID]*raft
	cut          bool
	down         map[int]bool // nodes, by the ordinal of the pod that they run
	mute         map[int]bool // members that Quorate cannot reach
	slow         map[int]bool // members that do not keep up
	apart        map[int]bool // members that the others cannot reach
	unready      map[int]bool // pods that are not ready, whatever their etcd reports
	stuck        stalls
	backups      backups
	restores     *restore  // the restore Job, or nil
	recovers     *recovery // the recovery Job, or nil
	// storeGivesNothing is true while backups cannot be read.
	storeGivesNothing bool
	rewriting         rewriting
	// startsElsewhere is true if etcd runs on data older than the restored data.
	startsElsewhere bool
	recoveriesFail  bool
	dbSize          int64  // of the database of every member, in bytes
	voided          string // the Word of a recovery request that a pass found despite a quorum
	foundedWith     int    // number of members
	// founds is the ID that the recorded cluster bootstraps with, from the state that the world was built from.
	founds struct {
		token string
		id    decide.ID
	}
	oldData map[int]bool // the next volume of an ordinal holds data of another cluster
	letGo   bool         // the StatefulSet was deleted without its pods
	putBack bool         // the record was reverted manually, and passes could not detect it yet

	// Together is true if the cluster is bootstrapped so that two members may join at the same time.
	Together bool

	memory int // number of moments to keep
	past   []moment

	violations []string
}

// Name returns the name of the cluster.
func (w *World) Name() string { return w.name }

// New returns a world that is empty except for the spec. With seed 0 everything happens as soon as it can; with another
// seed, pods are slower.
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
	}
}

// Clone returns a copy that shares nothing with the world.
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

// Violations returns the things that happened and must never happen: a second cluster with the name of the first, a
// voter that forgot its votes, lost acknowledged data, a deleted volume whose member is listed, a quorum given away, a
// skipped minor version.
func (w *World) Violations() []string { return slices.Clone(w.violations) }

func (w *World) violate(format string, args ...any) {
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

// Tick lets time pass: Kubernetes and etcd do what they do by themselves, and clients write.
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

// Pass observes, decides, acts and reports once. It dies after crashAfter writes, unless that is NoCrash. It returns
// the decision and the writes.
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

// PassFailing is a pass in which only after writes of the action succeed: the next one fails without changing anything.
// Such a pass still reports.
func (w *World) PassFailing(after int) (decide.Decision, []string) {
	s, d, writes := w.act(after)
	if w.report(s, d, len(writes) > 0) {
		writes = append(writes, "status of "+w.customResource())
	}
	return d, writes
}

// act observes, decides, and carries out at most most writes.
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

// delay returns how many additional ticks, up to most, something takes.
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
