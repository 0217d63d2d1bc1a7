package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/offline"
	"quorate.dev/quorate/gitsource/manifests/confined"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// runFlags are the flags of run and plan.
type runFlags struct {
	config         configFlag
	source         sourceFlags
	live           liveFlags
	log            logFlags
	metrics        metricsFlags
	notify         notifyFlags
	output         outputs
	detailed       bool
	untilConverged bool
	loop           loopFlags
	timeout        time.Duration
	clusterTimeout time.Duration
	plan           bool
	failOn         riskFlag
	approve        approveFlag
	// against is the revision with which a plan compares the declarations, instead of the live state.
	against string
}

func (f *runFlags) add(c *cobra.Command) {
	add := f.source.add
	if f.plan {
		add = f.source.addShowing
	}
	f.live.places = &targetFlags{}
	add(c, helpSource+"; or \"cluster\": the custom resources themselves are the declaration")
	f.live.add(c)
	f.live.completesNamespaces(c)
	f.log.add(c)
	c.Flags().DurationVar(&f.clusterTimeout, "cluster-timeout", reconcile.ClusterTimeout,
		"maximum time per cluster in a pass; a slow cluster does not delay the others")
	f.source.confirmed.add(c.Flags())
	f.live.addShard(c)
	f.live.addDeletions(c)
	f.live.addBackupImage(c)
	f.live.addRecovery(c)
	c.Flags().BoolVar(&f.detailed, "detailed-exitcode", false, "exit with 2 if changes are pending or were made")
}

func newRun(std streams) *cobra.Command { return newRunOf(&runFlags{}, std) }

