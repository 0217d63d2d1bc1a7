package objects

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/applyconfigurations"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"quorate.dev/quorate/clusters/kube"
)

// TestUnchangedAgreesWithDifferences uses the objects of every golden file as the API server would return them after
// apply. It checks that Unchanged accepts these objects. After any change to the wanted, owned or live fields,
// Unchanged may accept an object only if Differences finds no difference.
func TestUnchangedAgreesWithDifferences(t *testing.T) {
	files, err := filepath.Glob("../../testdata/objects/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, sections := openGolden(t, file)
			in := goldenInput(t, sections)
			for j, o := range append(build(t, in), restoreObjects(t, in)...) {
				s := standing{want: o.Apply, live: appliedObject(t, o)}
				if !s.stands() {
					t.Errorf("%s is not recognized as unchanged", o)
				}
				s.changeAtRandom(t, rand.New(rand.NewPCG(uint64(i), uint64(j))), 25)
			}
		})
	}
}

// TestUnchangedRejectsChangedObjects checks that objects that have changed are rejected, even if their content is as
// wanted.
func TestUnchangedRejectsChangedObjects(t *testing.T) {
	const strict = true // Differences reports the change, or Owned rejects the object
	for name, of := range map[string]struct {
		kind   string
		change func(metav1.Object)
		wrong  bool
	}{
		"entry for a different API version": {"ConfigMap", entry(func(m *metav1.ManagedFieldsEntry) { m.APIVersion = "v0" }), !strict},
		"two managed fields entries": {"ConfigMap", func(o metav1.Object) {
			o.SetManagedFields(slices.Repeat(o.GetManagedFields(), 2))
		}, !strict},
		"no managed fields entry":      {"ConfigMap", func(o metav1.Object) { o.SetManagedFields(nil) }, strict},
		"entry of a different manager": {"ConfigMap", entry(func(m *metav1.ManagedFieldsEntry) { m.Manager = "stranger" }), strict},
		"entry of an update":           {"ConfigMap", entry(func(m *metav1.ManagedFieldsEntry) { m.Operation = "Update" }), strict},
		"entry of a subresource":       {"ConfigMap", entry(func(m *metav1.ManagedFieldsEntry) { m.Subresource = "status" }), strict},
		"fields cannot be decoded":     {"ConfigMap", entry(func(m *metav1.ManagedFieldsEntry) { m.FieldsV1 = metav1.NewFieldsV1(`{"k:":{}}`) }), strict},
		"no fields":                    {"ConfigMap", entry(func(m *metav1.ManagedFieldsEntry) { m.FieldsV1 = metav1.NewFieldsV1(`{}`) }), strict},
		"different name":               {"Secret", func(o metav1.Object) { o.SetName("other") }, strict},
		"different namespace":          {"Secret", func(o metav1.Object) { o.SetNamespace("other") }, strict},
		"different data": {"Secret", func(o metav1.Object) {
			for key := range o.(*corev1.Secret).Data {
				o.(*corev1.Secret).Data[key] = []byte("x")
			}
		}, strict},
		"duplicate finalizers": {"Service", func(o metav1.Object) { o.SetFinalizers([]string{"a/b", "a/b"}) }, strict},
		"duplicate variable in an unmanaged container": {"StatefulSet", func(o metav1.Object) {
			pod := &o.(*appsv1.StatefulSet).Spec.Template.Spec
			pod.Containers = append(pod.Containers, corev1.Container{Name: "theirs", Env: []corev1.EnvVar{{Name: "A"}, {Name: "A"}}})
		}, strict},
		"duplicate claim conditions": {"StatefulSet", func(o metav1.Object) {
			o.(*appsv1.StatefulSet).Spec.VolumeClaimTemplates[0].Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: "A"}, {Type: "A"}}
		}, strict},
		"additional volume claim template": {"StatefulSet", func(o metav1.Object) {
			set := o.(*appsv1.StatefulSet)
			set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, *set.Spec.VolumeClaimTemplates[0].DeepCopy())
		}, strict},
		"different volume claim template": {"StatefulSet", func(o metav1.Object) {
			o.(*appsv1.StatefulSet).Spec.VolumeClaimTemplates[0].Spec.VolumeName = "theirs"
		}, strict},
	} {
		for _, o := range build(t, input(t, "3.6.16")) {
			if o.Kind != of.kind {
				continue
			}
			s := standing{o.Apply, appliedObject(t, o)}
			if of.change(s.live); s.stands() {
				t.Errorf("%s: %s is treated as unchanged", name, o)
			}
			if _, same := s.check(t, name); same == of.wrong {
				t.Errorf("%s: %s matches the wanted object: %v", name, o, same)
			}
		}
	}
}

