package kube

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RemoveKeys removes keys from the ConfigMap that was read, and returns the result. The removal is rejected if the
// ConfigMap has since changed. Server-side apply would keep the keys that other field managers own.
func (c *Client) RemoveKeys(ctx context.Context, read metav1.Object, keys []string) (metav1.Object, error) {
	removed := map[string]any{}
	for _, key := range keys {
		removed[key] = nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata":   map[string]any{"uid": read.GetUID(), "resourceVersion": read.GetResourceVersion()},
		"data":       removed,
		"binaryData": removed,
	})
	if err != nil {
		return nil, fmt.Errorf("remove keys: %w", err)
	}
	live, err := c.typed.CoreV1().ConfigMaps(read.GetNamespace()).
		Patch(ctx, read.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: Manager})
	if err != nil {
		return nil, fmt.Errorf("remove keys: %w", err)
	}
	return live, nil
}
