package manifests

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"quorate.dev/quorate/clusters/schema"
	"quorate.dev/quorate/internal/printable"
)

// seeds calls add for every file in the golden archives. Without -fuzz, it calls add only for every fourth file, because
// TestGolden reads all files.
func seeds(f *testing.F, add func(name string, content []byte)) {
	f.Helper()
	archives, err := filepath.Glob("../../testdata/gitsource/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	nth, fuzzes := 0, flag.Lookup("test.fuzz").Value.String() != ""
	for _, file := range archives {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range txtar.Parse(content).Files {
			if nth++; fuzzes || nth%4 == 0 {
				add(filepath.Base(part.Name), part.Data)
			}
		}
	}
}

// readFuzzed reads a tree within a time limit. A tree without a kustomization is read in this process, so that the
// fuzzer can measure coverage.
func readFuzzed(t *testing.T, tree fstest.MapFS, o Options) Declarations {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	o.Limits = Limits{RenderMemory: 128 << 20}
	reader := func() (Declarations, error) { return readHere(ctx, tree, o) }
	if tree["kustomization.yaml"] != nil {
		reader = func() (Declarations, error) { return Read(ctx, tree, o) }
	}
	read, err := reader()
	if err != nil {
		t.Fatal(err)
	}
	checkDesired(t, read)
	return read
}

// readHere is like Read, but runs in this process.
func readHere(ctx context.Context, tree fstest.MapFS, o Options) (read Declarations, err error) {
	o = o.withDefaults()
	clusters, problems, err := take(ctx, fsTree{tree, o.Limits.FileBytes}, o, func(string) {})
	read.Problems = problems
	for _, c := range clusters {
		d, err := c.declared()
		if err != nil {
			return read, err
		}
		read.Clusters = append(read.Clusters, d)
	}
	return read, err
}

// FuzzDecode checks, for any file content, that decoding does not panic, and that it returns only valid clusters and
// problems with a position. It also checks that the result is deterministic, that ignoring other kinds never ignores a
// cluster, and that clusters are declared only in allowed namespaces.
func FuzzDecode(f *testing.F) {
	seeds(f, func(name string, content []byte) {
		if isManifest(name) {
			f.Add(content)
		}
	})
	f.Fuzz(func(t *testing.T, content []byte) {
		tree := fstest.MapFS{"a.yaml": {Data: content}, "b.yaml": {Data: []byte(clusterNamed("a"))}}
		read := readFuzzed(t, tree, Options{})
		if diff := cmp.Diff(read, readFuzzed(t, tree, Options{})); diff != "" {
			t.Errorf("the second result differs:\n%s", diff)
		}
		ignoring := readFuzzed(t, tree, Options{IgnoreOtherKinds: true})
		if diff := cmp.Diff(read.Clusters, ignoring.Clusters); diff != "" {
			t.Errorf("ignoring other kinds changes clusters:\n%s", diff)
		}
		for _, c := range readFuzzed(t, tree, Options{AllowNamespaces: []string{"x"}}).Clusters {
			if c.Cluster.Namespace != "x" {
				t.Errorf("%s is declared in %s", c.Cluster.Name, c.Cluster.Namespace)
			}
		}
	})
}

// FuzzRender checks, for any content in a kustomization and its resource, that rendering ends, that only kustomize
// itself may panic, and that nothing is fetched.
func FuzzRender(f *testing.F) {
	resource := []byte(clusterNamed("a"))
	seeds(f, func(name string, content []byte) {
		if isKustomizationName(name) {
			f.Add(content, resource)
		}
	})
	f.Fuzz(func(t *testing.T, kustomization, resource []byte) {
		tree := fstest.MapFS{"kustomization.yaml": {Data: kustomization}, "a.yaml": {Data: resource}}
		for _, p := range readFuzzed(t, tree, Options{}).Problems {
			if bytes.Contains([]byte(p.Message), []byte("panicked")) {
				t.Log(p) // a panic in kustomize itself is reported as a problem
			}
		}
	})
}

func checkDesired(t *testing.T, desired Declarations) {
	t.Helper()
	for _, p := range desired.Problems {
		if p.File == "" || p.Message == "" || p.Line < 0 || len(p.Message) > maxMessage+100 || !isPrintableText(p.String()) {
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

func isPrintableText(s string) bool { return printable.Is(s) }

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
