package sources

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/reconcile"
)

// at returns a source with the default settings.
func at(location string) Source {
	return Source{Location: location, Timeout: time.Minute, Limits: DefaultLimits}
}

// declares returns a directory that declares cluster a.
func declares(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	text := "apiVersion: etcd.quorate.dev/v1alpha1\nkind: EtcdCluster\nmetadata: {name: a}\nspec: {version: 3.6.5}\n"
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestWaitingForTurnDoesNotUseFetchTimeout checks that waiting for a turn does not count toward a source's timeout. The
// fake clock does not advance while any goroutine is running.
func TestWaitingForTurnDoesNotUseFetchTimeout(t *testing.T) {
	dir := declares(t)
	synctest.Test(t, func(t *testing.T) {
		set := &Set{Sources: []Source{at(dir)}, Slots: NewSlots(1)}
		end, err := set.Slots.Take(t.Context(), "another")
		if err != nil {
			t.Fatal(err)
		}
		results := make(chan []result)
		go func() { results <- set.fetch(t.Context(), func([]result) {}) }()
		time.Sleep(time.Hour)
		end()
		if all := <-results; len(all) != 1 || all[0].err != nil || len(all[0].desired.Clusters) != 1 {
			t.Errorf("after an hour of waiting: %+v", all)
		}
		if _, err := set.Slots.Take(t.Context(), "yet another"); err != nil { // the turn has ended
			t.Error(err)
		}
	})
}

// TestReadingLeavesTimeForClusters checks that reading uses at most half of the run's time, so that clusters can still
// be processed, including clusters whose sources could not be read, however the git server behaves.
func TestReadingLeavesTimeForClusters(t *testing.T) {
	dir := declares(t)
	synctest.Test(t, func(t *testing.T) {
		set := &Set{Sources: []Source{at(dir), at(dir)}, Slots: NewSlots(1)}
		if _, err := set.Slots.Take(t.Context(), "one that never answers"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		before := time.Now()
		all := set.fetch(ctx, func([]result) {})
		want := "reading the sources has taken 2m30s, half of the remaining --timeout; the rest is reserved for the clusters"
		if took := time.Since(before); took != 150*time.Second || !errors.Is(all[0].err, gitsource.ErrSource) || !strings.Contains(all[0].err.Error(), want) {
			t.Errorf("after %s: error %v", took, all[0].err)
		}
	})
}

// TestSlowSourceDoesNotDelayOthers checks that declarations that an unresponsive source cannot affect are available
// long before that source times out.
func TestSlowSourceDoesNotDelayOthers(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	quick := at(declares(t))
	quick.Namespace, quick.AllowNamespaces = "shop", []string{"shop"}
	for namespace, want := range map[string]string{"bank": "shop/a", "shop": "", "": ""} {
		slow := at("http://" + silent.Addr().String() + "/x.git")
		if namespace != "" {
			slow.AllowNamespaces = []string{namespace}
		}
		set := &Set{Sources: []Source{quick, slow}, Slots: NewSlots(2)}
		ctx, cancel := context.WithCancel(t.Context())
		var known []string
		all := set.Declared(ctx, func(d reconcile.Desired) {
			known = d.Ready()
			cancel()
		})
		if got := strings.Join(known, " "); got != want {
			t.Errorf("while a source of %q is not responding, %q is ready, want %q", namespace, got, want)
		}
		if failure := all.Failure(); failure == nil || errors.Is(failure, reconcile.ErrReading) || len(all.Clusters) != 1 {
			t.Errorf("finally %d clusters, error %v", len(all.Clusters), failure)
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
	set := &Set{Sources: []Source{at(declares(t))}, Slots: NewSlots(2)}
	for n := range 5 {
		set.Sources = append(set.Sources, at(fmt.Sprintf("http://%s/%d.git", silent.Addr(), n)))
	}
	set.Slots.First = 100 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	all := set.fetch(ctx, func([]result) { cancel() })
	for i, s := range all {
		if read := s.err == nil; read != (i == 0) {
			t.Errorf("%s: error %v", s.label, s.err)
		}
	}
}
