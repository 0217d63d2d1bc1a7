// Command mutate changes a package in one place at a time, and reports the changes that the tests do not detect. Each
// change is called a mutant.
//
//	go run ./.ci/mutate [-only REGEXP] [-stages FIRST-LAST] [-list] DIRECTORY
//
// All mutants are compiled into one test binary. The environment variable MUTANT selects one of them by number, so each
// mutant takes a test run but no build. Tests run in stages, the cheapest first, and a mutant that is killed in one
// stage is not run in later stages. See mutants.go for the kinds of mutants.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	only := flags.String("only", "",
		"regular expression: use only mutants whose output line matches it, such as guards.go")
	list := flags.Bool("list", false, "list the mutants without running tests")
	from, to := 1, 5
	flags.Func("stages", "first and last test stage to run, such as 1-2; the stages are stories, other tests, paths, "+
		"smallest worlds, small worlds (default: 1-5)", func(text string) error {
		_, err := fmt.Sscanf(text, "%d-%d", &from, &to)
		return err
	})
	parallel := flags.Int("parallel", 2, "number of mutants to test at the same time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(flags.Arg(0))
	if err != nil {
		return err
	}
	p, err := mutate(dir)
	if err != nil {
		return err
	}
	mutants := slices.DeleteFunc(slices.Clone(p.mutants),
		func(m mutant) bool { return !wanted.MatchString(m.String()) })
	if *list {
		for _, m := range mutants {
			fmt.Fprintln(out, m)
		}
		fmt.Fprintf(out, "%d mutants\n", len(mutants))
		return nil
	}
	return hunt(ctx, p, mutants, from, to, *parallel, out)
}

// hunt runs the tests with each mutant and reports the mutants that survive.
func hunt(ctx context.Context, p *mutated, mutants []mutant, from, to, parallel int, out io.Writer) error {
	began := time.Now()
	work, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	stages, err := build(ctx, p, work)
	if err != nil {
		return err
	}
	if from < 1 || from > len(stages) || to < from {
		return fmt.Errorf("-stages %d-%d: the package has stages 1 to %d", from, to, len(stages))
	}
	survivors, err := kill(ctx, stages[from-1:min(to, len(stages))], mutants, parallel, out)
	if err != nil {
		return err
	}
	for _, m := range survivors {
		fmt.Fprintf(out, "survived  %s\n", m)
	}
	killed := len(mutants) - len(survivors)
	fmt.Fprintf(out, "%d mutants, %d killed, %d survived: %.1f %% killed, in %s\n",
		len(mutants), killed, len(survivors), 100*float64(killed)/float64(max(1, len(mutants))),
		time.Since(began).Round(time.Second))
	return nil
}

// build compiles the test binaries of the stages, with all mutants.
func build(ctx context.Context, p *mutated, work string) ([]stage, error) {
	overlay, err := p.write(work)
	if err != nil {
		return nil, err
	}
	stages := stagesOf(p.dir)
	built := map[string]string{}
	for i := range stages {
		s := &stages[i]
		if built[s.dir] == "" {
			built[s.dir] = filepath.Join(work, fmt.Sprintf("%d.test", i))
			command := exec.CommandContext(ctx, "go", "test", "-trimpath", "-vet=off", "-c", "-overlay", overlay, "-o",
				built[s.dir], s.dir)
			if said, err := command.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("build the tests in %s with all mutants: %w\n%s", s.dir, err, said)
			}
		}
		s.binary = built[s.dir]
	}
	return stages, nil
}
