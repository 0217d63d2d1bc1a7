package policy

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// TestEveryFieldHasADecision checks that, for every field of the API, a decision defines which values a bound source
// may set.
func TestEveryFieldHasADecision(t *testing.T) {
	if fields := uncovered(decisions); len(fields) > 0 {
		t.Errorf("add to decisions: %q", fields)
	}
	fields, seen := fieldsOf(reflect.TypeFor[v1alpha1.EtcdClusterSpec](), ""), map[string]bool{}
	for _, d := range decisions {
		for _, path := range d.paths() {
			if !slices.Contains(fields, path) || seen[path] {
				t.Errorf("%s does not exist, or has two decisions", path)
			}
			seen[path] = true
		}
	}
}

// TestWithinLimitsEveryKind checks that any new kind is also limited for bound sources.
func TestWithinLimitsEveryKind(t *testing.T) {
	bound, kinds := Policy{}.Within([]string{"own"}), 0
	for _, field := range reflect.ValueOf(bound).Fields() {
		if allowed, is := field.Interface().(Allowed); is {
			if kinds++; !allowed.Limited {
				t.Errorf("a bound source may ask for anything: %+v", bound)
			}
		}
	}
	if kinds != len(Kinds) {
		t.Errorf("%d kinds are limited, and the kinds are %q", kinds, Kinds)
	}
}

// TestUndecidedFieldsAreRefused checks that a bound source may not set a field that no decision covers, wherever the
// field is in the spec.
func TestUndecidedFieldsAreRefused(t *testing.T) {
	for _, path := range fieldsOf(reflect.TypeFor[v1alpha1.EtcdClusterSpec](), "") {
		var spec v1alpha1.EtcdClusterSpec
		fill(reflect.ValueOf(&spec).Elem(), path)
		r, others := refusals{}, refusals{}
		r.refuseFields([]string{path}, spec)
		others.refuseFields([]string{path}, v1alpha1.EtcdClusterSpec{})
		if len(r) != 1 || r[0].Path != "spec."+path || len(others) != 0 {
			t.Errorf("%s: %+v, and if it is not set %+v", path, r, others)
		}
	}
}

// TestCheckedFieldsAreRefusedByDefault checks that a field with a check is refused if nothing is allowed, even if no
// other field is set. A field that may have any value is not refused.
func TestCheckedFieldsAreRefusedByDefault(t *testing.T) {
	p := Policy{}.Within([]string{"own"})
	p.Images = Allowed{Limited: true}
	for _, d := range decisions {
		for _, path := range d.paths() {
			spec := v1alpha1.EtcdClusterSpec{}
			fill(reflect.ValueOf(&spec).Elem(), path)
			r := refusals{}
			if d.check != nil {
				d.check(&r, p, spec)
			}
			if refused := len(r) > 0; refused != (d.check != nil) {
				t.Errorf("%s: %+v", path, r)
			}
			top, _, _ := strings.Cut(path, ".")
			for _, refusal := range r {
				if !strings.HasPrefix(refusal.Path, "spec."+top) {
					t.Errorf("%s is refused as %s", path, refusal.Path)
				}
			}
		}
	}
}

// fill sets the field at a path and all of its parents.
func fill(v reflect.Value, path string) {
	step, rest, _ := strings.Cut(path, ".")
	name, _ := strings.CutSuffix(step, "[]")
	switch {
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), path)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), path)
	case v.Kind() == reflect.Map:
		entry := reflect.New(v.Type().Elem()).Elem()
		fill(entry, path)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("k").Convert(v.Type().Key()), entry)
	case v.Type() == reflect.TypeFor[resource.Quantity]():
		v.Set(reflect.ValueOf(resource.MustParse("1")))
	case path == "" && v.Kind() == reflect.Struct: // a struct of another package, so set its first field
		fill(v.Field(0), "")
	case path == "" && v.Kind() == reflect.String:
		v.SetString("value")
	case path == "" && v.Kind() == reflect.Bool:
		v.SetBool(true)
	case path == "":
		v.Set(reflect.ValueOf(1).Convert(v.Type()))
	default:
		for i := range v.NumField() {
			switch tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); {
			case tag == name:
				fill(v.Field(i), rest)
			case tag == "" && slices.Contains(fieldsOf(v.Type().Field(i).Type, ""), path): // its fields are inline
				fill(v.Field(i), path)
			}
		}
	}
}
