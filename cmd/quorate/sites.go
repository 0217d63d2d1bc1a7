package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quorate.dev/quorate/clusters/fleet"
	"quorate.dev/quorate/clusters/offline"
	"quorate.dev/quorate/gitsource/sources"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/approval"
	"quorate.dev/quorate/reconcile/metrics"
	"quorate.dev/quorate/reconcile/report"
)

// target is the part of a run that covers one Kubernetes cluster. It does not wait for other targets.
type target struct {
	// name is the name of the Kubernetes cluster, or empty if it is the only one.
	name string
	// open initializes r and live, once. If it fails, the run cannot act on this Kubernetes cluster.
	open func() error
	// r runs the passes over live.
	r    *reconcile.Reconciler
	live reconcile.Live
	// watched collects metrics. took is the total duration of the passes, or zero if no pass was run.
	watched *metrics.Metrics
	took    time.Duration
	// told sends notifications. It may be nil.
	told *notifier
}

var errLoopOfSeveral = usageError{errors.New("--loop manages one Kubernetes cluster: run one loop for each, " +
	"such as a Deployment in each Kubernetes cluster, with at most one --context")}

// targets returns the targets of a run. If there are several, it does not open them, because that could take a long
// time.
func (f *runFlags) targets(
	ctx context.Context, log *slog.Logger, tell func(report.Report, time.Duration),
) ([]*target, error) {
	kubeTargets, err := f.live.places.places()
	if err != nil {
		return nil, err
	}
	several := f.live.places.several()
	switch {
	case several && f.loop.on:
		return nil, errLoopOfSeveral
	case several:
		f.source.shared, f.source.slots = &sources.Shared{}, sources.NewSlots(f.source.atOnce)
	}
	var flags []*sourceFlags
	for _, p := range kubeTargets {
		source, err := f.source.at(p)
		if err != nil {
			return nil, err
		}
		flags = append(flags, source)
	}
	if _, err := f.live.check(); err != nil {
		return nil, err
	}
	reg, err := f.live.register(ctx, kubeTargets)
	if err != nil {
		return nil, err
	}
	var targets []*target
	for i, p := range kubeTargets {
		s := &target{name: p.Name, watched: metrics.Of(p.Name)}
		s.open = sync.OnceValue(func() error {
			if err := f.awaitTurn(ctx, reg, i); err != nil {
				return err
			}
			return f.open(ctx, s, reg.flags[i], flags[i], log, tell)
		})
		targets = append(targets, s)
	}
	if !several {
		return targets, targets[0].open()
	}
	return targets, nil
}

// awaitTurn waits, within the run's timeout, until the Kubernetes cluster has been identified.
func (f *runFlags) awaitTurn(ctx context.Context, reg *register, i int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("it took longer than --timeout %s", f.timeout))
	defer cancel()
	return reg.Ready(ctx, i)
}

// at returns the sources for one of the Kubernetes clusters.
func (f *sourceFlags) at(p kubeTarget) (*sourceFlags, error) {
	own := *f
	if p.Path == "" {
		return &own, nil
	}
	refuse := func(why string) (*sourceFlags, error) {
		return nil, usageError{fmt.Errorf("--fleet: %s sets path: %s, but %s; remove one of them", p.Name, p.Path,
			why)}
	}
	if f.live() {
		return refuse("--source " + ofCluster + " does not read a git repository")
	}
	own.settings.Path = p.Path
	list, err := own.checkEach(source.check)
	if err != nil {
		return nil, usageError{fmt.Errorf("--fleet: path of %s: %w", p.Name, err)}
	}
	for _, s := range list {
		if s.Path != p.Path {
			return refuse(fmt.Sprintf("--source %s has its own path", s))
		}
	}
	return &own, nil
}

// open initializes the part of a run for one Kubernetes cluster.
func (f *runFlags) open(
	ctx context.Context, s *target, live *liveFlags, source *sourceFlags, log *slog.Logger,
	tell func(report.Report, time.Duration),
) error {
	scope, err := source.scope()
	if err != nil {
		return err
	}
	live.requested = s.watched.Request
	from, err := source.source(s.watched)
	if err != nil {
		return err
	}
	if s.live, err = f.side(live, source, scope); err != nil && f.plan {
		return without(err, "compare with another revision, using "+offline.Flag+", without access to Kubernetes")
	} else if err != nil {
		return err
	}
	if s.name != "" {
		log = log.With("kubernetes", s.name)
	}
	s.r = &reconcile.Reconciler{
		Source: from, Live: s.live, Log: log, Plan: f.plan, Progress: s.named(tell), ClusterTimeout: f.clusterTimeout,
		Steps: s.watched,
	}
	s.told = f.notify.begin(ctx, s.r, s.name, !f.loop.on)
	if f.approve.neverRestart {
		s.r.Approval = approval.NeverRestart{}
	}
	return nil
}

// side returns the actual live side or, with --against, a simulated one.
func (f *runFlags) side(live *liveFlags, source *sourceFlags, s scope) (reconcile.Live, error) {
	if f.against != "" {
		return f.offline(source)
	}
	return live.live(s)
}

// named returns a function that calls tell with a target's passes and name, or nil if tell is nil.
func (s *target) named(tell func(report.Report, time.Duration)) func(report.Report, time.Duration) {
	if tell == nil {
		return nil
	}
	return func(rep report.Report, took time.Duration) {
		tell(report.Join([]report.Part{{Kubernetes: s.name, Report: rep}}), took)
	}
}

// onEach opens all targets, runs do for each of them in parallel, and returns the reports.
func onEach(targets []*target, do func(*target) report.Report) []report.Part {
	var names []string
	for _, s := range targets {
		names = append(names, s.name)
	}
	return fleet.Each(names, func(i int) (report.Report, error) {
		if err := targets[i].open(); err != nil {
			return report.Report{}, err
		}
		return do(targets[i]), nil
	})
}

// pass runs all targets until each of them has a report, and joins the reports.
func (f *runFlags) pass(ctx context.Context, targets []*target) (rep report.Report, converged bool) {
	var mu sync.Mutex
	converged = true
	began := time.Now()
	parts := onEach(targets, func(s *target) report.Report {
		began := time.Now()
		rep, done := f.passes(ctx, s)
		s.took = time.Since(began)
		mu.Lock()
		defer mu.Unlock()
		converged = converged && done
		return rep
	})
	for i, s := range targets {
		parts[i].Report.Planned = f.plan
		s.watched.Observe(parts[i].Report, cmp.Or(s.took, time.Since(began)))
	}
	return report.Join(parts), converged
}

// closeAll releases the leases of all targets.
func closeAll(ctx context.Context, targets []*target) {
	var all sync.WaitGroup
	for _, s := range targets {
		if s.r != nil {
			all.Go(func() { giveUp(ctx, s.live, s.r.Log) })
		}
	}
	all.Wait()
}

// endTelling sends the remaining notifications of all targets in parallel.
func endTelling(ctx context.Context, targets []*target, longest time.Duration) {
	var all sync.WaitGroup
	for _, s := range targets {
		all.Go(func() { s.told.end(ctx, longest) })
	}
	all.Wait()
}

// counted returns the metrics of all targets.
func counted(targets []*target) prometheus.Gatherer {
	var all prometheus.Gatherers
	for _, s := range targets {
		all = append(all, s.watched.Gatherer())
	}
	return all
}
