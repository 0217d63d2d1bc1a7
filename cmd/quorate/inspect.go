package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/visible"
)

// maxInspectionStack bounds what a file can do to the process that inspects it: a page that is
// its own child is walked without end.
const maxInspectionStack = 64 << 20

// newInspect is the process in which a snapshot is inspected: on a damaged one, the library that
// reads it may end it.
func newInspect(std streams) *cobra.Command {
	return &cobra.Command{
		Use:    "inspect-snapshot FILE",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			debug.SetMaxStack(maxInspectionStack)
			if container := memoryLimit(); container > 0 {
				debug.SetMemoryLimit(container / 2) // the process that waits for this one has the other half
			}
			facts, err := snapshot.Inspect(args[0])
			if errors.Is(err, snapshot.ErrDamaged) {
				fmt.Fprintln(std.err, err)
				return exit(exitBlocked)
			}
			if err != nil {
				return err
			}
			return json.NewEncoder(std.out).Encode(facts)
		},
	}
}

// inspectApart inspects a snapshot in a process of its own, with nothing of this one's environment.
func inspectApart(ctx context.Context, file string) (snapshot.Facts, error) {
	self, err := os.Executable()
	if err != nil {
		return snapshot.Facts{}, fmt.Errorf("inspect a snapshot: %w", err)
	}
	debug.FreeOSMemory() // the other process needs what this one has done with
	var out, stderr bytes.Buffer
	command := exec.CommandContext(ctx, self, "inspect-snapshot", file)
	command.Args[0] = os.Args[0]
	command.Env, command.Stdout, command.Stderr = []string{}, &out, &stderr
	err = command.Run()
	var facts snapshot.Facts
	switch ended := (*exec.ExitError)(nil); {
	case ctx.Err() != nil:
		return snapshot.Facts{}, fmt.Errorf("inspect a snapshot: %w", context.Cause(ctx))
	case err == nil:
		if err := json.Unmarshal(out.Bytes(), &facts); err != nil {
			return snapshot.Facts{}, fmt.Errorf("inspect a snapshot: %w", err)
		}
		return facts, nil
	case !errors.As(err, &ended):
		return snapshot.Facts{}, fmt.Errorf("inspect a snapshot: %w", err)
	case ended.ExitCode() == exitBlocked || isCrash(ended, stderr.String()):
		return snapshot.Facts{}, fmt.Errorf("%w: %s", snapshot.ErrDamaged, cause(stderr.String()))
	default:
		return snapshot.Facts{}, fmt.Errorf("inspect a snapshot: %w: %s", err, cause(stderr.String()))
	}
}

// isCrash reports whether Go ended the process over what it read: it panicked, read beyond the file,
// or walked without end. That need not come first: a goroutine of the library may panic while the
// damage that another has found is being said. Whoever is killed, or lacks memory or threads, has
// learnt nothing about the file.
func isCrash(ended *exec.ExitError, said string) bool {
	if ended.ExitCode() != 2 {
		return false
	}
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "panic: ") || strings.Contains(line, "stack exceeds") ||
			strings.Contains(line, "unexpected fault address") {
			return true
		}
	}
	return false
}

// cause is the first line, without what is said again.
func cause(said string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	if _, after, repeated := strings.Cut(line, snapshot.ErrDamaged.Error()+": "); repeated {
		line = after
	}
	return visible.Line(strings.TrimPrefix(line, "quorate: "))
}
