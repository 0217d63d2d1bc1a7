package renderer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// tree is the files that kustomize sees, by absolute name.
type tree map[string]string

func (t tree) Look(name string) Entry {
	if content, ok := t[name]; ok {
		return Entry{IsFile: true, Content: []byte(content)}
	}
	var e Entry
	for file := range t {
		e.IsDir = e.IsDir || strings.HasPrefix(file, strings.TrimSuffix(name, "/")+"/")
		if path.Dir(file) == name && isKustomization(file) {
			e.Kustomizations = append(e.Kustomizations, path.Base(file))
		}
	}
	return e
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

var roomy = Limits{Memory: 96 << 20, CPU: 10 * time.Second, ObjectBytes: 1 << 20, Kustomizations: 10}

func render(t *testing.T, files Files, limits Limits) (objects []string, err error) {
	t.Helper()
	err = Render(t.Context(), files, "/x", limits, func(o Object) error {
		objects = append(objects, o.Origin+": "+string(o.JSON)+o.Problem)
		return nil
	})
	return objects, err
}

func TestRender(t *testing.T) {
	objects, err := render(t, tree{"/x/kustomization.yaml": "resources: [a.yaml]\nnamePrefix: p-\nbuildMetadata: [originAnnotations]\n", "/x/a.yaml": configMap}, roomy)
	want := `a.yaml: {"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"config.kubernetes.io/origin":"path: a.yaml\n"},"name":"p-a"}}`
	if err != nil || len(objects) != 1 || objects[0] != want {
		t.Errorf("objects %q, error %v", objects, err)
	}
}

// What is wrong with a kustomization, or too much, is a Refusal; what is not its fault is none.
func TestRefusals(t *testing.T) {
	small := roomy
	small.ObjectBytes = 50
	short := roomy
	short.CPU = time.Nanosecond // a second, in fact
	for name, c := range map[string]struct {
		files  tree
		limits Limits
		want   string
	}{
		"none":         {tree{"/x/a.yaml": configMap}, roomy, "unable to find one of 'kustomization.yaml', 'kustomization.yml' or 'Kustomization' in directory '/x'"},
		"broken":       {tree{"/x/kustomization.yaml": "resorces: []\n"}, roomy, `invalid Kustomization: json: unknown field "resorces"`},
		"cyclic alias": {tree{"/x/kustomization.yaml": "resources: [a.yaml]\n", "/x/a.yaml": configMap + "data: &d {x: *d}\n"}, roomy, "rendering it does not end: something in it contains itself"},
		"alias bomb":   {tree{"/x/kustomization.yaml": "resources: [a.yaml]\n", "/x/a.yaml": configMap + bomb}, roomy, "rendering it takes more than 96 MiB of memory; --max-render-memory raises the limit"},
		"much text":    {tree{"/x/kustomization.yaml": "resources: [a.yaml]\n", "/x/a.yaml": configMap + "data: {x: '" + strings.Repeat("x", 200<<10) + "'}\n"}, small, "an object that it renders is larger than 50 bytes"},
		"long":         {tree{"/x/kustomization.yaml": "resources: [a.yaml]\n" + endless(), "/x/a.yaml": many(2000)}, short, "rendering it takes more than 1ns of processor time; --max-render-cpu raises the limit"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := render(t, c.files, c.limits)
			var refusal Refusal
			if !errors.As(err, &refusal) || !strings.Contains(err.Error(), c.want) || len(objects) > 0 {
				t.Errorf("objects %.200q, error %v", objects, err)
			}
		})
	}
}

const bomb = `data:
  a: &a [x,x,x,x,x,x,x,x,x,x]
  b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]
  c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]
  d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]
  e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]
  f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]
  g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f,*f]
  h: [*g,*g,*g,*g,*g,*g,*g,*g,*g,*g]
`

// many objects, and as many patches of all of them.
func many(objects int) string {
	var b strings.Builder
	for i := range objects {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%d}\n", i)
	}
	return b.String()
}

func endless() string {
	return "patches:\n" + strings.Repeat(`- {target: {kind: ConfigMap}, patch: '[{"op": "add", "path": "/x", "value": "y"}]'}`+"\n", 2000)
}

// The error of the caller ends it, and so does the context.
func TestRenderEnds(t *testing.T) {
	files := tree{"/x/kustomization.yaml": "resources: [a.yaml]\n", "/x/a.yaml": many(10)}
	enough := errors.New("enough")
	if err := Render(t.Context(), files, "/x", roomy, func(Object) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	files["/x/kustomization.yaml"] += endless()
	files["/x/a.yaml"] = many(2000)
	start := time.Now()
	if err := Render(ctx, files, "/x", roomy, func(Object) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

// A child outlives its parent by nothing, even if it is busy.
func TestChildEndsWithItsParent(t *testing.T) {
	program, err := self()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), program)
	child.Args, child.Env = []string{childName}, []string{}
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if err := send(in, task{Dir: "/x", Limits: roomy}); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // it asks for the first time
		t.Fatal(err)
	}
	in.Close()
	if err := child.Wait(); err == nil || child.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended with %v", err)
	}
}

// A confined process reaches nothing: this test confines a child, which tries.
func TestConfinement(t *testing.T) {
	if os.Getenv("QUORATE_TEST_CONFINED") != "" {
		tryAll(os.Getenv("QUORATE_TEST_CONFINED"))
		return
	}
	var hits atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer server.Close()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestConfinement$")
	child.Env = []string{"QUORATE_TEST_CONFINED=" + server.URL}
	out, err := child.CombinedOutput()
	if want := "all tried\nPASS\n"; err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
	if hits.Load() != 1 {
		t.Errorf("the server was reached %d times, want once, before", hits.Load())
	}
}

// tryAll reaches for files, the network and programs, before and after it is confined.
func tryAll(url string) {
	file := filepath.Join(os.TempDir(), "quorate-test-confined")
	defer os.Remove(file)
	attempts := map[string]func() error{
		"read":    func() error { _, err := os.ReadFile("/proc/self/stat"); return err },
		"write":   func() error { return os.WriteFile(file, nil, 0o600) },
		"run":     func() error { return exec.Command("/proc/self/exe", "-test.run=^$").Run() },
		"connect": func() error { return connect(url) },
	}
	for name, attempt := range attempts {
		if err := attempt(); err != nil {
			fmt.Fprintln(os.Stdout, name, "fails even unconfined:", err)
		}
	}
	if err := confine(roomy); err != nil {
		fmt.Fprintln(os.Stdout, err)
	}
	for name, attempt := range attempts {
		if attempt() == nil {
			fmt.Fprintln(os.Stdout, name, "is still possible")
		}
	}
	fmt.Fprintln(os.Stdout, "all tried")
}

func connect(url string) error {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url) //nolint:noctx // a child has nothing that ends but itself
	if err != nil {
		return err
	}
	return response.Body.Close()
}
