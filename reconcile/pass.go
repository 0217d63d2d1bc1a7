package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"quorate.dev/quorate/internal/panics"
	"quorate.dev/quorate/reconcile/approval"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/steps"
)

// Reconciler runs passes.
type Reconciler struct {
	Source Source
	Live   Live
	Log    *slog.Logger
	// Plan makes passes stop before Do, so that nothing is written.
	Plan bool
	// ClusterTimeout is the time limit for each cluster in a pass. Zero means the constant ClusterTimeout.
	ClusterTimeout time.Duration
	// Approval restricts the run to approved actions; nil allows all actions.
	Approval approval.Approval
	// Progress, if set, is called at the end of each pass with its report and duration. It is also called, with zero
	// duration, for slow clusters that finish later.
	Progress func(rep report.Report, took time.Duration)
	// Steps, if set, is called at the end of each phase, and for lease conflicts.
	Steps steps.Hook

	// said contains the last log message about each subject, so that runs with many passes do not repeat messages.
	said sync.Map
	// held contains the held removals that have been logged, and the source of each.
	held map[string]string
	// failed records, for each cluster, whether it failed when it was last processed.
	failed   map[string]bool
	inFlight *inFlight
	// loops is set in a loop. Other processes may then manage the same clusters at the same time.
	loops  bool
	health health
}

// pass runs one pass over the wanted clusters; nil means all clusters. It skips clusters whose declarations are not
// known yet. Each cluster is observed, acted on and reported independently, and delays the pass by at most one turn.
func (r *Reconciler) pass(ctx context.Context, in *feed, wanted func(key string) bool) report.Report {
	began, busy := time.Now(), r.inFlight.areBusy()
	observed, err := r.list(ctx, in.desired, wanted)
	desired := in.sees(observed, err)
	about := func(key string) bool { return wanted == nil || wanted(key) }
	ready := in.passed(desired, observed.Clusters, func(key string) bool { return about(key) && !busy[key] })
	r.logUnread(desired)
	rep := report.Report{
		Revision: desired.Revision, Signer: desired.Signer, Sources: desired.SourcesRead(), Problems: desired.Problems,
		Warnings: desired.Warnings,
		Removals: desired.labeled(observed.Removals), Fetches: desired.fetches(),
		UnlistedIn: observed.UnlistedIn, Planned: r.Plan,
	}
	err = errors.Join(err, observed.Unlisted)
	r.logRemovals(rep.Removals, desired, err == nil)
	rep.Unobserved = err != nil && !errors.As(err, &SetupError{})
	if r.isNewError("", err) {
		r.Log.Error("observe", "error", err)
	}
	if err = errors.Join(desired.Failure(), err); err != nil {
		rep.Error = oneLine(err)
	}
	clusters := r.inLine(observed.Clusters, func(key string) bool { return ready(key) && about(key) })
	sourceOf := desired.sourceOf()
	rep.Clusters = r.inFlight.each(ctx, clusters, busy, func(c Cluster) report.Cluster {
		defer r.health.beat()
		entry, err := guarded(c, func() report.Cluster { return r.reconcile(ctx, c, sourceOf(c)) })
		c.Leave(entry.Pending() || entry.Error != "")
		if err != nil && r.isNewMessage(entry.Key(), entry.Error) {
			r.Log.Error("reconcile", "cluster", entry.Key(), "error", err, stack(err))
		}
		return entry
	})
	slices.SortFunc(rep.Clusters, byKey)
	addLocations(rep.Clusters, desired.Clusters)
	rep.Others = others(observed.Clusters, rep)
	r.seen(rep, time.Since(began))
	return rep
}

// addLocations adds the position of each cluster's declaration.
func addLocations(clusters []report.Cluster, declared []Declaration) {
	where := map[string]report.Problem{}
	for _, d := range declared {
		where[report.Cluster{Namespace: d.Cluster.Namespace, Name: d.Cluster.Name}.Key()] = d.Where
	}
	for i := range clusters {
		clusters[i].Where = where[clusters[i].Key()]
	}
}

// others returns the names of the clusters that the report does not contain.
func others(clusters []Cluster, rep report.Report) []string {
	var list []string
	told := keysOf(rep)
	for _, c := range clusters {
		if key := keyOf(c); !told[key] {
			list = append(list, key)
		}
	}
	return list
}

// seen records which clusters of a report have failed, and passes the report to Progress.
func (r *Reconciler) seen(rep report.Report, took time.Duration) {
	for _, c := range rep.Clusters {
		r.failed[c.Key()] = c.Error != ""
	}
	if r.Progress != nil {
		r.Progress(rep, took)
	}
}

