package panics_test

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"quorate.dev/quorate/internal/panics"
)

func burst() { panic("it \x1b[2J " + strings.Repeat("x", 1000)) }

func TestCatch(t *testing.T) {
	if err := panics.Catch(func() error { return io.EOF }); !errors.Is(err, io.EOF) {
		t.Errorf("an error became %v", err)
	}
	err := panics.Catch(func() error { burst(); return nil })
	caught, is := errors.AsType[*panics.Error](err)
	if !is || !strings.Contains(caught.Stack, "panics_test.burst") {
		t.Fatalf("got %#v", err)
	}
	if text := err.Error(); !strings.HasPrefix(text, `panic: "it \x1b[2J xxx`) || len(text) > 400 {
		t.Errorf("reads %q", text)
	}
}

// TestGroup checks that Wait waits for all goroutines and panics with the value and stack of a panic in one of them.
func TestGroup(t *testing.T) {
	var done atomic.Int32
	err := panics.Catch(func() error {
		var group panics.Group
		for i := range 10 {
			group.Go(func() {
				defer done.Add(1)
				if i == 3 {
					burst()
				}
			})
		}
		group.Wait()
		return nil
	})
	caught, is := errors.AsType[*panics.Error](err)
	if !is || !strings.Contains(caught.Stack, "panics_test.burst") || done.Load() != 10 {
		t.Errorf("%d done, got %#v", done.Load(), err)
	}
	var well panics.Group
	well.Go(func() {})
	well.Wait()
}
