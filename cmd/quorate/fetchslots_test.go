package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/gitsource/sources"
	"quorate.dev/quorate/reconcile"
)

// TestWaitingForTurnDoesNotUseFetchTimeout checks that waiting for a turn does not use up a source's own timeout. The
// fake clock does not advance while any goroutine runs.
func TestWaitingForTurnDoesNotUseFetchTimeout(t *testing.T) {
	dir := filesIn(t, "a.yaml", hostileCluster)
	synctest.Test(t, func(t *testing.T) {
		f := &sourceFlags{values: []string{dir + ",fetch-timeout=1m"}, settings: newSource(defaultLimits), readers: make([]gitsource.Reader, 1), slots: sources.NewSlots(1)}
		end, err := f.slots.Take(t.Context(), "another")
		if err != nil {
			t.Fatal(err)
		}
		results := make(chan []sourceResult)
		go func() {
			all, _ := f.fetch(t.Context(), func([]sourceResult) {})
			results <- all
		}()
		time.Sleep(time.Hour)
		end()
		if all := <-results; len(all) != 1 || all[0].err != nil || len(all[0].desired.Clusters) != 1 {
			t.Errorf("after an hour of waiting: %+v", all)
		}
		if _, err := f.slots.Take(t.Context(), "yet another"); err != nil { // the turn has ended
			t.Error(err)
		}
	})
}

// TestReadingLeavesTimeForClusters checks that half of the run's time is left for the clusters, including clusters
// whose sources could not be read, regardless of how a git server behaves.
func TestReadingLeavesTimeForClusters(t *testing.T) {
	dir := filesIn(t, "a.yaml", hostileCluster)
	synctest.Test(t, func(t *testing.T) {
		f := &sourceFlags{values: []string{dir, dir + ",fetch-timeout=1m"}, settings: newSource(defaultLimits), readers: make([]gitsource.Reader, 2), slots: sources.NewSlots(1)}
		if _, err := f.slots.Take(t.Context(), "one that never answers"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		before := time.Now()
		all, _ := f.fetch(ctx, func([]sourceResult) {})
		want := "reading the sources has taken 2m30s, half of the remaining --timeout; the rest is for the clusters"
		if took := time.Since(before); took != 150*time.Second || !errors.Is(all[0].err, gitsource.ErrSource) || !strings.Contains(all[0].err.Error(), want) {
			t.Errorf("after %s: error %v", took, all[0].err)
		}
	})
}

// TestSlowSourceDoesNotDelayOthers checks that declarations that an unresponsive source cannot affect are known long
// before that source times out.
func TestSlowSourceDoesNotDelayOthers(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	quick := filesIn(t, "a.yaml", "apiVersion: etcd.quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: {name: a}\nspec: {version: 3.6.5}\n")
	for namespace, want := range map[string]string{"bank": "shop/a", "shop": "", "": ""} {
		f := &sourceFlags{values: []string{quick + ",default-namespace=shop,allow-namespace=shop", "http://" + silent.Addr().String() + "/x.git"},
			settings: newSource(defaultLimits), atOnce: 2}
		if namespace != "" {
			f.values[1] += ",allow-namespace=" + namespace
		}
		ctx, cancel := context.WithCancel(t.Context())
		var known []string
		all := f.declared(ctx, func(d reconcile.Desired) {
			known = d.Ready()
			cancel()
		})
		if got := strings.Join(known, " "); got != want {
			t.Errorf("while a source of %q does not answer, %q is known, want %q", namespace, got, want)
		}
		if failure := all.Failure(); failure == nil || errors.Is(failure, reconcile.ErrReading) || len(all.Clusters) != 1 {
			t.Errorf("in the end %d clusters, error %v", len(all.Clusters), failure)
		}
	}
}

// TestHangingSourcesDoNotDelayResponsiveOne checks that a responsive source is read promptly, regardless of how many
// other sources are unresponsive.
func TestHangingSourcesDoNotDelayResponsiveOne(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	values := []string{filesIn(t, "a.yaml", "apiVersion: etcd.quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: {name: a}\nspec: {version: 3.6.5}\n")}
	for n := range 5 {
		values = append(values, fmt.Sprintf("http://%s/%d.git", silent.Addr(), n))
	}
	f := &sourceFlags{values: values, settings: newSource(defaultLimits), readers: make([]gitsource.Reader, len(values)), slots: sources.NewSlots(2)}
	f.slots.First = 100 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	all, _ := f.fetch(ctx, func([]sourceResult) { cancel() })
	for i, s := range all {
		if read := s.err == nil; read != (i == 0) {
			t.Errorf("%s: error %v", s.label, s.err)
		}
	}
}
