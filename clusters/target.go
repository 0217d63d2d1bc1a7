package clusters

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/schema"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// target is one cluster that a pass is about, as it is to be.
type target struct {
	// cluster with defaults; metadata and spec.
	cluster v1alpha1.EtcdCluster
	// applied is what the source states; nil if the source does not say, so that nothing is to be
	// applied.
	applied  map[string]any
	warnings []string
	// problems that keep the declaration from being acted on.
	problems []string
	// orphaned and renamedFrom as in decide.Declared.
	orphaned, renamedFrom string
	// held says since which revision no source declares it, if nobody has confirmed that: it stays
	// as last applied.
	held string
	// elsewhere: what declared it is not read by this run.
	elsewhere bool
	// source that declares it now; empty if none does, or it is not known which.
	source string
	// empty: nothing is there of it yet.
	empty bool
	// unseen says why it is not known what is there of it; nil if it is.
	unseen error
}

func (t target) key() key { return key{t.cluster.Namespace, t.cluster.Name} }

// targetsOf lists what a pass is about: what is declared; the clusters whose declarations are
// broken, which stay as last applied; and those that are not declared, which stay untouched. Where
// a place could not be read, what is not declared elsewhere stays as last applied, and so does what
// seems to be left out by accident: those are the removals.
func targetsOf(desired reconcile.Desired, owned inventory) ([]target, []report.Removal) {
	targets, removals := unchecked(desired, owned)
	refuse(targets, owned, desired)
	return inOrder(targets), removals
}

// unchecked are the targets before it is asked what they may be.
func unchecked(desired reconcile.Desired, owned inventory) ([]target, []report.Removal) {
	if desired.Live {
		return selfDeclared(owned, desired.Unread == nil), nil
	}
	var targets []target
	all := owned.managed()
	maps.DeleteFunc(all, func(k key, _ *clusterObjects) bool { return !desired.Namespaces.Allow(k.namespace) })
	rest := maps.Clone(all)
	broken, unplaced := problemsOf(desired)
	for _, d := range desired.Clusters {
		t := target{cluster: d.Cluster, applied: d.Applied, warnings: d.Warnings, source: d.Source}
		t.empty = owned.of(t.key()).empty(t.cluster.Name)
		targets = append(targets, t.against(owned.of(t.key()).custom))
		delete(rest, t.key())
	}
	for k, problems := range broken {
		if custom := owned.of(k).custom; custom != nil {
			t := lastApplied(custom)
			t.problems = problems
			targets = append(targets, t)
		}
		delete(rest, k)
	}
	lost, removals := undeclared(targets, all, rest, desired, unplaced)
	return append(targets, lost...), removals
}

// selfDeclared are the targets where the custom resources declare themselves. Nothing is applied to
// them: what they say is somebody else's. If that is not known, orphans are orphans still.
func selfDeclared(owned inventory, known bool) []target {
	var targets []target
	for _, p := range owned {
		if p.custom == nil {
			continue
		}
		t := orphanOf(p.custom).asBefore()
		t.cluster.Labels, t.cluster.Annotations = p.custom.Labels, p.custom.Annotations
		if known {
			t.orphaned, t.held, t.warnings = "", "", nil
			t.problems = objects.CheckOptions(t.cluster.Spec)
		}
		targets = append(targets, t)
	}
	return targets
}

// contested is what is wrong with a cluster that several sources declare. It names none of them:
// each has tenants of its own.
const contested = "more than one source declares the cluster: it stays as last applied until all but one let it go"

// problemsOf sorts the problems of the sources by the cluster that they name. Those that name none,
// by the source, may be about any of it.
func problemsOf(desired reconcile.Desired) (broken map[key][]string, unplaced map[string][]string) {
	broken, unplaced = map[key][]string{}, map[string][]string{}
	for _, p := range desired.Problems {
		switch {
		case p.Foreign:
		case p.Cluster == "":
			unplaced[p.Place] = append(unplaced[p.Place], p.String())
		default:
			k := keyNamed(p.Cluster)
			broken[k] = append(broken[k], p.String())
		}
	}
	for _, cluster := range desired.Contested {
		broken[keyNamed(cluster)] = []string{contested}
	}
	return broken, unplaced
}

func inOrder(targets []target) []target {
	slices.SortFunc(targets, func(a, b target) int { return cmp.Compare(a.key().String(), b.key().String()) })
	return targets
}

// lastApplied is the target of a cluster that the source says nothing understandable about.
func lastApplied(custom *v1alpha1.EtcdCluster) target {
	return target{cluster: v1alpha1.EtcdCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: custom.Name, Namespace: custom.Namespace, UID: custom.UID},
		Spec:       *custom.Spec.DeepCopy(),
	}}
}

// against completes a target with what is there: the identity of the live custom resource, its
// replicas where the source leaves them to others, and what the rules for changes say against it.
func (t target) against(custom *v1alpha1.EtcdCluster) target {
	t.problems = append(t.problems, objects.CheckOptions(t.cluster.Spec)...)
	if custom == nil {
		return t
	}
	t.cluster.UID = custom.UID
	if !states(t.applied, "spec", "replicas") {
		t.cluster.Spec.Replicas = custom.Spec.Replicas
	}
	t.problems = append(t.problems, forbiddenChanges(&t.cluster, custom)...)
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
func forbiddenChanges(next, live *v1alpha1.EtcdCluster) []string {
	for _, c := range []*v1alpha1.EtcdCluster{next, live} {
		if immense := schema.Immense(c.Spec); len(immense) > 0 {
			return immense
		}
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
	return fmt.Sprintf("; the custom resource says %[1]s, which cannot be taken back, whether the volumes have grown or not: declare %[1]s again", &applied)
}
