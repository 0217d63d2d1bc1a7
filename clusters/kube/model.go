package kube

import (
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// model is the schema of a type of live objects.
type model struct {
	apiVersion, kind string
	schema           *schema.Schema
	root             schema.TypeRef
	// lists are the named types that may contain an associative list at any depth.
	lists map[string]bool
}

// models caches the models by reflect.Type.
var models sync.Map

// typesYAML contains the schemas for the types of a cluster's objects, a subset of client-go's. Parsing all schemas
// would cost a pass more than any cluster does: a twentieth of a second, and 11 MiB that stay allocated.
//
//go:embed types.yaml
var typesYAML string

var parsedTypes = sync.OnceValue(func() *typed.Parser {
	types, err := typed.NewParser(typed.YAMLObject(typesYAML))
	if err != nil {
		panic(fmt.Sprintf("read types.yaml: %v", err))
	}
	return types
})

func modelOf(live metav1.Object) *model {
	of := reflect.TypeOf(live)
	if m, met := models.Load(of); met {
		return m.(*model)
	}
	m := newModel(of)
	models.Store(of, m)
	return m
}

// newModel returns nil if the type is not one of a cluster's objects.
func newModel(of reflect.Type) *model {
	if of.Kind() != reflect.Pointer {
		return nil
	}
	object, is := reflect.New(of.Elem()).Interface().(runtime.Object)
	if !is {
		return nil
	}
	gvks, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		return nil
	}
	object.GetObjectKind().SetGroupVersionKind(gvks[0])
	empty, err := managedfields.NewSchemeTypeConverter(scheme.Scheme, parsedTypes()).ObjectToTyped(object)
	if err != nil {
		return nil
	}
	m := &model{schema: empty.Schema(), root: empty.TypeRef(), lists: map[string]bool{}}
	m.apiVersion, m.kind = gvks[0].ToAPIVersionAndKind()
	m.findLists(m.root)
	return m
}

// tellsApart reports whether a value of a type may contain an associative list.
func (m *model) tellsApart(ref schema.TypeRef) bool {
	if ref.NamedType != nil {
		return m.lists[*ref.NamedType]
	}
	atom, _ := m.schema.Resolve(ref)
	return atom.List != nil && atom.List.ElementRelationship == schema.Associative ||
		slices.ContainsFunc(m.within(ref), m.tellsApart)
}

// findLists determines, for each named type within a type, whether it may contain an associative list.
func (m *model) findLists(ref schema.TypeRef) {
	if ref.NamedType != nil {
		if _, found := m.lists[*ref.NamedType]; found {
			return
		}
		m.lists[*ref.NamedType] = m.anyList(ref, map[string]bool{})
	}
	for _, inner := range m.within(ref) {
		m.findLists(inner)
	}
}

// anyList reports whether ref contains an associative list. It visits each named type only once.
func (m *model) anyList(ref schema.TypeRef, seen map[string]bool) bool {
	if ref.NamedType != nil {
		if seen[*ref.NamedType] {
			return false
		}
		seen[*ref.NamedType] = true
	}
	if atom, _ := m.schema.Resolve(ref); atom.List != nil && atom.List.ElementRelationship == schema.Associative {
		return true
	}
	return slices.ContainsFunc(m.within(ref), func(inner schema.TypeRef) bool { return m.anyList(inner, seen) })
}

// within returns the types of fields and elements.
func (m *model) within(ref schema.TypeRef) (types []schema.TypeRef) {
	atom, _ := m.schema.Resolve(ref)
	if atom.List != nil {
		types = append(types, atom.List.ElementType)
	}
	if atom.Map != nil {
		types = append(types, atom.Map.ElementType)
		for _, field := range atom.Fields {
			types = append(types, field.Type)
		}
	}
	return types
}
