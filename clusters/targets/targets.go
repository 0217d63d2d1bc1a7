// Package targets determines the clusters of a pass and their desired state: as declared by their source, as
// last applied, or an orphan that stays unchanged.
package targets

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/schema"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// Target is a cluster of a pass, in its desired state.
type Target struct {
	// Cluster has the metadata and the spec, with defaults.
	Cluster v1alpha1.EtcdCluster
	// Applied is the source's declaration. It is nil without a declaration, so that nothing is applied.
	Applied  map[string]any
	Warnings []string
	// Problems keep Quorate from acting on the declaration.
	Problems []string
	// Orphaned and RenamedFrom are as in decide.Declared.
	Orphaned, RenamedFrom string
	// Held describes since which revision no source declares the cluster, if that is not confirmed: it stays as
	// last applied.
	Held string
	// Elsewhere means that this run does not read the source that declared it.
	Elsewhere bool
	// Source is the source that declares it now, or empty if no source does or it is unknown.
	Source string
	// Empty means that none of its objects exist yet.
	Empty bool
}

// Key returns the cluster's key.
func (t Target) Key() inventory.Key { return inventory.KeyOf(&t.Cluster) }

// Of lists the targets of a pass: declared clusters, clusters with broken declarations, and undeclared clusters.
// Broken declarations leave clusters as last applied, and undeclared clusters stay unchanged. If a source could not be
// read, clusters that are not declared elsewhere stay as last applied. So do clusters that seem to be omitted by
// mistake: they are the removals.
func Of(desired reconcile.Desired, owned inventory.ByCluster) ([]Target, []report.Removal) {
	targets, removals := unchecked(desired, owned)
	refuse(targets, owned, desired)
	return inOrder(targets), removals
}

// unchecked returns the targets before they are checked against policies.
func unchecked(desired reconcile.Desired, owned inventory.ByCluster) ([]Target, []report.Removal) {
	if desired.Live {
		return selfDeclared(owned, desired.Unread == nil), nil
	}
	var targets []Target
	all := owned.Managed()
	maps.DeleteFunc(all, func(k inventory.Key,
		_ *inventory.Listed) bool {
		return !desired.Namespaces.Allow(k.Namespace)
	})
	rest := maps.Clone(all)
	broken, unplaced := problemsOf(desired)
	for _, d := range desired.Clusters {
		t := Target{Cluster: d.Cluster, Applied: d.Applied, Warnings: d.Warnings, Source: d.Source}
		t.Empty = owned.Of(t.Key()).Empty()
		targets = append(targets, t.against(owned.Of(t.Key()).Custom))
		delete(rest, t.Key())
	}
	for k, problems := range broken {
		if custom := owned.Of(k).Custom; custom != nil {
			t := lastApplied(custom)
			t.Problems = problems
			targets = append(targets, t)
		}
		delete(rest, k)
	}
	lost, removals := undeclared(targets, all, rest, desired, unplaced)
	return append(targets, lost...), removals
}

// selfDeclared returns the targets if the custom resources are the source. Nothing is applied to them, because
// another tool manages their specs. If the source could not be read (known is false), orphans remain orphans.
func selfDeclared(owned inventory.ByCluster, known bool) []Target {
	var targets []Target
	for _, p := range owned {
		if p.Custom == nil {
			continue
		}
		t := orphanOf(p.Custom).asBefore()
		t.Cluster.Labels, t.Cluster.Annotations = p.Custom.Labels, p.Custom.Annotations
		if known {
			t.Orphaned, t.Held, t.Warnings = "", "", nil
			t.Problems = t.unbuildable()
		}
		targets = append(targets, t)
	}
	return targets
}

// unbuildable returns the problems that keep the objects of a cluster from being created.
func (t Target) unbuildable() []string {
	c := t.Cluster
	return append(objects.CheckOptions(c.Spec), objects.CheckBackup(c.Spec, c.Namespace, c.Name)...)
}

