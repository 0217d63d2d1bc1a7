package main

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/quick"
)

// Whatever memory there is: no limit is over its default or 0, more memory lowers none for the same number of sources at once, and all parts together fit.
func TestBudget(t *testing.T) {
	property := func(some, more uint32) bool {
		memory := 96<<20 + int64(some)<<4 // up to 64 GiB
		b, larger := budgetWithin(memory), budgetWithin(memory+int64(more)<<4)
		used := b.own + int64(b.atOnce)*(b.limits.files.RenderMemory+childBytes) + spareBytes
		return between(reflect.ValueOf(limits{}), reflect.ValueOf(b.limits), reflect.ValueOf(defaultLimits)) &&
			(b.atOnce != larger.atOnce || between(reflect.ValueOf(b.limits), reflect.ValueOf(larger.limits), reflect.ValueOf(defaultLimits))) &&
			b.atOnce <= larger.atOnce && used <= memory
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 10_000}); err != nil {
		t.Error(err)
	}
	for _, memory := range []int64{1, 1 << 20, 32 << 20} { // it is not enough, and yet nothing is 0
		if b := budgetWithin(memory); !between(reflect.ValueOf(limits{}), reflect.ValueOf(b.limits), reflect.ValueOf(defaultLimits)) || b.atOnce < 1 {
			t.Errorf("%d bytes: %+v", memory, b)
		}
	}
	if b := budgetWithin(0); b.limits != defaultLimits || b.own != 0 {
		t.Errorf("without a bound: %+v", b)
	}
}

// No limit on one thing is over that on all of them together: it would promise what is refused.
func TestNoPartIsLargerThanTheWhole(t *testing.T) {
	for memory := int64(0); memory <= 4<<30; memory += 1 << 20 {
		l := budgetWithin(memory).limits
		for name, sizes := range map[string][2]int64{
			"file":      {l.files.FileBytes, l.files.TotalBytes},
			"document":  {int64(l.files.DocumentNodes), int64(l.files.TotalNodes)},
			"object":    {l.transfer.Pack.ObjectBytes, l.transfer.Pack.InflatedBytes},
			"documents": {int64(l.files.Objects), int64(l.files.Documents)},
		} {
			if sizes[0] > sizes[1] {
				t.Fatalf("of %d MiB: %s: one may have %d, and all together %d", memory>>20, name, sizes[0], sizes[1])
			}
		}
	}
}

// docs/git.md tells what fits.
func TestPageTellsBudgets(t *testing.T) {
	page := read(t, "docs/git.md")
	for _, memory := range []byteSize{128 << 20, 256 << 20, 1 << 30, 4 << 30} {
		b := budgetWithin(int64(memory))
		l, size := b.limits, func(bytes int64) string { s := byteSize(bytes); return s.String() }
		row := fmt.Sprintf("| %s | %d | %s | %s | %s | %d | %s | %s | %d | %d | %s |\n", memory.String(), b.atOnce, size(l.files.RenderMemory),
			size(l.transfer.RefsBytes), size(l.transfer.Pack.ObjectBytes), l.transfer.Pack.Objects, size(l.files.FileBytes), size(l.files.TotalBytes),
			l.files.DocumentNodes, l.files.Objects, size(b.own))
		if !strings.Contains(page, row) {
			t.Errorf("docs/git.md lacks\n%s", row)
		}
	}
}

// between says whether each number in v is over 0, as large as in low at least, and as large as in high at most.
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
