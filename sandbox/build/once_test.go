package build

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestOnceForMany(t *testing.T) {
	cache := &Cache{Dir: filepath.Join(t.TempDir(), "cache")}
	var made atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			path, err := cache.Once(t.Context(), "images/a", func(unfinished string) error {
				made.Add(1)
				return os.WriteFile(unfinished, []byte("whole"), 0o644)
			})
			if content, readErr := os.ReadFile(path); err != nil || string(content) != "whole" {
				t.Errorf("entry holds %q (%v, %v)", content, err, readErr)
			}
		})
	}
	all.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times", made.Load())
	}
}

func TestOnceAfterAnInterruption(t *testing.T) {
	cache := &Cache{Dir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(cache.Dir, ".unfinished"), 0o755); err != nil {
		t.Fatal(err)
	}
	path, err := cache.Once(t.Context(), "a", func(unfinished string) error { return os.Mkdir(unfinished, 0o755) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestOnceWaitsNoLongerThanItsCaller(t *testing.T) {
	cache := &Cache{Dir: t.TempDir()}
	unlock, err := cache.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = cache.Once(ctx, "a", func(string) error { return errors.New("called without the lock") })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
}
