package main

import (
	"testing"

	"github.com/spf13/pflag"

	"quorate.dev/quorate/gitsource/manifests"
	"quorate.dev/quorate/gitsource/remote"
	"quorate.dev/quorate/gitsource/sources"
)

func TestLimitsAreSetByFlagsAndSourceSettings(t *testing.T) {
	s := newSource(sources.DefaultLimits)
	o, err := s.Options()
	if err != nil || o.Transfer != remote.DefaultLimits || o.Limits != manifests.DefaultLimits {
		t.Errorf("%+v, %v, want the defaults", o, err)
	}
	own, err := s.with("https://example.com/x.git,max-total-bytes=32Mi,max-objects=14,cache-dir=/var/cache,fetch-timeout=5s")
	if err != nil {
		t.Fatal(err)
	}
	o, err = own.Options()
	if err != nil || o.Transfer.PackBytes != 1<<30 || o.Limits.FileBytes != 4<<20 || o.Limits.Keys != 7 || o.Limits.RenderCPU.String() != "2.5s" || o.CacheDir != "/var/cache" || o.Timeout.String() != "5s" {
		t.Errorf("%+v", o)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	l := sources.LimitSettings{}
	addLimits(flags, &l)
	set := 0
	flags.VisitAll(func(f *pflag.Flag) {
		for _, bad := range []string{"", "0", "-1", "x", "1x", "1.5.5", "99999999999999999999999"} {
			if err := flags.Set(f.Name, bad); err == nil {
				t.Errorf("--%s %q is accepted", f.Name, bad)
			}
		}
		if err := flags.Set(f.Name, "12345"); err != nil || f.Value.String() != "12345" {
			t.Errorf("--%s: %v, %s", f.Name, err, f.Value)
		}
		set++
	})
	if want := (sources.LimitSettings{Bytes: 12345, Objects: 12345, RenderMemory: 12345}); l != want || set != 3 {
		t.Errorf("%d limits are flags: %+v", set, l)
	}
}
