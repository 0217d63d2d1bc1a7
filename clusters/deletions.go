package clusters

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// FlagMaxDeletions is the flag that sets Options.MaxDeletions.
const FlagMaxDeletions = "--max-deletions"

// countDeletions lets no more clusters begin to be deleted with their data than the options say, in all passes of this process together, in the order
// of the targets; those that a pass has found blocked come last, so that one that cannot begin keeps no other from it. The others stay as last applied,
// with a problem that says how to go on. One whose deletion has begun is not counted: half of it is no use to anybody.
func (l *Live) countDeletions(targets []target, owned inventory, live bool) []target {
	if l.options.MaxDeletions == nil {
		return targets
	}
	var able, blocked, waiting []int
	for i, t := range targets {
		own := owned.of(t.key())
		switch {
		case !t.beginsDeletion(own, live):
		case live && l.deletes[t.key()]: // it looks as if it began anew whenever it is blocked halfway
		case blockedBefore(own.custom):
			delete(l.deletes, t.key())
			blocked = append(blocked, i)
		case !l.deletes[t.key()]:
			able = append(able, i)
		}
	}
	most := *l.options.MaxDeletions
	for _, i := range append(able, blocked...) {
		if len(l.deletes) < most {
			l.deletes[targets[i].key()] = true
		} else {
			waiting = append(waiting, i)
		}
	}
	for _, i := range waiting {
		targets[i] = targets[i].waitForDeletion(owned.of(targets[i].key()).custom, live, len(l.deletes)+len(waiting), most)
	}
	return targets
}

// blockedBefore reports whether a pass before has found a cluster blocked, by something else than that it waits for its deletion.
func blockedBefore(custom *v1alpha1.EtcdCluster) bool {
	if custom == nil {
		return false
	}
	stalled := meta.FindStatusCondition(custom.Status.Conditions, v1alpha1.ConditionStalled)
	return stalled != nil && stalled.Status == metav1.ConditionTrue && stalled.Reason != "InvalidSpec"
}

// beginsDeletion reports whether a cluster of which there is something is newly to be deleted with its data.
func (t target) beginsDeletion(own *possessions, live bool) bool {
	custom := own.custom
	switch {
	case t.orphaned != "" || len(t.problems) > 0 || !goesWithData(t.cluster.Spec) || len(own.objects)+len(own.pods)+len(own.claims) == 0:
		return false
	case custom == nil || !goesWithData(custom.Spec):
		return true
	case live: // the custom resource declares itself; its status tells whether a pass has stopped it since it says so
		stopped := custom.Status.Action == "Stop" || custom.Status.Action == "NothingRuns"
		return !stopped || custom.Status.ObservedGeneration != custom.Generation
	}
	return false
}

// goesWithData reports whether a spec says that the cluster is deleted with its volumes. One that is suspended is not, as long as it is.
func goesWithData(spec v1alpha1.EtcdClusterSpec) bool {
	return spec.Lifecycle == v1alpha1.LifecycleDeleted && spec.Storage.Retention == v1alpha1.RetentionDelete && !spec.Suspend
}

// waitForDeletion keeps a cluster as last applied because this run deletes others. So many are newly to be deleted, and so many may be.
func (t target) waitForDeletion(custom *v1alpha1.EtcdCluster, live bool, all, most int) target {
	waits := t
	if custom != nil && !live {
		waits = lastApplied(custom)
		waits.warnings = t.warnings
	}
	waits.problems = []string{fmt.Sprintf("lifecycle Deleted with retention Delete: %d clusters are newly to be deleted with their data, and this one is not among the %d "+
		"that a run begins with; if all of them are meant to go, raise %s to %d; else declare it as it was", all, most, FlagMaxDeletions, all)}
	return waits
}
