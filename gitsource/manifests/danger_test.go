package manifests

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"sigs.k8s.io/kustomize/kyaml/filesys"

	"quorate.dev/quorate/gitsource/manifests/renderer"
)

const bareEnv = "QUORATE_TEST_BARE_KUSTOMIZE"

// danger is a source that harms a process that renders it with unmodified kustomize, even with kustomize's loading
// restrictions.
type danger struct {
	files map[string]string
	// harm is part of the process's last output.
	harm string
	// want is part of the only problem that Read returns.
	want string
}

func dangers(url string) map[string]danger {
	return map[string]danger{
		"fetches a resource": {
			files: map[string]string{"kustomization.yaml": "resources: [" + url + "/a.yaml]\n"},
			harm:  "rendered 1 objects", want: "is not in the source: remote resources",
		},
		"fetches a patch": {
			files: map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatches: [{path: " + url + "/a.yaml}]\n", "a.yaml": clusterNamed("a")},
			harm:  "rendered 1 objects", want: "is not in the source: remote resources",
		},
		"fetches a file for a generator": {
			files: map[string]string{"kustomization.yaml": "configMapGenerator: [{name: a, files: ['k=" + url + "/a.yaml']}]\n"},
			harm:  "rendered 1 objects", want: "is not in the source: remote resources",
		},
		"an anchor that contains itself ends the process": {
			files: map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": clusterNamed("a") + "  pod: &p {x: *p}\n"},
			harm:  "fatal error: ", want: "contains itself",
		},
		"a patch with such an anchor": {
			files: map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatches:\n- patch: |-\n    " +
				strings.ReplaceAll(clusterNamed("a")+"  pod: &p {x: *p}", "\n", "\n    ") + "\n", "a.yaml": clusterNamed("a")},
			harm: "fatal error: ", want: "contains itself",
		},
		"aliases of aliases": {
			files: map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": clusterNamed("a") + billionLaughs},
			harm:  "fatal error: ", want: "once its aliases are expanded",
		},
		"patches that copy what they patch": {
			files: map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatches: [{target: {kind: EtcdCluster}, path: p.yaml}]\n",
				"a.yaml": clusterNamed("a"), "p.yaml": doublingPatch(40)},
			harm: "fatal error: ", want: "MiB of memory",
		},
	}
}

const billionLaughs = `  a: &a [x,x,x,x,x,x,x,x,x,x]
  b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]
  c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]
  d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]
  e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]
  f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]
  g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f,*f]
  h: [*g,*g,*g,*g,*g,*g,*g,*g,*g,*g]
`

// TestKustomizeDangersAreBlocked checks that each source harms unmodified kustomize, and that Read only reports a
// problem. Unmodified kustomize runs in a child of this test, with little memory.
func TestKustomizeDangersAreBlocked(t *testing.T) {
	if dir := os.Getenv(bareEnv); dir != "" {
		renderBare(dir)
		return
	}
	var hits atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		fmt.Fprint(w, clusterNamed("a"))
	}))
	defer server.Close()
	for name, d := range dangers(server.URL) {
		t.Run(name, func(t *testing.T) {
			hits.Store(0)
			said := sayBare(t, d.files)
			if !strings.Contains(said, d.harm) {
				t.Errorf("bare kustomize does no harm: %.500s", said)
			}
			if remote := strings.Contains(name, "fetches"); remote != (hits.Load() > 0) {
				t.Errorf("bare kustomize asked the server %d times", hits.Load())
			}
			hits.Store(0)
			tree := fstest.MapFS{}
			for name, content := range d.files {
				tree[name] = &fstest.MapFile{Data: []byte(content)}
			}
			read, err := Read(t.Context(), tree, Options{Limits: Limits{RenderMemory: 96 << 20}})
			if err != nil || len(read.Problems) != 1 || !strings.Contains(read.Problems[0].Message, d.want) || len(read.Clusters) > 0 {
				t.Errorf("clusters %v, problems %v, error %v", read.Clusters, read.Problems, err)
			}
			if hits.Load() > 0 {
				t.Error("the server was asked")
			}
		})
	}
}

// sayBare runs a child that renders the files with unmodified kustomize, and returns its output.
func sayBare(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(dir+"/"+name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKustomizeDangersAreBlocked$")
	child.Env = []string{bareEnv + "=" + dir}
	out, err := child.CombinedOutput()
	return fmt.Sprintf("%s%v", out, err)
}

// renderBare renders a directory on disk, with kustomize's own loading restrictions. Memory and stack are limited to
// protect the machine.
func renderBare(dir string) {
	debug.SetMaxStack(16 << 20)
	const memory = 128 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: memory, Max: memory}); err != nil {
		fmt.Fprintln(os.Stdout, err)
		return
	}
	rendered, err := renderer.Kustomize(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		return
	}
	fmt.Fprintln(os.Stdout, "rendered", rendered.Size(), "objects")
}