// TestUnchangedRejectsMissingMetadata checks that a wanted object without metadata is rejected.
func TestUnchangedRejectsMissingMetadata(t *testing.T) {
	data := map[string]string{"a": "b"}
	want := applycorev1.ConfigMap("", "").WithData(data)
	want.ObjectMetaApplyConfiguration = nil
	live := &corev1.ConfigMap{Data: data, ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b",
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: kube.Manager, Operation: metav1.ManagedFieldsOperationApply,
			APIVersion: "v1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:a":{}}}`)}}}}
	if stands, same := (standing{want, live}).check(t, "a ConfigMap"); stands || same {
		t.Errorf("treated as unchanged: %v, matches: %v", stands, same)
	}
}

// TestUnchangedIgnoresOtherManagersFields checks that fields of other managers are ignored if they do not affect
// Quorate's fields.
func TestUnchangedIgnoresOtherManagersFields(t *testing.T) {
	for _, o := range build(t, input(t, "3.6.16")) {
		s := standing{o.Apply, appliedObject(t, o)}
		s.live.SetAnnotations(map[string]string{"theirs": "x"})
		s.live.SetFinalizers([]string{"theirs/one", "theirs/two"})
		if set, is := s.live.(*appsv1.StatefulSet); is {
			pod := &set.Spec.Template.Spec
			pod.Containers = slices.Insert(pod.Containers, 0, corev1.Container{Name: "theirs", Image: "x"})
			set.Spec.VolumeClaimTemplates[0].Status.Phase = corev1.ClaimPending
		}
		if stands, same := s.check(t, o.String()); !stands || !same {
			t.Errorf("%s: treated as unchanged: %v, matches: %v", o, stands, same)
		}
	}
}

func entry(change func(*metav1.ManagedFieldsEntry)) func(metav1.Object) {
	return func(o metav1.Object) { change(&o.GetManagedFields()[0]) }
}

// appliedObject returns an object as it would be after apply if the API server did not add anything.
func appliedObject(t *testing.T, o Object) metav1.Object {
	t.Helper()
	body, err := json.Marshal(o.Apply)
	if err != nil {
		t.Fatal(err)
	}
	kinds := schemeOfKinds()
	object, gvk, err := serializer.NewCodecFactory(kinds).UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	typed, err := applyconfigurations.NewTypeConverter(kinds).ObjectToTyped(object)
	if err != nil {
		t.Fatal(err)
	}
	owned, err := typed.ToFieldSet()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range [][]any{{"apiVersion"}, {"kind"}, {"status"}, {"metadata", "name"}, {"metadata", "namespace"}} {
		owned = owned.RecursiveDifference(fieldpath.NewSet(fieldpath.MakePathOrDie(path...)))
	}
	text, err := owned.ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	live := object.(metav1.Object)
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: kube.Manager, Operation: metav1.ManagedFieldsOperationApply,
		APIVersion: gvk.GroupVersion().String(), FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(text))}})
	return live
}

// standing is a wanted object and the live object.
type standing struct {
	want any
	live metav1.Object
}

func (s standing) stands() bool { return kube.Unchanged(s.want, s.live, FilledIn) }

// check reports whether an object counts as unchanged, and whether it has the wanted content. It fails the test if an
// unchanged object does not have the wanted content.
func (s standing) check(t *testing.T, what string) (stands, same bool) {
	t.Helper()
	stands = s.stands()
	owned, err := kube.Owned(s.live)
	var paths []string
	if err == nil {
		paths, err = Differences(s.want, owned)
	}
	if same = err == nil && len(paths) == 0; stands && !same {
		t.Errorf("%s: treated as unchanged, but differs: %v %v\nwant  %s\nlive  %s", what, paths, err, text(t, s.want), text(t, s.live))
	}
	return stands, same
}

// changeAtRandom repeatedly changes the original object, in one or two places.
func (s standing) changeAtRandom(t *testing.T, r *rand.Rand, times int) {
	t.Helper()
	kept, found := 0, 0
	for n := range times {
		changed, what := s, ""
		for range 1 + r.IntN(2) {
			var one string
			changed, one = changed.change(t, r)
			what += one + "; "
		}
		stands, same := changed.check(t, fmt.Sprintf("%T %d: %s", s.live, n, what))
		if stands {
			kept++
		}
		if same {
			found++
		}
	}
	if found == times || found > 20 && kept == 0 {
		t.Errorf("%T: of %d changes, %d left it as wanted, and %d were recognized as such", s.live, times, found, kept)
	}
}

// change changes the wanted object, the live object, both in the same way, or the owned fields.
func (s standing) change(t *testing.T, r *rand.Rand) (standing, string) {
	t.Helper()
	switch r.IntN(8) {
	case 0:
		return standing{filled(s.want, r), s.live}, "another field is wanted"
	case 1:
		return standing{s.want, filled(s.live, r).(metav1.Object)}, "another field is live"
	case 2, 3:
		return s.changeEntries(t, r)
	}
	wanted, live := tree(t, s.want), tree(t, s.live)
	paths := pathsOf(wanted, nil, nil)
	at, how, seed := paths[r.IntN(len(paths))], changes[r.IntN(len(changes))], r.Uint64()
	what := fmt.Sprint(how.name, " ", at)
	who := r.IntN(3)
	if who != 0 {
		changeAt(wanted, at, func(v any) (any, bool) { return how.change(v, rand.New(rand.NewPCG(seed, 0))) })
		what += " wanted"
	}
	if who != 1 {
		changeAt(live, at, func(v any) (any, bool) { return how.change(v, rand.New(rand.NewPCG(seed, 0))) })
		what += " live"
	}
	changed := standing{reflect.New(reflect.TypeOf(s.want).Elem()).Interface(), reflect.New(reflect.TypeOf(s.live).Elem()).Interface().(metav1.Object)}
	if json.Unmarshal([]byte(text(t, wanted)), changed.want) != nil || json.Unmarshal([]byte(text(t, live)), changed.live) != nil {
		return s, "nothing"
	}
	return changed, what
}

// changeEntries changes the managed fields.
func (s standing) changeEntries(t *testing.T, r *rand.Rand) (standing, string) {
	t.Helper()
	live := s.live.(runtime.Object).DeepCopyObject().(metav1.Object)
	entries := live.GetManagedFields()
	mine := slices.IndexFunc(entries, func(m metav1.ManagedFieldsEntry) bool { return m.Manager == kube.Manager })
	if mine < 0 {
		return s, "nothing"
	}
	m := &entries[mine]
	what := "managed fields"
	switch n := r.IntN(16); n {
	case 0:
		m.Manager = "stranger"
	case 1:
		m.Operation = metav1.ManagedFieldsOperationUpdate
	case 2:
		m.Subresource = "status"
	case 3:
		m.APIVersion = "v0"
	case 4:
		m.FieldsV1 = nil
	case 5:
		m.FieldsV1 = metav1.NewFieldsV1([]string{"", `"f:spec"`, "[]", "{}", `{"f:metadata":{}}`, `{"f:metadata":1}`}[r.IntN(6)])
	case 6:
		another := *m.DeepCopy()
		another.FieldsV1 = metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:a":{}}}}`)
		entries = slices.Insert(entries, r.IntN(len(entries)+1), another)
	case 7:
		entries = nil
	default:
		if m.FieldsV1 == nil {
			return s, "nothing"
		}
		var set any
		if json.Unmarshal([]byte(m.FieldsV1.GetRawString()), &set) != nil {
			return s, "nothing"
		}
		paths := pathsOf(set, nil, nil)
		if len(paths) == 0 {
			return s, "nothing"
		}
		at := paths[r.IntN(len(paths))]
		changeAt(set, at, func(v any) (any, bool) {
			fields, is := v.(map[string]any)
			if !is {
				return v, true
			}
			switch n {
			case 8, 9:
				return nil, false
			case 10, 11:
				return map[string]any{}, true
			case 12:
				fields["."] = map[string]any{}
			case 13:
				delete(fields, ".")
			case 14:
				others := []string{"f:zz", "f:name", "f:image", "f:a", "i:0", `v:"a"`, `k:{"name":"a"}`, "x:"}
				fields[others[r.IntN(len(others))]] = map[string]any{}
			case 15:
				names := []string{"f:name", "f:labels", "f:metadata", "f:spec", "f:kind", "f:apiVersion", "f:namespace", "f:data"}
				fields[names[r.IntN(len(names))]] = map[string]any{"f:zz": map[string]any{}}
			}
			return fields, true
		})
		what = fmt.Sprint("managed fields ", n, " at ", at)
		m.FieldsV1 = metav1.NewFieldsV1(text(t, set))
	}
	live.SetManagedFields(entries)
	return standing{s.want, live}, what
}

