package scenarios

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// foreignObjects lists unmanaged objects with the names of objects of cluster a.
var foreignObjects = []struct {
	kind   schema.GroupVersionResource
	object map[string]any
}{
	{services, map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": named("a-client"), "spec": map[string]any{"ports": []any{map[string]any{"port": 80}}}}},
	{services, map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": named("a"), "spec": map[string]any{"ports": []any{map[string]any{"port": 80}}}}},
	{configMaps, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": named("a-members"), "data": map[string]any{"mine": "yes"}}},
	{secrets, map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": named("a-ca"), "stringData": map[string]any{"mine": "yes"}}},
	{secrets, map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": named("a-client-tls"), "stringData": map[string]any{"mine": "yes"}}},
	{budgets, map[string]any{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": named("a"), "spec": map[string]any{"maxUnavailable": 1, "selector": map[string]any{"matchLabels": map[string]any{"mine": "yes"}}}}},
	{statefulSets, map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": named("a"), "spec": map[string]any{
		"replicas": 0, "serviceName": "mine", "selector": map[string]any{"matchLabels": map[string]any{"mine": "yes"}},
		"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"mine": "yes"}}, "spec": map[string]any{"containers": []any{map[string]any{"name": "mine", "image": "none"}}}},
	}}},
}

func named(name string) map[string]any { return map[string]any{"name": name} }

// TestForeignObject checks that an unmanaged object with the name of one of the cluster's objects is reported and left
// unchanged, and that the other objects are not created.
func TestForeignObject(t *testing.T) {
	t.Parallel()
	for _, foreign := range foreignObjects {
		object := &unstructured.Unstructured{Object: foreign.object}
		t.Run(object.GetKind()+" "+object.GetName(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.repository.push(map[string]string{"a.yaml": declaration("a", modern, one, unschedulable)})
			client := w.objects.Resource(foreign.kind).Namespace(w.namespace)
			made, err := client.Create(w.ctx(), object, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				r := w.run().requireCode(t, exitBlocked).requireRule(t, "a", "ForeignObjects")
				if !r.says(object.GetKind() + " " + object.GetName()) {
					t.Errorf("quorate does not report which object is in the way:\n%s", r)
				}
			}
			now, err := client.Get(w.ctx(), object.GetName(), metav1.GetOptions{})
			if err != nil || spec(now) != spec(made) {
				t.Errorf("the object was %v and is %v: %v", made, now, err)
			}
			for _, name := range w.ownObjects("a") {
				if name != object.GetKind()+" "+object.GetName() && name != "EtcdCluster a" {
					t.Errorf("%s was also created", name)
				}
			}
		})
	}
}

// spec describes an object without the fields that Kubernetes' own controllers write.
func spec(o *unstructured.Unstructured) string {
	return fmt.Sprint(o.GetUID(), o.GetLabels(), o.GetAnnotations(), o.GetOwnerReferences(), o.Object["spec"], o.Object["data"])
}
