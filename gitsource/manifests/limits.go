package manifests

import (
	"cmp"
	"fmt"
	"time"
)

// Limits limit what is read. Zero fields default to DefaultLimits.
type Limits struct {
	// FileBytes limits one file, one document with its aliases expanded, and one rendered object. TotalBytes limits
	// everything that is read, and everything that is rendered. Files limits the number of files read.
	FileBytes, TotalBytes int64
	Files                 int
	// Depth limits the depth of directories below the path.
	Depth int
	// Kustomizations limits the number of kustomizations that one rendering reads. A kustomization counts each time it
	// is used as a base.
	Kustomizations int
	// DocumentNodes limits the nodes of one YAML document with its aliases expanded, and TotalNodes limits the nodes of
	// all documents. A node takes a few hundred bytes.
	DocumentNodes, TotalNodes int
	// Nesting limits the depth of one YAML document, and Keys limits the keys of one mapping, because kustomize
	// compares each key with all others.
	Nesting, Keys int
	// Documents limits the documents in all files, and Objects limits the resulting objects.
	Documents, Objects int
	// KeptBytes limits the estimated memory (see footprint) that the declarations take in the process that requested
	// them.
	KeptBytes int64
	// RenderMemory, in bytes, and RenderCPU limit the process that parses the files, in addition to the program itself.
	RenderMemory int64
	RenderCPU    time.Duration
}

// DefaultLimits are far above the needs of an honest source. The API server does not accept objects over 1.5 MiB.
var DefaultLimits = Limits{
	FileBytes: 2 << 20, TotalBytes: 16 << 20, Files: 10_000, Depth: 32, Kustomizations: 5000,
	DocumentNodes: 100_000, TotalNodes: 2_000_000, Nesting: 64, Keys: 5000, Documents: 20_000, Objects: 10_000,
	KeptBytes: 1000 << 20, RenderMemory: 512 << 20, RenderCPU: time.Minute,
}

func (l Limits) orDefault() Limits {
	return Limits{
		FileBytes:      cmp.Or(l.FileBytes, DefaultLimits.FileBytes),
		TotalBytes:     cmp.Or(l.TotalBytes, DefaultLimits.TotalBytes),
		Files:          cmp.Or(l.Files, DefaultLimits.Files),
		Depth:          cmp.Or(l.Depth, DefaultLimits.Depth),
		Kustomizations: cmp.Or(l.Kustomizations, DefaultLimits.Kustomizations),
		DocumentNodes:  cmp.Or(l.DocumentNodes, DefaultLimits.DocumentNodes),
		TotalNodes:     cmp.Or(l.TotalNodes, DefaultLimits.TotalNodes),
		Nesting:        cmp.Or(l.Nesting, DefaultLimits.Nesting),
		Keys:           cmp.Or(l.Keys, DefaultLimits.Keys),
		Documents:      cmp.Or(l.Documents, DefaultLimits.Documents),
		Objects:        cmp.Or(l.Objects, DefaultLimits.Objects),
		KeptBytes:      cmp.Or(l.KeptBytes, DefaultLimits.KeptBytes),
		RenderMemory:   cmp.Or(l.RenderMemory, DefaultLimits.RenderMemory),
		RenderCPU:      cmp.Or(l.RenderCPU, DefaultLimits.RenderCPU),
	}
}

// These settings raise the limits; see sources.LimitSettings.
const (
	settingBytes   = "limits.bytes"
	settingObjects = "limits.objects"
)

// over returns a message about an exceeded limit on one file. The message names the setting that raises the limit.
func over(setting, format string, args ...any) string {
	return fmt.Sprintf(format, args...) + "; to allow more, raise " + setting
}

// exceed records that a limit on the whole source is exceeded. The declarations are then unknown.
func (f *files) exceed(setting, format string, args ...any) error {
	f.exceeded = fmt.Errorf(format+"; name a smaller path, or raise %s", append(args, setting)...)
	return f.exceeded
}

// mebibytes formats a number of bytes for display.
func mebibytes(bytes int64) string {
	if bytes%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d bytes", bytes)
}
