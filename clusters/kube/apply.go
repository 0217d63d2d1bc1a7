package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// ApplyCluster applies an EtcdCluster (apiVersion, kind, metadata and spec as declared in git) and returns the live
// object. Like ApplyIfUnchanged, it fails if the object has changed since it was read. It takes ownership of declared
// fields from other field managers.
func (c *Client) ApplyCluster(
	ctx context.Context, object map[string]any, read *v1alpha1.EtcdCluster,
) (*v1alpha1.EtcdCluster, error) {
	u := &unstructured.Unstructured{Object: object}
	u.SetResourceVersion(neverExists)
	if read != nil {
		u.SetUID(read.UID)
		u.SetResourceVersion(read.ResourceVersion)
	}
	live, err := c.dynamic.Resource(v1alpha1.Resource).Namespace(u.GetNamespace()).
		Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: Manager, Force: true})
	if err != nil {
		return nil, fmt.Errorf("apply EtcdCluster %s/%s: %w", u.GetNamespace(), u.GetName(), explained(err))
	}
	cluster, err := decodeCluster(live)
	if err != nil {
		return nil, fmt.Errorf("read EtcdCluster %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	return cluster, nil
}

// explained adds an instruction to err if the API server rejected a field that this program knows.
func explained(err error) error {
	if strings.Contains(err.Error(), "field not declared in schema") {
		return fmt.Errorf("%w; the CustomResourceDefinition is older than this version of Quorate: "+
			"update it with \"quorate install\"", err)
	}
	return err
}

// ApplyStatus writes the status of an EtcdCluster, unless the cluster has been deleted, replaced or changed since it
// was read. It returns the live object.
func (c *Client) ApplyStatus(
	ctx context.Context, cluster *v1alpha1.EtcdCluster, status v1alpha1.EtcdClusterStatus,
) (*v1alpha1.EtcdCluster, error) {
	body, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(),
		"kind":       v1alpha1.Kind,
		"metadata": map[string]any{"name": cluster.Name, "namespace": cluster.Namespace, "uid": cluster.UID,
			"resourceVersion": cluster.ResourceVersion},
		"status": status,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the status of EtcdCluster %s/%s: %w", cluster.Namespace, cluster.Name, err)
	}
	force := true
	live, err := c.dynamic.Resource(v1alpha1.Resource).Namespace(cluster.Namespace).
		Patch(ctx, cluster.Name, types.ApplyPatchType, body,
			metav1.PatchOptions{FieldManager: statusManager, Force: &force}, "status")
	if err != nil {
		return nil, fmt.Errorf("write the status of EtcdCluster %s/%s: %w", cluster.Namespace, cluster.Name,
			explained(err))
	}
	written, err := decodeCluster(live)
	if err != nil {
		return nil, fmt.Errorf("read EtcdCluster %s/%s: %w", cluster.Namespace, cluster.Name, err)
	}
	return written, nil
}
