package kube

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// model is what is known of a type of live objects.
type model struct {
	apiVersion, kind string
	schema           *schema.Schema
	root             schema.TypeRef
	// lists are the named types that may have a list within whose elements are told apart.
	lists map[string]bool
}

// models are those of the types that were met, by reflect.Type.
var models sync.Map

var converter = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(scheme.Scheme)
})

func modelOf(live metav1.Object) (*model, bool) {
	of := reflect.TypeOf(live)
	if m, met := models.Load(of); met {
		return m.(*model), m.(*model) != nil
	}
	m, err := newModel(of)
	if err != nil {
		m = nil
	}
	models.Store(of, m)
	return m, m != nil
}

// newModel asks for what is owned of an object of which nothing is: that is what is stated of every one.
func newModel(of reflect.Type) (*model, error) {
	if of.Kind() != reflect.Pointer {
		return nil, fmt.Errorf("%s is no pointer", of)
	}
	object, is := reflect.New(of.Elem()).Interface().(runtime.Object)
	if !is {
		return nil, fmt.Errorf("%s is not a type of objects", of)
	}
	owned, err := Owned(object)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(owned)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", owned, err)
	}
	var m metav1.TypeMeta
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("decode %T: %w", owned, err)
	}
	object.GetObjectKind().SetGroupVersionKind(m.GroupVersionKind())
	typed, err := converter().ObjectToTyped(object)
	if err != nil {
		return nil, fmt.Errorf("find the schema of %s: %w", m.Kind, err)
	}
	found := &model{apiVersion: m.APIVersion, kind: m.Kind, schema: typed.Schema(), root: typed.TypeRef(),
		lists: map[string]bool{}}
	found.findLists(found.root)
	return found, nil
}

// tellsApart reports whether a value of a type may have a list within whose elements are told apart.
func (m *model) tellsApart(ref schema.TypeRef) bool {
	if ref.NamedType != nil {
		return m.lists[*ref.NamedType]
	}
	return m.anyList(ref, map[string]bool{})
}

// findLists finds out of all named types within a type whether there may be such a list in them.
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

// anyList looks for such a list, once in each named type.
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

// within are the types of fields and elements.
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
