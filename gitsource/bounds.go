package gitsource

import (
	"cmp"
	"runtime"
	"time"

	"quorate.dev/quorate/gitsource/cache"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/manifests/confined"
)

// limitsFor bounds the process that fetches by what an honest one takes at most.
func limitsFor(o Options) confined.Limits {
	l := confined.Limits{
		Memory: cmp.Or(o.Memory, memoryFor(o)),
		// Until its time is over, on all of them.
		CPU:       cmp.Or(o.Timeout, FetchTimeout) * time.Duration(runtime.NumCPU()),
		LineBytes: maxLine(o),
	}
	if isRemote(o.Location) {
		l.FileBytes = max(o.Transfer.OrDefault().PackBytes, cache.MaxEntryBytes)
	}
	return l
}

// memoryFor is far over what the limits let a source take, where nobody says how much memory there
// is: several times the largest objects and the references, half a kibibyte for each object, and
// for a local repository its index.
func memoryFor(o Options) int64 {
	t := o.Transfer.OrDefault()
	return 2<<30 + 16*t.Pack.ObjectBytes + 8*t.RefsBytes + 16*o.fileBytes() + 512*int64(t.Pack.Objects)
}

// maxLine bounds a message: a file as base64, or the entries of a directory.
func maxLine(o Options) int { return int(manifests.ListBytes(o.fileBytes()) + 256<<10) }
