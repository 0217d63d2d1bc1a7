package sources

import (
	"testing"
	"time"

	"quorate.dev/quorate/gitsource"
)

// TestLimitSettings checks that settings equal to the defaults do not change any limit, and that settings scale other
// limits in the documented ratios.
func TestLimitSettings(t *testing.T) {
	d := DefaultLimits
	defaults := LimitSettings{Bytes: d.Files.TotalBytes, Objects: d.Files.Objects, RenderMemory: d.Files.RenderMemory}
	for _, s := range []LimitSettings{{}, defaults} {
		if got := s.With(d, gitsource.FetchTimeout); got != d {
			t.Errorf("%+v: %+v", s, got)
		}
	}
	l := LimitSettings{Bytes: 32 << 20, Objects: 100, RenderMemory: 1 << 30}.With(d, 10*time.Minute)
	want := Limits{Transfer: d.Transfer, Files: d.Files}
	want.Files.TotalBytes, want.Files.FileBytes = 32<<20, 4<<20
	want.Transfer.RefsBytes, want.Transfer.PackBytes = 64<<20, 1<<30
	want.Transfer.Pack.ObjectBytes, want.Transfer.Pack.InflatedBytes = 64<<20, 4<<30
	want.Files.Objects, want.Files.Files, want.Files.Kustomizations, want.Files.Keys = 100, 100, 50, 50
	want.Files.Documents, want.Files.DocumentNodes, want.Files.TotalNodes = 200, 1000, 20_000
	want.Files.KeptBytes = 10 << 20
	want.Transfer.Pack.Objects, want.Files.RenderMemory, want.Files.RenderCPU = 5000, 1<<30, 5*time.Minute
	if l != want {
		t.Errorf("%+v, want %+v", l, want)
	}
	huge := LimitSettings{Bytes: 1 << 50, Objects: 1 << 62}.With(d, 0)
	if huge.Transfer.Pack.InflatedBytes != largest || huge.Transfer.Pack.Objects != largest || huge.Files.RenderCPU != d.Files.RenderCPU {
		t.Errorf("%+v", huge)
	}
	tiny := LimitSettings{Bytes: 1, Objects: 1}.With(d, 1)
	if tiny.Files.FileBytes != 1 || tiny.Files.Keys != 1 || tiny.Files.RenderCPU != 1 {
		t.Errorf("%+v", tiny)
	}
}
