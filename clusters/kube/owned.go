package kube

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fields are fields of an object by name. Each has its subfields as value, or none if it is included as a whole.
type Fields map[string]Fields

// OwnedFields returns the fields of an object that Quorate has applied and still owns, according to its managed fields.
// Lists are included as a whole.
func OwnedFields(object metav1.Object) Fields {
	owned := Fields{}
	for _, m := range object.GetManagedFields() {
		if m.Manager != Manager || m.Operation != metav1.ManagedFieldsOperationApply || m.FieldsV1 == nil {
			continue
		}
		var set map[string]any
		if json.Unmarshal(m.FieldsV1.GetRawBytes(), &set) == nil {
			owned.add(set)
		}
	}
	return owned
}

func (f Fields) add(set map[string]any) {
	for key, within := range set {
		name, is := strings.CutPrefix(key, "f:")
		if !is {
			continue
		}
		if f[name] == nil {
			f[name] = Fields{}
		}
		if deeper, is := within.(map[string]any); is {
			f[name].add(deeper)
		}
	}
}

// With returns the union of f and other.
func (f Fields) With(other Fields) Fields {
	all := Fields{}
	for name, within := range f {
		all[name] = within
	}
	for name, within := range other {
		switch before, there := all[name]; {
		case !there:
			all[name] = within
		case len(before) == 0 || len(within) == 0:
			all[name] = nil
		default:
			all[name] = before.With(within)
		}
	}
	return all
}

// FieldsOf returns the fields of an object that has been decoded from JSON.
func FieldsOf(object map[string]any) Fields {
	stated := Fields{}
	for name, value := range object {
		within, _ := value.(map[string]any)
		stated[name] = FieldsOf(within)
	}
	return stated
}

// Of reduces an object that has been decoded from JSON to these fields.
func (f Fields) Of(object any) any {
	fields, is := object.(map[string]any)
	if !is || len(f) == 0 {
		return object
	}
	kept := map[string]any{}
	for name, within := range f {
		if value, there := fields[name]; there {
			kept[name] = within.Of(value)
		}
	}
	return kept
}

// OwnerOf returns the manager other than Quorate that owns the field at a path such as
// spec.template.spec.containers[etcd].image, or "". In a list whose elements are not identified by name, any element
// matches.
func OwnerOf(object metav1.Object, path string) string {
	for _, m := range object.GetManagedFields() {
		if m.Manager == Manager || m.Subresource != "" || m.FieldsV1 == nil {
			continue
		}
		var set map[string]any
		if json.Unmarshal(m.FieldsV1.GetRawBytes(), &set) == nil && owns(set, path) {
			return m.Manager
		}
	}
	return ""
}

// owns reports whether a set of managed fields contains the field at a path, or contains one of its parents as a whole.
func owns(set map[string]any, path string) bool {
	if path == "" || len(set) == 0 {
		return true
	}
	for key, within := range set {
		inner, _ := within.(map[string]any)
		if name, is := strings.CutPrefix(key, "f:"); is {
			rest, below := strings.CutPrefix(path, name)
			if below && (rest == "" || rest[0] == '.' || rest[0] == '[') && owns(inner, strings.TrimPrefix(rest, ".")) {
				return true
			}
			continue
		}
		element, rest, closed := strings.Cut(path, "]")
		element, opened := strings.CutPrefix(element, "[")
		if opened && closed && isElement(key, element) && owns(inner, strings.TrimPrefix(rest, ".")) {
			return true
		}
	}
	return false
}

// isElement reports whether a key in managed fields identifies the list element with the given name.
func isElement(key, name string) bool {
	text, is := strings.CutPrefix(key, "k:")
	var fields map[string]any
	if !is || json.Unmarshal([]byte(text), &fields) != nil {
		return false
	}
	has, named := fields["name"]
	return !named || has == name
}
