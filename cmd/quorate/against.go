package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/gitsource/refs"
	"quorate.dev/quorate/gitsource/remote"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/internal/revision"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/simulate"
)

const flagAgainst = "--against"

// offlineLive is the live side of a plan that does not contact a Kubernetes cluster: it assumes that every cluster
// matches an older revision of the source and is healthy. It implements reconcile.Live.
type offlineLive struct {
	// revision is the value of --against.
	revision string
	// older reads the declarations of that revision.
	older sourceFlags
	// deletions limits deletions as in a run.
	deletions targets.Deletions

	// of summarizes the comparison, and clusters holds the clusters that differ, by namespace/name.
	mu       sync.Mutex
	of       report.Comparison
	clusters map[string]offlineCluster
}

// kubernetesFlags lists the flags about the live side, which --against does not use.
var kubernetesFlags = []string{"kubeconfig", "context", "fleet", "allow-exec", "as", "as-group", "etcd-access",
	"etcd-timeout", "shard"}

// checkAgainst rejects flags and sources that cannot be combined with --against.
func (f *runFlags) checkAgainst(flags *pflag.FlagSet) error {
	if f.against == "" {
		if flags.Changed("against") {
			return usageError{fmt.Errorf("%s: expected a branch such as origin/main, a tag or a commit", flagAgainst)}
		}
		return nil
	}
	_, wrong := selectorOf(f.against).Normalized()
	switch {
	case wrong != nil:
		return usageError{fmt.Errorf("%s: %w", flagAgainst, wrong)}
	case f.source.live():
		return usageError{fmt.Errorf("--source %s: custom resources have no revisions for %s to compare; "+
			"specify a repository", ofCluster, flagAgainst)}
	case len(f.source.values) > 1:
		return usageError{fmt.Errorf("%s compares two revisions of one repository; plan one --source at a time",
			flagAgainst)}
	}
	for _, name := range kubernetesFlags {
		if flags.Changed(name) {
			return usageError{fmt.Errorf("%s does not contact Kubernetes, so --%s has no effect; remove one of them",
				flagAgainst, name)}
		}
	}
	for _, o := range f.output.all() {
		if o.format == "state" {
			return usageError{fmt.Errorf("%s observes nothing, so there is no state for --output state; "+
				"use --output json", flagAgainst)}
		}
	}
	// The backup settings and destinations are flags of the runs, and are not known here.
	f.source.anyDestination = true
	return nil
}

// offline returns the live side for --against.
func (f *runFlags) offline(source *sourceFlags) *offlineLive {
	a := &offlineLive{revision: f.against, older: *source, clusters: map[string]offlineCluster{}}
	a.older.readers, a.older.slots, a.older.confirmed = nil, nil, nil
	selector := selectorOf(f.against)
	a.older.instead = &selector
	a.deletions.Most = f.live.maxDeletions
	return a
}

// Observe implements reconcile.Live.
func (a *offlineLive) Observe(
	ctx context.Context, desired reconcile.Desired, _ func(cluster string) bool,
) (reconcile.Observed, error) {
	older, note, err := a.read(ctx)
	if err != nil {
		return reconcile.Observed{}, reconcile.SetupError{Err: err}
	}
	if desired.Failure() != nil {
		return reconcile.Observed{Desired: desired}, nil
	}
	owned, before := assumed(older)
	desired.Warnings = append(slices.Clip(desired.Warnings), note...)
	unknown := map[string]bool{}
	for _, p := range older.Problems { // the running cluster is unknown
		unknown[p.Cluster] = true
		desired.Warnings = append(desired.Warnings, fmt.Sprintf("not compared, because %s is invalid: %s",
			older.Revision, p))
	}
	resolved := targets.Resolve(confirming(desired), owned, &a.deletions, nil)
	observed := reconcile.Observed{Desired: resolved.Desired, Removals: resolved.Removals}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of = report.Comparison{Against: older.Revision, Assumed: report.AssumedWell}
	for _, t := range resolved.Targets {
		key := t.Key().String()
		c := compare(t, before[key])
		switch {
		case len(t.Problems) == 0 && (unknown[key] || unknown[""] && before[key] == nil):
			a.of.Unknown = append(a.of.Unknown, key)
		case !c.differs():
			a.of.Same++
		default:
			a.clusters[key] = c
			observed.Clusters = append(observed.Clusters, c)
		}
	}
	return observed, nil
}

