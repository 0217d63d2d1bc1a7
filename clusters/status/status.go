// Package status builds the status and the events that a pass reports for a custom resource, and reads the status that
// earlier passes reported.
package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// New returns the status that a pass reports for a target. The status is safe to display. live is the custom resource
// with its current status.
func New(
	live *v1alpha1.EtcdCluster, t targets.Target, entry report.Cluster, source reconcile.SourceStatus,
) v1alpha1.EtcdClusterStatus {
	status := newStatus(live, &t.Cluster, entry, source)
	setRemovalHeld(&status, t, live.Status, metav1.NewTime(entry.State.Now))
	makeReadable(&status)
	return status
}

// makeReadable makes untrusted text safe for terminals and truncates it, because the API rejects the whole status if
// one message is too long.
func makeReadable(status *v1alpha1.EtcdClusterStatus) {
	for i := range status.Conditions {
		status.Conditions[i].Message = printable.Line(status.Conditions[i].Message)
	}
	status.Members, status.Version, status.Leader = slices.Clone(status.Members), printable.Line(status.Version),
		printable.Line(status.Leader)
	for i := range status.Members {
		m := &status.Members[i]
		m.Name, m.Version, m.Message, m.DefragmentationFailure, m.Alarms =
			printable.Line(m.Name), printable.Line(m.Version), printable.Line(m.Message),
			printable.Line(m.DefragmentationFailure), slices.Clone(m.Alarms)
		for n := range m.Alarms {
			m.Alarms[n] = printable.Line(m.Alarms[n])
		}
	}
}

// newStatus returns the status that a pass reports. live is the custom resource with its current status, and declared
// is the custom resource that the pass used.
func newStatus(
	live, declared *v1alpha1.EtcdCluster, entry report.Cluster, source reconcile.SourceStatus,
) v1alpha1.EtcdClusterStatus {
	old, s := live.Status, entry.State
	status := v1alpha1.EtcdClusterStatus{
		ObservedGeneration: live.Generation,
		Conditions:         slices.Clone(old.Conditions),
		DeclaredRevision:   source.Revision,
		DeclaredSource:     cmp.Or(source.Source, old.DeclaredSource),
		SourceRevision:     cmp.Or(source.Revision, old.SourceRevision),
		Rule:               entry.Decision.Rule,
		Selector:           objects.SelectorString(live.Name),
	}
	if !source.Committed.IsZero() {
		status.DeclaredRevisionTime = &metav1.Time{Time: source.Committed.UTC().Truncate(time.Second)}
	}
	if source.Kin {
		status.SourceRevision = old.SourceRevision
	}
	if source.Revision == "" || s.Declared.Orphaned != "" {
		stayDeclared(&status, old)
	}
	if !isGone(s) {
		addMembers(&status, old, s)
		// Published endpoints are not removed.
		if closed := s.ClosedToClients() && len(old.Endpoints) == 0; !closed {
			status.Endpoints = objects.Endpoints(declared, s.Record)
		}
		if declared.Spec.TLS.Mode == v1alpha1.TLSManaged {
			status.ClientSecretName = objects.NamesOf(live.Name).ClientSecret
		}
	}
	status.ReadyReplicas = healthyVoters(status.Members, s.Record)
	status.Voters = fmt.Sprintf("%d/%d", status.ReadyReplicas, s.Declared.Replicas)
	status.Waiting = waiting(live, entry)
	status.Repeated, status.Rewritten = repeated(entry), rewritten(s.Objects.Rewritten)
	status.Backup = backupStatus(old.Backup, s)
	status.VoidRecovery = printable.Line(s.VoidRecoveryToReport())
	status.RestoredFrom = printable.Line(s.Record.RestoredFrom)
	if old.ClusterID != "" && old.ClusterID == status.ClusterID {
		status.RestoredFrom = cmp.Or(status.RestoredFrom, old.RestoredFrom)
	}
	setDefragmentation(&status, entry)
	status.CorruptionCheck = corruptionCheck(s)
	setConditions(&status, entry, source, metav1.NewTime(s.Now))
	setBackupConditions(&status, declared, s)
	setFieldsRewritten(&status, metav1.NewTime(s.Now))
	setDatabaseNearQuota(&status, s)
	return status
}

// stayDeclared keeps the recorded revision as the revision that declared the cluster.
func stayDeclared(status *v1alpha1.EtcdClusterStatus, old v1alpha1.EtcdClusterStatus) {
	status.DeclaredRevision, status.DeclaredRevisionTime = old.DeclaredRevision, old.DeclaredRevisionTime
}

// isGone reports whether a cluster has been deleted, including its last volume. Its identity is then removed too, so
// that the cluster is bootstrapped again if git declares it again.
func isGone(s decide.State) bool {
	nothingLeft := len(s.Objects.Remaining) == 0 && len(s.Replicas) == 0 && s.Record.Token == ""
	return s.Declared.Lifecycle == decide.Deleted && nothingLeft
}

// WorthWriting reports whether a status is worth writing. Changes to figures that change all the time, or to the commit
// time of the same revision, are not worth writing.
func WorthWriting(old, status v1alpha1.EtcdClusterStatus) bool {
	return !equality.Semantic.DeepEqual(withoutFigures(old, old), withoutFigures(status, old))
}

// MovesRevision reports whether a status differs only in the revision of the same declaration.
func MovesRevision(old, status v1alpha1.EtcdClusterStatus) bool {
	if old.DeclaredRevision == "" {
		return false
	}
	stayDeclared(&status, old)
	status.SourceRevision = old.SourceRevision
	status.Conditions = slices.Clone(status.Conditions)
	was := meta.FindStatusCondition(old.Conditions, v1alpha1.ConditionSourceReady)
	is := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSourceReady)
	if was != nil && is != nil && was.Status == is.Status && was.Status == metav1.ConditionTrue {
		*is = *was
	}
	return !WorthWriting(old, status)
}

// withoutFigures sets each member's figures to those in base, unless a size has changed notably. It does the same with
// the commit time if the revision has not changed.
func withoutFigures(status, base v1alpha1.EtcdClusterStatus) v1alpha1.EtcdClusterStatus {
	if status.DeclaredRevision == base.DeclaredRevision {
		status.DeclaredRevisionTime = base.DeclaredRevisionTime
	}
	status.Members = slices.Clone(status.Members)
	for i := range status.Members {
		m := &status.Members[i]
		for _, b := range base.Members {
			if b.ID == m.ID && near(m.DBSize, b.DBSize) && near(m.DBSizeInUse, b.DBSizeInUse) {
				m.Revision, m.DBSize, m.DBSizeInUse = b.Revision, b.DBSize, b.DBSizeInUse
			}
		}
	}
	return status
}

// near reports whether two sizes are about equal: either both are known and differ by less than a tenth of b or by less
// than noise, or both are unknown (0).
func near(a, b int64) bool {
	const noise = 1 << 20 // in a small file, every page that etcd allocates or frees is a tenth
	return a == b || a > 0 && b > 0 && max(a-b, b-a) < max(b/10, noise)
}
