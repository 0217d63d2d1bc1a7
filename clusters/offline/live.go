// Package offline compares declarations with an older revision of their source instead of with the live state. It does
// not contact Kubernetes or etcd.
package offline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// Flag is the flag that selects the older revision, as shown in messages.
const Flag = "--against"

// Live is the live side of a plan that does not contact a Kubernetes cluster. It assumes that every cluster is healthy
// and matches an older revision of the source. It implements reconcile.Live.
type Live struct {
	read func(context.Context) (reconcile.Desired, []string, error)
	// deletions limits deletions as in an ordinary run.
	deletions targets.Deletions

	// mu guards of and clusters. of is the summary of the comparison, and clusters contains the clusters that differ,
	// by namespace/name.
	mu       sync.Mutex
	of       report.Comparison
	clusters map[string]cluster
}

// New returns the live side for the older revision that read returns: its declarations, with their owners resolved, and
// warnings. An error from read is a setup error. mostDeletions limits deletions per source as in an ordinary run, or is
// nil.
func New(
	read func(context.Context) (older reconcile.Desired, warnings []string, err error), mostDeletions *int,
) *Live {
	return &Live{read: read, deletions: targets.Deletions{Most: mostDeletions}, clusters: map[string]cluster{}}
}

// Observe implements reconcile.Live.
func (l *Live) Observe(
	ctx context.Context, desired reconcile.Desired, _ func(cluster string) bool,
) (reconcile.Observed, error) {
	older, note, err := l.read(ctx)
	if err != nil {
		return reconcile.Observed{}, reconcile.SetupError{Err: err}
	}
	if desired.Failure() != nil {
		return reconcile.Observed{Desired: desired}, nil
	}
	owned, before := assumed(older)
	desired.Warnings = append(slices.Clip(desired.Warnings), note...)
	unknown := map[string]bool{}
	for _, p := range older.Problems { // the state of the running cluster is unknown
		unknown[p.Cluster] = true
		desired.Warnings = append(desired.Warnings, fmt.Sprintf("not compared, because %s is invalid: %s",
			older.Revision, p))
	}
	resolved := targets.Resolve(confirming(desired), owned, &l.deletions, nil)
	observed := reconcile.Observed{Desired: resolved.Desired, Removals: resolved.Removals}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of = report.Comparison{Against: older.Revision, Assumed: report.AssumedWell}
	for _, t := range resolved.Targets {
		key := t.Key().String()
		c := compare(t, before[key])
		switch {
		case len(t.Problems) == 0 && (unknown[key] || unknown[""] && before[key] == nil):
			l.of.Unknown = append(l.of.Unknown, key)
		case !c.differs():
			l.of.Same++
		default:
			l.clusters[key] = c
			observed.Clusters = append(observed.Clusters, c)
		}
	}
	return observed, nil
}

// assumed returns the inventory that would exist if every cluster matched its declaration in the older revision, and
// the older declarations by namespace/name.
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

// assumedID is the ID that every cluster is assumed to have, because the clusters have formed, but their real IDs are
// unknown.
const assumedID = "a55ed1da55ed1d"

// claimsOf returns the volume claims of a declared cluster, or nil if its declared lifecycle is Deleted.
func claimsOf(d reconcile.Declaration) []*corev1.PersistentVolumeClaim {
	if d.Cluster.Spec.Lifecycle == v1alpha1.LifecycleDeleted {
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: d.Cluster.Spec.Storage.Size}
	return []*corev1.PersistentVolumeClaim{claim}
}

// confirming returns the desired state with assumedID added to each confirm-new-cluster annotation. The real IDs are
// unknown, so the annotation is assumed to name the right clusters.
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

// Changes implements reconcile.Live.
func (l *Live) Changes(context.Context) reconcile.Changes { return nil }

// Close implements reconcile.Live.
func (l *Live) Close(context.Context) error { return nil }

// Complete adds the comparison to a report of the last observation.
func (l *Live) Complete(rep *report.Report) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of.Against == "" {
		return
	}
	rep.Compared = &l.of
	for i := range rep.Clusters {
		c := &rep.Clusters[i]
		of := l.clusters[c.Key()]
		c.Changes = of.changes // regardless of the decision
		c.Decision.Message = withoutIDs(c.State, c.Decision.Message)
		if c.Road != nil {
			c.Road.End.Message = withoutIDs(c.State, c.Road.End.Message)
		}
		if c.Road != nil && of.resumed {
			c.Road.Open = true
		}
		if r := c.Road; r != nil && !r.Open && len(r.Steps) > 0 && r.End.Verdict == decide.Block {
			c.Warnings = append(slices.Clip(c.Warnings), fmt.Sprintf("the plan ends with %s: "+
				"%s", r.End.Rule, r.End.Message))
		}
	}
}

// withoutIDs replaces the assumed cluster IDs in text, because they are not real.
func withoutIDs(s decide.State, text string) string {
	for _, id := range []decide.ID{s.ReportedClusterID, s.Record.ClusterID, s.Membership.ClusterID} {
		if id != 0 {
			text = strings.ReplaceAll(text, id.String(), "(assumed ID)")
		}
	}
	return text
}
