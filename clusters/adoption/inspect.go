package adoption

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/schema"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// Inspection is the result of Inspect.
type Inspection struct {
	Source Source
	// Reported is the membership that etcd reports.
	Reported decide.Membership
	// Problems lists the reasons why the source cannot be adopted now. It is empty if the first action of a pass would
	// be to adopt it.
	Problems []string
	// Declaration is the EtcdCluster that adopts the source, or nil if etcd did not report its cluster ID.
	Declaration map[string]any
}

// Inspect reads a StatefulSet and queries the etcd cluster that it runs. It does not write anything. An error means
// that the source is unknown: it does not exist, does not run etcd, or Kubernetes could not be read.
func Inspect(ctx context.Context, client *kube.Client, live *clusters.Live, namespace, statefulSet string, plan Plan) (
	Inspection, error,
) {
	object, err := client.Look(ctx, "StatefulSet", namespace, statefulSet)
	if err != nil {
		return Inspection{}, err
	}
	set, exists := object.(*appsv1.StatefulSet)
	if !exists {
		return Inspection{}, fmt.Errorf("namespace %s does not contain a StatefulSet %s", namespace, statefulSet)
	}
	source, err := Describe(set)
	if err != nil {
		return Inspection{}, err
	}
	in := Inspection{Source: source, Problems: source.Problems(plan)}
	if !source.canBeQueried(plan) {
		return in, nil
	}
	asking := source
	asking.Version = cmp.Or(source.Version, decide.RestrictsPeerNames.String()) // any valid version
	state, err := observe(ctx, live, asking.Draft(plan, decide.Membership{}))
	if err != nil {
		return in, err
	}
	if in.Reported = state.Source; !state.Source.Known {
		in.Problems = append(in.Problems, problem(decide.Decide(state)))
		return in, nil
	}
	in.Declaration = source.Draft(plan, state.Source)
	state, err = observe(ctx, live, in.Declaration)
	if invalid := new(invalidError); errors.As(err, invalid) {
		in.Problems = append(in.Problems, err.Error())
		return in, nil
	}
	if err != nil {
		return in, err
	}
	if d := decide.Decide(state); d.Verdict != decide.Act {
		in.Problems = append(in.Problems, problem(d))
	}
	return in, nil
}

// invalidError reports that the API server would reject a declaration.
type invalidError struct{ error }

// Error implements error.
func (e invalidError) Error() string { return "the declaration is invalid: " + e.error.Error() }

// canBeQueried reports whether etcd's endpoints are known.
func (s Source) canBeQueried(plan Plan) bool {
	suits := s.TLS == TLSUnknown || (s.TLS == WithTLS) == (plan.CASecretName != "")
	return suits && s.Service != "" && s.Members > 0 && s.Members <= mostEndpoints
}

func problem(d decide.Decision) string { return fmt.Sprintf("%s: %s", d.Rule, d.Message) }

// observe returns the state that a pass with the given declaration would observe.
func observe(ctx context.Context, live *clusters.Live, object map[string]any) (decide.State, error) {
	filled := runtime.DeepCopyJSON(object)
	if err := schema.Default(filled); err != nil {
		return decide.State{}, err
	}
	if wrong := schema.Validate(filled, nil); len(wrong) > 0 {
		return decide.State{}, invalidError{wrong.ToAggregate()}
	}
	d := reconcile.Declaration{Applied: object}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(filled, &d.Cluster); err != nil {
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
	return decide.State{}, errors.New("observe the declared cluster: it is not among the observed clusters")
}

// width is the maximum length of a comment in a declaration.
const width = 100

// Write writes the declaration, with what the user must know and do as comments. Without a declaration, it writes only
// the comments.
func (in Inspection) Write(w io.Writer) error {
	var b strings.Builder
	comment := func(mark, text string) {
		indent := len("# ") + len(mark)
		text = report.Style{Width: width}.Wrap(text, indent, len(mark))
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
	list("It cannot be adopted yet:", in.Problems, func(int) string { return "- " })
	list("Before you push the declaration:", in.Source.Steps(),
		func(i int) string { return fmt.Sprintf("%d. ", i+1) })
	b.WriteString("#\n")
	comment("", "All steps are described in docs/how-to/adopt-a-cluster.md.")
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

// title describes the StatefulSet and the tool that manages it.
func (s Source) title() string {
	text := fmt.Sprintf("StatefulSet %s/%s", s.Namespace, s.Name)
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
	return fmt.Sprintf("etcd cluster %s: %d members, etcd %s, database %d MiB", in.Reported.ClusterID,
		len(in.Reported.Members), runningVersion(in.Reported, "unknown"), (largest+1<<20-1)>>20)
}
