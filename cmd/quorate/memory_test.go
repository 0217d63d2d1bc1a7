package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/quick"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/gitsource/sources"
)

// TestBudget checks that, for any amount of memory, limits are above 0 and do not exceed their defaults, and the sum of
// all parts fits. More memory must not lower any limit if the number of simultaneous sources is the same.
func TestBudget(t *testing.T) {
	property := func(some, more uint32) bool {
		memory := 96<<20 + int64(some)<<4 // up to 64 GiB
		b, larger := budgetWithin(memory), budgetWithin(memory+int64(more)<<4)
		used := b.own + b.used()
		return between(reflect.ValueOf(sources.Limits{}), reflect.ValueOf(b.limits), reflect.ValueOf(sources.DefaultLimits)) &&
			(b.atOnce != larger.atOnce || between(reflect.ValueOf(b.limits), reflect.ValueOf(larger.limits), reflect.ValueOf(sources.DefaultLimits))) &&
			b.atOnce <= larger.atOnce && used <= memory
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 10_000}); err != nil {
		t.Error(err)
	}
	for atOnce := 1; atOnce <= 4; atOnce++ { // as documented in docs/reference/limits.md
		if b := budgetFor(256<<20, atOnce); b.own+b.used() > 256<<20 {
			t.Errorf("%d simultaneous sources do not fit: %+v", atOnce, b)
		}
	}
	for _, memory := range []int64{1, 1 << 20, 32 << 20} { // too little memory, but no limit may be 0
		if b := budgetWithin(memory); !between(reflect.ValueOf(sources.Limits{}), reflect.ValueOf(b.limits), reflect.ValueOf(sources.DefaultLimits)) || b.atOnce < 1 {
			t.Errorf("%d bytes: %+v", memory, b)
		}
	}
	if b := budgetWithin(0); b.limits != sources.DefaultLimits || b.own != 0 {
		t.Errorf("without a bound: %+v", b)
	}
}

// TestSourcesAtOnceDivideMemory checks that the memory is divided among the configured number of simultaneous sources,
// and that limits that are set by flags are kept.
func TestSourcesAtOnceDivideMemory(t *testing.T) {
	const memory, mebibyte = 256 << 20, 1 << 20
	found := memoryLimit
	t.Cleanup(func() { memoryLimit = found })
	t.Setenv("GOMEMLIMIT", "off") // do not limit the test process
	memoryLimit = func() int64 { return memory }
	dir := t.TempDir()
	for _, test := range []struct {
		args   []string
		render int64
		total  int64
		own    bool
	}{
		{nil, 36 * mebibyte, 4 * mebibyte, true},
		{[]string{"--sources-at-once=1"}, 88 * mebibyte, 8 * mebibyte, true},
		{[]string{"--sources-at-once=4"}, 10 * mebibyte, 2 * mebibyte, true},
		{[]string{"--sources-at-once=4", "--max-render-memory=30Mi"}, 30 * mebibyte, 2 * mebibyte, false},
		{[]string{"--max-total-bytes=1Mi", "--sources-at-once=1"}, 88 * mebibyte, 1 * mebibyte, true},
	} {
		f, c := &sourceFlags{}, &cobra.Command{}
		f.add(c, "")
		if err := c.ParseFlags(append(test.args, "--source="+dir)); err != nil {
			t.Fatal(err)
		}
		if err := f.check(); err != nil {
			t.Fatal(err)
		}
		list, err := f.sources(source.check)
		if err != nil {
			t.Fatal(err)
		}
		l := list[0].Limits
		if l.Files.RenderMemory != test.render || l.Files.TotalBytes != test.total {
			t.Errorf("%q: %d MiB to render, %d MiB in all, want %d and %d", test.args, l.Files.RenderMemory>>20, l.Files.TotalBytes>>20, test.render>>20, test.total>>20)
		}
		b := budgetFor(memory, f.atOnce)
		b.limits = l
		if used := b.own + b.used(); test.own && used > memory {
			t.Errorf("%q: %d MiB are used", test.args, used>>20)
		}
	}
}

// TestDeclarationsOfAllSourcesFitIntoMemory checks that the declarations of many sources together may not take more
// memory than the declarations of the sources that are read at the same time.
func TestDeclarationsOfAllSourcesFitIntoMemory(t *testing.T) {
	for _, n := range []int{1, 2, 3, 16, 100} {
		b := budgetWithin(256 << 20)
		if kept := b.forSources(n).limits.Files.KeptBytes; kept <= 0 || kept*int64(n) > b.limits.Files.KeptBytes*int64(b.atOnce) {
			t.Errorf("%d sources: each may take %d bytes; the undivided limit is %d", n, kept, b.limits.Files.KeptBytes)
		}
	}
	if b := budgetWithin(0).forSources(100); b.limits != sources.DefaultLimits {
		t.Errorf("without a memory limit: %+v", b.limits)
	}
}

