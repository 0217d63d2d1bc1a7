package main

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// TestAdoptInspectReportsUnreachableSource checks that no declaration is printed for a source that does not respond, and
// that the command does not change anything in Kubernetes.
func TestAdoptInspectReportsUnreachableSource(t *testing.T) {
	t.Parallel()
	w := newTenants(t, "prod")
	inspect := func(code int, want string, args ...string) {
		t.Helper()
		got := w.command(append([]string{"adopt", "inspect", "prod/orders", "--from", "statefulset/etcd", "--etcd-access", "direct"}, args...)...)
		said := strings.ReplaceAll(got.out+got.err, "\n#   ", " ")
		if got.code != code || !strings.Contains(said, want) || strings.Contains(said, "kind: EtcdCluster") {
			t.Errorf("%q: exit code %d, want %d and %q:\n%s", args, got.code, code, want, said)
		}
	}
	inspect(exitError, "StatefulSet prod/etcd does not exist")

	set := &appsv1.StatefulSet{}
	const text = `
metadata: {name: etcd}
spec:
  serviceName: etcd
  replicas: 1000000
  selector: {matchLabels: {app: etcd}}
  template:
    metadata: {labels: {app: etcd}}
    spec: {containers: [{name: etcd, image: "etcd:3.6.16", command: [etcd, "--listen-client-urls=http://0.0.0.0:2379"]}]}
`
	if err := yaml.UnmarshalStrict([]byte(text), set); err != nil {
		t.Fatal(err)
	}
	sets := w.server.Client.AppsV1().StatefulSets("prod")
	created, err := sets.Create(t.Context(), set, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	inspect(exitBlocked, "1000000 pods run etcd")
	*created.Spec.Replicas = 3
	if created, err = sets.Update(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	inspect(exitBlocked, "does not return a member list")
	inspect(exitBlocked, "its members do not use TLS. Omit --ca-secret", "--ca-secret", "etcd-ca")

	now, err := sets.Get(t.Context(), "etcd", metav1.GetOptions{})
	if err != nil || now.ResourceVersion != created.ResourceVersion {
		t.Errorf("the StatefulSet was changed: %v", err)
	}
	if listed := w.listed("prod"); len(listed) > 0 {
		t.Errorf("objects were created: %v", listed)
	}
}

// coreosCRD is the definition of the coreos operator's custom resource. It accepts any fields.
const coreosCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: etcdclusters.etcd.database.coreos.com}
spec:
  group: etcd.database.coreos.com
  names: {kind: EtcdCluster, plural: etcdclusters, singular: etcdcluster}
  scope: Namespaced
  versions:
  - name: v1beta2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestPodsOfCustomResourceAreInspected checks that the pods that an operator's custom resource selects are found, and
// that their claims are read.
func TestPodsOfCustomResourceAreInspected(t *testing.T) {
	t.Parallel()
	w := newTenants(t, "coreos")
	inspect := func(from string) (int, string) {
		got := w.command("adopt", "inspect", "coreos/orders", "--from", from, "--etcd-access", "direct")
		return got.code, got.out + got.err
	}
	const from = "etcdcluster.etcd.database.coreos.com/example"
	if code, said := inspect(from); code != exitError || !strings.Contains(said, "its CustomResourceDefinition is not installed") {
		t.Fatalf("without the CustomResourceDefinition: exit code %d:\n%s", code, said)
	}
	install := func(text string) {
		t.Helper()
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		if err := w.client.Install(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	install(coreosCRD)
	t.Cleanup(func() {
		if err := w.server.Objects.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")).Delete(context.WithoutCancel(t.Context()), "etcdclusters.etcd.database.coreos.com", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	install(`{apiVersion: etcd.database.coreos.com/v1beta2, kind: EtcdCluster, metadata: {name: example, namespace: coreos}, spec: {size: 2, paused: true, pod: {resources: {requests: {cpu: 100m}}}}}`)
	install(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: example-a, namespace: coreos}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 8Gi}}}}`)
	install(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: coreos}}`)
	custom, err := w.server.Objects.Resource(schema.GroupVersionResource{Group: "etcd.database.coreos.com", Version: "v1beta2", Resource: "etcdclusters"}).
		Namespace("coreos").Get(t.Context(), "example", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	create := func(name, cluster string) {
		t.Helper()
		var pod corev1.Pod
		text := `{spec: {hostname: ` + name + `, subdomain: example, automountServiceAccountToken: false, containers: [{name: etcd, image: etcd, args: ["--data-dir=/data", "--listen-client-urls=http://0.0.0.0:2379"], volumeMounts: [{name: data, mountPath: /data}]}], volumes: [{name: data, persistentVolumeClaim: {claimName: example-a}}]}}`
		if err := yaml.Unmarshal([]byte(text), &pod); err != nil {
			t.Fatal(err)
		}
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(custom, custom.GroupVersionKind())}
		pod.Name, pod.Labels = name, map[string]string{"app": "etcd", "etcd_cluster": cluster}
		if _, err := w.server.Client.CoreV1().Pods("coreos").Create(t.Context(), &pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create("example-a", "example")
	create("example-b", "example")
	create("other-a", "other")

	code, said := inspect(from)
	for _, want := range []string{
		"# EtcdCluster coreos/example, managed by the coreos etcd operator (etcd.database.coreos.com/v1beta2)\n",
		"add example-*.example.coreos.svc:2379 to",
		"# - spec.size: spec.replicas\n",
	} {
		if code != exitBlocked || !strings.Contains(said, want) {
			t.Errorf("exit code %d, want %q:\n%s", code, want, said)
		}
	}
	for _, wrong := range []string{"is not paused", "No data volume", "other-a"} {
		if strings.Contains(said, wrong) {
			t.Errorf("found %q:\n%s", wrong, said)
		}
	}
}
