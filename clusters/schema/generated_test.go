package schema

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const apiDir = "../v1alpha1"

// TestGeneratedFilesAreFresh checks that the generated files match the types.
func TestGeneratedFilesAreFresh(t *testing.T) {
	out := t.TempDir()
	for generator, committed := range map[string]string{
		"object":                               "zz_generated.deepcopy.go",
		"crd:generateEmbeddedObjectMeta=false": "crd/etcd.quorate.dev_etcdclusters.yaml",
	} {
		run(t, "go", "tool", "controller-gen", generator, "paths=.", "output:dir="+out)
		fresh, err := os.ReadFile(filepath.Join(out, filepath.Base(committed)))
		if err != nil {
			t.Fatal(err)
		}
		have, err := os.ReadFile(filepath.Join(apiDir, committed))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(fresh, have) {
			t.Errorf("%s is stale; run go generate ./clusters/v1alpha1", committed)
		}
	}
}

// TestAPIDependsOnlyOnApimachinery checks that the API package depends only on apimachinery and its dependencies, so
// that importers of the API have to agree with Quorate only on the version of apimachinery.
func TestAPIDependsOnlyOnApimachinery(t *testing.T) {
	allowed := map[string]bool{"quorate.dev/quorate/clusters/v1alpha1": true}
	for _, p := range strings.Fields(run(t, "go", "list", "-deps",
		"k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/runtime", "k8s.io/apimachinery/pkg/api/resource")) {
		allowed[p] = true
	}
	dependencies := strings.Fields(run(t, "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "."))
	if len(dependencies) < 10 {
		t.Fatalf("only %q found", dependencies)
	}
	for _, p := range dependencies {
		if !allowed[p] {
			t.Errorf("the API depends on %s", p)
		}
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = apiDir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, stderr.String())
	}
	return string(out)
}