// contested is the problem of a cluster that several sources declare. It does not name them, because each has
// its own tenants.
const contested = "more than one source declares the cluster; it is kept as last applied until only one declares it"

// problemsOf groups the problems of the sources by cluster. Problems that name no cluster are grouped by
// source, because they may be about any of its clusters.
func problemsOf(desired reconcile.Desired) (broken map[inventory.Key][]string, unplaced map[string][]string) {
	broken, unplaced = map[inventory.Key][]string{}, map[string][]string{}
	for _, p := range desired.Problems {
		switch {
		case p.Foreign:
		case p.Cluster == "":
			unplaced[p.Place] = append(unplaced[p.Place], p.String())
		default:
			k := inventory.ParseKey(p.Cluster)
			broken[k] = append(broken[k], p.String())
		}
	}
	for _, cluster := range desired.Contested {
		broken[inventory.ParseKey(cluster)] = []string{contested}
	}
	return broken, unplaced
}

func inOrder(targets []Target) []Target {
	slices.SortFunc(targets, func(a, b Target) int { return cmp.Compare(a.Key().String(), b.Key().String()) })
	return targets
}

// lastApplied returns the target of a cluster without an understandable declaration.
func lastApplied(custom *v1alpha1.EtcdCluster) Target {
	return Target{Cluster: v1alpha1.EtcdCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: custom.Name, Namespace: custom.Namespace, UID: custom.UID},
		Spec:       *custom.Spec.DeepCopy(),
	}}
}

// against completes a target from the live custom resource: its identity, its replicas if the source omits
// them, and violations of the rules for changes.
func (t Target) against(custom *v1alpha1.EtcdCluster) Target {
	t.Problems = append(t.Problems, t.unbuildable()...)
	if custom == nil {
		return t
	}
	t.Cluster.UID = custom.UID
	if !states(t.Applied, "spec", "replicas") {
		t.Cluster.Spec.Replicas = custom.Spec.Replicas
	}
	t.Problems = append(t.Problems, t.forbiddenChanges(custom)...)
	return t
}

// states reports whether an object has a field at that path.
func states(object map[string]any, path ...string) bool {
	var value any = object
	for _, step := range path {
		m, ok := value.(map[string]any)
		if !ok {
			return false
		}
		if value, ok = m[step]; !ok {
			return false
		}
	}
	return true
}

// forbiddenChanges evaluates the rules for changes of the spec, such as that a volume never shrinks.
func (t Target) forbiddenChanges(live *v1alpha1.EtcdCluster) []string {
	next := &t.Cluster
	if t.Applied != nil && equality.Semantic.DeepEqual(next.Spec, live.Spec) {
		return nil // nothing changes, and the rest was evaluated when the source was read
	}
	changed := live.DeepCopy()
	changed.Spec = next.Spec
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(changed)
	if err != nil {
		return []string{fmt.Sprintf("encode the declaration: %v", err)}
	}
	old, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return []string{fmt.Sprintf("encode the live custom resource: %v", err)}
	}
	var problems []string
	for _, problem := range schema.Validate(object, old) {
		problems = append(problems, problem.Error()+irreversibleChanges(problem.Error(), next, live))
	}
	return problems
}

// irreversibleChanges returns what to append to the problem of a declared size that is smaller than the one in the
// custom resource, or "". Git may
// declare the actual size of the volumes, but a size that was applied once remains the minimum.
func irreversibleChanges(problem string, next, live *v1alpha1.EtcdCluster) string {
	applied := live.Spec.Storage.Size
	if !strings.HasPrefix(problem, "spec.storage.size: ") || next.Spec.Storage.Size.Cmp(applied) >= 0 {
		return ""
	}
	return fmt.Sprintf("; the custom resource already has %[1]s, which cannot be reduced even if the volumes have not "+
		"grown. Declare %[1]s again", &applied)
}
