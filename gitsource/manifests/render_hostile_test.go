package manifests

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// TestGrowingKustomizationsHitMemoryLimit checks that kustomizations that are within every limit on reading, but need
// too much memory to render, are reported with the cause. The memory of this process must not grow.
func TestGrowingKustomizationsHitMemoryLimit(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"replacements of what they replace": {"kustomization.yaml": "resources: [a.yaml]\nreplacements:\n" + doublingReplacements(40)},
		"replacements of text by itself":    {"kustomization.yaml": "resources: [a.yaml]\nreplacements:\n" + doublingText(40)},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{"a.yaml": {Data: []byte(clusterNamed("a") + "  pod: {annotations: {x: a-a}}\n")}}
			for name, content := range files {
				tree[name] = &fstest.MapFile{Data: []byte(content)}
			}
			read, err := Read(t.Context(), tree, Options{Limits: Limits{RenderMemory: 96 << 20}})
			if err != nil || len(read.Problems) != 1 || read.Problems[0].String() != "kustomization.yaml: rendering it needs more than 96 MiB of memory; raise limits.renderMemory" {
				t.Errorf("problems %v, error %v", read.Problems, err)
			}
		})
	}
}

func doublingPatch(times int) string {
	var b strings.Builder
	b.WriteString("- {op: add, path: /spec/pod, value: {annotations: {x: a}}}\n")
	for i := range times {
		fmt.Fprintf(&b, "- {op: copy, from: /spec, path: /spec/pod/x%d}\n", i)
	}
	return b.String()
}

func doublingReplacements(times int) string {
	var b strings.Builder
	for i := range times {
		fmt.Fprintf(&b, "- source: {kind: EtcdCluster, fieldPath: spec}\n  targets:\n  - {select: {kind: EtcdCluster}, fieldPaths: [spec.x%d], options: {create: true}}\n", i)
	}
	return b.String()
}

func doublingText(times int) string {
	var b strings.Builder
	for range times {
		b.WriteString("- source: {kind: EtcdCluster, fieldPath: spec.pod.annotations.x}\n  targets:\n" +
			"  - {select: {kind: EtcdCluster}, fieldPaths: [spec.pod.annotations.x], options: {delimiter: '-', index: 0}}\n")
	}
	return b.String()
}

// TestRenderingsDoNotAffectEachOther checks that one source's kustomize settings do not affect the next source.
func TestRenderingsDoNotAffectEachOther(t *testing.T) {
	other := treeOf(map[string]string{"kustomization.yaml": "resources: [a.yaml]\nnamePrefix: p-\n", "a.yaml": clusterNamed("a")})
	alone := show(Read(t.Context(), other, Options{}))
	for name, files := range map[string]map[string]string{
		"schema": {"kustomization.yaml": "resources: [a.yaml]\nopenapi: {path: s.json}\n", "a.yaml": clusterNamed("a"), "s.json": `{"definitions": {}}`},
		"configuration": {"kustomization.yaml": "resources: [a.yaml]\nconfigurations: [c.yaml]\nnamePrefix: x-\n", "a.yaml": clusterNamed("a"),
			"c.yaml": "namePrefix: [{path: spec/version}]\n"},
		"crash": {"kustomization.yaml": "resources: [a.yaml]\nreplacements:\n" + doublingReplacements(40), "a.yaml": clusterNamed("a")},
	} {
		if read, err := Read(t.Context(), treeOf(files), Options{Limits: Limits{RenderMemory: 64 << 20}}); err != nil || len(read.Problems) == 0 {
			t.Errorf("%s: problems %v, error %v", name, read.Problems, err)
		}
		if after := show(Read(t.Context(), other, Options{})); after != alone {
			t.Errorf("after %s, it is\n%s\nand by itself\n%s", name, after, alone)
		}
	}
}

func TestReadEndsAtItsDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	tree := fstest.MapFS{"a.yaml": {Data: []byte(clusterNamed("a"))},
		"kustomization.yaml": {Data: []byte("resources: [a.yaml]\nreplacements:\n" + doublingReplacements(40))}}
	start := time.Now()
	_, err := Read(ctx, tree, Options{Limits: Limits{RenderMemory: 4 << 30}})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}
