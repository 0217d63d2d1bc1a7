// Package etcdprocess starts an etcd that other processes cannot reach, in order to check how etcd reads data.
package etcdprocess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/internal/boundedtext"
	"quorate.dev/quorate/internal/etcdversion"
	"quorate.dev/quorate/internal/procgroup"
)

// Program is an etcd executable.
type Program struct {
	Path    string
	Version etcdversion.Version
}

// versionPatience is the time limit for a program to print its version.
const versionPatience = 10 * time.Second

// ErrVersion is returned if this etcd must not be started with the data.
var ErrVersion = errors.New("this etcd version must not be started with the data")

// Find finds a program by its path, or by its name in PATH, and determines its version.
func Find(ctx context.Context, program string) (Program, error) {
	path, err := exec.LookPath(program)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return Program{}, fmt.Errorf("find etcd: %w", err)
	}
	line, err := firstLine(ctx, path, "--version")
	if err != nil {
		return Program{}, fmt.Errorf("get the version of %s: %w", path, err)
	}
	text, is := strings.CutPrefix(strings.TrimSpace(line), "etcd Version: ")
	if !is {
		return Program{}, fmt.Errorf("get the version of %s: unexpected output %.60q; is it etcd?", path, line)
	}
	version, err := etcdversion.ParseRunning(text)
	if err != nil {
		return Program{}, fmt.Errorf("get the version of %s: %w", path, err)
	}
	return Program{path, version}, nil
}

// firstLine returns the first line that a program prints and discards the rest.
func firstLine(ctx context.Context, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, versionPatience, fmt.Errorf("no response within %s", versionPatience))
	defer cancel()
	command := exec.CommandContext(ctx, path, args...)
	command.Env = []string{} // the environment could contain settings for etcd
	command.WaitDelay = ending
	procgroup.InGroup(command)
	var said boundedtext.Head
	command.Stdout = &said
	if err := command.Run(); err != nil {
		return "", cmp.Or(context.Cause(ctx), err)
	}
	line, _, _ := strings.Cut(said.String(), "\n")
	return line, nil
}

// Suits returns ErrVersion if etcd does not support an upgrade from the data's version to the program's. The program
// may be at most one minor version newer than the data. An older program might start anyway and misread the data.
func (p Program) Suits(facts snapshot.Facts) error {
	suits, was, err := facts.Suits(p.Version)
	if err != nil {
		return err
	}
	if !suits {
		return fmt.Errorf("%w: the program is etcd %s, but the cluster ran etcd %s; use %s or %s "+
			"(--etcd, or spec.version in the declaration)", ErrVersion, p.Version, was, was, was.Next(1))
	}
	return nil
}
