package schema

import (
	"context"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/clusters/v1alpha1/crd"
)

// examples are clusters: some are valid, and some are invalid in several ways.
var examples = []string{
	"spec: {}",
	"spec: {replicas: 4, etcd: {quota: 8}}",
	"spec: {replicas: 0, version: latest, tls: {mode: Off}}",
	"spec: {storage: {size: 16Gi, storageClassName: fast}}",
	"spec: {storage: {size: 1Gi, storageClassName: slow}, tls: {mode: Disabled}}",
	"spec: {image: {pullSecrets: [{name: a}, {name: a}]}}",
	"spec: {etcd: {options: {data-dir: /tmp, max-wals: x}, heartbeatInterval: 1s}}",
	"metadata: {name: A_b, namespace: null}",
	"metadata: {name: abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz, labels: {'a b': 'c d'}}",
	"spec: []",
}

// rulesNotChecked is an error that the API server adds if other errors prevent it from checking the rules. It contains
// no other information.
const rulesNotChecked = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"

// TestValidateMatchesAPIServer checks that Validate reports the same errors as the API server's own strategy for custom
// resources, except the error that not all rules were checked. Only tests use that strategy, because it depends on the
// API server's storage.
func TestValidateMatchesAPIServer(t *testing.T) {
	oracle := newOracle(t)
	for _, example := range examples {
		got := Validate(defaulted(t, example), nil)
		compare(t, example, got, oracle.Validate(t.Context(), asObject(t, example, "")))
		for _, old := range examples[:7] {
			got := Validate(defaulted(t, example), defaulted(t, old))
			want := oracle.ValidateUpdate(t.Context(), asObject(t, example, "7"), asObject(t, old, "7"))
			compare(t, old+" → "+example, withoutMetadata(got), withoutMetadata(want))
		}
	}
}

type strategy interface {
	Validate(ctx context.Context, obj runtime.Object) field.ErrorList
	ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList
}

func newOracle(t *testing.T) strategy {
	t.Helper()
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	openAPI, err := openAPISchema(crd.YAML)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	return customresource.NewStrategy(nil, true, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind),
		validator, nil, c.structural, nil, nil, nil)
}

func defaulted(t *testing.T, example string) map[string]any {
	t.Helper()
	object := cluster(t, example)
	setDefaults(t, object)
	return object
}

func asObject(t *testing.T, example, resourceVersion string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: defaulted(t, example)}
	if resourceVersion != "" {
		u.SetResourceVersion(resourceVersion)
	}
	return u
}

func compare(t *testing.T, example string, got, want field.ErrorList) {
	t.Helper()
	others := slices.DeleteFunc(slices.Clone(want), func(err *field.Error) bool { return err.Detail == rulesNotChecked })
	if len(want) > 0 && len(others) == 0 {
		t.Errorf("%s: the API server only reports that it did not check everything", example)
	}
	if g, w := sorted(got), sorted(others); !slices.Equal(g, w) {
		t.Errorf("%s\n got %q\nwant %q", example, g, w)
	}
}

func sorted(errs field.ErrorList) (lines []string) {
	for _, err := range errs {
		lines = append(lines, err.Error())
	}
	slices.Sort(lines)
	return lines
}

// withoutMetadata removes errors about metadata. For an update, the API server requires a resourceVersion and an
// unchanged name, which a declaration does not provide.
func withoutMetadata(errs field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(slices.Clone(errs), func(err *field.Error) bool {
		return strings.HasPrefix(err.Field, "metadata")
	})
}
