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
	"quorate.dev/quorate/internal/printable"
)

// maxInspectionStack is the maximum stack size, in bytes, of the process that inspects a file. A page that is its own
// child would otherwise cause infinite recursion.
const maxInspectionStack = 64 << 20

// newInspect returns the command for inspecting a snapshot. It runs in a child process, because a damaged snapshot may
// crash the library that reads it.
func newInspect(std streams) *cobra.Command {
	return &cobra.Command{
		Use:    "inspect-snapshot FILE",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			debug.SetMaxStack(maxInspectionStack)
			if container := memoryLimit(); container > 0 {
				debug.SetMemoryLimit(container / 2) // the other half is for the parent process
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

// inspectApart inspects a snapshot in a child process with an empty environment.
func inspectApart(ctx context.Context, file string) (snapshot.Facts, error) {
	self, err := os.Executable()
	if err != nil {
		return snapshot.Facts{}, fmt.Errorf("inspect a snapshot: %w", err)
	}
	debug.FreeOSMemory() // the child process needs this process's unused memory
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

// isCrash reports whether the Go runtime ended the process because of the file: the process panicked, read past the end
// of the file, or overflowed the stack. The panic may not be the first output, because a goroutine of the library may
// panic while other damage is being reported. If the process was killed, or ran out of memory or threads, the file may
// be intact.
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

// cause returns the first line of said, without the repeated prefix.
func cause(said string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	if _, after, repeated := strings.Cut(line, snapshot.ErrDamaged.Error()+": "); repeated {
		line = after
	}
	return printable.Line(strings.TrimPrefix(line, "quorate: "))
}
