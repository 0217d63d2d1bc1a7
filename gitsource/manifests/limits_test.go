package manifests

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// TestLimits checks that each limit is enforced, and that the error or problem names the flag that raises the limit.
func TestLimits(t *testing.T) {
	plain := map[string]string{"a.yaml": clusterNamed("a"), "b.yaml": clusterNamed("b"), "deep/c.yaml": clusterNamed("c")}
	kustomized := map[string]string{"kustomization.yaml": "resources: [a.yaml, b.yaml]\n", "a.yaml": clusterNamed("a"), "b.yaml": clusterNamed("b")}
	doubled := map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatches: [{target: {kind: EtcdCluster}, path: p.yaml}]\n",
		"a.yaml": clusterNamed("a"), "p.yaml": "- {op: copy, from: /metadata, path: /spec/x}\n"}
	for name, c := range map[string]struct {
		limits Limits
		files  map[string]string
		// want is the error or problem, and problems is the number of problems.
		want     string
		problems int
	}{
		"file":                  {Limits{FileBytes: 50}, map[string]string{"a.yaml": clusterNamed("a")}, "a.yaml: is larger than 50 bytes; to allow more, raise limits.bytes", 1},
		"file as JSON":          {Limits{FileBytes: 500}, map[string]string{"a.yaml": clusterNamed("a") + "  pod: {annotations: {x: '" + strings.Repeat("<", 200) + "'}}\n"}, "a.yaml:1: is larger than 500 bytes as JSON; to allow more, raise limits.bytes", 1},
		"total":                 {Limits{TotalBytes: 200}, plain, "more than 200 bytes are read; name a smaller path, or raise limits.bytes", 0},
		"files":                 {Limits{Files: 2}, plain, "more than 2 files are read; name a smaller path, or raise limits.objects", 0},
		"depth":                 {Limits{Depth: 1}, map[string]string{"x/y/a.yaml": ""}, "x/y: is more than 1 directories deep; use fewer levels", 1},
		"nodes":                 {Limits{DocumentNodes: 5}, map[string]string{"a.yaml": clusterNamed("a")}, "a.yaml:6: has more than 5 nodes; to allow more, raise limits.objects", 1},
		"nodes of aliases":      {Limits{DocumentNodes: 9}, map[string]string{"a.yaml": "a: &a {b: c}\nd: *a\n"}, "a.yaml:1: has more than 9 nodes once its aliases are expanded; to allow more, raise limits.objects", 1},
		"keys":                  {Limits{Keys: 3}, map[string]string{"a.yaml": clusterNamed("a")}, "a.yaml:1: has a mapping with more than 3 keys; to allow more, raise limits.objects", 1},
		"total nodes":           {Limits{TotalNodes: 20}, plain, "more than 20 nodes of YAML are read; name a smaller path, or raise limits.objects", 0},
		"nesting":               {Limits{Nesting: 1}, map[string]string{"a.yaml": clusterNamed("a")}, "a.yaml:4: is nested more than 1 deep; use fewer levels", 1},
		"documents":             {Limits{Documents: 2}, plain, "more than 2 documents are read; name a smaller path, or raise limits.objects", 0},
		"objects":               {Limits{Objects: 2}, plain, "more than 2 objects are declared; name a smaller path, or raise limits.objects", 0},
		"kustomized objects":    {Limits{Objects: 1}, kustomized, "more than 1 objects are declared; name a smaller path, or raise limits.objects", 0},
		"kustomized files":      {Limits{Files: 1}, kustomized, "more than 1 files are read; name a smaller path, or raise limits.objects", 0},
		"kustomized file":       {Limits{FileBytes: 50}, kustomized, "a.yaml: is larger than 50 bytes; to allow more, raise limits.bytes", 2},
		"rendered object":       {Limits{FileBytes: 200}, doubled, "kustomization.yaml: a rendered object is larger than 200 bytes; to allow more, raise limits.bytes", 1},
		"rendered bytes":        {Limits{TotalBytes: 300}, doubled, "the kustomization renders to more than 300 bytes; name a smaller path, or raise limits.bytes", 0},
		"a million documents":   {Limits{FileBytes: 8 << 20}, map[string]string{"a.yaml": strings.Repeat("---\n", 1_000_000)}, "more than 20000 documents are read; name a smaller path, or raise limits.objects", 0},
		"a hundred mebibytes":   {Limits{}, map[string]string{"a.yaml": "x: " + strings.Repeat("x", 100<<20)}, "a.yaml: is larger than 2 MiB; to allow more, raise limits.bytes", 1},
		"text that is repeated": {Limits{}, map[string]string{"a.yaml": "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 50_000) + "]\n"}, "a.yaml:1: is larger than 2 MiB once its aliases are expanded; to allow more, raise limits.bytes", 1},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := Read(t.Context(), treeOf(c.files), Options{Limits: c.limits})
			got := ""
			if err != nil {
				got = err.Error()
			} else if len(read.Problems) > 0 {
				got = read.Problems[0].String()
			}
			if got != c.want || len(read.Problems) != c.problems {
				t.Errorf("%q, %d problems, want %q, %d", got, len(read.Problems), c.want, c.problems)
			}
		})
	}
}

func treeOf(files map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for name, content := range files {
		tree[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return tree
}

// TestLargestFilesParseInTime checks that files of the maximum size that are slow to parse or to check are read in
// time.
func TestLargestFilesParseInTime(t *testing.T) {
	const most = 2 << 20
	cluster := clusterNamed("a") + "  unknown:\n"
	for name, content := range map[string]string{
		"sequences":      strings.Repeat("[],", most/3),
		"open sequences": strings.Repeat("[", most),
		"open mappings":  strings.Repeat("{", most),
		"dashes":         strings.Repeat("- ", most/2),
		"question marks": strings.Repeat("? ", most/2),
		"comments":       strings.Repeat("#\n", most/2),
		"anchors":        strings.Repeat("- &a a\n", most/7),
		"spaces":         strings.Repeat(" ", most),
		"newlines":       "a: |\n" + strings.Repeat("\n", most-5),
		"quoted lines":   `"` + strings.Repeat("\n", most-2) + `"`,
		"tags":           strings.Repeat("- !!str\n", most/8),
		"keys":           cluster + numbered("    k%d: v\n", 40_000),
		"unknown fields": clusterNamed("a") + numbered("  field%d: v\n", 40_000),
		"labels":         strings.Replace(clusterNamed("a"), "spec:", "  labels:\n"+numbered("    -%d: '-'\n", 40_000)+"spec:", 1),
		"documents":      strings.Repeat(clusterNamed("a")+"---\n", 500),
		"directives":     strings.Repeat("%YAML 1.1\n---\n", most/14),
		"carriage":       strings.Repeat("\r", most),
		"escapes":        `a: "` + strings.Repeat(`\x1b`, most/4-2) + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			read, err := Read(t.Context(), treeOf(map[string]string{"a.yaml": content}), Options{})
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("it took %s", took)
			}
			text := fmt.Sprint(read.Problems, err)
			if len(text) > 300*maxMessage {
				t.Errorf("%d bytes of problems", len(text))
			}
			if len(read.Problems) == 0 && err == nil && name != "comments" && name != "spaces" && name != "carriage" {
				t.Error("nothing is wrong with it")
			}
		})
	}
}

func numbered(format string, times int) string {
	var b strings.Builder
	for i := range times {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}