// changes lists changes to a JSON value. A change returns false if the value is to be removed. Calls with the same seed
// make the same change.
var changes = []struct {
	name   string
	change func(v any, r *rand.Rand) (any, bool)
}{
	{"remove", func(any, *rand.Rand) (any, bool) { return nil, false }},
	{"null", func(any, *rand.Rand) (any, bool) { return nil, true }},
	{"other", other}, {"other", other},
	{"empty", func(v any, _ *rand.Rand) (any, bool) {
		switch v.(type) {
		case map[string]any:
			return map[string]any{}, true
		case []any:
			return []any{}, true
		}
		return v, true
	}},
	{"add", func(v any, r *rand.Rand) (any, bool) {
		switch v := v.(type) {
		case map[string]any:
			v["zz"] = "zz"
		case []any:
			if len(v) > 0 {
				added, _ := other(v[r.IntN(len(v))], r)
				return slices.Insert(slices.Clone(v), r.IntN(len(v)+1), added), true
			}
		}
		return v, true
	}},
	{"shorten", func(v any, r *rand.Rand) (any, bool) {
		if list, is := v.([]any); is && len(list) > 0 {
			i := r.IntN(len(list))
			return slices.Delete(slices.Clone(list), i, i+1), true
		}
		return v, true
	}},
	{"double", func(v any, r *rand.Rand) (any, bool) {
		if list, is := v.([]any); is && len(list) > 0 {
			return append(slices.Clone(list), list[r.IntN(len(list))]), true
		}
		return v, true
	}},
	{"shuffle", func(v any, r *rand.Rand) (any, bool) {
		if list, is := v.([]any); is {
			list = slices.Clone(list)
			r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			return list, true
		}
		return v, true
	}},
}

