package kube

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Unchanged reports whether Quorate's owned fields of a live object certainly equal an apply configuration, so that
// Owned would return the same JSON. It is much faster than Owned, because it reads little more of the object than the
// fields in the configuration. If it returns false, the fields may still be equal, and Owned must be used.
//
// filledIn maps the names of lists to fields of their elements that configurations never set. These fields are not
// compared.
func Unchanged(want any, live metav1.Object, filledIn map[string][]string) bool {
	m := modelOf(live)
	if m == nil {
		return false
	}
	set, sole := soleApplied(live.GetManagedFields(), m.apiVersion)
	if !sole {
		return false
	}
	wanted, err := value.NewValueReflect(want)
	if err != nil {
		return false
	}
	found, err := value.NewValueReflect(live)
	if err != nil {
		return false
	}
	p := matcher{model: m, filledIn: filledIn, allocator: value.NewFreelistAllocator()}
	return p.same(m.root, set, wanted, found, stated{
		"apiVersion": m.apiVersion, "kind": m.kind,
		"metadata": stated{"name": live.GetName(), "namespace": live.GetNamespace()},
	}) && p.distinct(m.root, found)
}

// soleApplied returns the fields that Quorate has applied and still owns, if the managed fields contain exactly one
// entry for them, in the API version that Quorate uses.
func soleApplied(managed []metav1.ManagedFieldsEntry, apiVersion string) (set *fieldpath.Set, sole bool) {
	for i := range managed {
		m := &managed[i]
		if m.Manager != Manager || m.Operation != metav1.ManagedFieldsOperationApply || m.Subresource != "" {
			continue
		}
		if set != nil || m.FieldsV1 == nil || m.APIVersion != apiVersion {
			return nil, false
		}
		set = &fieldpath.Set{}
		if set.FromJSON(m.FieldsV1.GetRawReader()) != nil {
			return nil, false
		}
	}
	return set, set != nil
}

// stated contains the fields that Owned returns for every object, regardless of who owns them: strings or nested
// fields, by name.
type stated map[string]any

// matcher compares the configuration, the owned fields and the live object in parallel. Like client-go when it extracts
// the owned fields, it follows the schema. It fails on anything unusual.
type matcher struct {
	*model
	filledIn  map[string][]string
	allocator value.Allocator
}

// same proves that want equals the owned part of live. set contains the owned fields of live.
func (p *matcher) same(ref schema.TypeRef, set *fieldpath.Set, want, live value.Value, always stated) bool {
	switch atom, _ := p.schema.Resolve(ref); {
	case atom.Map != nil && atom.Map.ElementRelationship != schema.Atomic:
		return p.sameFields(atom.Map, set, want, live, always)
	case atom.List != nil && len(atom.List.Keys) > 0:
		return p.sameElements(atom.List, set, want, live)
	}
	return false
}

// sameFields proves that exactly the fields of want are owned, and that the value of each is the same.
func (p *matcher) sameFields(m *schema.Map, set *fieldpath.Set, want, live value.Value, always stated) bool {
	if !want.IsMap() || !live.IsMap() {
		return false
	}
	wanted, found := want.AsMapUsing(p.allocator), live.AsMapUsing(p.allocator)
	defer p.allocator.Free(wanted)
	defer p.allocator.Free(found)
	owned, told := 0, 0
	same := wanted.IterateUsing(p.allocator, func(name string, want value.Value) bool {
		stating, is := always[name]
		if is {
			told++
		}
		if text, isText := stating.(string); isText {
			return want.IsString() && want.AsString() == text
		}
		owned++
		within, _ := stating.(stated)
		return p.sameField(m, name, set, want, found, within)
	})
	return same && told == len(always) && owned == size(set)
}

func (p *matcher) sameField(m *schema.Map, name string, set *fieldpath.Set, want value.Value, found value.Map,
	within stated) bool {
	live, there := found.GetUsing(p.allocator, name)
	if !there {
		return false
	}
	defer p.allocator.Free(live)
	return p.sameOwned(fieldType(m, name), fieldpath.PathElement{FieldName: &name}, set, want, live, within)
}

// sameOwned proves that a field or an element is owned and the same.
func (p *matcher) sameOwned(ref schema.TypeRef, at fieldpath.PathElement, set *fieldpath.Set, want, live value.Value,
	within stated) bool {
	if inner, deeper := set.Children.Get(at); deeper {
		return p.same(ref, inner, want, live, within)
	}
	return set.Members.Has(at) && p.sameWhole(ref, at, want, live)
}

// sameWhole proves that want equals live, where live is owned as a whole.
func (p *matcher) sameWhole(ref schema.TypeRef, at fieldpath.PathElement, want, live value.Value) bool {
	var whole bool
	switch atom, _ := p.schema.Resolve(ref); {
	case atom.Map != nil:
		whole = atom.Map.ElementRelationship == schema.Atomic || p.empty(want)
	case atom.List != nil:
		whole = atom.List.ElementRelationship == schema.Atomic
	default:
		whole = atom.Scalar != nil
	}
	if !whole {
		return false
	}
	if at.FieldName != nil && want.IsList() && live.IsList() {
		return p.equalElements(want, live, p.filledIn[*at.FieldName])
	}
	return p.equal(want, live)
}

func (p *matcher) empty(v value.Value) bool {
	if !v.IsMap() {
		return false
	}
	fields := v.AsMapUsing(p.allocator)
	defer p.allocator.Free(fields)
	return fields.Empty()
}

