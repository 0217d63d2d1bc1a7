// Package etcdprocess starts an etcd that nobody else can reach, to ask it what it makes of data.
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
	"quorate.dev/quorate/clusters/child"
	"quorate.dev/quorate/etcdversion"
	"quorate.dev/quorate/excerpt"
)

// Program is an etcd that can be started.
type Program struct {
	Path    string
	Version etcdversion.Version
}

// versionPatience is how long a program has for saying which version it is.
const versionPatience = 10 * time.Second

// ErrVersion is data that the program at hand is not to be started with.
var ErrVersion = errors.New("this etcd is not to be started with the data")

// Find looks for a program, by its path or by its name in PATH, and asks it for its version.
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
		return Program{}, fmt.Errorf("ask %s for its version: %w", path, err)
	}
	text, is := strings.CutPrefix(strings.TrimSpace(line), "etcd Version: ")
	if !is {
		return Program{}, fmt.Errorf("ask %s for its version: it said %.60q; is it etcd?", path, line)
	}
	version, err := etcdversion.ParseRunning(text)
	if err != nil {
		return Program{}, fmt.Errorf("ask %s for its version: %w", path, err)
	}
	return Program{path, version}, nil
}

// firstLine is the first line that a program prints, whatever it goes on to print or to do.
func firstLine(ctx context.Context, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, versionPatience, fmt.Errorf("no answer within %s", versionPatience))
	defer cancel()
	command := exec.CommandContext(ctx, path, args...)
	command.Env = []string{} // settings of etcd would be among it
	command.WaitDelay = ending
	child.InGroup(command)
	var said excerpt.Head
	command.Stdout = &said
	if err := command.Run(); err != nil {
		return "", cmp.Or(context.Cause(ctx), err)
	}
	line, _, _ := strings.Cut(said.String(), "\n")
	return line, nil
}

// Suits refuses what etcd supports in no upgrade: an older minor version, which may start all the
// same and misread what it finds, and one that is more than one step newer.
func (p Program) Suits(facts snapshot.Facts) error {
	suits, was, err := facts.Suits(p.Version)
	if err != nil {
		return err
	}
	if !suits {
		return fmt.Errorf("%w: it is %s, and the cluster ran as %s; use %s or %s", ErrVersion, p.Version, was, was,
			was.Next(1))
	}
	return nil
}
