package main

import (
	"errors"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"quorate.dev/quorate/gitsource/sources"
)

// addLimits adds the flags for the limits of a source. Limits that affect memory have lower defaults if the container
// has little memory.
func addLimits(f *pflag.FlagSet, l *sources.Limits) {
	addBytes(f, &l.Transfer.RefsBytes, "max-refs-bytes",
		"maximum size, in bytes, of a server's list of branches and tags")
	addBytes(f, &l.Transfer.PackBytes, "max-pack-bytes",
		"maximum compressed size, in bytes, of the data that a server may send for one revision; the data is kept in "+
			"a temporary file")
	addCount(f, &l.Transfer.Pack.Objects, "max-pack-objects", "maximum number of git objects that a server may "+
		"send for one revision")
	addBytes(f, &l.Transfer.Pack.InflatedBytes, "max-inflated-bytes",
		"maximum uncompressed size, in bytes, of all objects that a server sends for one revision")
	addBytes(f, &l.Transfer.Pack.ObjectBytes, "max-object-bytes", "maximum size, in bytes, of an object held in memory")
	addBytes(f, &l.Files.FileBytes, "max-file-bytes", "maximum size, in bytes, of a file")
	addBytes(f, &l.Files.TotalBytes, "max-total-bytes",
		"maximum total size, in bytes, of all files; a file counts each time it is read")
	addCount(f, &l.Files.Files, "max-files", "maximum number of files; a file counts each time it is read")
	addCount(f, &l.Files.Depth, "max-depth", "maximum depth of directories below the path")
	addCount(f, &l.Files.Kustomizations, "max-kustomizations",
		"maximum number of kustomizations; a kustomization counts each time it is used as a base")
	addCount(f, &l.Files.DocumentNodes, "max-document-nodes",
		"maximum number of values in one YAML document, with aliases expanded")
	addCount(f, &l.Files.TotalNodes, "max-total-nodes", "maximum number of values in all YAML documents")
	addCount(f, &l.Files.Nesting, "max-nesting", "maximum depth of values in one YAML document")
	addCount(f, &l.Files.Keys, "max-keys", "maximum number of keys in one mapping of a YAML document")
	addCount(f, &l.Files.Documents, "max-documents", "maximum number of YAML documents in all files")
	addCount(f, &l.Files.Objects, "max-objects", "maximum number of objects that may be declared")
	addBytes(f, &l.Files.RenderMemory, "max-render-memory",
		"maximum memory, in bytes, of the process that parses the files of a source")
	f.Var((*span)(&l.Files.RenderCPU), "max-render-cpu",
		"maximum processor time of the process that parses the files of a source")
	showDefaults(f, *l)
}

// showDefaults makes the help show the same defaults on every machine.
func showDefaults(f *pflag.FlagSet, current sources.Limits) {
	if current == sources.DefaultLimits {
		return
	}
	all, defaults := pflag.NewFlagSet("", pflag.ContinueOnError), sources.DefaultLimits
	addLimits(all, &defaults)
	all.VisitAll(func(d *pflag.Flag) { f.Lookup(d.Name).DefValue = d.DefValue })
}

// addBytes adds a flag for a number of bytes, in Kubernetes units.
func addBytes(f *pflag.FlagSet, value *int64, name, usage string) {
	f.Var((*byteSize)(value), name, usage)
}

// addCount adds a flag for a number greater than 0.
func addCount(f *pflag.FlagSet, value *int, name, usage string) { f.Var((*count)(value), name, usage) }

type byteSize int64

func (b *byteSize) Set(s string) error {
	q, err := resource.ParseQuantity(s)
	if err != nil || q.Value() <= 0 || q.Value() > 1<<50 {
		return errors.New("must be a number of bytes greater than 0, such as 256Mi")
	}
	*b = byteSize(q.Value())
	return nil
}

func (b *byteSize) String() string {
	return resource.NewQuantity(int64(*b), resource.BinarySI).String()
}
func (b *byteSize) Type() string { return "bytes" }

type count int

func (c *count) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n <= 0 {
		return errors.New("must be a number greater than 0")
	}
	*c = count(n)
	return nil
}

func (c *count) String() string { return strconv.Itoa(int(*c)) }
func (c *count) Type() string   { return "int" }

type span time.Duration

func (d *span) Set(s string) error {
	value, err := time.ParseDuration(s)
	if err != nil || value <= 0 {
		return errors.New("must be a duration greater than 0, such as 90s")
	}
	*d = span(value)
	return nil
}

func (d *span) String() string { return time.Duration(*d).String() }
func (d *span) Type() string   { return "duration" }
