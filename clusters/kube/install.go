package kube

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"
)

var definitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// InstallCRD applies a CustomResourceDefinition and returns once the API server serves it, or ctx
// is done.
func (c *Client) InstallCRD(ctx context.Context, definition []byte) error {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(definition, &object.Object); err != nil {
		return fmt.Errorf("read the CustomResourceDefinition: %w", err)
	}
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	name := object.GetName()
	if _, err := c.dynamic.Resource(definitions).
		Apply(ctx, name, object, metav1.ApplyOptions{FieldManager: Manager, Force: true}); err != nil {
		return fmt.Errorf("apply CustomResourceDefinition %s: %w", name, err)
	}
	return c.awaitEstablished(ctx, name)
}

func (c *Client) awaitEstablished(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	w, err := c.watches.Resource(definitions).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String(),
	})
	if err != nil {
		return fmt.Errorf("watch CustomResourceDefinition %s: %w", name, err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if object, ok := event.Object.(*unstructured.Unstructured); ok && event.Type != watch.Deleted &&
			established(object) {
			return nil
		}
	}
	return fmt.Errorf("wait for CustomResourceDefinition %s: the API server does not serve it yet: %w", name,
		context.Cause(ctx))
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if ok && condition["type"] == string(apiextensionsv1.Established) &&
			condition["status"] == string(apiextensionsv1.ConditionTrue) {
			return true
		}
	}
	return false
}
