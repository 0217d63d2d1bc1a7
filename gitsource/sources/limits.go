package sources

import (
	"math"
	"time"
)

// LimitSettings are the settings that determine the limits of a source. Zero means not set.
type LimitSettings struct {
	// Bytes is the maximum size of all files.
	Bytes int64
	// Objects is the maximum number of declared objects.
	Objects int
	// RenderMemory is the maximum memory, in bytes, of the process that parses the files.
	RenderMemory int64
}

// With returns the limits for these settings. Each setting also scales other limits, in the ratio of their defaults:
//
//   - Bytes: one file (an eighth of Bytes), the list of references and one git object (twice), the pack (32 times), and
//     the pack when uncompressed (128 times).
//   - Objects: files (as many as Objects), kustomizations and the keys of one mapping (half), documents (twice), the
//     values in one document (10 times) and in all documents (200 times), git objects (50 times), and the memory that
//     the declarations take in the main process (0.1 MiB per object).
//   - timeout, the maximum time for reading the source: the processor time of the process that parses the files (half).
//
// Limits that no setting determines are taken from l, and may be lower than the defaults if memory is limited.
func (s LimitSettings) With(l Limits, timeout time.Duration) Limits {
	d := DefaultLimits
	if s.Bytes > 0 {
		scale := func(limit int64) int64 { return scaled(limit, s.Bytes, d.Files.TotalBytes) }
		l.Files.TotalBytes, l.Files.FileBytes = s.Bytes, scale(d.Files.FileBytes)
		l.Transfer.RefsBytes, l.Transfer.PackBytes = scale(d.Transfer.RefsBytes), scale(d.Transfer.PackBytes)
		l.Transfer.Pack.ObjectBytes = scale(d.Transfer.Pack.ObjectBytes)
		l.Transfer.Pack.InflatedBytes = scale(d.Transfer.Pack.InflatedBytes)
	}
	if s.Objects > 0 {
		scale := func(limit int) int { return int(scaled(int64(limit), int64(s.Objects), int64(d.Files.Objects))) }
		l.Files.Objects, l.Files.Files = s.Objects, scale(d.Files.Files)
		l.Files.Kustomizations, l.Files.Keys = scale(d.Files.Kustomizations), scale(d.Files.Keys)
		l.Files.Documents = scale(d.Files.Documents)
		l.Files.DocumentNodes, l.Files.TotalNodes = scale(d.Files.DocumentNodes), scale(d.Files.TotalNodes)
		l.Files.KeptBytes = scaled(d.Files.KeptBytes, int64(s.Objects), int64(d.Files.Objects))
		l.Transfer.Pack.Objects = scale(d.Transfer.Pack.Objects)
	}
	if s.RenderMemory > 0 {
		l.Files.RenderMemory = s.RenderMemory
	}
	if timeout > 0 {
		l.Files.RenderCPU = max(timeout/2, 1)
	}
	return l
}

// largest is the maximum value of a scaled limit, so that sums of limits do not overflow.
const largest = 1 << 50

// scaled returns limit*setting/normal, but at least 1, because 0 means the default.
func scaled(limit, setting, normal int64) int64 {
	return int64(math.Max(1, math.Min(largest, float64(limit)*float64(setting)/float64(normal))))
}
