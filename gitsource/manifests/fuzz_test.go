package manifests

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"quorate.dev/quorate/clusters/schema"
	"quorate.dev/quorate/gitsource/visible"
)

// seeds adds the files of the golden archives.
func seeds(f *testing.F, add func(name string, content []byte)) {
	f.Helper()
	archives, err := filepath.Glob("../../testdata/gitsource/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range archives {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range txtar.Parse(content).Files {
			add(filepath.Base(part.Name), part.Data)
		}
	}
}

// Whatever a file holds: nothing panics, what comes out is either a valid cluster or a problem
// with a place, and it comes out the same again.
func FuzzDecode(f *testing.F) {
	seeds(f, func(name string, content []byte) {
		if isManifest(name) {
			f.Add(content)
		}
	})
	f.Fuzz(func(t *testing.T, content []byte) {
		tree := fstest.MapFS{"a.yaml": {Data: content}, "b.yaml": {Data: []byte(clusterNamed("a"))}}
		desired, err := Read(t.Context(), tree, Options{Path: ".", Namespace: "default"})
		if err != nil {
			t.Fatal(err)
		}
		checkDesired(t, desired)
		again, err := Read(t.Context(), tree, Options{Path: ".", Namespace: "default"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(desired, again); diff != "" {
			t.Errorf("the second time it is another:\n%s", diff)
		}
	})
}

// Whatever a kustomization holds, and the file beside it: nothing panics and nothing is
// fetched.
func FuzzRender(f *testing.F) {
	resource := []byte(clusterNamed("a"))
	seeds(f, func(name string, content []byte) {
		if isKustomizationName(name) {
			f.Add(content, resource)
		} else if isManifest(name) {
			f.Add([]byte("resources: [a.yaml]\n"), content)
		}
	})
	f.Fuzz(func(t *testing.T, kustomization, resource []byte) {
		tree := fstest.MapFS{"kustomization.yaml": {Data: kustomization}, "a.yaml": {Data: resource}}
		desired, err := Read(t.Context(), tree, Options{Path: ".", Namespace: "default"})
		if err != nil {
			t.Fatal(err)
		}
		checkDesired(t, desired)
		for _, p := range desired.Problems {
			if bytes.Contains([]byte(p.Message), []byte("panicked")) {
				t.Log(p) // kustomize's own; it is a problem, and not the end
			}
		}
	})
}

func checkDesired(t *testing.T, desired Declarations) {
	t.Helper()
	for _, p := range desired.Problems {
		if p.File == "" || p.Message == "" || p.Line < 0 || !isPrintableText(p.String()) {
			t.Errorf("problem %+q", p)
		}
	}
	for _, c := range desired.Clusters {
		if c.Cluster.Name == "" || c.Cluster.Namespace == "" || c.File == "" {
			t.Errorf("cluster %+v", c)
		}
		applied := decodeJSON(t, c.Applied)
		if err := schema.Default(applied); err != nil {
			t.Fatal(err)
		}
		if errs := schema.Validate(applied, nil); len(errs) > 0 {
			t.Errorf("what would be applied is not valid: %v", errs)
		}
		typed := decodeJSON(t, c.Cluster)
		if errs := schema.Validate(typed, nil); len(errs) > 0 {
			t.Errorf("the cluster is not valid: %v", errs)
		}
	}
}

func isPrintableText(s string) bool { return visible.Is(s) }

func decodeJSON(t *testing.T, v any) map[string]any {
	t.Helper()
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	value, err := normalize(json.RawMessage(encoded))
	if err != nil {
		t.Fatal(err)
	}
	return value
}
