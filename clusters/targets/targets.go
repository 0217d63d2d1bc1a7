// Package targets determines the clusters of a pass and their desired state: as declared by their source, as last
// applied or, for orphans, unchanged.
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
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// Target is the desired state of one cluster in a pass.
type Target struct {
	// Cluster has the metadata and the spec, with defaults.
	Cluster v1alpha1.EtcdCluster
	// Applied is the source's declaration. If it is nil, nothing is applied.
	Applied  map[string]any
	Warnings []string
	// Problems lists the reasons why Quorate does not act on the declaration.
	Problems []string
	// Orphaned and RenamedFrom have the same meaning as in decide.Declared.
	Orphaned, RenamedFrom string
	// Held contains the revision that removed the cluster if the removal has not been confirmed. The cluster is kept as
	// last applied.
	Held string
	// Elsewhere is set if this run does not read the source that declared the cluster.
	Elsewhere bool
	// Source is the source that declares the cluster now, or empty if no source does or it is unknown.
	Source string
	// Empty is set if none of the cluster's objects exist yet.
	Empty bool
	// Unchecked is set if no policy was applied to the spec, because it was read from the custom resource.
	Unchecked bool
}

// Key returns the cluster's key.
func (t Target) Key() inventory.Key { return inventory.KeyOf(&t.Cluster) }

// Of lists the targets of a pass: declared clusters, clusters with broken declarations, and undeclared clusters.
// Clusters with broken declarations are kept as last applied, and undeclared clusters remain unchanged. If a source
// could not be read, clusters that no other source declares are kept as last applied. The same applies to clusters that
// seem to have been removed by mistake, which Of returns as removals.
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

// selfDeclared returns the targets if the custom resources are the source. Nothing is applied to the custom resources,
// because another tool manages their specs. If the source was not read (known is false), orphans remain orphans, and a
// declaration that the last pass reported as a problem remains one.
func selfDeclared(owned inventory.ByCluster, known bool) []Target {
	var targets []Target
	for _, p := range owned {
		if p.Custom == nil {
			continue
		}
		t := orphanOf(p.Custom).asBefore()
		t.Cluster.Labels, t.Cluster.Annotations = p.Custom.Labels, p.Custom.Annotations
		t.Problems, t.Unchecked = notApplied(p.Custom), true
		if known {
			t.Orphaned, t.Held, t.Warnings, t.Unchecked = "", "", nil, false // see refuse
			t.Problems = t.unbuildable()
		}
		targets = append(targets, t)
	}
	return targets
}

// notApplied returns the problem that kept the last pass from applying the newest spec, or nil.
func notApplied(custom *v1alpha1.EtcdCluster) []string {
	if c := stalled(custom); c != nil && c.Reason == decide.InvalidSpec {
		return []string{"the newest spec was not applied, as of the last pass: " + c.Message}
	}
	return nil
}

// unbuildable returns the problems that prevent the objects of a cluster from being created.
func (t Target) unbuildable() []string {
	c := t.Cluster
	return objects.Check(c.Spec, c.Namespace, c.Name)
}

// contested is the problem with a cluster that several sources declare. It does not name the sources, because they may
// belong to different tenants.
const contested = "more than one source declares the cluster; it is kept as last applied until only one declares it"

// problemsOf groups the sources' problems by cluster. Problems that do not name a cluster are grouped by source,
// because they may affect any of its clusters.
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

// lastApplied returns the target of a cluster without a usable declaration. Its spec is the last applied spec. It keeps
// the confirmation of members, so that a confirmation that was used does not seem new when the source is read again.
func lastApplied(custom *v1alpha1.EtcdCluster) Target {
	t := Target{Cluster: v1alpha1.EtcdCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: custom.Name, Namespace: custom.Namespace, UID: custom.UID},
		Spec:       *custom.Spec.DeepCopy(),
	}}
	return t
}

// against completes a target from the live custom resource. It sets the UID, sets the replicas if the source omits
// them, and adds forbidden changes as problems.
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

// states reports whether an object has a field at the given path.
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

// forbiddenChanges returns the violations of the rules for changes to the spec, such as that a volume never shrinks.
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

// irreversibleChanges returns text to append to a problem if the declared size is smaller than the size in the custom
// resource, or "". Once a size has been applied, it is the minimum, even if the volumes have not grown.
func irreversibleChanges(problem string, next, live *v1alpha1.EtcdCluster) string {
	applied := live.Spec.Storage.Size
	if !strings.HasPrefix(problem, "spec.storage.size: ") || next.Spec.Storage.Size.Cmp(applied) >= 0 {
		return ""
	}
	return fmt.Sprintf("; the custom resource already has %[1]s, which cannot be reduced even if the volumes have not "+
		"grown. Declare %[1]s again", &applied)
}
