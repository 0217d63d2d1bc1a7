package adoption

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/schema"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// Inspection is the result of Inspect.
type Inspection struct {
	Source Source
	Plan   Plan
	// Reported is the membership that etcd reports.
	Reported decide.Membership
	// Problems lists what prevents the adoption now, or makes it unsafe, apart from the policy. If etcd could not be
	// queried, there may be more.
	Problems []string
	// Declaration is the EtcdCluster that adopts the source, or nil if etcd did not report its cluster ID, or if no
	// valid declaration was found.
	Declaration map[string]any
	// Dropped lists what is not carried over.
	Dropped Dropped
}

// Inspect reads the object that ref refers to, and queries the etcd cluster that it runs. It does not write anything.
// It returns an error if the source is unknown: the object does not exist or does not run etcd, or Kubernetes cannot be
// read.
func Inspect(ctx context.Context, client *kube.Client, live *clusters.Live, namespace string, ref Ref, plan Plan) (
	Inspection, error,
) {
	source, err := find(ctx, client, namespace, ref)
	if err != nil {
		return Inspection{}, err
	}
	in := Inspection{Source: source, Plan: plan, Problems: source.Problems(plan)}
	if !source.canBeQueried(plan) {
		return in, nil
	}
	state, err := observe(ctx, live, source.query(plan))
	if err == nil && !state.BeginsAdoption() {
		in.Problems = append(in.Problems, fmt.Sprintf("cluster %s/%s already exists. Choose a different name for the "+
			"new cluster", namespace, plan.Name))
		return in, nil
	}
	if err == nil && state.Source.Known {
		in.Reported = state.Source
		in.Declaration, in.Dropped = source.Draft(plan, state.Source)
		state, err = observe(ctx, live, in.Declaration)
	}
	if invalid := (invalidError{}); errors.As(err, &invalid) {
		in.Problems, in.Declaration = append(in.Problems, invalid.Error()), nil
		return in, nil
	}
	if err != nil {
		return Inspection{}, err
	}
	d := decide.Decide(state)
	if b, _ := d.Action.(decide.Bootstrap); b.Adopts == 0 || b.Adopts != in.Reported.ClusterID {
		in.Problems = append(in.Problems, fmt.Sprintf("%s: %s", d.Rule, d.Message))
	}
	if !in.Reported.Known && source.TLS == TLSUnknown && plan.CASecretName == "" {
		in.Problems = append(in.Problems, "cannot tell whether its members use TLS. If they do, set --ca-secret")
	}
	return in, nil
}

// find reads and describes the object that ref refers to.
func find(ctx context.Context, client *kube.Client, namespace string, ref Ref) (Source, error) {
	if ref.Kind == nil {
		set, err := lookStatefulSet(ctx, client, namespace, ref.Name)
		if err != nil {
			return Source{}, err
		}
		custom, unread := lookOwner(ctx, client, set)
		source, err := Describe(set, custom)
		source.Unread = unread
		return source, err
	}
	custom, err := lookCustom(ctx, client, ref.Kind, namespace, ref.Name)
	if err != nil {
		return Source{}, err
	}
	if ref.Kind.Selector != nil {
		return findPods(ctx, client, custom)
	}
	set, err := lookStatefulSet(ctx, client, namespace, ref.Name)
	if err != nil {
		return Source{}, err
	}
	if owner := metav1.GetControllerOf(set); owner == nil || owner.UID != custom.UID {
		return Source{}, fmt.Errorf("%s %s does not control StatefulSet %s/%[2]s", ref.Kind.Name, ref.Name, namespace)
	}
	return Describe(set, custom)
}

// findPods reads and describes the pods of a custom resource that does not have a StatefulSet.
func findPods(ctx context.Context, client *kube.Client, custom *CustomResource) (Source, error) {
	pods, err := client.Pods(ctx, custom.Namespace, custom.Kind.Selector(custom.Name))
	if err != nil {
		return Source{}, err
	}
	claims, err := client.Claims(ctx, custom.Namespace)
	if err != nil {
		return Source{}, err
	}
	return DescribePods(custom, pods, claims)
}

func lookStatefulSet(ctx context.Context, client *kube.Client, namespace, name string) (*appsv1.StatefulSet, error) {
	object, err := client.Look(ctx, statefulSet, namespace, name)
	if err != nil {
		return nil, err
	}
	set, exists := object.(*appsv1.StatefulSet)
	if !exists {
		return nil, fmt.Errorf("StatefulSet %s/%s does not exist", namespace, name)
	}
	return set, nil
}

// lookOwner reads the custom resource that controls a StatefulSet. It returns nil if the StatefulSet does not have a
// controller, or if the controller's kind is unknown.
func lookOwner(ctx context.Context, client *kube.Client, set *appsv1.StatefulSet) (*CustomResource, error) {
	owner := metav1.GetControllerOf(set)
	kind := kindOf(owner)
	if kind == nil {
		return nil, nil
	}
	custom, err := lookCustom(ctx, client, kind, set.Namespace, owner.Name)
	if err != nil {
		return nil, err
	}
	if custom.UID != owner.UID {
		return nil, fmt.Errorf("a different %s named %s controls StatefulSet %s/%s", kind.Name, owner.Name,
			set.Namespace, set.Name)
	}
	return custom, nil
}

