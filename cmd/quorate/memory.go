package main

import (
	"os"
	"runtime/debug"
	"sync"

	"github.com/spf13/pflag"

	"quorate.dev/quorate/clusters"
	"quorate.dev/quorate/gitsource/cgroup"
)

// memoryLimit is how much memory the container may use, in bytes; 0 if that has no bound.
var memoryLimit = sync.OnceValue(func() int64 { return cgroup.MemoryLimit(os.DirFS("/")) })

// budget is how much memory may be used for what.
type budget struct {
	limits limits
	// atOnce is how many sources are read at once.
	atOnce int
	// fetch is what a process may use that fetches, and own what this process may besides those
	// that it reads in, in bytes; 0 if that has no bound.
	fetch, own int64
}

const (
	// programBytes is what this process takes before it reads any source, and childBytes what a
	// process does that fetches a source or takes it apart, without what it is bounded by.
	programBytes, childBytes = 32 << 20, 16 << 20
	// spareBytes are for what is no memory of a process: buffers of the network, tables of the
	// kernel.
	spareBytes = 16 << 20
	// mostToFetch is what everything that a server may send takes at once, by the default limits.
	mostToFetch = 320 << 20
)

// budgetWithin divides the memory, in bytes, that there is among as many sources at once as it has
// room for.
func budgetWithin(memory int64) budget {
	switch {
	case memory <= 0:
		return budgetFor(memory, 16)
	case memory >= 2<<30:
		return budgetFor(memory, 4)
	case memory < 192<<20: // of a process each to fetch and to parse, there would be little left but the programs
		return budgetFor(memory, 1)
	}
	return budgetFor(memory, 2)
}

// budgetFor divides the memory, in bytes, that there is: among sources that are read at once, and
// for each of them among what grows with what it holds. The weights are measured, by
// TestHostileSourcesInLittleMemory: the list of references takes three times its size, a pack up to
// six times its largest object and two hundred bytes for each, a declared cluster ten kibibytes, a
// node of YAML half a kibibyte. No limit is over its default.
func budgetFor(memory int64, atOnce int) budget {
	b := budget{limits: defaultLimits, atOnce: atOnce}
	if memory <= 0 {
		return b
	}
	each := max((memory-programBytes-spareBytes)/int64(b.atOnce), 2*childBytes+8<<20)
	part := each / 26
	l := &b.limits
	l.files.RenderMemory = min(l.files.RenderMemory, rounded((each-2*childBytes)/2, 1<<20))
	b.fetch = childBytes + min(mostToFetch, rounded((each-2*childBytes)/3, 1<<20))
	l.transfer.RefsBytes = min(l.transfer.RefsBytes, rounded(2*part, 1<<20))
	l.transfer.Pack.ObjectBytes = min(l.transfer.Pack.ObjectBytes, rounded(part, 1<<20))
	l.transfer.Pack.Objects = min(l.transfer.Pack.Objects, int(rounded(part/80, 1000)))
	l.files.TotalBytes = min(l.files.TotalBytes, rounded(part, 1<<20))
	l.files.FileBytes = min(l.files.FileBytes, rounded(l.files.RenderMemory/18, 1<<19), l.files.TotalBytes)
	l.files.DocumentNodes = min(l.files.DocumentNodes, int(rounded(l.files.RenderMemory/1000, 1000)))
	l.files.Objects = min(l.files.Objects, int(rounded(part/1400, 100)))
	b.own = max(memory-b.used(), programBytes)
	return b
}

// used is what all of it may use but this process.
func (b budget) used() int64 {
	return int64(b.atOnce)*(b.limits.files.RenderMemory+childBytes+b.fetch) + spareBytes
}

// rounded is n down to a multiple of unit, where that is something: people read it.
func rounded(n, unit int64) int64 { return n - n%min(n, unit) }

// boundMemory has the garbage collector keep this process within its part of the container's
// memory, unless the environment says otherwise.
func boundMemory() { budgetWithin(memoryLimit()).bound() }

// bound has it keep within another division of that memory.
func (b budget) bound() {
	if _, given := os.LookupEnv("GOMEMLIMIT"); given {
		return
	}
	if b.own > 0 {
		debug.SetMemoryLimit(b.own)
	}
}

// boundGarbage has the garbage collector run as often as suits a process that makes passes, unless the environment says
// otherwise.
func boundGarbage() {
	if _, given := os.LookupEnv("GOGC"); !given {
		debug.SetGCPercent(clusters.GCPercent)
	}
}

// backupMemory is what a process may hold that backs up, or reads a backup: the parts of an upload,
// and the window of the compression. It runs beside etcd, which wants the memory for its files.
const backupMemory = 40 << 20

// boundBackup has the garbage collector keep within that, unless the environment says otherwise.
func boundBackup() {
	if _, given := os.LookupEnv("GOMEMLIMIT"); !given {
		debug.SetMemoryLimit(min(debug.SetMemoryLimit(-1), backupMemory))
	}
}

// divideMemory divides the memory once more where the flags say how many sources are read at once.
// Limits that they give stay. It returns what each may use to fetch.
func divideMemory(flags *pflag.FlagSet, atOnce int) int64 {
	if !flags.Changed("sources-at-once") {
		return budgetWithin(memoryLimit()).fetch
	}
	b := budgetFor(memoryLimit(), atOnce)
	b.bound()
	divided := pflag.NewFlagSet("", pflag.ContinueOnError)
	b.limits.add(divided)
	divided.VisitAll(func(f *pflag.Flag) {
		if !flags.Changed(f.Name) {
			_ = flags.Lookup(f.Name).Value.Set(f.Value.String()) // it is one of its own
		}
	})
	return b.fetch
}