// read reads the declarations of the older revision. If the path does not exist there, it returns no declarations and a
// note. Reading the newer revision reports whether the path exists in it.
func (a *offlineLive) read(ctx context.Context) (older reconcile.Desired, note []string, err error) {
	older = a.older.within(a.older.declared(ctx, func(reconcile.Desired) {}))
	err = older.Failure()
	var missing gitsource.MissingPathError
	if errors.As(err, &missing) && missing.Revision.Commit != "" {
		note = []string{printable.Line(fmt.Sprintf("%s has no path %q: every cluster is compared as new, "+
			"including clusters that another path declares there", missing.Revision, missing.Path))}
		return reconcile.Desired{Revision: printable.Line(missing.Revision.String())}, note, nil
	}
	if err != nil {
		return older, nil, fmt.Errorf("%s %s: %w%s", flagAgainst, a.revision, err, a.advice(err))
	}
	if older.Revision == revision.Directory {
		return older, nil, fmt.Errorf("%s %s: %s is not a repository, so it cannot be compared", flagAgainst,
			a.revision, a.older.values[0])
	}
	return older.ResolveOwners(func(string) reconcile.Previous { return reconcile.Previous{} }), nil, nil
}

// advice returns how to fetch a revision that the clone does not have.
func (a *offlineLive) advice(why error) string {
	if errors.As(why, new(gitsource.MissingPathError)) {
		return "" // the revision is there
	}
	sources, err := a.older.sources(func(source) error { return nil })
	if err != nil || !errors.Is(why, gitsource.ErrSource) || remote.IsAddress(sources[0].location) {
		return ""
	}
	server, branch, ok := strings.Cut(a.revision, "/")
	if !ok || server == "refs" {
		server, branch = "origin", a.revision
	}
	return fmt.Sprintf("; if this clone is shallow and lacks it: git fetch %s %s, or "+
		"fetch-depth: 0 for actions/checkout", printable.Line(server), printable.Line(branch))
}

// assumed returns the inventory that would exist if every cluster matched its spec, and the declarations by
// namespace/name.
func assumed(older reconcile.Desired) (inventory.ByCluster, map[string]*reconcile.Declaration) {
	owned, before := inventory.ByCluster{}, map[string]*reconcile.Declaration{}
	for i, d := range older.Clusters {
		own := owned.At(d.Cluster.Namespace, d.Cluster.Name)
		own.Custom = d.Cluster.DeepCopy()
		own.Custom.UID = "assumed"
		own.Custom.Labels = map[string]string{objects.LabelManagedBy: objects.ManagedBy}
		own.Custom.Status = v1alpha1.EtcdClusterStatus{
			ClusterID: assumedID, DeclaredSource: d.Source, DeclaredRevision: d.Revision,
		}
		own.Claims = len(claimsOf(d))
		before[inventory.KeyOf(own.Custom).String()] = &older.Clusters[i]
	}
	return owned, before
}

// assumedID is the ID of every cluster: the real IDs are unknown, but the clusters have formed.
const assumedID = "1"

// claimsOf returns the volumes of a declared cluster, or nil if it is deleted.
func claimsOf(d reconcile.Declaration) []*corev1.PersistentVolumeClaim {
	if d.Cluster.Spec.Lifecycle == v1alpha1.LifecycleDeleted {
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: d.Cluster.Spec.Storage.Size}
	return []*corev1.PersistentVolumeClaim{claim}
}

