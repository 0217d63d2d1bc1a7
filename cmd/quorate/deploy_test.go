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
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"quorate.dev/quorate/clusters/objects"
)

// kustomize renders an overlay as "kubectl apply -k" does, and decodes each object strictly, by
// kind and name.
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
	case "NetworkPolicy":
		return &networkingv1.NetworkPolicy{}
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
	c := container(t, withComponent(t, "private"))
	requireUnderstood(t, c.Args)
	if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return slices.Contains(c.Args, "--git-credentials="+m.MountPath) }) {
		t.Errorf("mounts %v, and is told %v", c.VolumeMounts, c.Args)
	}
}

// The policy selects the pods of the CronJob, lets them reach the members that Quorate makes, and
// is in their namespace; and what a cluster's own NetworkPolicy knows Quorate by are the labels of
// these pods and of their namespace.
func TestDeployNetworkPolicy(t *testing.T) {
	all := withComponent(t, "network-policy")
	policy, _ := all["NetworkPolicy quorate"].(*networkingv1.NetworkPolicy)
	if policy == nil {
		t.Fatal("there is no NetworkPolicy quorate")
	}
	job := all["CronJob quorate"].(*batchv1.CronJob)
	pods := job.Spec.JobTemplate.Spec.Template.Labels
	selects := func(selector *metav1.LabelSelector, of map[string]string) bool {
		s, err := metav1.LabelSelectorAsSelector(selector)
		return err == nil && s.Matches(labels.Set(of))
	}
	if policy.Namespace != job.Namespace || !selects(&policy.Spec.PodSelector, pods) {
		t.Errorf("it is for %s in %s", policy.Spec.PodSelector.String(), policy.Namespace)
	}
	if last := policy.Spec.Egress[len(policy.Spec.Egress)-1]; !selects(last.To[0].PodSelector, objects.MemberLabels("a")) || last.Ports[0].Port.IntValue() != objects.ClientPort {
		t.Errorf("members are out of reach: %v", last)
	}
	namespace := all["Namespace "+job.Namespace].(*corev1.Namespace)
	for what, got := range map[string]map[string]string{"pods": pods, "namespace": namespace.Labels} {
		if !selects(&metav1.LabelSelector{MatchLabels: objects.OwnLabels()}, got) {
			t.Errorf("the NetworkPolicy of a cluster does not know the %s of deploy/base, which have %v", what, got)
		}
	}
}

// withComponent renders deploy/base with one of the components beside it.
func withComponent(t *testing.T, component string) map[string]any {
	t.Helper()
	dir := t.TempDir()
	base, err := filepath.Abs("../../deploy")
	if err != nil {
		t.Fatal(err)
	}
	if base, err = filepath.Rel(dir, base); err != nil {
		t.Fatal(err)
	}
	overlay := fmt.Sprintf("resources: [%[1]s/base]\ncomponents: [%[1]s/%[2]s]\n", base, component)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		t.Fatal(err)
	}
	return kustomize(t, dir)
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
