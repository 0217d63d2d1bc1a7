package manifests

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/gitsource/manifests/renderer"
)

const fleet = 1000

// BenchmarkFleet reads a fleet of a thousand clusters: as plain files, and as overlays of one base. The baselines are
// decoding without checks, and kustomize in this process. The memory peaks include all benchmarks run so far. To see
// the peak of one benchmark, run only that benchmark.
func BenchmarkFleet(b *testing.B) {
	plain, overlays := fleetOf(fleet)
	for name, tree := range map[string]fstest.MapFS{"plain": plain, "overlays": overlays} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				desired, err := Read(b.Context(), tree, Options{Path: ".", Namespace: "default"})
				if err != nil || len(desired.Clusters) != fleet {
					b.Fatalf("%d clusters, %v, %v", len(desired.Clusters), desired.Problems[:min(3, len(desired.Problems))], err)
				}
			}
			reportPeaks(b)
		})
	}
	b.Run("plainUnchecked", func(b *testing.B) {
		for b.Loop() {
			for name, file := range plain {
				var cluster v1alpha1.EtcdCluster
				if err := yaml.Unmarshal(file.Data, &cluster); err != nil {
					b.Fatal(name, err)
				}
			}
		}
		reportPeaks(b)
	})
	b.Run("overlaysUnchecked", func(b *testing.B) {
		for b.Loop() {
			kustomizeUnchecked(b, overlays)
		}
		reportPeaks(b)
	})
}

func fleetOf(clusters int) (plain, overlays fstest.MapFS) {
	plain, overlays = fstest.MapFS{}, fstest.MapFS{}
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
	return plain, overlays
}

func kustomizeUnchecked(b *testing.B, tree fstest.MapFS) {
	b.Helper()
	files := filesys.MakeFsInMemory()
	for name, file := range tree {
		if err := files.WriteFile("/"+name, file.Data); err != nil {
			b.Fatal(err)
		}
	}
	rendered, err := renderer.Kustomize(files, "/")
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range rendered.Resources() {
		var cluster v1alpha1.EtcdCluster
		if err := yaml.Unmarshal([]byte(r.MustYaml()), &cluster); err != nil {
			b.Fatal(err)
		}
	}
}