// equal proves that two values are equal as JSON, regardless of their Go types. It does not accept null.
func (p *matcher) equal(want, live value.Value) bool {
	switch {
	case want.IsMap() || live.IsMap():
		return want.IsMap() && live.IsMap() && p.equalFields(want, live, nil)
	case want.IsList() || live.IsList():
		return want.IsList() && live.IsList() && p.equalElements(want, live, nil)
	}
	return !want.IsNull() && value.EqualsUsing(p.allocator, want, live)
}

// equalFields compares all fields except the given ones.
func (p *matcher) equalFields(want, live value.Value, except []string) bool {
	wanted, found := want.AsMapUsing(p.allocator), live.AsMapUsing(p.allocator)
	defer p.allocator.Free(wanted)
	defer p.allocator.Free(found)
	return wanted.ZipUsing(p.allocator, found, value.Unordered, func(name string, want, live value.Value) bool {
		return slices.Contains(except, name) || want != nil && live != nil && p.equal(want, live)
	})
}

// equalElements compares all elements, except for the given fields of elements that are maps.
func (p *matcher) equalElements(want, live value.Value, except []string) bool {
	wanted, found := want.AsListUsing(p.allocator), live.AsListUsing(p.allocator)
	defer p.allocator.Free(wanted)
	defer p.allocator.Free(found)
	if wanted.Length() != found.Length() {
		return false
	}
	for i := range wanted.Length() {
		want, live := wanted.At(i), found.At(i)
		if except != nil && want.IsMap() && live.IsMap() {
			if !p.equalFields(want, live, except) {
				return false
			}
		} else if !p.equal(want, live) {
			return false
		}
	}
	return true
}

// sameElements proves that the elements of want equal the owned elements of live, in the same order.
func (p *matcher) sameElements(l *schema.List, set *fieldpath.Set, want, live value.Value) bool {
	if !want.IsList() || !live.IsList() {
		return false
	}
	wanted, found := want.AsListUsing(p.allocator), live.AsListUsing(p.allocator)
	defer p.allocator.Free(wanted)
	defer p.allocator.Free(found)
	wantedKeys, told := p.keys(l, wanted)
	foundKeys, toldToo := p.keys(l, found)
	if !told || !toldToo || len(wantedKeys) != size(set) {
		return false
	}
	next := 0 // index into want
	for i, key := range foundKeys {
		if next == len(wantedKeys) || !key.Equals(wantedKeys[next]) {
			continue
		}
		if !p.sameOwned(l.ElementType, key, set, wanted.At(next), found.At(i), nil) {
			return false
		}
		next++
	}
	return next == len(wantedKeys)
}

// keys returns the keys of a list's elements. It fails unless they are complete and unique.
func (p *matcher) keys(l *schema.List, list value.List) (keys []fieldpath.PathElement, told bool) {
	const many = 64
	if list.Length() > many {
		return nil, false // every key is compared with every other key
	}
	for i := range list.Length() {
		key, told := p.key(l, list.At(i))
		if !told || slices.ContainsFunc(keys, key.Equals) {
			return nil, false
		}
		keys = append(keys, key)
	}
	return keys, true
}

// key returns the key of a list element. It fails if the element does not set all key fields.
func (p *matcher) key(l *schema.List, of value.Value) (key fieldpath.PathElement, told bool) {
	atom, _ := p.schema.Resolve(l.ElementType)
	if len(l.Keys) == 0 {
		return fieldpath.PathElement{Value: &of}, atom.Scalar != nil && !of.IsNull()
	}
	if atom.Map == nil || !of.IsMap() {
		return key, false
	}
	fields := of.AsMapUsing(p.allocator)
	defer p.allocator.Free(fields)
	var list value.FieldList
	for _, name := range l.Keys {
		field, stated := fields.Get(name)
		if described, _ := atom.Map.FindField(name); !stated && described.Default != nil {
			field, stated = value.NewValueInterface(described.Default), true
		}
		if !stated {
			return key, false
		}
		list = append(list, value.Field{Name: name, Value: field})
	}
	list.Sort()
	return fieldpath.PathElement{Key: &list}, true
}

// distinct proves that no list within a value has two elements with the same key, regardless of who owns them, because
// client-go refuses to read such an object.
func (p *matcher) distinct(ref schema.TypeRef, live value.Value) bool {
	if !p.tellsApart(ref) || live.IsNull() {
		return true
	}
	switch atom, _ := p.schema.Resolve(ref); {
	case atom.Map != nil && live.IsMap():
		fields := live.AsMapUsing(p.allocator)
		defer p.allocator.Free(fields)
		return fields.IterateUsing(p.allocator, func(name string, live value.Value) bool {
			return p.distinct(fieldType(atom.Map, name), live)
		})
	case atom.List != nil && live.IsList():
		list := live.AsListUsing(p.allocator)
		defer p.allocator.Free(list)
		if atom.List.ElementRelationship == schema.Associative {
			if _, told := p.keys(atom.List, list); !told {
				return false
			}
		}
		for i := range list.Length() {
			if !p.distinct(atom.List.ElementType, list.At(i)) {
				return false
			}
		}
		return true
	}
	return false
}

// size returns the number of fields or elements in a set.
func size(set *fieldpath.Set) int {
	n := set.Members.Size()
	set.Children.Iterate(func(element fieldpath.PathElement) {
		if !set.Members.Has(element) {
			n++
		}
	})
	return n
}

func fieldType(m *schema.Map, name string) schema.TypeRef {
	if field, described := m.FindField(name); described {
		return field.Type
	}
	return m.ElementType
}
