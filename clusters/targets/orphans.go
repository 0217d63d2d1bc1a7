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
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
)

// orphan is a cluster that the source does not declare. Its description is stored in the Orphaned condition or, while
// the removal may be a mistake, in the RemovalHeld condition.
type orphan struct {
	custom *v1alpha1.EtcdCluster
	// id is zero if the cluster has never formed.
	id decide.ID
	// said is the condition's message, or empty. held is true if the condition is RemovalHeld.
	said string
	held bool
	// since is the revision that removed the cluster, or empty if unknown.
	since string
	// revision is the current revision of the source that declared the cluster, or empty if unknown.
	revision string
	// confirm is the revision to confirm if the removal is intended: the revision that removed the cluster, the current
	// revision of its source or, if the source is unknown, the revisions of all sources.
	confirm string
	// kin reports whether a source may be the source that declared the cluster.
	kin func(source string) bool
	// heirs are the declared clusters that may be this cluster under a new name.
	heirs []inventory.Key
}

// noLonger follows the revision in the condition message. theSource replaces an unknown revision.
const noLonger, theSource = " no longer declares it", "the source"

func orphanOf(custom *v1alpha1.EtcdCluster) *orphan {
	o := &orphan{custom: custom}
	for _, kind := range []string{v1alpha1.ConditionRemovalHeld, v1alpha1.ConditionOrphaned} {
		if condition := meta.FindStatusCondition(custom.Status.Conditions, kind); condition != nil {
			o.said, o.held = condition.Message, kind == v1alpha1.ConditionRemovalHeld
			o.since, _, _ = strings.Cut(o.said, noLonger)
		}
	}
	// The text is theSource or, if written by an earlier version, the revisions of several sources.
	if strings.Contains(o.since, " ") {
		o.since = ""
	}
	return o
}

// isOrphan reports whether an earlier pass has already reported the cluster as an orphan.
func (o *orphan) isOrphan() bool { return o.said != "" && !o.held }

// asBefore returns the target of a cluster that may or may not be declared. The target keeps the cluster as earlier
// passes left it.
func (o *orphan) asBefore() Target {
	t := lastApplied(o.custom)
	if o.held {
		return t.hold(o)
	}
	t.Orphaned = o.said
	return t
}

// orphansOf lists the clusters that the sources do not declare. It also marks declared clusters that do not have any
// objects yet and seem to be an undeclared cluster under a new name.
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
			state, known := desired.State(other)
			return (!known || state.Namespaces.Allow(o.custom.Namespace)) && sameSource(source, other, desired)
		}
		list = append(list, o)
	}
	for i := range declared {
		declared[i].inherit(list)
	}
	return list
}

// sameSource reports whether the source before, which last declared a cluster, may be the source now. Either both are
// the same source, possibly at a different path, or now is the only source and before is unknown. Any other source
// belongs to a different tenant.
func sameSource(before, now string, desired reconcile.Desired) bool {
	if before == now {
		return true
	}
	if _, another := desired.State(before); another {
		return false
	}
	if before == "" {
		return len(desired.Sources) <= 1
	}
	return reconcile.SameLocation(before, now)
}

// describe returns a message with the revision that removed the cluster and its possible new names. Later passes read
// both from this message, so that a new name remains suspect after later revisions.
func (o *orphan) describe() string {
	words := cmp.Or(o.since, o.revision, theSource) + noLonger
	for _, heir := range o.heirs {
		words += mayBe(heir)
	}
	return words
}

func mayBe(heir inventory.Key) string { return fmt.Sprintf("; it may now be %s", heir) }

// inherit marks a new cluster that seems to be one of the orphans under a new name (see the RenamedInGit rule).
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

// isCopiedBy reports whether t will be created with the orphan's data, or will adopt the orphan.
func (o *orphan) isCopiedBy(t Target) bool {
	if objects.AdoptionOf(&t.Cluster).ClusterID == o.id {
		return true
	}
	restore := t.Cluster.Spec.Restore
	var from decide.ID
	return restore != nil && from.UnmarshalText([]byte(restore.From.CopiedClusterID())) == nil && from == o.id
}

// mayBe reports whether t may be the orphan under a new name, declared by the same source. Either the specs are equal,
// or the revision that removed the orphan added a cluster with the same name or in the same namespace.
func (o *orphan) mayBe(t Target) bool {
	beside := strings.Split(t.Cluster.Annotations[v1alpha1.AnnotationConfirmNewCluster], ",")
	if o.id == 0 || !o.kin(t.Source) || o.isCopiedBy(t) || slices.ContainsFunc(beside,
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