// confirming returns the desired state with assumedID added to each confirm-new-cluster annotation: the real IDs are
// not known here, so the annotation is assumed to name the right clusters.
func confirming(desired reconcile.Desired) reconcile.Desired {
	desired.Clusters = slices.Clone(desired.Clusters)
	for i := range desired.Clusters {
		c := &desired.Clusters[i].Cluster
		if c.Annotations[v1alpha1.AnnotationConfirmNewCluster] != "" {
			c.Annotations = maps.Clone(c.Annotations)
			c.Annotations[v1alpha1.AnnotationConfirmNewCluster] += "," + assumedID
		}
	}
	return desired
}

// offlineCluster is a cluster as the older revision and as the newer one declare it. It implements reconcile.Cluster.
type offlineCluster struct {
	target targets.Target
	// declared is the target as the rules see it.
	declared decide.Declared
	// before is nil if the cluster is new.
	before   *reconcile.Declaration
	changes  []report.Change
	warnings []string
	// resumed is set if the cluster is suspended before and not after: the older declaration may not have been applied.
	resumed bool
}

func compare(t targets.Target, before *reconcile.Declaration) offlineCluster {
	c := offlineCluster{before: before, warnings: slices.Clip(t.Warnings)}
	t.RenamedFrom, _, _ = strings.Cut(t.RenamedFrom, " (cluster ") // its ID is made up
	own := &inventory.Cluster{}
	if before != nil {
		own.Custom, own.Claims = &before.Cluster, claimsOf(*before)
		if t.Applied != nil {
			c.changes = report.Changes(stated(before.Cluster, before.Applied), stated(t.Cluster, t.Applied))
		}
	}
	if c.resumed = before != nil && before.Cluster.Spec.Suspend && !t.Cluster.Spec.Suspend; c.resumed {
		c.warnings = append(c.warnings, "suspended at "+before.Revision+", so the live cluster may differ from "+
			"that revision; use plan without "+flagAgainst+" to observe it")
	}
	c.target = t.WithQuota(own)
	c.declared = c.target.Declared()
	if c.declared.Recovery.ClusterID != 0 {
		c.declared.Recovery = decide.RecoveryOrder{}
		c.warnings = append(c.warnings, "spec.recovery is ignored: no data is assumed lost here; "+
			"use plan without "+flagAgainst+" to observe it")
	}
	return c
}

// stated returns the parts of a declaration that may be shown: its spec, with defaults, and its own labels and
// annotations.
func stated(c v1alpha1.EtcdCluster, applied map[string]any) map[string]any {
	metadata, _ := applied["metadata"].(map[string]any)
	all := map[string]any{"labels": metadata["labels"], "annotations": metadata["annotations"]}
	return map[string]any{"metadata": all, "spec": c.Spec}
}

// differs reports whether the cluster has anything to report.
func (c offlineCluster) differs() bool {
	t := c.target
	rewritten := c.before != nil && t.Applied != nil && !reflect.DeepEqual(t.Applied, c.before.Applied)
	return c.before == nil || rewritten || t.Orphaned != "" || t.Held != "" || len(t.Problems) > 0
}

// Identity implements reconcile.Cluster.
func (c offlineCluster) Identity() (namespace, name string) {
	return c.target.Cluster.Namespace, c.target.Cluster.Name
}

// DeclaredBy implements reconcile.Cluster.
func (c offlineCluster) DeclaredBy() string { return c.target.Source }

// Custom returns nil, because the live state is not read.
func (c offlineCluster) Custom() *v1alpha1.EtcdCluster { return nil }

// Unwell implements reconcile.Cluster.
func (c offlineCluster) Unwell() bool { return false }

// Warnings implements reconcile.Cluster.
func (c offlineCluster) Warnings() []string { return c.warnings }

// Leave implements reconcile.Cluster.
func (c offlineCluster) Leave(bool) {}