// inLine returns the wanted clusters in the order in which they are processed. Namespaces take turns, so that a
// namespace with many clusters delays the others by at most one cluster at a time. Within a namespace, clusters that
// failed in the previous pass or were unhealthy in the last report come first. The order affects only timing, not
// decisions.
func (r *Reconciler) inLine(clusters []Cluster, wanted func(key string) bool) []Cluster {
	first, last := map[string][]Cluster{}, map[string][]Cluster{}
	for _, c := range clusters {
		namespace, _ := c.Identity()
		switch key := keyOf(c); {
		case !wanted(key):
		case r.failed[key] || c.Unwell():
			first[namespace] = append(first[namespace], c)
		default:
			last[namespace] = append(last[namespace], c)
		}
	}
	for namespace, well := range last {
		first[namespace] = append(first[namespace], well...)
	}
	return interleaved(first)
}

// interleaved merges the lists by taking one element of each list in turn, in the order of their keys.
func interleaved[T any](lists map[string][]T) []T {
	var all []T
	for keys, n := slices.Sorted(maps.Keys(lists)), 0; len(keys) > 0; n++ {
		keys = slices.DeleteFunc(keys, func(key string) bool { return n >= len(lists[key]) })
		for _, key := range keys {
			all = append(all, lists[key][n])
		}
	}
	return all
}

// reconcile observes a cluster, decides, executes the action, and reports.
func (r *Reconciler) reconcile(ctx context.Context, cluster Cluster, source SourceStatus) report.Cluster {
	entry := report.Cluster{Warnings: cluster.Warnings()}
	entry.Namespace, entry.Name = cluster.Identity()
	log := r.Log.With("cluster", entry.Key())

	within, cancel := clusterTime(ctx, cmp.Or(r.ClusterTimeout, ClusterTimeout))
	defer cancel()
	state, err := r.observe(within, cluster)
	if err != nil {
		entry.Error = oneLine(err)
		if ctx.Err() == nil && r.isNewMessage(entry.Key(), entry.Error) {
			log.Error("observe", "error", err, stack(err))
		}
		if beside := r.loops && state.LockHolder != ""; ctx.Err() == nil && !r.Plan && !beside {
			r.tellUnobserved(ctx, log, cluster, entry, source)
		}
		return entry
	}
	entry.State, entry.Decision = state, r.decide(state)
	r.approve(&entry)
	entry.Warnings = slices.Concat(entry.Warnings, state.Unseen, state.Warnings())
	r.logDecision(log, entry)
	if r.Plan {
		warnOfCertificates(&entry)
		compare(cluster, &entry)
		foretell(&entry)
		return entry
	}
	var failures error
	if entry.Decision.Verdict == decide.Act {
		failures = r.do(within, log, cluster, &entry)
	}
	warnOfCertificates(&entry)
	if failures != nil && ctx.Err() != nil {
		return entry // stopped during the action: the next pass observes the outcome
	}
	if r.loops && lockedElsewhere(entry) {
		return entry // the lease holder reports on the cluster; a second report could contradict it
	}
	entry.News, err = r.tell(ctx, cluster, entry, source)
	if r.isNewError(entry.Key()+" report", err) {
		log.Error("report", "error", err, stack(err))
	}
	if err != nil {
		failures = errors.Join(failures, err)
		entry.Error = oneLine(failures)
	}
	return entry
}

// tellUnobserved records in the cluster's status that the cluster cannot be observed. Otherwise, the status would still
// show the result of an earlier pass. It must not be called while another loop acts on the cluster, because that loop
// reports on it.
func (r *Reconciler) tellUnobserved(
	ctx context.Context, log *slog.Logger, cluster Cluster, entry report.Cluster, source SourceStatus,
) {
	_, err := r.tell(ctx, cluster, entry, source)
	if r.isNewError(entry.Key()+" report", err) {
		log.Error("report", "error", err, stack(err))
	}
}

// approve replaces an unapproved action with a Block.
func (r *Reconciler) approve(entry *report.Cluster) {
	d := entry.Decision
	if r.Approval == nil || d.Verdict != decide.Act {
		return
	}
	if why := r.Approval.Refuses(entry.Key(), entry.State, d.Action); why != "" {
		entry.Decision = approval.Refused(d, why)
	}
}

