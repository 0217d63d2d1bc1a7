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
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/backup/recovery"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/gitsource/manifests/confined"
	"quorate.dev/quorate/internal/boundedtext"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/internal/procgroup"
)

// These limits, in bytes and processor time, apply to a process that reads a member's files. They far exceed what files
// written by etcd require. Committing the log loads the end of the log into memory, as etcd does at startup.
const (
	readMemory   = 1 << 30
	commitMemory = 8 << 30
	memberCPU    = 10 * time.Minute
	maxAnswer    = 1 << 20
)

// errTooLarge is returned if reading a member exceeds the memory limit.
var errTooLarge = errors.New("reading it requires more memory than allowed")

// memberMemory returns the memory limit of a task, in bytes: at most three quarters of the container's limit.
func memberMemory(task string) int64 {
	most := int64(readMemory)
	if task == commitLog {
		most = commitMemory
	}
	if all := memoryLimit(); all > 0 {
		most = min(most, all/4*3)
	}
	return most
}

// These are the tasks that a child process performs on a member's files.
const (
	readSurvivor  = "survivor"
	readUnstarted = "unstarted"
	commitLog     = "commit-log"
	disableAuth   = "disable-auth"
)

// memberAnswer is the output of the child process.
type memberAnswer struct {
	Survivor *snapshot.Survivor `json:"survivor,omitempty"`
	Is       bool               `json:"is,omitempty"`
	// Error is the error message. Kind is the position of the error in memberErrors, starting at 1.
	Error string `json:"error,omitempty"`
	Kind  int    `json:"kind,omitempty"`
}

// memberErrors lists the errors that the parent process distinguishes.
var memberErrors = []error{snapshot.ErrNoMember, snapshot.ErrRunning, snapshot.ErrDamaged, recovery.ErrUnfit}

// newMemberFiles returns the command that reads a member's files. It runs in a child process, because the files may be
// crafted to exhaust its memory or to crash it.
func newMemberFiles(std streams) *cobra.Command {
	return &cobra.Command{
		Use:    "member-files TASK DIR",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			debug.SetMaxStack(maxInspectionStack)
			memory := memberMemory(args[0])
			debug.SetMemoryLimit(memory / 4 * 3)
			if err := confined.Bound(memory, memberCPU); err != nil {
				return fmt.Errorf("limit the memory for reading a member: %w", err)
			}
			return json.NewEncoder(std.out).Encode(doWithMember(args[0], args[1]))
		},
	}
}

func doWithMember(task, dir string) (a memberAnswer) {
	var err error
	switch task {
	case readSurvivor:
		var s snapshot.Survivor
		s, err = snapshot.SurvivorOf(dir)
		a.Survivor = &s
	case readUnstarted:
		a.Is, err = snapshot.Unstarted(dir)
	case commitLog:
		a.Is, err = snapshot.CommitLog(dir)
	case disableAuth:
		err = snapshot.DisableAuth(dir)
	default:
		err = fmt.Errorf("unknown task %q", task)
	}
	if err != nil {
		is := slices.IndexFunc(memberErrors, func(one error) bool { return errors.Is(err, one) })
		return memberAnswer{Error: err.Error(), Kind: is + 1}
	}
	return a
}

// memberInChildProcess implements recovery.Files by reading members' files in child processes.
type memberInChildProcess struct{}

// Survivor implements recovery.Files.
func (m memberInChildProcess) Survivor(ctx context.Context, dataDir string) (snapshot.Survivor, error) {
	a, err := m.do(ctx, readSurvivor, dataDir)
	if err == nil && a.Survivor == nil {
		err = fmt.Errorf("read the member in %s: the reading process did not return a result", dataDir)
	}
	if err != nil {
		return snapshot.Survivor{}, err
	}
	return *a.Survivor, nil
}

// CommitLog implements recovery.Files.
func (m memberInChildProcess) CommitLog(ctx context.Context, dataDir string) (turnsAuthOn bool, err error) {
	a, err := m.do(ctx, commitLog, dataDir)
	return a.Is, err
}

// DisableAuth implements recovery.Files.
func (m memberInChildProcess) DisableAuth(ctx context.Context, dataDir string) error {
	_, err := m.do(ctx, disableAuth, dataDir)
	return err
}

// unstarted calls snapshot.Unstarted in a child process.
func (m memberInChildProcess) unstarted(ctx context.Context, dir string) (bool, error) {
	a, err := m.do(ctx, readUnstarted, dir)
	return a.Is, err
}

// do runs a task in a child process with an empty environment.
func (memberInChildProcess) do(ctx context.Context, task, dir string) (a memberAnswer, err error) {
	self, err := os.Executable()
	if err != nil {
		return a, fmt.Errorf("read the member in %s: %w", dir, err)
	}
	var out answer
	var stderr boundedtext.Head
	command := exec.CommandContext(ctx, self, "member-files", task, dir)
	command.Args[0] = os.Args[0]
	command.Env, command.Stdout, command.Stderr = []string{}, &out, &stderr
	command.SysProcAttr = procgroup.WithParent()
	if err := command.Run(); err != nil {
		return a, fmt.Errorf("read the member in %s: %w", dir, memberFailed(ctx, err, task, stderr.String()))
	}
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		return a, fmt.Errorf("read the member in %s: decode the result of the reading process: %w", dir, err)
	}
	if a.Error == "" {
		return a, nil
	}
	told := toldError{text: a.Error}
	if a.Kind > 0 && a.Kind <= len(memberErrors) {
		told.is = memberErrors[a.Kind-1]
	}
	return memberAnswer{}, told
}

// memberFailed returns the reason why a child process did not return a result.
func memberFailed(ctx context.Context, err error, task, said string) error {
	ended, is := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !is:
		return err
	case isCrash(ended, said):
		return fmt.Errorf("%w: the reading process exited: %s", snapshot.ErrDamaged, cause(said))
	case strings.Contains(said, "out of memory") || strings.Contains(said, "cannot allocate memory"):
		return fmt.Errorf("%w: %d MiB", errTooLarge, memberMemory(task)>>20)
	}
	return fmt.Errorf("the reading process was killed by the system or after %s of processor time: %w: %s",
		memberCPU, err, cause(said))
}

// toldError is an error reported by a child process.
type toldError struct {
	text string
	is   error
}

func (e toldError) Error() string { return printable.Line(e.text) }
func (e toldError) Unwrap() error { return e.is }

// answer holds up to maxAnswer bytes of output of a child process.
type answer struct{ bytes.Buffer }

// Write implements io.Writer.
func (a *answer) Write(p []byte) (int, error) {
	if a.Len()+len(p) > maxAnswer {
		return 0, fmt.Errorf("its output exceeds %d bytes", maxAnswer)
	}
	return a.Buffer.Write(p)
}
