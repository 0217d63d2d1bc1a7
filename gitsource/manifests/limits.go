package manifests

import (
	"cmp"
	"fmt"
	"time"
)

// Limits on what is read. One that is zero is that of DefaultLimits.
type Limits struct {
	// FileBytes of one file, of one document once its aliases are expanded, and of one rendered
	// object; TotalBytes of all that is read, and of all that is rendered; Files that are read.
	FileBytes, TotalBytes int64
	Files                 int
	// Depth of directories below the path.
	Depth int
	// Kustomizations that one rendering reads, each as often as it is a base of another.
	Kustomizations int
	// DocumentNodes of one YAML document once its aliases are expanded, and TotalNodes of all that
	// are read. A node takes some hundred bytes.
	DocumentNodes, TotalNodes int
	// Nesting of one YAML document, and Keys of one mapping in it, each of which kustomize compares
	// with all others.
	Nesting, Keys int
	// Documents in all files, and Objects that come out of them.
	Documents, Objects int
	// RenderMemory in bytes and RenderCPU are what the process may take that takes the files apart,
	// beyond what the program takes itself.
	RenderMemory int64
	RenderCPU    time.Duration
}

// DefaultLimits are far over what an honest source needs. The API server takes no object over 1.5
// MiB.
var DefaultLimits = Limits{
	FileBytes: 2 << 20, TotalBytes: 16 << 20, Files: 10_000, Depth: 32, Kustomizations: 5000,
	DocumentNodes: 100_000, TotalNodes: 2_000_000, Nesting: 64, Keys: 5000, Documents: 20_000, Objects: 10_000,
	RenderMemory: 512 << 20, RenderCPU: time.Minute,
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
		RenderMemory:   cmp.Or(l.RenderMemory, DefaultLimits.RenderMemory),
		RenderCPU:      cmp.Or(l.RenderCPU, DefaultLimits.RenderCPU),
	}
}

// over words what is over a limit that concerns one file: what, and the flag that raises the limit.
func over(flag, format string, args ...any) string {
	return fmt.Sprintf(format, args...) + "; --" + flag + " raises the limit"
}

// exceed notes that a limit on the whole is exceeded: then nothing is known of what is declared.
func (f *files) exceed(flag, format string, args ...any) error {
	f.exceeded = fmt.Errorf(format+"; name a smaller path, or raise the limit with --%s", append(args, flag)...)
	return f.exceeded
}

// mebibytes writes a number of bytes as people do.
func mebibytes(bytes int64) string {
	if bytes%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d bytes", bytes)
}
