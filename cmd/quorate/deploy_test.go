package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// kustomize renders an overlay as "kubectl apply -k" does, and decodes each object strictly, by kind and name.
func kustomize(t *testing.T, dir string) map[string]any {
	t.Helper()
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]any{}
	for _, r := range rendered.Resources() {
		object := newObject(t, r.GetKind())
		if err := yaml.UnmarshalStrict([]byte(r.MustYaml()), object); err != nil {
			t.Errorf("%s %s: %v", r.GetKind(), r.GetName(), err)
		}
		objects[r.GetKind()+" "+r.GetName()] = object
	}
	return objects
}

func newObject(t *testing.T, kind string) any {
	t.Helper()
	switch kind {
	case "CustomResourceDefinition":
		return &apiextensionsv1.CustomResourceDefinition{}
	case "Namespace":
		return &corev1.Namespace{}
	case "ServiceAccount":
		return &corev1.ServiceAccount{}
	case "ConfigMap":
		return &corev1.ConfigMap{}
	case "ClusterRole":
		return &rbacv1.ClusterRole{}
	case "ClusterRoleBinding":
		return &rbacv1.ClusterRoleBinding{}
	case "Role":
		return &rbacv1.Role{}
	case "RoleBinding":
		return &rbacv1.RoleBinding{}
	case "CronJob":
		return &batchv1.CronJob{}
	}
	t.Fatalf("deploy/ has a %s, which no test knows", kind)
	return nil
}

// The manifests are what they should be, and this binary understands the command line in them.
func TestDeploy(t *testing.T) {
	objects := kustomize(t, "../../deploy/base")
	if len(objects) != 7 {
		t.Errorf("deploy/base has %d objects, want 7", len(objects))
	}
	args := container(t, objects).Args
	requireUnderstood(t, args)
	if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--git-credentials") }) {
		t.Error("deploy/base asks for credentials, which only deploy/private brings")
	}
}

func TestDeployPrivate(t *testing.T) {
	dir := t.TempDir()
	base, err := filepath.Abs("../../deploy")
	if err != nil {
		t.Fatal(err)
	}
	if base, err = filepath.Rel(dir, base); err != nil {
		t.Fatal(err)
	}
	overlay := fmt.Sprintf("resources: [%[1]s/base]\ncomponents: [%[1]s/private]\n", base)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		t.Fatal(err)
	}
	c := container(t, kustomize(t, dir))
	requireUnderstood(t, c.Args)
	if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return slices.Contains(c.Args, "--git-credentials="+m.MountPath) }) {
		t.Errorf("mounts %v, and is told %v", c.VolumeMounts, c.Args)
	}
}

func container(t *testing.T, objects map[string]any) corev1.Container {
	t.Helper()
	job, _ := objects["CronJob quorate"].(*batchv1.CronJob)
	if job == nil || len(job.Spec.JobTemplate.Spec.Template.Spec.Containers) != 1 {
		t.Fatal("there is no CronJob quorate with one container")
	}
	return job.Spec.JobTemplate.Spec.Template.Spec.Containers[0]
}

func requireUnderstood(t *testing.T, args []string) {
	t.Helper()
	command, flags, err := newRoot(streams{}).Find(args)
	if err != nil {
		t.Fatal(err)
	}
	if err := command.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	if err := command.ValidateArgs(command.Flags().Args()); err != nil {
		t.Fatal(err)
	}
}
