package manifests

import (
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/clusters/objects"
)

// TestClusterNameMustNotMatchObjectName checks that a cluster cannot have the name of an object of the cluster a.
func TestClusterNameMustNotMatchObjectName(t *testing.T) {
	names := []string{"a-0", "a-8", "a-10", "data-a-0", "data-a-12"}
	for _, v := range reflect.ValueOf(objects.NamesOf("a")).Fields() {
		names = append(names, v.String())
	}
	if len(names) < 10 {
		t.Fatalf("only %q found", names)
	}
	owner := types.NamespacedName{Namespace: "x", Name: "a"}
	for _, name := range names {
		if name != "a" && !slices.Contains(ownersOf(types.NamespacedName{Namespace: "x", Name: name}), owner) {
			t.Errorf("a cluster %s could be declared in addition to the cluster a, which has an object of that name", name)
		}
	}
	for _, name := range []string{"a", "b", "a-b", "aclient", "a-client-b", "data-a", "a0"} {
		if owners := ownersOf(types.NamespacedName{Namespace: "x", Name: name}); slices.Contains(owners, owner) {
			t.Errorf("the cluster %s is refused in addition to the cluster a", name)
		}
	}
}
