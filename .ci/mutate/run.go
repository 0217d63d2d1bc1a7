package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// stage is a run of some tests in a directory.
type stage struct {
	name   string
	dir    string
	args   []string
	binary string
	// limit is the maximum duration of the run, after which an infinite loop is assumed. It is derived from the
	// duration without a mutant.
	limit time.Duration
}

// slow matches the tests of small worlds, which take longer than all other tests combined.
const slow = "TestEverySmallWorld|TestEveryRoadOfSmallWorlds|TestEachLeaderIsAskedOnce"

// stagesOf returns the stages for a package: its stories, its other fast tests, the paths in the neighboring package
// simulate, the smallest worlds, and finally all tests.
func stagesOf(dir string) []stage {
	stages := []stage{
		{name: "stories", dir: dir, args: []string{"-test.run", "^TestStories$"}},
		{name: "other tests", dir: dir, args: []string{"-test.skip", "^(TestStories|" + slow + ")$"}},
	}
	paths := filepath.Join(filepath.Dir(dir), "simulate")
	if _, err := os.Stat(paths); err == nil {
		stages = append(stages, stage{name: "paths", dir: paths, args: []string{"-test.run", "^TestPaths$"}})
	}
	return append(stages,
		stage{name: "smallest worlds", dir: dir, args: []string{"-test.short"}},
		stage{name: "small worlds", dir: dir})
}

// run runs the tests with the given mutant, or without a mutant if number is 0. It reports whether the tests failed,
// and returns their output.
func (s stage) run(ctx context.Context, number int) (failed bool, said []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	command := exec.CommandContext(ctx, s.binary, append([]string{"-test.failfast"}, s.args...)...)
	command.Dir = s.dir
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", variable, number))
	said, err = command.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return true, said, nil
	}
	return false, said, err
}

// kill runs the stages with each mutant and returns the mutants that survive all stages.
func kill(ctx context.Context, stages []stage, mutants []mutant, parallel int, out io.Writer) ([]mutant, error) {
	for _, s := range stages {
		if len(mutants) == 0 {
			break
		}
		s.limit = time.Hour
		began := time.Now()
		failed, said, err := s.run(ctx, 0)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, fmt.Errorf("run the %s without any mutant: %w", s.name, err)
		}
		if failed {
			return nil, fmt.Errorf("the %s fail without any mutant:\n%s", s.name, bytes.TrimSpace(said))
		}
		took := time.Since(began)
		s.limit = 10*took + 10*time.Second
		alive, err := s.kill(ctx, mutants, parallel)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(out, "%s kill %d of %d, in %s (%s without a mutant)\n", s.name, len(mutants)-len(alive),
			len(mutants),
			time.Since(began).Round(time.Second), took.Round(10*time.Millisecond))
		mutants = alive
	}
	return mutants, nil
}

func (s stage) kill(ctx context.Context, mutants []mutant, parallel int) ([]mutant, error) {
	failed, failures := make([]bool, len(mutants)), make([]error, len(mutants))
	var group sync.WaitGroup
	places := make(chan struct{}, parallel)
	for i, m := range mutants {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			failed[i], _, failures[i] = s.run(ctx, m.number)
		})
	}
	group.Wait()
	var alive []mutant
	for i, m := range mutants {
		if !failed[i] {
			alive = append(alive, m)
		}
	}
	return alive, errors.Join(append(failures, ctx.Err())...)
}
