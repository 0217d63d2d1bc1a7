package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"
)

var definitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// InstallCRD installs a CustomResourceDefinition given as YAML.
func (c *Client) InstallCRD(ctx context.Context, definition []byte) error {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(definition, &object.Object); err != nil {
		return fmt.Errorf("read the CustomResourceDefinition: %w", err)
	}
	return c.Install(ctx, object)
}

// Install applies an object of any kind. For a CustomResourceDefinition, it returns once the API server serves the new
// resource, or once ctx is done. For Quorate's own workloads, it removes fields that "kubectl apply" has set and that
// object does not contain.
func (c *Client) Install(ctx context.Context, object *unstructured.Unstructured) error {
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	name := object.GetName()
	if slices.Contains([]string{"CronJob", "Deployment"}, object.GetKind()) {
		err := c.takeFromKubectl(ctx, object)
		if err == nil {
			object, err = leftToKubectl(object)
		}
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), name, err)
		}
	}
	if _, err := c.objects(object).Apply(ctx, name, object,
		metav1.ApplyOptions{FieldManager: Manager, Force: true}); err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetKind(), name, err)
	}
	if object.GetKind() != "CustomResourceDefinition" {
		return nil
	}
	return c.awaitEstablished(ctx, name)
}

// takeFromKubectl takes ownership of fields that "kubectl apply" has set, such as the volumes of an overlay. If a field
// had two owners, it would be kept when only one of them stops setting it.
func (c *Client) takeFromKubectl(ctx context.Context, like *unstructured.Unstructured) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		object, err := c.Find(ctx, like)
		if err != nil || object == nil {
			return err
		}
		patch, err := csaupgrade.UpgradeManagedFieldsPatch(object, sets.New("kubectl-client-side-apply"), Manager)
		if err != nil || patch == nil {
			return err
		}
		_, err = c.objects(like).Patch(ctx, like.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// leftToKubectl returns the object with the annotation from which "kubectl apply" determines which fields to remove if
// an overlay lacks them, such as the shards of an Indexed Job.
func leftToKubectl(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return object, err
	}
	annotated := object.DeepCopy()
	annotations := annotated.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[corev1.LastAppliedConfigAnnotation] = string(text)
	annotated.SetAnnotations(annotations)
	return annotated, nil
}

// Uninstall deletes an object of any kind, and its dependents in the background. It returns whether the object existed.
func (c *Client) Uninstall(ctx context.Context, object *unstructured.Unstructured) (bool, error) {
	background := metav1.DeletePropagationBackground
	err := c.objects(object).Delete(ctx, object.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("delete %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return true, nil
}

// Find reads the object with the given kind and name, or returns nil if it does not exist.
func (c *Client) Find(ctx context.Context, like *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	there, err := c.objects(like).Get(ctx, like.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // not found is not an error
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", like.GetKind(), like.GetName(), err)
	}
	return there, nil
}

// Installed lists the objects of a kind, in a namespace if the kind is namespaced.
func (c *Client) Installed(ctx context.Context, like *unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	var found []unstructured.Unstructured
	list := listing(like.GetKind()+"s", c.objects(like).List, gathers[*unstructured.Unstructured](&found))
	if err := list(ctx, metav1.ListOptions{}); err != nil {
		return nil, err
	}
	return found, nil
}

// objects returns the client for an object's kind, in its namespace.
func (c *Client) objects(of *unstructured.Unstructured) dynamic.ResourceInterface {
	plural, _ := meta.UnsafeGuessKindToResource(of.GroupVersionKind()) // correct for all kinds in deploy
	requests := c.dynamic.Resource(plural)
	if of.GetNamespace() == "" {
		return requests
	}
	return requests.Namespace(of.GetNamespace())
}

func (c *Client) awaitEstablished(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		object, err := c.dynamic.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
		return err == nil && established(object), err
	})
	if err != nil {
		return fmt.Errorf("wait for CustomResourceDefinition %s to be served: %w", name, err)
	}
	return nil
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
