package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// TestRender checks that Render returns the same objects as kustomize does with the documented overlay.
func TestRender(t *testing.T) {
	const jobPatch, loopPatch = "/spec/jobTemplate/spec/template/spec/containers/0/args/-", "/spec/template/spec/containers/0/args/-"
	for mode, overlay := range map[Mode]string{
		CronJob:    "resources: [../base]\ncomponents: [../private]\n" + addArg("CronJob", jobPatch),
		IndexedJob: "resources: [../base]\ncomponents: [../indexed-job, ../private]\n" + addArg("CronJob", jobPatch),
		Loop:       "resources: [../loop]\ncomponents: [../private]\n" + addArg("Deployment", loopPatch),
	} {
		rendered, err := Render(Options{
			Mode: mode, Image: "registry.example.com:5000/quorate@sha256:1234", Private: true, Args: []string{"--approve=never-restart"},
			Config: settings,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Join(rendered, "---\n"), onDisk(t, overlay+source); got != want {
			t.Errorf("%s is\n%s\nwant\n%s", mode, got, want)
		}
	}
}

const settings = `apiVersion: config.quorate.dev/v1alpha1
kind: Configuration
sourceDefaults: {credentials: /etc/quorate/git}
sources: # of the platform
- location: https://git.example.com/fleet.git
  branch: "'main'"
`

const source = `
configMapGenerator:
- name: quorate-config
  namespace: quorate-system
  behavior: replace
  files: [quorate.yaml]
images:
- name: quorate.dev/quorate
  newName: registry.example.com:5000/quorate
  digest: sha256:1234
`

func addArg(kind, path string) string {
	return fmt.Sprintf("patches:\n- target: {kind: %s, name: quorate}\n  patch: |\n    - {op: add, path: %s, value: --approve=never-restart}\n", kind, path)
}

// onDisk renders an overlay that is placed next to the directories of deploy.
func onDisk(t *testing.T, overlay string) string {
	t.Helper()
	dir, err := os.MkdirTemp(".", "overlay-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, text := range map[string]string{"kustomization.yaml": overlay, "quorate.yaml": settings} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
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

// TestRenderOptions checks that the number of shards is the same in all three places, and that a NetworkPolicy is
// rendered if requested.
func TestRenderOptions(t *testing.T) {
	rendered, err := Render(Options{Mode: IndexedJob, Image: "quorate", Shards: 7, NetworkPolicy: true})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(rendered, "---\n")
	for _, want := range []string{
		"completions: 7\n", "parallelism: 7\n", "- name: JOB_COMPLETIONS\n              value: \"7\"\n", "kind: NetworkPolicy\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// TestChangedConfigStartsNewPods checks that pods mount the configuration file exactly as given, and that a changed
// file changes the pods of a loop.
func TestChangedConfigStartsNewPods(t *testing.T) {
	mounted := map[string]string{}
	for _, content := range []string{settings, settings + "# '\"$(X) \t#\n", "# no newline"} {
		rendered, err := Render(Options{Mode: Loop, Image: "quorate", Config: content})
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Metadata struct{ Name string }
			Data     map[string]string
		}
		var loop appsv1.Deployment
		for _, text := range rendered {
			switch {
			case strings.Contains(text, "kind: ConfigMap\n"):
				err = yaml.Unmarshal([]byte(text), &file)
			case strings.Contains(text, "kind: Deployment\n"):
				err = yaml.UnmarshalStrict([]byte(text), &loop)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := file.Data["quorate.yaml"]; got != content {
			t.Errorf("the file is %q, want %q", got, content)
		}
		pod := loop.Spec.Template.Spec
		at := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.ConfigMap != nil })
		mount := slices.IndexFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
			return at >= 0 && m.Name == pod.Volumes[at].Name && m.ReadOnly &&
				slices.Contains(pod.Containers[0].Args, "--config="+m.MountPath) && m.SubPath == "quorate.yaml"
		})
		if mount < 0 || pod.Volumes[at].ConfigMap.Name != file.Metadata.Name {
			t.Fatalf("ConfigMap %s is not mounted: %+v", file.Metadata.Name, pod)
		}
		if other, is := mounted[file.Metadata.Name]; is {
			t.Errorf("%q and %q have the same name: %s", other, content, file.Metadata.Name)
		}
		mounted[file.Metadata.Name] = content
	}
}