// newRunOf returns the run command, whose flags set f.
func newRunOf(f *runFlags, std streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "Run one pass, or repeat passes until every cluster is up to date, or forever",
		Long: `Run reads the declared clusters, observes the live state, performs the next action for each cluster,
reports, and exits. After bootstrapping a cluster, it continues until the members are sealed.
With --until-converged it continues, woken by changes, until every cluster is up to date or blocked,
or until the timeout. With --loop it runs until stopped.`,
		Example: `  # One pass, as in a CronJob:
  quorate run --source https://git.example.com/fleet.git --branch main --path clusters

  # In a pipeline, after a push: wait up to ten minutes until the clusters are up to date.
  quorate run --source . --until-converged --timeout 10m

  # Until stopped, as in a Deployment: a push is processed within seconds, a lost volume immediately.
  quorate run --source https://git.example.com/fleet.git --loop --listen :8080

  # With a configuration file. For its settings, run quorate config.
  quorate run --config quorate.yaml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.config.apply(&f.source); err != nil {
				return err
			}
			if err := f.loop.check(f.config.given); err != nil {
				return err
			}
			if err := f.approve.check(f.untilConverged, f.loop.on); err != nil {
				return err
			}
			return f.run(c.Context(), std)
		},
	}
	f.add(c)
	f.loop.add(c.Flags())
	f.live.addLease(c)
	f.metrics.add(c)
	f.notify.add(c.Flags())
	f.approve.add(c.Flags())
	f.output.add(c, "text", "json", "markdown", "github")
	c.Flags().BoolVar(&f.untilConverged, "until-converged", false,
		"repeat passes until every cluster is up to date or blocked")
	c.Flags().DurationVar(&f.timeout, "timeout", 5*time.Minute, "maximum duration of the run")
	f.config.add(c)
	f.source.named, f.notify.named = f.config.named, f.config.named
	return c
}

func newPlan(std streams) *cobra.Command {
	f := &runFlags{plan: true, live: liveFlags{reading: true}}
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show what the next pass would do, and the road after it, without acting",
		Long: `Plan shows the next action for each cluster, and the road: the actions that will follow, decided by
the same rules as in run, with the minimum number of responding voters until the next action, and the
pods and volumes that are created or deleted. It does not change anything.`,
		Example: `  # What would the checked-out commit change? Uncommitted changes are ignored.
  quorate plan --source .

  # In a pipeline: require approval for changes that delete data or interrupt service.
  quorate plan --source . --fail-on deletes-data,loses-quorum

  # In a pull request: text for the log, and Markdown for a comment.
  quorate plan --source . -o text -o markdown=plan.md

  # In a pipeline without credentials, such as for a fork: what do the commits after origin/main change?
  quorate plan --source . --against origin/main

  # The whole state used for the decision, for a bug report. It does not contain secrets.
  quorate plan --source . -o state`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.config.apply(&f.source); err != nil {
				return err
			}
			if err := f.checkAgainst(); err != nil {
				return err
			}
			return f.run(c.Context(), std)
		},
	}
	f.add(c)
	f.output.add(c, "text", "json", "markdown", "github", "junit", "sarif", "state")
	c.Flags().StringVar(&f.against, "against", "", "compare with this revision (such as origin/main, a "+
		"tag or a commit), assuming healthy clusters that match it; needs no Kubernetes access")
	c.Flags().Var(&f.failOn, "fail-on",
		"exit with 4 if a road has or may have this risk; repeatable or separated by commas: "+namesOfRisks())
	c.Flags().DurationVar(&f.timeout, "timeout", time.Minute, "maximum duration of the plan")
	f.config.add(c, inPipelines...)
	return c
}

// name returns the name of the command.
func (f *runFlags) name() string {
	if f.plan {
		return "plan"
	}
	return "run"
}

func (f *runFlags) run(ctx context.Context, std streams) error {
	if err := f.output.check(); err != nil {
		return err
	}
	if err := f.metrics.check(); err != nil {
		return err
	}
	if err := f.checkSources(); err != nil {
		return err
	}
	// A plan shows any revision, even if it is not a fast-forward.
	f.source.settings.AllowNonFastForward = f.source.settings.AllowNonFastForward || f.plan
	log, err := f.log.logger(std)
	if err != nil {
		return err
	}
	ctx = withLog(ctx, log)
	log.Debug("sources are read in separate processes", "landlock", confined.Landlock())
	if f.loop.on {
		f.live.round = loopRound
	}
	targets, err := f.targets(ctx, log, progress(std.err, f.plan))
	if err != nil {
		return err
	}
	if err := f.keepToApproved(ctx, targets); err != nil {
		closeAll(ctx, targets)
		return err
	}
	if f.loop.on {
		defer endTelling(ctx, targets, hurriedNotify)
		defer closeAll(ctx, targets)
		return f.loop.run(ctx, targets[0].r, targets[0].watched, f.live.leaseDuration)
	}
	return f.once(ctx, std, log, targets)
}

// checkSources checks the sources, and the flags that depend on them.
func (f *runFlags) checkSources() error {
	f.source.namespaces = f.live.namespaces
	if err := f.source.check(); err != nil {
		return err
	}
	return f.notify.check(&f.source)
}

// keepToApproved restricts the run to the approved plan.
func (f *runFlags) keepToApproved(ctx context.Context, targets []*target) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout,
		fmt.Errorf("the plan took longer than --timeout %s", f.timeout))
	defer cancel()
	return f.approve.keepTo(ctx, targets)
}

// once runs until a report is available and prints it.
func (f *runFlags) once(ctx context.Context, std streams, log *slog.Logger, targets []*target) error {
	began := time.Now()
	rep, converged := f.pass(ctx, targets)
	left := f.timeout - time.Since(began)
	if ctx.Err() != nil { // a run that stops too slowly may be killed
		left = 0
	}
	closeAll(ctx, targets)
	defer endTelling(ctx, targets, min(max(left, hurriedNotify), timeToNotify))
	result := outcome{f.name(), rep, f.failOn, &f.source}
	err := f.output.report(std, result)
	result.explainFailOn(std.err)
	if err == nil {
		err = f.code(rep, converged)
	}
	f.metrics.tell(ctx, log, counted(targets), err)
	return err
}

// giveUp releases all leases, even if the run was interrupted.
func giveUp(ctx context.Context, live reconcile.Live, log *slog.Logger) {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := live.Close(closing); err != nil {
		log.Warn("release leases", "error", err)
	}
}

// passes runs the passes over one Kubernetes cluster.
func (f *runFlags) passes(ctx context.Context, s *target) (rep report.Report, converged bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout,
		fmt.Errorf("the run took longer than --timeout %s", f.timeout))
	defer cancel()
	if f.untilConverged {
		rep, converged = s.r.UntilConverged(ctx)
	} else {
		rep, converged = s.r.Pass(ctx), true
	}
	if live, is := s.live.(*offline.Live); is {
		live.Complete(&rep)
	}
	return rep, converged
}

// code returns the exit code for a report, which is that of the most serious result.
func (f *runFlags) code(rep report.Report, converged bool) error {
	switch rep.Result() {
	case report.Failed:
		return exit(exitError)
	case report.Invalid:
		return exit(exitInvalid)
	case report.Blocked:
		return exit(exitBlocked)
	case report.Locked:
		if !f.failOn.isAmong(rep.Risks()) { // predicted risks take precedence
			return exit(exitLocked)
		}
	case report.OK:
	}
	if f.failOn.isAmong(rep.Risks()) {
		return exit(exitBlocked)
	}
	changes, unsealed := false, false
	for _, c := range rep.Clusters {
		unsealed = unsealed || !rep.Planned && c.BeingFounded()
		changes = changes || c.Pending() || c.Outcome != nil && c.Outcome.Changed
	}
	switch {
	case !converged || unsealed:
		return exit(exitNotConverged)
	case f.detailed && (changes || rep.Compared != nil && len(rep.Clusters)+len(rep.Compared.Unknown) > 0):
		return exit(exitChanges)
	}
	return nil
}
