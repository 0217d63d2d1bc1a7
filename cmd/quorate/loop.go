package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/metrics"
	"quorate.dev/quorate/reconcile/report"
)

// loopRound is the interval at which a loop resets its count of deletions, as a new run would. It is also the maximum
// time for which the status of an unchanged cluster may show an older revision.
const loopRound = 10 * time.Minute

// loopFlags are the flags of a run that continues until it is stopped.
type loopFlags struct {
	on     bool
	often  reconcile.Intervals
	listen string
}

func (f *loopFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.on, "loop", false,
		"run until stopped, processing each cluster when something about it changes")
	flags.DurationVar(&f.often.Git, "git-interval", 10*time.Second,
		"how long a loop waits before rereading each source; if a git repository has not changed, only "+
			"its references are read")
	flags.DurationVar(&f.often.Resync, "resync", 5*time.Minute,
		"how often a loop processes all clusters even if nothing has changed")
	flags.DurationVar(&f.often.Etcd, "etcd-interval", 30*time.Second,
		"minimum time in a loop between checks of the members of an unchanged, "+
			"up-to-date cluster")
	flags.StringVar(&f.listen, "listen", "",
		"with --loop, address on which to serve /healthz, /readyz and /metrics, such as :8080 (default: none)")
}

// notWithLoop lists the flags that cannot be combined with --loop, with the reasons.
var notWithLoop = [][2]string{
	{"until-converged", "a loop continues after everything is up to date"},
	{"timeout", "a loop runs until stopped; limits.clusterTimeout limits the time per cluster"},
	{"output", "a loop does not print a final report; results are in the status of each cluster"},
	{"detailed-exitcode", "a loop exits with 0 when stopped"},
}

// check reports all invalid combinations. given reports whether a flag is on the command line; the configuration file
// does not count, because it may contain settings for other runs.
func (f *loopFlags) check(given func(flag string) bool) error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if !f.on {
		for _, name := range []string{"listen"} {
			if given(name) {
				problem("%s requires --loop", nameOf(name))
			}
		}
		return usage(problems)
	}
	for _, flag := range notWithLoop {
		if given(flag[0]) {
			problem("--%s and --loop: %s; remove one of them", flag[0], flag[1])
		}
	}
	return usage(append(problems, f.checkIntervals()...))
}

// checkIntervals rejects intervals that are too short.
func (f *loopFlags) checkIntervals() (problems []error) {
	for _, flag := range []struct {
		name     string
		interval time.Duration
	}{{"git-interval", f.often.Git}, {"resync", f.often.Resync}, {"etcd-interval", f.often.Etcd}} {
		if flag.interval < time.Second {
			problems = append(problems, fmt.Errorf("%s %s: must be at least one second", nameOf(flag.name),
				flag.interval))
		}
	}
	return problems
}

// run loops until ctx is done, and does not return an error for that.
func (f *loopFlags) run(
	ctx context.Context, r *reconcile.Reconciler, served *metrics.Metrics, lease time.Duration,
) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	f.often.Lease = lease
	if f.listen != "" {
		r.Progress = both(r.Progress, served.Observe)
		server, err := listen(f.listen, r, served.Handler())
		if err != nil {
			return err
		}
		defer server.stop()
		go func() { stop(server.serve()) }()
	}
	r.Loop(ctx, f.often)
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// both returns a function that calls both functions for each pass. The first may be nil.
func both(first, second func(report.Report, time.Duration)) func(report.Report, time.Duration) {
	if first == nil {
		return second
	}
	return func(rep report.Report, took time.Duration) {
		first(rep, took)
		second(rep, took)
	}
}
