package kube

import (
	"cmp"
	"flag"
	"os"
	"slices"
	"testing"

	"go.yaml.in/yaml/v2"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

//go:generate go test . -run TestTypes -rewrite

var rewrite = flag.Bool("rewrite", false, "write types.yaml")

// TestTypes checks that types.yaml contains the same types for a cluster's objects as client-go, including all nested
// types. "go generate" writes types.yaml.
func TestTypes(t *testing.T) {
	types := typesOfClientGo(t)
	want, err := yaml.Marshal(&schema.Schema{Types: types})
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile("types.yaml", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if typesYAML != string(want) {
		t.Fatal("types.yaml is stale; run: go generate ./clusters/kube")
	}
	for _, def := range types {
		if got, there := parsedTypes().Schema.FindNamedType(def.Name); !there || !got.Equals(&def) {
			t.Errorf("%s has a different type when it is read", def.Name)
		}
	}
}

// typesOfClientGo returns the types of all kinds, including all nested types.
func typesOfClientGo(t *testing.T) (types []schema.TypeDef) {
	t.Helper()
	all := applyconfigurations.NewTypeConverter(scheme.Scheme)
	found := map[string]bool{}
	var find func(m *model, ref schema.TypeRef)
	find = func(m *model, ref schema.TypeRef) {
		if ref.NamedType != nil && found[*ref.NamedType] {
			return
		}
		if ref.NamedType != nil {
			found[*ref.NamedType] = true
			def, _ := m.schema.FindNamedType(*ref.NamedType)
			types = append(types, def)
		}
		for _, inner := range m.within(ref) {
			find(m, inner)
		}
	}
	met := 0
	for of := range scheme.Scheme.AllKnownTypes() {
		if _, is := kinds[of.Kind]; !is || of.Version != "v1" {
			continue
		}
		object, err := scheme.Scheme.New(of)
		if err != nil {
			t.Fatal(err)
		}
		object.GetObjectKind().SetGroupVersionKind(of)
		empty, err := all.ObjectToTyped(object)
		if err != nil {
			t.Fatal(err)
		}
		met++
		find(&model{schema: empty.Schema()}, empty.TypeRef())
	}
	if met != len(kinds) {
		t.Fatalf("%d types of %d kinds", met, len(kinds))
	}
	slices.SortFunc(types, func(a, b schema.TypeDef) int { return cmp.Compare(a.Name, b.Name) })
	return types
}
