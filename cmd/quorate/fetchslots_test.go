package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/reconcile"
)

// Waiting for a turn does not use up a source's own timeout. The fake clock does not advance while anything runs.
func TestWaitingForTurnDoesNotUseFetchTimeout(t *testing.T) {
	dir := filesIn(t, "a.yaml", hostileCluster)
	synctest.Test(t, func(t *testing.T) {
		f := &sourceFlags{values: []string{dir + ",fetch-timeout=1m"}, settings: newSource(defaultLimits), readers: make([]gitsource.Reader, 1), slots: newFetchSlots(1)}
		end, err := f.slots.take(t.Context(), "another")
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
		if len(f.slots.taken) != 0 {
			t.Error("the turn has not ended")
		}
	})
}

// Whatever a git server does, half of the run's time is left for the clusters, including those of sources that could
// not be read.
func TestReadingLeavesTimeForClusters(t *testing.T) {
	dir := filesIn(t, "a.yaml", hostileCluster)
	synctest.Test(t, func(t *testing.T) {
		f := &sourceFlags{values: []string{dir, dir + ",fetch-timeout=1m"}, settings: newSource(defaultLimits), readers: make([]gitsource.Reader, 2), slots: newFetchSlots(1)}
		if _, err := f.slots.take(t.Context(), "one that never answers"); err != nil {
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

// The end of a run also ends waiting.
func TestCanceledRunStopsWaitingForTurn(t *testing.T) {
	full := newFetchSlots(1)
	full.taken <- struct{}{}
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("it is over")
	cancel(over)
	_, err := full.take(ctx, "x")
	if !errors.Is(err, gitsource.ErrSource) || !errors.Is(err, over) || !strings.Contains(err.Error(), "wait for a free slot to read x: it is over; increase --sources-at-once") {
		t.Errorf("error %v", err)
	}
}

// Declarations that an unresponsive source cannot affect are known long before that source times out.
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

// However many sources are unresponsive, a responsive one is read soon.
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
	f := &sourceFlags{values: values, settings: newSource(defaultLimits), readers: make([]gitsource.Reader, len(values)), slots: newFetchSlots(2)}
	f.slots.first = 100 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	all, _ := f.fetch(ctx, func([]sourceResult) { cancel() })
	for i, s := range all {
		if read := s.err == nil; read != (i == 0) {
			t.Errorf("%s: error %v", s.label, s.err)
		}
	}
}

// A read that is cut short starts again at the source's next turn, which is twice as long. If no other source waits, a
// turn lasts as long as necessary.
func TestInterruptedReadRestartsAtNextTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, began := newFetchSlots(1), time.Now()
		another := make(chan time.Duration, 1)
		go func() {
			time.Sleep(time.Second)
			end, _ := one.take(t.Context(), "another")
			another <- time.Since(began)
			time.Sleep(time.Second)
			end()
		}()
		var turns []time.Duration
		err := one.read(t.Context(), "x", func(ctx context.Context) error {
			begun := time.Now()
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
			}
			turns = append(turns, time.Since(begun))
			return ctx.Err()
		})
		if at := <-another; at != firstTimeSlice {
			t.Errorf("the other one had its turn after %s", at)
		}
		if err != nil || !slices.Equal(turns, []time.Duration{firstTimeSlice, time.Minute}) || len(one.taken) != 0 {
			t.Errorf("turns of %s, error %v", turns, err)
		}
	})
}