// other returns a different value of the same type. In a map or list, it changes one element.
func other(v any, r *rand.Rand) (any, bool) {
	switch v := v.(type) {
	case string:
		return []string{v + "x", "", "TCP", "1"}[r.IntN(4)], true
	case bool:
		return !v, true
	case float64:
		return v + 1, true
	case map[string]any:
		if len(v) > 0 {
			names := slices.Sorted(maps.Keys(v))
			name, changed := names[r.IntN(len(names))], maps.Clone(v)
			changed[name], _ = other(v[name], r)
			return changed, true
		}
	case []any:
		if len(v) > 0 {
			i, changed := r.IntN(len(v)), slices.Clone(v)
			changed[i], _ = other(v[i], r)
			return changed, true
		}
	}
	return v, true
}

// pathsOf returns the paths of all values except the outermost: field names and element indexes.
func pathsOf(v any, at []any, all [][]any) [][]any {
	if len(at) > 0 {
		all = append(all, at)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name != "managedFields" {
				all = pathsOf(v[name], append(slices.Clone(at), name), all)
			}
		}
	case []any:
		for i := range v {
			all = pathsOf(v[i], append(slices.Clone(at), i), all)
		}
	}
	return all
}

// changeAt changes the value at a path, if it exists.
func changeAt(v any, at []any, change func(any) (any, bool)) any {
	switch v := v.(type) {
	case map[string]any:
		name, is := at[0].(string)
		inner, there := v[name]
		if !is || !there {
			return v
		}
		if len(at) > 1 {
			v[name] = changeAt(inner, at[1:], change)
		} else if changed, keep := change(inner); keep {
			v[name] = changed
		} else {
			delete(v, name)
		}
		return v
	case []any:
		i, is := at[0].(int)
		if !is || i >= len(v) {
			return v
		}
		if len(at) > 1 {
			v[i] = changeAt(v[i], at[1:], change)
		} else if changed, keep := change(v[i]); keep {
			v[i] = changed
		} else {
			return slices.Delete(slices.Clone(v), i, i+1)
		}
	}
	return v
}

