package targets

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
)

// orphan is a cluster that the source does not declare. What it says of itself is kept in the
// condition Orphaned, or in RemovalHeld as long as that may be an accident.
type orphan struct {
	custom *v1alpha1.EtcdCluster
	// id is zero if it has never formed.
	id decide.ID
	// said is the message of its condition; empty if it has none yet. held says that it is that of
	// RemovalHeld.
	said string
	held bool
	// since is the revision that dropped it; empty if that is not known.
	since string
	// revision at which the source that declared it was read now; empty if that is not known.
	revision string
	// confirm is what a person confirms if it is meant to go: the revision that dropped it, or of
	// all sources if it is not known which one did.
	confirm string
	// kin reports whether a source is the one that declared it.
	kin func(source string) bool
	// heirs are the declared clusters that it may be under another name.
	heirs []inventory.Key
}

// noLonger follows the revision in the message of the condition, or what stands for it.
const noLonger, theSource = " no longer declares it", "the source"

func orphanOf(custom *v1alpha1.EtcdCluster) *orphan {
	o := &orphan{custom: custom}
	for _, kind := range []string{v1alpha1.ConditionRemovalHeld, v1alpha1.ConditionOrphaned} {
		if condition := meta.FindStatusCondition(custom.Status.Conditions, kind); condition != nil {
			o.said, o.held = condition.Message, kind == v1alpha1.ConditionRemovalHeld
			o.since, _, _ = strings.Cut(o.said, noLonger)
		}
	}
	// TheSource, or what earlier versions have written: the revisions of several sources.
	if strings.Contains(o.since, " ") {
		o.since = ""
	}
	return o
}

// isOrphan reports whether it has been one before.
func (o *orphan) isOrphan() bool { return o.said != "" && !o.held }

// asBefore is the target of a cluster while nothing new is known about its declaration.
func (o *orphan) asBefore() Target {
	t := lastApplied(o.custom)
	if o.held {
		return t.hold(o)
	}
	t.Orphaned = o.said
	return t
}

// orphansOf lists the clusters that the sources do not declare. Clusters that they declare, that
// have nothing yet and that seem to be one of them under another name are marked so.
func orphansOf(declared []Target, undeclared inventory.ByCluster, desired reconcile.Desired) []*orphan {
	var list []*orphan
	for _, k := range slices.SortedFunc(maps.Keys(undeclared),
		func(a, b inventory.Key) int { return cmp.Compare(a.String(), b.String()) }) {
		o := orphanOf(undeclared[k].Custom)
		o.id = undeclared[k].ClusterID()
		source := o.custom.Status.DeclaredSource
		o.revision = revisionOf(source, desired)
		o.confirm = cmp.Or(o.since, o.revision, desired.Revision)
		o.kin = func(other string) bool {
			place, known := desired.Place(other)
			return (!known || place.Namespaces.Allow(o.custom.Namespace)) && sameSource(source, other, desired)
		}
		list = append(list, o)
	}
	for i := range declared {
		declared[i].inherit(list)
	}
	return list
}

// sameSource reports whether what a source declared before may be what another declares now: it is
// the same one, at another path perhaps, or the only one there is and not known by its name. What
// is not the same is somebody else's.
func sameSource(before, now string, desired reconcile.Desired) bool {
	if before == now {
		return true
	}
	if _, another := desired.Place(before); another {
		return false
	}
	if before == "" {
		return len(desired.Sources) <= 1
	}
	return reconcile.SameLocation(before, now)
}

// describe says since which revision the cluster is an orphan, and what it may be called now. Later
// passes take both from there: a new name stays suspect however many revisions come after.
func (o *orphan) describe() string {
	words := cmp.Or(o.since, o.revision, theSource) + noLonger
	for _, heir := range o.heirs {
		words += mayBe(heir)
	}
	return words
}

func mayBe(heir inventory.Key) string { return fmt.Sprintf("; %s may be it", heir) }

// inherit marks a cluster that seems to be one of the orphans under another name (see the rule
// RenamedInGit).
func (t *Target) inherit(list []*orphan) {
	for _, o := range list {
		if !t.Empty || !o.mayBe(*t) {
			continue
		}
		o.heirs = append(o.heirs, t.Key())
		if t.RenamedFrom == "" {
			t.RenamedFrom = fmt.Sprintf("%s/%s (cluster %s)", o.custom.Namespace, o.custom.Name, o.id)
		}
	}
}

// mayBe reports whether the orphan may be what the same source declares as t now: its spec is the
// same, or the revision that dropped it brought a cluster of the same name, or in the same
// namespace.
func (o *orphan) mayBe(t Target) bool {
	beside := strings.Split(t.Cluster.Annotations[v1alpha1.AnnotationConfirmNewCluster], ",")
	if o.id == 0 || !o.kin(t.Source) || slices.ContainsFunc(beside,
		func(id string) bool { return strings.TrimSpace(id) == o.id.String() }) {
		return false
	}
	if equality.Semantic.DeepEqual(t.Cluster.Spec, o.custom.Spec) {
		return true
	}
	droppedNow := o.said == "" || o.since != "" && o.since == o.revision
	suspect := droppedNow || strings.Contains(o.said, mayBe(t.Key()))
	return suspect && (t.Cluster.Namespace == o.custom.Namespace || t.Cluster.Name == o.custom.Name)
}
