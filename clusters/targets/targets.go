// Package targets says what a pass is about, and what each cluster is to be: as its source declares
// it, as it was last applied, or an orphan that stays as it is.
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

// Target is one cluster that a pass is about, as it is to be.
type Target struct {
	// Cluster with defaults; metadata and spec.
	Cluster v1alpha1.EtcdCluster
	// Applied is what the source states; nil if the source does not say, so that nothing is to be
	// applied.
	Applied  map[string]any
	Warnings []string
	// Problems that keep the declaration from being acted on.
	Problems []string
	// Orphaned and RenamedFrom as in decide.Declared.
	Orphaned, RenamedFrom string
	// Held says since which revision no source declares it, if nobody has confirmed that: it stays
	// as last applied.
	Held string
	// Elsewhere: what declared it is not read by this run.
	Elsewhere bool
	// Source that declares it now; empty if none does, or it is not known which.
	Source string
	// Empty: nothing is there of it yet.
	Empty bool
}

// Key names the cluster.
func (t Target) Key() inventory.Key { return inventory.KeyOf(&t.Cluster) }

// Of lists what a pass is about: what is declared; the clusters whose declarations are broken, which
// stay as last applied; and those that are not declared, which stay untouched. Where a place could
// not be read, what is not declared elsewhere stays as last applied, and so does what seems to be
// left out by accident: those are the removals.
func Of(desired reconcile.Desired, owned inventory.ByCluster) ([]Target, []report.Removal) {
	targets, removals := unchecked(desired, owned)
	refuse(targets, owned, desired)
	return inOrder(targets), removals
}

// unchecked are the targets before it is asked what they may be.
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

// selfDeclared are the targets where the custom resources declare themselves. Nothing is applied to
// them: what they say is somebody else's. If that is not known, orphans are orphans still.
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

// unbuildable is what the objects of a cluster cannot be made of.
func (t Target) unbuildable() []string {
	c := t.Cluster
	return append(objects.CheckOptions(c.Spec), objects.CheckBackup(c.Spec, c.Namespace, c.Name)...)
}

// contested is what is wrong with a cluster that several sources declare. It names none of them:
// each has tenants of its own.
const contested = "more than one source declares the cluster: it stays as last applied until all but one let it go"

// problemsOf sorts the problems of the sources by the cluster that they name. Those that name none,
// by the source, may be about any of it.
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

// lastApplied is the target of a cluster that the source says nothing understandable about.
func lastApplied(custom *v1alpha1.EtcdCluster) Target {
	return Target{Cluster: v1alpha1.EtcdCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: custom.Name, Namespace: custom.Namespace, UID: custom.UID},
		Spec:       *custom.Spec.DeepCopy(),
	}}
}

// against completes a target with what is there: the identity of the live custom resource, its
// replicas where the source leaves them to others, and what the rules for changes say against it.
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

// forbiddenChanges evaluates the rules about changes of the spec, such as that a volume never
// shrinks.
func (t Target) forbiddenChanges(live *v1alpha1.EtcdCluster) []string {
	next := &t.Cluster
	if t.Applied != nil && equality.Semantic.DeepEqual(next.Spec, live.Spec) {
		return nil // nothing changes, and all else was evaluated as the source was read
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
		problems = append(problems, problem.Error()+noWayBack(problem.Error(), next, live))
	}
	return problems
}

// noWayBack completes what is said of a size that is smaller than the one in the custom resource.
// Git may mean the size that the volumes have: what was declared once stays the least that may be.
func noWayBack(problem string, next, live *v1alpha1.EtcdCluster) string {
	applied := live.Spec.Storage.Size
	if !strings.HasPrefix(problem, "spec.storage.size: ") || next.Spec.Storage.Size.Cmp(applied) >= 0 {
		return ""
	}
	return fmt.Sprintf("; the custom resource says %[1]s, which cannot be taken back, whether the volumes have grown "+
		"or not: declare %[1]s again", &applied)
}
