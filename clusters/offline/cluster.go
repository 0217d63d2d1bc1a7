package offline

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/simulate"
)

// cluster compares the declarations of a cluster in the older and the newer revision. It implements reconcile.Cluster.
type cluster struct {
	target targets.Target
	// declared is the declaration in the form that the rules use.
	declared decide.Declared
	// before is nil if the cluster is new.
	before   *reconcile.Declaration
	changes  []report.Change
	warnings []string
	// resumed is set if the cluster is suspended only in the older revision, whose declaration may therefore not have
	// been applied.
	resumed bool
}

func compare(t targets.Target, before *reconcile.Declaration) cluster {
	c := cluster{before: before, warnings: slices.Clip(t.Warnings)}
	t.RenamedFrom, _, _ = strings.Cut(t.RenamedFrom, " (cluster ") // the assumed ID is not real
	own := &inventory.Cluster{}
	if before != nil {
		own.Custom, own.Claims = &before.Cluster, claimsOf(*before)
		if t.Applied != nil {
			c.changes = report.Changes(stated(before.Cluster, before.Applied), stated(t.Cluster, t.Applied))
		}
	}
	if c.resumed = before != nil && before.Cluster.Spec.Suspend && !t.Cluster.Spec.Suspend; c.resumed {
		c.warnings = append(c.warnings, "suspended at "+before.Revision+", so the live cluster may differ from this "+
			"revision; use plan without "+Flag+" to observe the live cluster")
	}
	c.target = t.WithQuota(own)
	c.declared = c.target.Declared()
	if c.declared.Recovery.ClusterID != 0 {
		c.declared.Recovery = decide.RecoveryOrder{}
		c.warnings = append(c.warnings, "spec.recovery is ignored, because all data is assumed to exist; use plan "+
			"without "+Flag+" to observe the live cluster")
	}
	return c
}

// stated returns the parts of a declaration that may be shown: the spec with defaults, and the declaration's own labels
// and annotations.
func stated(c v1alpha1.EtcdCluster, applied map[string]any) map[string]any {
	metadata, _ := applied["metadata"].(map[string]any)
	all := map[string]any{"labels": metadata["labels"], "annotations": metadata["annotations"]}
	return map[string]any{"metadata": all, "spec": c.Spec}
}

// differs reports whether there is anything to report about the cluster.
func (c cluster) differs() bool {
	t := c.target
	rewritten := c.before != nil && t.Applied != nil && !reflect.DeepEqual(t.Applied, c.before.Applied)
	return c.before == nil || rewritten || t.Orphaned != "" || t.Held != "" || len(t.Problems) > 0
}

// Identity implements reconcile.Cluster.
func (c cluster) Identity() (namespace, name string) {
	return c.target.Cluster.Namespace, c.target.Cluster.Name
}

// DeclaredBy implements reconcile.Cluster.
func (c cluster) DeclaredBy() string { return c.target.Source }

// Custom returns nil, because the live state is not read.
func (c cluster) Custom() *v1alpha1.EtcdCluster { return nil }

// Unwell implements reconcile.Cluster.
func (c cluster) Unwell() bool { return false }

// Warnings implements reconcile.Cluster.
func (c cluster) Warnings() []string { return c.warnings }

// Leave implements reconcile.Cluster.
func (c cluster) Leave(bool) {}

// State implements reconcile.Cluster. It returns the state of a simulated cluster that has converged to the older
// revision.
func (c cluster) State(context.Context) (decide.State, error) {
	namespace, name := c.Identity()
	if c.before == nil {
		return simulate.New(name, c.declared, 0).Observe(), nil
	}
	before := targets.Target{Cluster: c.before.Cluster, Applied: c.before.Applied}
	old := before.WithQuota(&inventory.Cluster{}).Declared()
	restoredFrom := old.Restore.From
	old.Recovery = decide.RecoveryOrder{}
	world, d := simulate.Settled(name, old)
	if d.Verdict != decide.Done {
		return decide.State{}, fmt.Errorf("the live state cannot be assumed: the plan for the declaration at %s ends "+
			"with %s %s: %s",
			c.before.Revision, d.Verdict, d.Rule, d.Message)
	}
	world.Declared = c.declared
	s := world.Observe()
	s.Namespace = namespace
	s.Record.RestoredFrom = restoredFrom // the assumed cluster was created as declared
	s.Certificates = nil                 // these certificates are simulated
	if s.Objects.RunsVersion != "" {
		s.Objects.RunsStorage = targets.DescribeStorage(c.before.Cluster.Spec.Storage)
	}
	if c.target.Applied != nil && len(s.Replicas)+len(s.Objects.Remaining) > 0 {
		c.applyLater(&s)
	}
	return s, nil
}

// applyLater makes the custom resource in the state differ from git. The rules might not notice this, because the
// comparison covers more fields than the rules.
func (c cluster) applyLater(s *decide.State) {
	custom := "EtcdCluster " + s.Name
	s.Objects.Drift = slices.DeleteFunc(s.Objects.Drift,
		func(entry string) bool { return strings.HasPrefix(entry, custom+": ") })
	s.Objects.Drift = append([]string{custom + ": changed in git"}, s.Objects.Drift...)
	s.Objects.DeclarationDiffers = true
}

// Changes implements reconcile.Cluster.
func (c cluster) Changes(decide.Action) ([]report.Change, error) { return c.changes, nil }

// Do implements reconcile.Cluster.
func (c cluster) Do(context.Context, decide.Action) (report.Outcome, error) {
	return report.Outcome{}, errors.New("no objects exist to act on")
}

// Report implements reconcile.Cluster.
func (c cluster) Report(context.Context, report.Cluster, reconcile.SourceStatus) ([]report.News, error) {
	return nil, nil
}
