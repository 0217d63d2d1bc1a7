package kube

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config finds the API server as kubectl does: the given kubeconfig, $KUBECONFIG, ~/.kube/config; and, where none of these
// says anything, the service account of the pod it runs in. context picks one of the kubeconfig's contexts.
func Config(kubeconfig, context string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w; say --kubeconfig or set KUBECONFIG", err)
	}
	return config, nil
}

// InCluster reports whether this process runs in a pod of a Kubernetes cluster, so that pods can be reached directly.
func InCluster() bool {
	_, err := rest.InClusterConfig()
	return err == nil
}
