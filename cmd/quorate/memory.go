package main

import (
	"os"
	"runtime/debug"
	"sync"

	"quorate.dev/quorate/clusters"
	"quorate.dev/quorate/gitsource/cgroup"
	"quorate.dev/quorate/gitsource/sources"
)

// memoryLimit returns the memory limit of the container in bytes, or 0 if it is unlimited.
var memoryLimit = sync.OnceValue(func() int64 { return cgroup.MemoryLimit(os.DirFS("/")) })

// budget specifies how memory is divided.
type budget struct {
	limits sources.Limits
	// atOnce is the number of sources that are read at the same time.
	atOnce int
	// fetch is the memory limit of a process that fetches a source. own is the memory limit of this process, excluding
	// the processes that read sources. Both are in bytes; 0 means unlimited.
	fetch, own int64
}

const (
	// programBytes is the memory that this process uses before it reads any source. childBytes is the memory that a
	// process uses in addition to its limits when it fetches or parses a source.
	programBytes, childBytes = 32 << 20, 16 << 20
	// spareBytes is reserved for memory outside processes: network buffers and kernel tables.
	spareBytes = 16 << 20
	// nodesPerObject is the maximum average number of YAML nodes per object.
	nodesPerObject = 130
	// mostToFetch is the memory required for the maximum that a server may send within the default limits.
	mostToFetch = 320 << 20
)

// budgetWithin divides memory, in bytes, among the sources that are read at the same time. It chooses their number
// based on the memory.
func budgetWithin(memory int64) budget {
	switch {
	case memory <= 0:
		return budgetFor(memory, 16)
	case memory >= 2<<30:
		return budgetFor(memory, 4)
	case memory < 192<<20: // with two sources, their processes alone would use nearly all of the memory
		return budgetFor(memory, 1)
	}
	return budgetFor(memory, 2)
}

// budgetFor divides memory, in bytes, among atOnce sources that are read at the same time. It divides the share of each
// source among the data whose size depends on the source's content, based on measurements by
// TestHostileSourcesFitInContainerMemory: the list of references uses three times its size, a pack up to six times its
// largest object plus two hundred bytes per object, and a YAML node half a kibibyte. While a new revision replaces a
// source's declarations, this process keeps both revisions, which together take up to a quarter of the source's share.
// No limit exceeds its default.
func budgetFor(memory int64, atOnce int) budget {
	b := budget{limits: sources.DefaultLimits, atOnce: atOnce}
	if memory <= 0 {
		return b
	}
	each := max((memory-programBytes-spareBytes)/int64(b.atOnce), 2*childBytes+8<<20)
	part := each / 26
	l := &b.limits
	l.Files.RenderMemory = min(l.Files.RenderMemory, rounded((each-2*childBytes)/2, 1<<20))
	b.fetch = childBytes + min(mostToFetch, rounded((each-2*childBytes)/3, 1<<20))
	l.Transfer.RefsBytes = min(l.Transfer.RefsBytes, rounded(2*part, 1<<20))
	l.Transfer.Pack.ObjectBytes = min(l.Transfer.Pack.ObjectBytes, rounded(part, 1<<20))
	l.Transfer.Pack.Objects = min(l.Transfer.Pack.Objects, int(rounded(part/80, 1000)))
	l.Files.TotalBytes = min(l.Files.TotalBytes, rounded(part, 1<<20))
	l.Files.FileBytes = min(l.Files.FileBytes, rounded(l.Files.RenderMemory/18, 1<<19), l.Files.TotalBytes)
	l.Files.DocumentNodes = min(l.Files.DocumentNodes, int(rounded(l.Files.RenderMemory/1000, 1000)))
	l.Files.Objects = min(l.Files.Objects, int(rounded(part/1400, 100)))
	l.Files.TotalNodes = min(l.Files.TotalNodes, nodesPerObject*l.Files.Objects)
	l.Files.KeptBytes = min(l.Files.KeptBytes, rounded(each/8, 1<<20))
	b.own = max(memory-b.used(), programBytes)
	return b
}

// forSources returns the budget for n sources. This process keeps the declarations of all n sources, not only of the
// sources that are read at the same time.
func (b budget) forSources(n int) budget {
	if kept := &b.limits.Files.KeptBytes; n > b.atOnce && b.own > 0 {
		*kept = rounded(*kept*int64(b.atOnce)/int64(n), 1<<20)
	}
	return b
}

// used returns the memory used by everything except this process.
func (b budget) used() int64 {
	return int64(b.atOnce)*(b.limits.Files.RenderMemory+childBytes+b.fetch) + spareBytes
}

// rounded rounds n down to a multiple of unit, for readability. It returns n if n is less than unit.
func rounded(n, unit int64) int64 { return n - n%min(n, unit) }

// boundMemory limits the Go heap to this process's share of the container's memory, unless GOMEMLIMIT is set.
func boundMemory() { budgetWithin(memoryLimit()).bound() }

// bound applies the memory limit of this budget to this process.
func (b budget) bound() {
	if _, given := os.LookupEnv("GOMEMLIMIT"); given {
		return
	}
	if b.own > 0 {
		debug.SetMemoryLimit(b.own)
	}
}

// ownProcess is set if this process runs only one command. Tests run many commands in one process, and no command may
// limit the memory of the others: the garbage collector would use most of the processor time.
var ownProcess bool

// boundGarbage sets the garbage collection target for a process that runs passes, unless GOGC is set.
func boundGarbage() {
	if _, given := os.LookupEnv("GOGC"); !given && ownProcess {
		debug.SetGCPercent(clusters.GCPercent)
	}
}

// backupMemory is the memory limit of a process that takes or reads a backup, which needs memory for parts of the
// upload and for the compression window. It runs next to etcd, which needs the remaining memory for its files.
const backupMemory = 40 << 20

// boundBackup limits the Go heap to backupMemory, unless GOMEMLIMIT is set.
func boundBackup() {
	if _, given := os.LookupEnv("GOMEMLIMIT"); !given && ownProcess {
		debug.SetMemoryLimit(min(debug.SetMemoryLimit(-1), backupMemory))
	}
}
