package manifests

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// Each kustomization takes the next one twice: a few files ask for 2^20 clusters.
func TestBasesThatMultiply(t *testing.T) {
	tree := fstest.MapFS{"end/kustomization.yaml": {Data: []byte("resources: [a.yaml]\n")}, "end/a.yaml": {Data: []byte(clusterNamed("a"))}}
	const levels = 20
	for i := range levels {
		next := []string{fmt.Sprintf("../left%d", i+1), fmt.Sprintf("../right%d", i+1)}
		if i == levels-1 {
			next = []string{"../end"}
		}
		for _, side := range []string{"left", "right"} {
			tree[fmt.Sprintf("%s%d/kustomization.yaml", side, i)] = &fstest.MapFile{
				Data: fmt.Appendf(nil, "namePrefix: %s-\nresources: [%s]\n", side, strings.Join(next, ", "))}
		}
	}
	view := &kustomizeFS{files: &files{ctx: t.Context(), fs: tree, limits: DefaultLimits}, overlay: overlayOf("left0"), left: 100}
	if _, err := runKustomize(view); err == nil {
		t.Fatal("all of it was rendered")
	}
	if len(view.problems) == 0 || !strings.Contains(view.problems[0].Message, "too many kustomizations") {
		t.Errorf("problems %v", view.problems)
	}
}
