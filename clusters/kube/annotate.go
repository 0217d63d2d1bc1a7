package kube

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AnnotateClaim sets annotations on the volume claim with the given UID and removes annotations whose value is empty.
// It returns the claim's resulting annotations, or ErrConflict if the claim no longer exists.
func (c *Client) AnnotateClaim(
	ctx context.Context, namespace, name, uid string, values map[string]string,
) (map[string]string, error) {
	annotations := map[string]any{}
	for key, value := range values {
		annotations[key] = value
		if value == "" {
			annotations[key] = nil
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid, "annotations": annotations}})
	if err != nil {
		return nil, fmt.Errorf("annotate PersistentVolumeClaim %s/%s: %w", namespace, name, err)
	}
	claim, err := c.typed.CoreV1().PersistentVolumeClaims(namespace).
		Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: Manager})
	if apierrors.IsNotFound(err) {
		err = ErrConflict
	}
	if err != nil {
		return nil, fmt.Errorf("annotate PersistentVolumeClaim %s/%s: %w", namespace, name, err)
	}
	return claim.Annotations, nil
}