// filled returns a copy of an object with one of its empty fields set.
func filled(object any, r *rand.Rand) any {
	copied := reflect.New(reflect.TypeOf(object).Elem())
	body, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(body, copied.Interface())
	}
	if err != nil {
		panic(err)
	}
	if empty := emptyFields(copied, nil); len(empty) > 0 {
		fill(empty[r.IntN(len(empty))], r, 3)
	}
	return copied.Interface()
}

func emptyFields(v reflect.Value, all []reflect.Value) []reflect.Value {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return emptyFields(v.Elem(), all)
		}
	case reflect.Slice:
		for i := range v.Len() {
			all = emptyFields(v.Index(i), all)
		}
	case reflect.Struct:
		if _, decodes := v.Addr().Interface().(json.Unmarshaler); decodes {
			return all
		}
		for i := range v.NumField() {
			field := v.Field(i)
			if !field.CanSet() || v.Type().Field(i).Name == "ManagedFields" {
				continue // changeEntries changes managed fields
			}
			if field.IsZero() {
				all = append(all, field)
			} else {
				all = emptyFields(field, all)
			}
		}
	default: // already set
	}
	return all
}

// fill sets a value.
func fill(v reflect.Value, r *rand.Rand, depth int) {
	if depth == 0 || !v.CanSet() {
		return
	}
	if decodes, is := v.Addr().Interface().(json.Unmarshaler); is && v.Kind() == reflect.Struct {
		_ = decodes.UnmarshalJSON([]byte{'"', '1' + byte(r.IntN(2)), '"'}) // times stay zero
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString([]string{"a", "b", "1"}[r.IntN(3)])
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(1 + r.IntN(2)))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), r, depth)
	case reflect.Slice:
		n := 1 + r.IntN(2)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(v.Index(i), r, depth-1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, r, depth-1)
		fill(value, r, depth-1)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if r.IntN(2) == 0 && v.Type().Field(i).Name != "ManagedFields" {
				fill(v.Field(i), r, depth-1)
			}
		}
	default: // objects do not contain other types
	}
}

func tree(t *testing.T, object any) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text(t, object)), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func text(t *testing.T, object any) string {
	t.Helper()
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(body))
}
