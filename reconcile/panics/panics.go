// Package panics turns a panic into an error, so that what goes wrong with one cluster stays with
// that cluster.
package panics

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Error is a panic that was caught.
type Error struct {
	// Value that the panic was called with.
	Value any
	// Stack of the goroutine that panicked, as the runtime prints it.
	Stack string
}

func (e *Error) Error() string {
	return fmt.Sprintf("panic: %.300q; this is a defect of Quorate, please report it", fmt.Sprint(e.Value))
}

// Catch runs f and returns its error, or an *Error if f panics.
func Catch(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = caught(value)
		}
	}()
	return f()
}

// caught is the error for what recover has returned. One that was caught in another goroutine keeps
// the stack of that.
func caught(value any) *Error {
	if earlier, is := value.(*Error); is {
		return earlier
	}
	return &Error{Value: value, Stack: string(debug.Stack())}
}

// Group are goroutines that somebody waits for. The zero value is ready for use.
type Group struct {
	all   sync.WaitGroup
	first atomic.Pointer[Error]
}

// Go runs f in a goroutine of its own.
func (g *Group) Go(f func()) {
	g.all.Go(func() {
		defer func() {
			if value := recover(); value != nil {
				g.first.CompareAndSwap(nil, caught(value))
			}
		}()
		f()
	})
}

// Wait waits for all of them. If one has panicked, so does Wait, with the *Error of the first that
// did: whoever waits can recover, which nobody can for a goroutine of its own.
func (g *Group) Wait() {
	g.all.Wait()
	if first := g.first.Load(); first != nil {
		panic(first)
	}
}