// TestValidateDividesMemory checks that validate divides the memory by sourcesAtOnce from the configuration file.
func TestValidateDividesMemory(t *testing.T) {
	found := memoryLimit
	t.Cleanup(func() { memoryLimit = found })
	t.Setenv("GOMEMLIMIT", "off") // do not limit the test process
	memoryLimit = func() int64 { return 256 << 20 }
	dir := filesIn(t, "a.yaml", strings.Repeat("#\n", int(budgetFor(256<<20, 4).limits.Files.FileBytes/2)+1))
	text := "apiVersion: config.quorate.dev/v1alpha1\nkind: Configuration\nlimits: {sourcesAtOnce: 4}\nsources:\n- location: " + dir + "\n"
	var both bytes.Buffer
	execute(t.Context(), []string{"validate", "--config", filepath.Join(filesIn(t, "quorate.yaml", text), "quorate.yaml")}, streams{out: &both, err: &both})
	if !strings.Contains(both.String(), "a.yaml: is larger than") {
		t.Errorf("the file is accepted: %s", both.String())
	}
}

// TestPartLimitsDoNotExceedTotals checks that the limit for one item, such as a file, does not exceed the limit for all
// items together, because a larger value could never be used.
func TestPartLimitsDoNotExceedTotals(t *testing.T) {
	for memory := int64(0); memory <= 4<<30; memory += 1 << 20 {
		l := budgetWithin(memory).limits
		for name, sizes := range map[string][2]int64{
			"file":      {l.Files.FileBytes, l.Files.TotalBytes},
			"document":  {int64(l.Files.DocumentNodes), int64(l.Files.TotalNodes)},
			"object":    {l.Transfer.Pack.ObjectBytes, l.Transfer.Pack.InflatedBytes},
			"documents": {int64(l.Files.Objects), int64(l.Files.Documents)},
		} {
			if sizes[0] > sizes[1] {
				t.Fatalf("of %d MiB: %s: one may use %d, and all together %d", memory>>20, name, sizes[0], sizes[1])
			}
		}
	}
}

// TestDeclarationsFitIntoMemory checks that the declarations of all sources that are read at the same time fit into a
// quarter of the memory, even while a new revision replaces each source's declarations and both revisions are kept. The
// limit still leaves enough memory for 300 clusters with nearly all settings (see TestUsualClustersAreKept).
func TestDeclarationsFitIntoMemory(t *testing.T) {
	for memory := int64(128 << 20); memory <= 4<<30; memory += 1 << 20 {
		b := budgetWithin(memory)
		if used := int64(b.atOnce) * 2 * b.limits.Files.KeptBytes; used > memory/4 || b.limits.Files.KeptBytes < 9<<20 {
			t.Errorf("with %d MiB of memory, %d sources may take %d MiB", memory>>20, b.atOnce, used>>20)
		}
	}
}

// TestLimitsPageListsBudgets checks that docs/reference/limits.md lists the budgets.
func TestLimitsPageListsBudgets(t *testing.T) {
	page := read(t, "docs/reference/limits.md")
	for _, memory := range []byteSize{128 << 20, 256 << 20, 1 << 30, 4 << 30} {
		b := budgetWithin(int64(memory))
		l, size := b.limits, func(bytes int64) string { s := byteSize(bytes); return s.String() }
		row := fmt.Sprintf("| %s | %d | %s | %s | %s | %d | %s | %s | %d | %d | %s | %s | %s |\n", memory.String(), b.atOnce, size(l.Files.RenderMemory),
			size(l.Transfer.RefsBytes), size(l.Transfer.Pack.ObjectBytes), l.Transfer.Pack.Objects, size(l.Files.FileBytes), size(l.Files.TotalBytes),
			l.Files.DocumentNodes, l.Files.Objects, size(l.Files.KeptBytes), size(b.fetch), size(b.own))
		if !strings.Contains(page, row) {
			t.Errorf("docs/reference/limits.md lacks\n%s", row)
		}
	}
}

// between reports whether each number in v is above 0 and between the numbers in low and high.
func between(low, v, high reflect.Value) bool {
	if v.Kind() != reflect.Struct {
		return v.Int() > 0 && v.Int() >= low.Int() && v.Int() <= high.Int()
	}
	for i := range v.NumField() {
		if !between(low.Field(i), v.Field(i), high.Field(i)) {
			return false
		}
	}
	return true
}
