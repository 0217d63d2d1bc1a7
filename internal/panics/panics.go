// Package panics converts panics into errors, so that a bug affects only one cluster.
package panics

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Error is a caught panic.
type Error struct {
	// Value is the value that was passed to panic.
	Value any
	// Stack is the stack of the goroutine that panicked, as the runtime prints it.
	Stack string
}

func (e *Error) Error() string {
	return fmt.Sprintf("panic: %.300q; this is a bug in Quorate, please report it", fmt.Sprint(e.Value))
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

// caught returns the error for a recovered value. If the panic was caught in another goroutine, the error keeps that
// goroutine's stack.
func caught(value any) *Error {
	if earlier, is := value.(*Error); is {
		return earlier
	}
	return &Error{Value: value, Stack: string(debug.Stack())}
}

// Group is a group of goroutines. The zero value is ready to use.
type Group struct {
	all   sync.WaitGroup
	first atomic.Pointer[Error]
}

// Go runs f in a new goroutine.
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

// Wait waits for all goroutines. If any of them has panicked, Wait panics with the *Error of the first panic. The
// caller of Wait can recover from this panic, but could not recover from a panic in another goroutine.
func (g *Group) Wait() {
	g.all.Wait()
	if first := g.first.Load(); first != nil {
		panic(first)
	}
}
