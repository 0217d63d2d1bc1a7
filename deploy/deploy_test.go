package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// TestRender checks that Render returns the same objects as kustomize with the documented overlay.
func TestRender(t *testing.T) {
	const jobPatch, loopPatch = "/spec/jobTemplate/spec/template/spec/containers/0/args/-", "/spec/template/spec/containers/0/args/-"
	for mode, overlay := range map[Mode]string{
		CronJob:    "resources: [../base]\ncomponents: [../private]\n" + addArg("CronJob", jobPatch),
		IndexedJob: "resources: [../base]\ncomponents: [../indexed-job, ../private]\n" + addArg("CronJob", jobPatch),
		Loop:       "resources: [../loop]\ncomponents: [../private]\n" + addArg("Deployment", loopPatch),
	} {
		rendered, err := Render(Options{
			Mode: mode, Image: "registry.example.com:5000/quorate@sha256:1234", Private: true, Args: []string{"--max-deletions=3"},
			Source: "https://git.example.com/fleet.git", Branch: "main", Path: "clusters",
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Join(rendered, "---\n"), onDisk(t, overlay+source); got != want {
			t.Errorf("%s is\n%s\nwant\n%s", mode, got, want)
		}
	}
}

const source = `
configMapGenerator:
- name: quorate-source
  namespace: quorate-system
  behavior: merge
  literals: [SOURCE=https://git.example.com/fleet.git, BRANCH=main, DIRECTORY=clusters]
images:
- name: quorate.dev/quorate
  newName: registry.example.com:5000/quorate
  digest: sha256:1234
`

func addArg(kind, path string) string {
	return fmt.Sprintf("patches:\n- target: {kind: %s, name: quorate}\n  patch: |\n    - {op: add, path: %s, value: --max-deletions=3}\n", kind, path)
}

// onDisk renders an overlay placed next to the directories of deploy.
func onDisk(t *testing.T, overlay string) string {
	t.Helper()
	dir, err := os.MkdirTemp(".", "overlay-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		t.Fatal(err)
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := rendered.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRenderOptions checks that the number of shards is the same in all three places. It also checks that the source
// may be the custom resources themselves, and that the NetworkPolicy is optional.
func TestRenderOptions(t *testing.T) {
	rendered, err := Render(Options{Mode: IndexedJob, Image: "quorate", Source: Cluster, Shards: 7, NetworkPolicy: true})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(rendered, "---\n")
	for _, want := range []string{
		"completions: 7\n", "parallelism: 7\n", "- name: JOB_COMPLETIONS\n              value: \"7\"\n", "SOURCE: cluster\n", "kind: NetworkPolicy\n",
		"- run\n            - --source=$(SOURCE)\n            - --until-converged\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if _, err := Render(Options{Mode: Loop, Source: Cluster}); err != nil {
		t.Error(err)
	}
}

// TestRenderQuotesBranchNames checks that branch names may contain quotes.
func TestRenderQuotesBranchNames(t *testing.T) {
	for _, branch := range []string{`'main'`, `"main"`, `'`, `main`} {
		rendered, err := Render(Options{Mode: CronJob, Image: "quorate", Branch: branch})
		if err != nil {
			t.Fatal(err)
		}
		var source struct{ Data map[string]string }
		for _, text := range rendered {
			if strings.Contains(text, "kind: ConfigMap\n") {
				if err := yaml.Unmarshal([]byte(text), &source); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := source.Data["BRANCH"]; got != branch {
			t.Errorf("the branch is %q, want %q", got, branch)
		}
	}
}
