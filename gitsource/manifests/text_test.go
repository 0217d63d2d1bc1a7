package manifests

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/v1alpha1/crd"
)

// stringFields returns the paths, as lists of keys, of all text fields in the CustomResourceDefinition that are not
// enumerations. In a path, - is an item of a list, and x is a key of a map.
func stringFields(t *testing.T) (all [][]string) {
	t.Helper()
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(crd.YAML, &definition); err != nil {
		t.Fatal(err)
	}
	var visit func(path []string, s apiextensionsv1.JSONSchemaProps)
	visit = func(path []string, s apiextensionsv1.JSONSchemaProps) {
		path = slices.Clone(path)
		switch {
		case s.Items != nil:
			visit(append(path, "-"), *s.Items.Schema)
		case s.AdditionalProperties != nil:
			visit(append(path, "x"), *s.AdditionalProperties.Schema)
		case s.Type == "string" && len(s.Enum) == 0:
			all = append(all, path)
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			visit(append(path, name), s.Properties[name])
		}
	}
	visit([]string{"spec"}, definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
	return append(all, []string{"metadata", "name"}, []string{"metadata", "namespace"}, []string{"metadata", "labels", "x"},
		[]string{"metadata", "labels", "team.example.com/x"}, []string{"metadata", "annotations", "x"})
}

// declaring returns a cluster in which the field at path has the value, and the field's line and path as reported.
func declaring(path []string, value string) (text, reported string, line int) {
	var b strings.Builder
	b.WriteString("apiVersion: etcd.quorate.dev/v1alpha1\nkind: EtcdCluster\n")
	if path[0] == "spec" {
		b.WriteString("metadata: {name: a}\n")
	} else if path[1] != "name" {
		b.WriteString("spec: {version: 3.6.5}\nmetadata:\n  name: a\n")
	} else {
		b.WriteString("spec: {version: 3.6.5}\nmetadata:\n")
	}
	if path[0] == "spec" {
		b.WriteString("spec:\n")
		if path[1] != "version" {
			b.WriteString("  version: 3.6.5\n")
		}
	}
	reported = path[0]
	indent := "  "
	for i, key := range path[1:] {
		end := "\n"
		if i == len(path)-2 {
			end = " " + value + "\n"
		}
		if key == "-" {
			reported += "[0]"
			b.WriteString(indent + "-" + end)
		} else {
			reported += "." + key
			b.WriteString(indent + key + ":" + end)
		}
		indent += "  "
	}
	return b.String(), reported, strings.Count(b.String(), "\n")
}

// TestUnquotedTextIsReported checks that every text field with a value that YAML reads as a different type is reported
// with the field, the line and the fix.
func TestUnquotedTextIsReported(t *testing.T) {
	tree, want := fstest.MapFS{}, map[string]string{}
	fields := stringFields(t)
	if len(fields) < 100 {
		t.Fatalf("only %d fields", len(fields))
	}
	for i, path := range fields {
		for value, kind := range map[string]string{"7": "a number", "1.5": "a number", "true": "a boolean", "~": "null"} {
			if last := path[len(path)-1]; value == "~" && last != "-" && last != "x" && !strings.HasSuffix(last, "/x") {
				continue // null fields are ignored
			}
			name := fmt.Sprintf("%d-%s.yaml", i, strings.NewReplacer(".", "", "~", "null").Replace(value))
			text, reported, line := declaring(path, value)
			tree[name] = &fstest.MapFile{Data: []byte(text)}
			want[name] = fmt.Sprintf("%s:%d: %s: %s is %s, but must be a string: quote it", name, line, reported, value, kind)
		}
	}
	got := map[string][]string{}
	for name, file := range tree {
		f := &files{ctx: t.Context(), limits: DefaultLimits, options: Options{Namespace: "default"}}
		declarations, problems := f.parse(name, file.Data)
		for _, d := range declarations {
			problems = append(problems, d.problems...)
		}
		for _, p := range problems {
			got[name] = append(got[name], p.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !slices.ContainsFunc(got[name], func(p string) bool { return strings.HasPrefix(p, want[name]) }) {
			t.Errorf("%s\ngot  %q\nwant %s", tree[name].Data, got[name], want[name])
		}
	}
}
