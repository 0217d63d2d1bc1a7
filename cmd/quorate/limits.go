package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"quorate.dev/quorate/gitsource/sources"
)

// addLimits adds the flags for the limits of a source. They also determine other limits.
func addLimits(f *pflag.FlagSet, l *sources.LimitSettings) {
	d := sources.DefaultLimits.Files
	addBytes(f, &l.Bytes, "max-total-bytes",
		"maximum total size of all files, in bytes; a file counts each time it is read. The limits for single "+
			"files and for the data that a server may send are derived from it")
	addCount(f, &l.Objects, "max-objects",
		"maximum number of declared objects. The limits for files, documents, values and git objects are derived "+
			"from it")
	addBytes(f, &l.RenderMemory, "max-render-memory",
		"maximum memory, in bytes, of the process that parses the files of a source")
	for flag, value := range map[string]pflag.Value{
		"max-total-bytes": (*byteSize)(&d.TotalBytes), "max-objects": (*count)(&d.Objects),
		"max-render-memory": (*byteSize)(&d.RenderMemory),
	} {
		f.Lookup(flag).DefValue = value.String()
	}
}

// addBytes adds a flag for a number of bytes, in Kubernetes notation.
func addBytes(f *pflag.FlagSet, value *int64, name, usage string) {
	f.Var((*byteSize)(value), name, usage)
}

// addCount adds a flag for a number greater than 0.
func addCount(f *pflag.FlagSet, value *int, name, usage string) { f.Var((*count)(value), name, usage) }

type byteSize int64

func (b *byteSize) Set(s string) error {
	q, err := resource.ParseQuantity(s)
	if unit, is := strings.CutSuffix(s, "B"); err != nil && is {
		if _, err := resource.ParseQuantity(unit); err == nil {
			return fmt.Errorf("%q: omit the B and write %s", s, unit)
		}
	}
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