// lookCustom reads a custom resource. It returns an error if it does not exist.
func lookCustom(ctx context.Context, client *kube.Client, kind *Kind, namespace, name string) (*CustomResource, error) {
	object, err := client.LookCustom(ctx, kind.Resource, namespace, name)
	if err != nil {
		return nil, err
	}
	if object == nil {
		return nil, fmt.Errorf("%s %s/%s (%s) does not exist, or its CustomResourceDefinition is not installed",
			kind.Name, namespace, name, kind.APIVersion())
	}
	return DescribeCustomResource(kind, object), nil
}

// canBeQueried reports whether etcd's endpoints are known, and whether the plan has the CA that they require.
func (s Source) canBeQueried(plan Plan) bool {
	suits := s.TLS == TLSUnknown || (s.TLS == WithTLS) == (plan.CASecretName != "")
	return suits && len(s.Hosts) > 0 && s.Members <= decide.MaxGuests
}

// invalidError reports that a declaration is invalid.
type invalidError struct{ error }

// Error implements error.
func (e invalidError) Error() string { return "the declaration would be invalid: " + e.error.Error() }

// check returns an invalidError if a declaration is invalid.
func check(object map[string]any) error {
	_, err := declared(object)
	return err
}

// declared returns a declaration with defaults. It returns an invalidError if the declaration is invalid.
func declared(object map[string]any) (reconcile.Declaration, error) {
	filled := runtime.DeepCopyJSON(object)
	d := reconcile.Declaration{Applied: object}
	if err := schema.Default(filled); err != nil {
		return d, invalidError{err}
	}
	if wrong := schema.Validate(filled, nil); len(wrong) > 0 {
		return d, invalidError{wrong.ToAggregate()}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(filled, &d.Cluster); err != nil {
		return d, invalidError{err}
	}
	if wrong := objects.CheckOptions(d.Cluster.Spec); len(wrong) > 0 {
		return d, invalidError{errors.New(strings.Join(wrong, "; "))}
	}
	return d, nil
}

// observe returns the state that a pass with the given declaration would observe.
func observe(ctx context.Context, live *clusters.Live, object map[string]any) (decide.State, error) {
	d, err := declared(object)
	if err != nil {
		return decide.State{}, err
	}
	seen, err := live.Observe(ctx, reconcile.Desired{Clusters: []reconcile.Declaration{d}}, nil)
	if err != nil {
		return decide.State{}, err
	}
	for _, c := range seen.Clusters {
		if namespace, name := c.Identity(); namespace == d.Cluster.Namespace && name == d.Cluster.Name {
			return c.State(ctx)
		}
	}
	return decide.State{}, errors.New("the declared cluster was not observed")
}

// width is the maximum length of a comment in a declaration.
const width = 100

// Write writes the declaration, with information, problems and steps as comments. Without a declaration, it writes only
// the comments.
func (in Inspection) Write(w io.Writer) error {
	var b strings.Builder
	comment := func(mark, text string) {
		text = report.Style{Width: width - len("# ")}.Wrap(text, len(mark), len(mark))
		b.WriteString("# " + mark + strings.ReplaceAll(text, "\n", "\n# ") + "\n")
	}
	list := func(title string, entries []string, mark func(i int) string) {
		if len(entries) == 0 {
			return
		}
		b.WriteString("#\n")
		comment("", title)
		for i, entry := range entries {
			comment(mark(i), entry)
		}
	}
	comment("", in.Source.title())
	if in.Reported.Known {
		comment("", in.reported())
	}
	list("This etcd cluster cannot be adopted yet:", in.Problems, func(int) string { return "- " })
	number := func(i int) string { return fmt.Sprintf("%d. ", i+1) }
	list("Before you push the declaration:", in.Source.Steps(in.Plan, in.Dropped), number)
	list("To release a guest, later:", in.Source.ReleaseSteps(), number)
	if c := in.Source.Custom; c != nil {
		list("The fields of the "+c.Kind.Name+", and where they belong in a declaration, apart from what is listed "+
			"above:", c.fieldLines(in.Declaration), func(int) string { return "- " })
	}
	b.WriteString("#\n")
	comment("", "For all steps, see docs/how-to/adopt-a-cluster.md.")
	if in.Declaration != nil {
		text, err := yaml.Marshal(in.Declaration)
		if err != nil {
			return fmt.Errorf("write the declaration: %w", err)
		}
		b.Write(text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// title describes the source and the tool that manages it.
func (s Source) title() string {
	text := fmt.Sprintf("%s %s/%s", s.Kind, s.Namespace, s.Name)
	if s.Tool.Name != "" {
		text += ", managed by " + s.Tool.Name
	}
	if s.Owner != "" {
		text += fmt.Sprintf(" (%s)", s.Owner)
	}
	return text
}

// reported describes the etcd cluster.
func (in Inspection) reported() string {
	largest := int64(0)
	for _, m := range in.Reported.Members {
		largest = max(largest, m.DBSize)
	}
	members := decide.Count(len(in.Reported.Members), "member")
	return fmt.Sprintf("etcd cluster %s: %s, etcd %s, database %d MiB", in.Reported.ClusterID, members,
		cmp.Or(runningVersion(in.Reported), "unknown"), (largest+1<<20-1)>>20)
}
