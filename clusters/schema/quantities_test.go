package schema

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// TestEveryQuantityIsKnown checks that all quantities in the definition are found.
func TestEveryQuantityIsKnown(t *testing.T) {
	var got []string
	for _, path := range quantities() {
		got = append(got, strings.Join(path, "."))
	}
	slices.Sort(got)
	want := []string{"spec.etcd.defragmentation.minFree", "spec.etcd.maxRequestBytes", "spec.etcd.quota", "spec.pod.resources.limits.*", "spec.pod.resources.requests.*", "spec.storage.size"}
	if !slices.Equal(got, want) {
		t.Errorf("quantities are %q, want %q: a new quantity needs the same rules as the others", got, want)
	}
}

// TestUsualQuantitiesAreAccepted checks that quantities in the notations that Kubernetes uses are accepted.
func TestUsualQuantitiesAreAccepted(t *testing.T) {
	for _, text := range []string{"8Gi", "100m", "1e9", "1E9", "1.5Ei", "2E", "999999999999999999", "0", "1n", "1e-9", "12e+18", "-0", strings.Repeat("9", 36)} {
		object := cluster(t, "{}")
		set(t, object, []string{"spec", "pod", "resources", "limits", "example.com/x"}, text)
		setDefaults(t, object)
		if got := Validate(object, nil); len(got) > 0 || CheckQuantities(object) != nil {
			t.Errorf("%s: %v, %v", text, got, CheckQuantities(object))
		}
	}
}

// TestHugeQuantitiesAreRejectedInTime checks that quantities that take long to process are rejected quickly. They must
// not delay the rules of the definition, which the API server evaluates for anyone who may create a cluster, or the
// code that reads an object here.
func TestHugeQuantitiesAreRejectedInTime(t *testing.T) {
	for _, path := range quantities() {
		for _, text := range []string{"1e20000000", "1e-20000000", "1E2000000000", "-1e20000000", "1.5e2147483647", strings.Repeat("9", 1<<20), "0." + strings.Repeat("0", 1<<20) + "1"} {
			object := cluster(t, "{}")
			set(t, object, path, text)
			setDefaults(t, object)
			shown := strings.ReplaceAll(strings.Join(path, "."), "*", "cpu") + ": " + text[:min(len(text), 20)]
			began := time.Now()
			for _, old := range []map[string]any{nil, cluster(t, "{}"), object} {
				if errs := rules(t, object, old); old == nil && len(errs) == 0 {
					t.Errorf("%s is accepted", shown)
				}
			}
			if got := Validate(object, nil); len(got) == 0 || CheckQuantities(object) == nil {
				t.Errorf("%s: %v", shown, got)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%s took %s", shown, took)
			}
		}
	}
}

// rules evaluates the rules of the definition as the API server does, without this package's own earlier checks.
func rules(t *testing.T, object, old map[string]any) (errs field.ErrorList) {
	t.Helper()
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	var before any
	if old != nil {
		setDefaults(t, old)
		before = old
	}
	c.withRules(func(rules *cel.Validator) {
		errs, _ = rules.Validate(t.Context(), nil, c.structural, object, before, celconfig.RuntimeCELCostBudget)
	})
	return errs
}

// set sets the value at a path in which * stands for cpu.
func set(t *testing.T, object map[string]any, path []string, value any) {
	t.Helper()
	name := strings.ReplaceAll(path[0], "*", "cpu")
	if len(path) == 1 {
		object[name] = value
		return
	}
	if object[name] == nil {
		object[name] = map[string]any{}
	}
	set(t, object[name].(map[string]any), path[1:], value)
}
