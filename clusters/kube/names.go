package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// ClusterNames returns the names of the EtcdClusters in a namespace, or in all namespaces if namespace is empty. It
// returns only the first page, because it is meant for suggestions.
func (c *Client) ClusterNames(ctx context.Context, namespace string) ([]types.NamespacedName, error) {
	list, err := c.dynamic.Resource(v1alpha1.Resource).Namespace(namespace).List(ctx,
		metav1.ListOptions{Limit: pageSize})
	if err != nil {
		return nil, fmt.Errorf("list EtcdClusters: %w", err)
	}
	var names []types.NamespacedName
	for i := range list.Items {
		item := &list.Items[i]
		names = append(names, types.NamespacedName{Namespace: item.GetNamespace(), Name: item.GetName()})
	}
	return names, nil
}