// compare adds the differences between the live state and the declaration to the entry, unless nothing is left to do.
// If that fails, it only adds a warning.
func compare(cluster Cluster, entry *report.Cluster) {
	if entry.Decision.Verdict == decide.Done {
		return
	}
	err := panics.Catch(func() (err error) {
		entry.Changes, err = cluster.Changes(entry.Decision.Action)
		return err
	})
	if err != nil {
		entry.Warnings = append(entry.Warnings, fmt.Sprintf("cannot show the differences from git: %v", err))
	}
}

// foretell adds the cluster's forecast to the entry, unless nothing is left to do or the cluster is blocked. If that
// fails, it only adds a warning.
func foretell(entry *report.Cluster) {
	if entry.Decision.Verdict != decide.Act && entry.Decision.Verdict != decide.Wait {
		return
	}
	entry.Road = &forecast.Forecast{Open: true}
	err := panics.Catch(func() error {
		*entry.Road = forecast.Of(entry.State)
		return nil
	})
	if err != nil {
		entry.Warnings = append(entry.Warnings, fmt.Sprintf("cannot forecast the actions after this step: %v", err))
	}
}

// warnOfCertificates adds warnings about certificates that need manual action. It also warns about certificates that
// expire soon, unless the pass has just renewed them.
func warnOfCertificates(entry *report.Cluster) {
	entry.Warnings = slices.Concat(entry.Warnings, entry.State.CertificateWarnings())
	if !entry.Renews() {
		entry.Warnings = append(entry.Warnings, entry.State.ExpiryWarnings()...)
	}
}

// do executes the action of an entry and records the outcome.
func (r *Reconciler) do(ctx context.Context, log *slog.Logger, cluster Cluster, entry *report.Cluster) error {
	d := entry.Decision
	outcome, err := r.act(ctx, cluster, d.Action)
	isNew := r.isNewError(entry.Key()+" act", err)
	switch {
	case errors.Is(err, ErrLocked):
		state := entry.State
		state.LockHolder = err.Error()
		entry.Decision = decide.Decide(state)
		if isNew {
			log.Info("locked", "by", err.Error())
		}
		return nil
	case err != nil:
		err = fmt.Errorf("%s: %w", d.Rule, err)
		entry.Error = oneLine(err)
		if isNew {
			log.Error("act", "rule", d.Rule, "action", d.Action.String(), "error", err, stack(err))
		}
		return err
	}
	entry.Outcome = &outcome
	if r.Approval != nil && outcome.Changed {
		r.Approval.Taken(entry.Key(), entry.State, d.Action)
	}
	if outcome.Changed {
		entry.Decision = decide.Retried(entry.State, d)
	} else {
		entry.Decision = decide.NoProgress(entry.State, d, outcome.Detail)
	}
	log.Info("acted", "rule", d.Rule, "action", d.Action.String(), "changed", outcome.Changed, "detail", outcome.Detail)
	return nil
}

// logDecision logs the decision, unless the previous pass logged the same decision.
func (r *Reconciler) logDecision(log *slog.Logger, entry report.Cluster) {
	d := entry.Decision
	if !r.isNewMessage(entry.Key(), d.String()) {
		return
	}
	level := slog.LevelInfo
	if d.Verdict == decide.Block {
		level = slog.LevelWarn
	}
	attrs := []any{"verdict", string(d.Verdict), "rule", d.Rule, "message", d.Message}
	if d.Action != nil {
		attrs = append(attrs, "action", d.Action.String())
	}
	log.Log(context.Background(), level, "decided", attrs...)
}

// logUnread logs which sources could not be read, once no source is still being read.
func (r *Reconciler) logUnread(desired Desired) {
	unread := desired.Failure()
	if unread == nil || !desired.reading() {
		if r.isNewError("sources", unread) {
			r.Log.Error("cannot read the source; continuing with the last applied state", "error", oneLine(unread))
		}
	}
}

// isNewError reports whether err differs from the last message about the subject. A nil error clears the subject, so
// that the same error counts as new if it occurs again.
func (r *Reconciler) isNewError(subject string, err error) bool {
	if err == nil {
		r.said.Delete(subject)
		return false
	}
	return r.isNewMessage(subject, oneLine(err))
}

// isNewMessage reports whether the message differs from the last message about the subject in this run.
func (r *Reconciler) isNewMessage(cluster, what string) bool {
	before, _ := r.said.Swap(cluster, what)
	return before != what
}

// oneLine returns an error message on one line. Messages of joined errors have several lines.
func oneLine(err error) string {
	return strings.Join(strings.Split(err.Error(), "\n"), "; ")
}
