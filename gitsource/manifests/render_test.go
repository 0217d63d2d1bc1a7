package manifests

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// TestMultiplyingBasesAreLimited checks that kustomizations count every time they are used. In this test, each is used
// twice, so that a few files request 2^20 clusters.
func TestMultiplyingBasesAreLimited(t *testing.T) {
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
	read, err := Read(t.Context(), tree, Options{Path: "left0", Limits: Limits{Kustomizations: 100}})
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Problems) == 0 || !strings.Contains(read.Problems[0].Message, "more than 100 kustomizations are nested; to allow more, raise limits.objects") {
		t.Errorf("problems %v", read.Problems)
	}
}
