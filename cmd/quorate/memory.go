package main

import (
	"os"
	"runtime/debug"
	"sync"

	"quorate.dev/quorate/gitsource/cgroup"
)

// memoryLimit is how much memory the container may use, in bytes; 0 if that has no bound.
var memoryLimit = sync.OnceValue(func() int64 { return cgroup.MemoryLimit(os.DirFS("/")) })

// budget is how much memory may be used for what.
type budget struct {
	limits limits
	// atOnce is how many sources are read at once.
	atOnce int
	// own is what this process may use besides the processes that it reads in, in bytes; 0 if that has no bound.
	own int64
}

const (
	// programBytes is what this process takes before it reads any source, and childBytes what a process that takes a source apart does, without what
	// it is bounded by.
	programBytes, childBytes = 32 << 20, 16 << 20
	// spareBytes are for what is no memory of a process: buffers of the network, tables of the kernel.
	spareBytes = 16 << 20
)

// budgetWithin divides the memory, in bytes, that there is: among sources that are read at once, and for each of them among what grows with what
// it holds. The weights are measured, by TestHostileSourcesInLittleMemory: the list of references takes three times its size, a pack up to six times its largest
// object and two hundred bytes for each, a declared cluster ten kibibytes, a node of YAML half a kibibyte. No limit is over its default.
func budgetWithin(memory int64) budget {
	b := budget{limits: defaultLimits, atOnce: 16}
	if memory <= 0 {
		return b
	}
	b.atOnce = 2
	if memory >= 2<<30 {
		b.atOnce = 4
	}
	each := max((memory-programBytes-spareBytes)/int64(b.atOnce), 16<<20)
	part := each / 26
	l := &b.limits
	l.files.RenderMemory = min(l.files.RenderMemory, each/2-childBytes/4)
	l.transfer.RefsBytes = min(l.transfer.RefsBytes, 2*part)
	l.transfer.Pack.ObjectBytes = min(l.transfer.Pack.ObjectBytes, part)
	l.transfer.Pack.Objects = min(l.transfer.Pack.Objects, int(part/80))
	l.files.FileBytes = min(l.files.FileBytes, part)
	l.files.TotalBytes = min(l.files.TotalBytes, part)
	l.files.DocumentNodes = min(l.files.DocumentNodes, int(l.files.RenderMemory/1000))
	l.files.Objects = min(l.files.Objects, int(part/1400))
	b.own = max(memory-int64(b.atOnce)*(l.files.RenderMemory+childBytes)-spareBytes, programBytes)
	return b
}

// boundMemory has the garbage collector keep this process within its part of the container's memory, unless the environment says otherwise.
func boundMemory() {
	if _, given := os.LookupEnv("GOMEMLIMIT"); given {
		return
	}
	if own := budgetWithin(memoryLimit()).own; own > 0 {
		debug.SetMemoryLimit(own)
	}
}
