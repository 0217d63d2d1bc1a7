package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Address identifies how an API server is reached, without contacting it.
func (c *Client) Address() string { return c.config.Host + " " + c.config.ServerName }

// ClusterID identifies a Kubernetes cluster, regardless of how it is reached, by the UID of its namespace kube-system.
func (c *Client) ClusterID(ctx context.Context) (string, error) {
	namespace, err := c.typed.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("identify the Kubernetes cluster at %s: %w", c.Host(), err)
	}
	return string(namespace.UID), nil
}

// KubeconfigIn returns the kubeconfig in a Secret, from the key "kubeconfig" or the key "value", which Cluster API
// uses.
func (c *Client) KubeconfigIn(ctx context.Context, namespace, name string) ([]byte, error) {
	secret, err := c.typed.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig in Secret %s/%s: %w", namespace, name, err)
	}
	for _, key := range []string{"kubeconfig", "value"} {
		if content := secret.Data[key]; len(content) > 0 {
			return content, nil
		}
	}
	return nil, fmt.Errorf("read the kubeconfig in Secret %s/%s: it contains neither the key kubeconfig nor the key "+
		"value",
		namespace, name)
}
