package gitsource

import (
	"cmp"
	"runtime"
	"time"

	"quorate.dev/quorate/gitsource/cache"
	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/manifests/confined"
)

// limitsFor returns the fetcher's resource limits, which are sufficient for an honest fetcher.
func limitsFor(o Options) confined.Limits {
	l := confined.Limits{
		Memory: cmp.Or(o.Memory, memoryFor(o)),
		// The fetcher can use every processor until the timeout.
		CPU:       cmp.Or(o.Timeout, FetchTimeout) * time.Duration(runtime.NumCPU()),
		LineBytes: maxLine(o),
	}
	if isRemote(o.Location) {
		l.FileBytes = max(o.Transfer.OrDefault().PackBytes, cache.MaxEntryBytes)
	}
	return l
}

// memoryFor returns the default memory limit. It is well above what a source within its limits can use: several times
// the largest objects and the references, half a kibibyte per object, and the index of a local repository.
func memoryFor(o Options) int64 {
	t := o.Transfer.OrDefault()
	return 2<<30 + 16*t.Pack.ObjectBytes + 8*t.RefsBytes + 16*o.fileBytes() + 512*int64(t.Pack.Objects)
}

// maxLine returns the maximum size of a message: a file in base64, or a directory listing.
func maxLine(o Options) int { return int(manifests.ListBytes(o.fileBytes()) + 256<<10) }
