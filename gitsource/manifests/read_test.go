package manifests

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"
)

// stuck is a source in which the file called name cannot be opened until release is closed. The first attempt closes
// reached.
type stuck struct {
	fstest.MapFS
	name             string
	once             *sync.Once
	reached, release chan struct{}
}

func (s stuck) Open(name string) (fs.File, error) {
	if name == s.name {
		s.once.Do(func() { close(s.reached) })
		<-s.release
	}
	return s.MapFS.Open(name)
}

// TestSlowSourceDoesNotDelayOthers checks that a source that is slow to read does not delay reading another source.
func TestSlowSourceDoesNotDelayOthers(t *testing.T) {
	for kind, file := range map[string]string{"plain": "", "kustomized": "resources: [a.yaml]\n"} {
		t.Run(kind, func(t *testing.T) {
			tree := fstest.MapFS{"a.yaml": {Data: []byte(clusterNamed("a"))}}
			if file != "" {
				tree["kustomization.yaml"] = &fstest.MapFile{Data: []byte(file)}
			}
			slow := stuck{tree, "a.yaml", new(sync.Once), make(chan struct{}), make(chan struct{})}
			done := make(chan error, 1)
			go func() {
				_, err := Read(context.WithoutCancel(t.Context()), slow, Options{})
				done <- err
			}()
			<-slow.reached
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			read, err := Read(ctx, tree, Options{})
			if err != nil || len(read.Clusters) != 1 {
				t.Errorf("with a slow source: clusters %v, problems %v, error %v", read.Clusters, read.Problems, err)
			}
			close(slow.release)
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestYAMLDirectivesAreRejected checks that YAML directives are rejected with their position, before the nodes are
// counted.
func TestYAMLDirectivesAreRejected(t *testing.T) {
	for content, want := range map[string]string{
		"%TAG ! tag:x,2000:\n---\n" + clusterNamed("a"):                                "a.yaml:1: ",
		"# x\n%YAML 1.1\n---\n" + clusterNamed("a"):                                    "a.yaml:2: ",
		"\ufeff%YAML 1.2\n---\n" + clusterNamed("a"):                                   "a.yaml:1: ",
		clusterNamed("a") + "...\r%FOO x\r---\n":                                       "a.yaml:7: ",
		strings.Repeat("%TAG !a! tag:example.com,2000:\n", 60_000) + clusterNamed("a"): "a.yaml:1: ",
	} {
		read, err := Read(t.Context(), treeOf(map[string]string{"a.yaml": content}), Options{})
		if err != nil || len(read.Problems) != 1 || read.Problems[0].String() != want+"has a YAML directive (a line that starts with %), which is not supported; delete the line" {
			t.Errorf("%.40q: problems %.300q, error %v", content, fmt.Sprint(read.Problems), err)
		}
	}
	text := strings.Replace(clusterNamed("a"), "spec:", "  annotations: {a: '%TAG', b: 100%, c: \"\n    %TAG\"}\nspec:", 1)
	if read, err := Read(t.Context(), treeOf(map[string]string{"a.yaml": text}), Options{}); err != nil || len(read.Clusters) != 1 {
		t.Errorf("problems %v, error %v", read.Problems, err)
	}
}

// TestReportedReferencesAreBounded checks that at most a hundred of a kustomization's thousands of errors are reported,
// and that each reference is looked up at most once.
func TestReportedReferencesAreBounded(t *testing.T) {
	bad := "resources:\n" + numbered("- https://example.com/%d.yaml\n", 60_000)
	start := time.Now()
	read, err := Read(t.Context(), treeOf(map[string]string{"kustomization.yaml": bad}), Options{})
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	if err != nil || len(read.Problems) != maxProblems || !strings.HasSuffix(read.Problems[maxProblems-1].Message, "(and more)") {
		t.Fatalf("%d problems, error %v", len(read.Problems), err)
	}
	if want := `kustomization.yaml:2: resources: "https://example.com/0.yaml" is not in the source: remote resources are not fetched; copy it into the source`; read.Problems[0].String() != want {
		t.Errorf("%s, want %s", read.Problems[0], want)
	}
}

// TestProblemsOfManyClustersAreBounded checks that each of very many invalid clusters is named, but that the total
// number of problems is limited. The report states that some problems are left out.
func TestProblemsOfManyClustersAreBounded(t *testing.T) {
	const clusters = 400
	var content strings.Builder
	for i := range clusters {
		fmt.Fprintf(&content, "---\n%s%s", clusterNamed(fmt.Sprintf("a%d", i)), numbered("  f%d: x\n", 20))
	}
	read, err := Read(t.Context(), treeOf(map[string]string{"a.yaml": content.String()}), Options{})
	if err != nil || len(read.Problems) > allProblems+clusters {
		t.Errorf("%d problems, error %v", len(read.Problems), err)
	}
	told, last := map[string]int{}, map[string]string{}
	for _, p := range read.Problems {
		told[p.Cluster]++
		last[p.Cluster] = p.Message
	}
	if first, end := told["default/a0"], told["default/a399"]; len(told) != clusters || first != 20 || end != 1 {
		t.Errorf("problems of %d clusters: %d of the first, %d of the last", len(told), first, end)
	}
	if strings.HasSuffix(last["default/a0"], andMore) || !strings.HasSuffix(last["default/a399"], andMore) {
		t.Errorf("%q, %q", last["default/a0"], last["default/a399"])
	}
}
