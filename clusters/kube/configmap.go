package kube

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RemoveKeys removes keys from a ConfigMap, unless it has changed since it was read, and returns the result.
// Server-side apply would keep keys that other field managers own.
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
