package manifests

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// growing holds sources that grow with n in ways that could slow down the parser or the checks on its nodes.
var growing = map[string]struct {
	n     int
	files func(n int) map[string]string
}{
	"sequences":       {50_000, plain(func(n int) string { return strings.Repeat("[],", n) })},
	"open sequences":  {50_000, plain(func(n int) string { return strings.Repeat("[", n) })},
	"dashes":          {50_000, plain(func(n int) string { return strings.Repeat("- ", n) })},
	"deep blocks":     {1000, plain(func(n int) string { return deep(n) })},
	"comments":        {100_000, plain(func(n int) string { return strings.Repeat("#\n", n) })},
	"foot comments":   {10_000, plain(func(n int) string { return numbered("k%d: v\n\n# x\n\n", n) })},
	"inner comments":  {10_000, plain(func(n int) string { return "a:\n" + strings.Repeat("- b # x\n  # y\n", n) })},
	"anchors":         {20_000, plain(func(n int) string { return numbered("- &a%d a\n", n) })},
	"same anchors":    {20_000, plain(func(n int) string { return strings.Repeat("- &a a\n", n) })},
	"aliases":         {20_000, plain(func(n int) string { return "- &a a\n" + strings.Repeat("- *a\n", n) })},
	"merges":          {5000, plain(func(n int) string { return "a: &a {b: c}\nd:\n" + strings.Repeat("- {<<: *a}\n", n) })},
	"merge lists":     {5000, plain(func(n int) string { return "a: &a {b: c}\nd: {<<: [" + strings.Repeat("*a,", n) + "]}\n" })},
	"same keys":       {20_000, plain(func(n int) string { return strings.Repeat("a: b\n", n) })},
	"keys":            {10_000, plain(func(n int) string { return clusterNamed("a") + "  unknown:\n" + numbered("    k%d: v\n", n) })},
	"unknown fields":  {10_000, plain(func(n int) string { return clusterNamed("a") + numbered("  field%d: v\n", n) })},
	"documents":       {100, plain(func(n int) string { return numbered("---\n"+clusterNamed("a%d"), n) })},
	"same documents":  {100, plain(func(n int) string { return strings.Repeat("---\n"+clusterNamed("a"), n) })},
	"bad documents":   {100, plain(func(n int) string { return numbered("---\n"+clusterNamed("a%d")+numbered("  f%d: x\n", 20), n) })},
	"empty documents": {4000, plain(func(n int) string { return strings.Repeat("---\n", n) })},
	"long line":       {400_000, plain(func(n int) string { return clusterNamed("a") + "  x: " + strings.Repeat("x", n) })},
	"escapes":         {100_000, plain(func(n int) string { return `a: "` + strings.Repeat(`\x1b`, n) + `"` })},
	"text lines":      {100_000, plain(func(n int) string { return "a: |\n" + strings.Repeat(" x\n", n) })},
	"quoted lines":    {100_000, plain(func(n int) string { return "a: \"" + strings.Repeat("x\n ", n) + `"` })},
	"percent signs":   {400_000, plain(func(n int) string { return "a: " + strings.Repeat("%", n) })},
	"directives":      {10_000, plain(func(n int) string { return numbered("%%TAG !t%d! tag:x,2000:\n", n) + "---\n" })},
	"files":           {100, func(n int) map[string]string { return numberedFiles(n) }},
	"bad resources":   {5000, kustomized(func(n int) string { return "resources:\n" + numbered("- https://example.com/%d\n", n) })},
	"lacking files":   {2000, kustomized(func(n int) string { return "resources:\n" + numbered("- x/%d.yaml\n", n) })},
	"annotations":     {2500, kustomized(func(n int) string { return "resources: [a.yaml]\ncommonAnnotations:\n" + numbered("  k%d: v\n", n) })},
	"generated": {200, kustomized(func(n int) string {
		return "resources: [a.yaml]\nconfigMapGenerator:\n" + numbered("- {name: n%d}\n", n)
	})},
}

func plain(content func(n int) string) func(n int) map[string]string {
	return func(n int) map[string]string { return map[string]string{"a.yaml": content(n)} }
}

func kustomized(content func(n int) string) func(n int) map[string]string {
	return func(n int) map[string]string {
		return map[string]string{"kustomization.yaml": content(n), "a.yaml": clusterNamed("a")}
	}
}

func deep(levels int) string {
	var b strings.Builder
	for i := range levels {
		fmt.Fprintf(&b, "%*sa:\n", i, "")
	}
	return b.String()
}

func numberedFiles(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("d%d/a.yaml", i)] = clusterNamed(fmt.Sprintf("a%d", i))
	}
	return files
}

// TestTimeGrowsWithSize checks that the time to read a source grows about linearly with its size, and is limited. The
// test measures processor time, including the child's, relative to an ordinary source in the same run.
func TestTimeGrowsWithSize(t *testing.T) {
	ordinary := min(timeOf(t, plain(clusters)(1)), timeOf(t, plain(clusters)(1)))
	most := 100*ordinary + time.Second
	for name, g := range growing {
		t.Run(name, func(t *testing.T) {
			once := timeOf(t, g.files(g.n))
			four := timeOf(t, g.files(4*g.n))
			t.Logf("%s, and %s for four times as much", once, four)
			if four > 6*once+2*ordinary {
				once, four = timeOf(t, g.files(g.n)), timeOf(t, g.files(4*g.n)) // repeat the measurement once
			}
			if four > 6*once+2*ordinary || four > most {
				t.Errorf("%s, and %s for four times as much; want at most six times as much, and %s", once, four, most)
			}
		})
	}
}

func clusters(n int) string { return numbered("---\n"+clusterNamed("a%d"), n) }

// timeOf returns the processor time that this process and its children need to read the files once.
func timeOf(t *testing.T, files map[string]string) time.Duration {
	t.Helper()
	tree := treeOf(files)
	before := processorTime(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := Read(ctx, tree, Options{}); ctx.Err() != nil {
		t.Fatalf("it does not end: %v", err)
	}
	return processorTime(t) - before
}

func processorTime(t *testing.T) (sum time.Duration) {
	t.Helper()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if err := syscall.Getrusage(who, &usage); err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return sum
}
