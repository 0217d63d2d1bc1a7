package main

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	inspect(exitBlocked, "the StatefulSet has 1000000 replicas")
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
