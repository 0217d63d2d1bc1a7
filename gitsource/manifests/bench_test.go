package manifests

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// A fleet of a thousand clusters: as plain files, and as overlays of one base.
func BenchmarkFleet(b *testing.B) {
	const clusters = 1000
	plain, overlays := fstest.MapFS{}, fstest.MapFS{}
	overlays["base/kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [a.yaml]\n")}
	overlays["base/a.yaml"] = &fstest.MapFile{Data: []byte(clusterNamed("a"))}
	var resources []string
	for i := range clusters {
		name := fmt.Sprintf("c%d", i)
		plain[name+".yaml"] = &fstest.MapFile{Data: []byte(clusterNamed(name))}
		overlays[name+"/kustomization.yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, "namePrefix: %s-\nresources: [../base]\n", name)}
		resources = append(resources, name)
	}
	overlays["kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [" + strings.Join(resources, ", ") + "]\n")}
	for name, tree := range map[string]fstest.MapFS{"plain": plain, "overlays": overlays} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				desired, err := Read(b.Context(), tree, Options{Path: ".", Namespace: "default"})
				if err != nil || len(desired.Clusters) != clusters {
					b.Fatalf("%d clusters, %v, %v", len(desired.Clusters), desired.Problems[:min(3, len(desired.Problems))], err)
				}
			}
		})
	}
}
