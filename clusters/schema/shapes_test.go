package schema

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// TestAPITypesMatchCoreV1 checks that the types that v1alpha1 declares as replacements for types in core/v1 have the
// same JSON form: the same fields, of the same kinds, with the same omitempty.
func TestAPITypesMatchCoreV1(t *testing.T) {
	for _, pair := range []struct {
		ours, core reflect.Type
		without    []string
	}{
		{reflect.TypeFor[v1alpha1.Affinity](), reflect.TypeFor[corev1.Affinity](), nil},
		{reflect.TypeFor[v1alpha1.Toleration](), reflect.TypeFor[corev1.Toleration](), nil},
		{reflect.TypeFor[v1alpha1.TopologySpreadConstraint](), reflect.TypeFor[corev1.TopologySpreadConstraint](), nil},
		{reflect.TypeFor[v1alpha1.ResourceRequirements](), reflect.TypeFor[corev1.ResourceRequirements](), []string{".claims"}},
	} {
		ours, core := shapeOf(pair.ours, ""), shapeOf(pair.core, "")
		core = slices.DeleteFunc(core, func(f string) bool {
			name, _, _ := strings.Cut(f, "(")
			return slices.Contains(pair.without, name)
		})
		if !slices.Equal(ours, core) {
			t.Errorf("%s\n ours %s\n core %s", pair.ours.Name(), strings.Join(ours, "\n      "), strings.Join(core, "\n      "))
		}
	}
}

// shapeOf lists the fields of a type in its JSON form, with their path, tag options and kind.
func shapeOf(t reflect.Type, path string) []string {
	switch {
	case t.Kind() == reflect.Pointer:
		return shapeOf(t.Elem(), path)
	case t == reflect.TypeFor[resource.Quantity](), t == reflect.TypeFor[metav1.LabelSelector]():
		return []string{path + " " + t.String()}
	case t.Kind() == reflect.Slice:
		return shapeOf(t.Elem(), path+"[]")
	case t.Kind() == reflect.Map:
		return shapeOf(t.Elem(), path+"{}")
	case t.Kind() != reflect.Struct:
		return []string{path + " " + t.Kind().String()}
	}
	var fields []string
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = append(fields, shapeOf(f.Type, path+"."+name+"("+options+")")...)
	}
	slices.Sort(fields)
	return fields
}
