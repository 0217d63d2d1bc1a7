package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Volume reads a PersistentVolume, or returns nil if it does not exist.
func (c *Client) Volume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	volume, err := c.typed.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read PersistentVolume %s: %w", name, err)
	}
	return volume, nil
}

// Nodes lists all nodes, ready or not.
func (c *Client) Nodes(ctx context.Context) ([]corev1.Node, error) {
	var nodes []corev1.Node
	all := listing("Nodes", c.typed.CoreV1().Nodes().List, gathers[*corev1.Node](&nodes))
	if err := all(ctx, metav1.ListOptions{}); err != nil {
		return nil, err
	}
	return nodes, nil
}
