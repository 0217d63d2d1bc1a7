package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/approval"
	"quorate.dev/quorate/reconcile/metrics"
	"quorate.dev/quorate/reconcile/panics"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/steps"
)

// site is the part of a run that is about one Kubernetes cluster. It waits for no other one.
type site struct {
	// name of the Kubernetes cluster; empty where it is the only one.
	name string
	// open readies the two below, once. An error says why nothing can be done there.
	open func() error
	// r makes the passes, and live is what they are over.
	r    *reconcile.Reconciler
	live reconcile.Live
	// watched is what is counted, and took how long the passes have taken; zero if there were none.
	watched *metrics.Metrics
	took    time.Duration
	// told, if anybody is to be told of the passes, does that.
	told *notifier
}

var errLoopOfSeveral = usageError{errors.New("--loop looks after one Kubernetes cluster: run one loop for each, " +
	"such as a Deployment in each of them, with one --context or none")}

// sites are those of a run. Of several, none is open yet, since that may take one of them long.
func (f *runFlags) sites(
	ctx context.Context, log *slog.Logger, tell func(report.Report, time.Duration),
) ([]*site, error) {
	places, err := f.live.places.places()
	if err != nil {
		return nil, err
	}
	several := f.live.places.several()
	switch {
	case several && f.loop.on:
		return nil, errLoopOfSeveral
	case several:
		f.source.reads, f.source.turns = &reads{}, newTurns(f.source.atOnce)
	}
	var sources []*sourceFlags
	for _, p := range places {
		source, err := f.source.at(p)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	if _, err := f.live.check(); err != nil {
		return nil, err
	}
	meeting, err := f.live.meet(ctx, places)
	if err != nil {
		return nil, err
	}
	var sites []*site
	for i, p := range places {
		s := &site{name: p.Name, watched: metrics.Of(p.Name)}
		s.open = sync.OnceValue(func() error {
			if err := f.ready(ctx, meeting, meeting.all[i]); err != nil {
				return err
			}
			return f.open(ctx, s, meeting.all[i].flags, sources[i], log, tell)
		})
		sites = append(sites, s)
	}
	if !several {
		return sites, sites[0].open()
	}
	return sites, nil
}

// ready waits until it is known which Kubernetes cluster it is, for as long as the run may take.
func (f *runFlags) ready(ctx context.Context, m *meeting, one *met) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout, fmt.Errorf("it took longer than --timeout %s", f.timeout))
	defer cancel()
	return m.ready(ctx, one)
}

// at are the sources as they are for one of the Kubernetes clusters.
func (f *sourceFlags) at(p place) (*sourceFlags, error) {
	own := *f
	if p.Path == "" {
		return &own, nil
	}
	refuse := func(why string) (*sourceFlags, error) {
		return nil, usageError{fmt.Errorf("--fleet: %s has path: %s, and %s; leave one of them out", p.Name, p.Path,
			why)}
	}
	if f.live() {
		return refuse("--source " + ofCluster + " reads no git repository")
	}
	own.settings.path = p.Path
	sources, err := own.checkEach(source.check)
	if err != nil {
		return nil, usageError{fmt.Errorf("--fleet: path of %s: %w", p.Name, err)}
	}
	for _, s := range sources {
		if s.path != p.Path {
			return refuse(fmt.Sprintf("--source %s has its own", s))
		}
	}
	return &own, nil
}

// open readies the part of a run that is about one Kubernetes cluster.
func (f *runFlags) open(
	ctx context.Context, s *site, live *liveFlags, source *sourceFlags, log *slog.Logger,
	tell func(report.Report, time.Duration),
) error {
	scope, err := source.scope()
	if err != nil {
		return err
	}
	live.requested, source.steps = s.watched.Request, steps.All(s.watched, f.traces.hook())
	if s.live, err = f.side(live, source, scope); err != nil && f.plan {
		return without(err, "compare with another revision by "+flagAgainst+", which asks no Kubernetes")
	} else if err != nil {
		return err
	}
	if s.name != "" {
		log = log.With("kubernetes", s.name)
	}
	s.r = &reconcile.Reconciler{
		Source: source, Live: s.live, Log: log, Plan: f.plan, Progress: s.named(tell), ClusterTimeout: f.clusterTimeout,
		Steps: source.steps,
	}
	s.told = f.notify.begin(ctx, s.r, s.name, !f.loop.on)
	if f.approve.neverRestart {
		s.r.Approval = approval.NeverRestart{}
	}
	return nil
}

// side is where clusters run, or are taken to.
func (f *runFlags) side(live *liveFlags, source *sourceFlags, s scope) (reconcile.Live, error) {
	if f.against != "" {
		return f.offline(source), nil
	}
	return live.live(s)
}

// named tells of the passes of a site, if anybody is to be told.
func (s *site) named(tell func(report.Report, time.Duration)) func(report.Report, time.Duration) {
	if tell == nil {
		return nil
	}
	return func(rep report.Report, took time.Duration) {
		tell(report.Join([]report.Part{{Kubernetes: s.name, Report: rep}}), took)
	}
}

// everywhere has each site do something, all at once, and joins what they report. One that cannot, or panics, reports
// that.
func everywhere(sites []*site, do func(*site) report.Report) []report.Part {
	parts := make([]report.Part, len(sites))
	var all sync.WaitGroup
	for i, s := range sites {
		all.Go(func() {
			parts[i].Kubernetes = s.name
			err := panics.Catch(func() error {
				err := s.open()
				if err == nil {
					parts[i].Report = do(s)
				}
				return err
			})
			if err != nil {
				parts[i].Report = report.Report{Error: strings.ReplaceAll(err.Error(), "\n", "; ")}
			}
		})
	}
	all.Wait()
	return parts
}

// pass runs until there is a report of each of them, and joins these.
func (f *runFlags) pass(ctx context.Context, sites []*site) (rep report.Report, converged bool) {
	var mu sync.Mutex
	converged = true
	began := time.Now()
	parts := everywhere(sites, func(s *site) report.Report {
		began := time.Now()
		rep, done := f.passes(ctx, s)
		s.took = time.Since(began)
		mu.Lock()
		defer mu.Unlock()
		converged = converged && done
		return rep
	})
	for i, s := range sites {
		parts[i].Report.Planned = f.plan
		s.watched.Observe(parts[i].Report, cmp.Or(s.took, time.Since(began)))
	}
	return report.Join(parts), converged
}

// closeAll gives up what is held anywhere.
func closeAll(ctx context.Context, sites []*site) {
	var all sync.WaitGroup
	for _, s := range sites {
		if s.r != nil {
			all.Go(func() { giveUp(ctx, s.live, s.r.Log) })
		}
	}
	all.Wait()
}

// endTelling tells what is left to tell of any, all at once.
func endTelling(ctx context.Context, sites []*site, longest time.Duration) {
	var all sync.WaitGroup
	for _, s := range sites {
		all.Go(func() { s.told.end(ctx, longest) })
	}
	all.Wait()
}

// counted is what is counted in all of them.
func counted(sites []*site) prometheus.Gatherer {
	var all prometheus.Gatherers
	for _, s := range sites {
		all = append(all, s.watched.Gatherer())
	}
	return all
}