// State implements reconcile.Cluster. It returns the state of a simulated cluster that has converged to the older
// revision.
func (c offlineCluster) State(context.Context) (decide.State, error) {
	_, name := c.Identity()
	if c.before == nil {
		return simulate.New(name, c.declared, 0).Observe(), nil
	}
	before := targets.Target{Cluster: c.before.Cluster, Applied: c.before.Applied}
	old := before.WithQuota(&inventory.Cluster{}).Declared()
	old.Recovery = decide.RecoveryOrder{}
	world, d := simulate.Settled(name, old)
	if d.Verdict != decide.Done {
		return decide.State{}, fmt.Errorf("the live state cannot be assumed: the declaration at %s ends at %s %s: %s",
			c.before.Revision, d.Verdict, d.Rule, d.Message)
	}
	world.Declared = c.declared
	s := world.Observe()
	s.Certificates = nil // the simulation makes them up
	if s.Objects.RunsVersion != "" {
		s.Objects.RunsStorage = targets.DescribeStorage(c.before.Cluster.Spec.Storage)
	}
	if c.target.Applied != nil && len(s.Replicas)+len(s.Objects.Remaining) > 0 {
		c.applyLater(&s)
	}
	return s, nil
}

// applyLater makes the custom resource differ from git, because more is compared than the rules know.
func (c offlineCluster) applyLater(s *decide.State) {
	custom := "EtcdCluster " + s.Name
	s.Objects.Drift = slices.DeleteFunc(s.Objects.Drift,
		func(entry string) bool { return strings.HasPrefix(entry, custom+": ") })
	s.Objects.Drift = append([]string{custom + ": changed in git"}, s.Objects.Drift...)
	s.Objects.DeclarationDiffers = true
}

// Changes implements reconcile.Cluster.
func (c offlineCluster) Changes(decide.Action) ([]report.Change, error) { return c.changes, nil }

// Do implements reconcile.Cluster.
func (c offlineCluster) Do(context.Context, decide.Action) (report.Outcome, error) {
	return report.Outcome{}, errors.New("there are no objects to act on")
}

// Report implements reconcile.Cluster.
func (c offlineCluster) Report(context.Context, report.Cluster, reconcile.SourceStatus) ([]report.News, error) {
	return nil, nil
}

// Changes implements reconcile.Live.
func (a *offlineLive) Changes(context.Context) reconcile.Changes { return nil }

// Close implements reconcile.Live.
func (a *offlineLive) Close(context.Context) error { return nil }

// complete adds the comparison to a report.
func (a *offlineLive) complete(rep *report.Report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of.Against == "" {
		return
	}
	rep.Compared = &a.of
	for i := range rep.Clusters {
		c := &rep.Clusters[i]
		of := a.clusters[c.Key()]
		c.Changes = of.changes // regardless of the decision
		c.Decision.Message = withoutIDs(c.State, c.Decision.Message)
		if c.Road != nil {
			c.Road.End.Message = withoutIDs(c.State, c.Road.End.Message)
		}
		if c.Road != nil && of.resumed {
			c.Road.Open = true
		}
		if r := c.Road; r != nil && !r.Open && len(r.Steps) > 0 && r.End.Verdict == decide.Block {
			c.Warnings = append(slices.Clip(c.Warnings), fmt.Sprintf("it ends at %s: %s", r.End.Rule, r.End.Message))
		}
	}
}

// withoutIDs returns text in which the assumed cluster ID is replaced, because it is not the real one.
func withoutIDs(s decide.State, text string) string {
	for _, id := range []decide.ID{s.ReportedClusterID, s.Record.ClusterID, s.Membership.ClusterID} {
		if id != 0 {
			text = strings.ReplaceAll(text, id.String(), "(assumed ID)")
		}
	}
	return text
}

// selectorOf returns the selector for a revision, which it interprets as git does, except for expressions that git
// computes, such as HEAD~1.
func selectorOf(name string) refs.Selector {
	switch {
	case name == "HEAD":
		return refs.Selector{}
	case strings.HasPrefix(name, "refs/"):
		return refs.Selector{Name: name}
	case revision.IsHash(strings.ToLower(name)):
		return refs.Selector{Commit: name}
	}
	return refs.Selector{Short: name}
}
