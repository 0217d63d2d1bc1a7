package kube

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config finds the API server as kubectl does: the given kubeconfig, $KUBECONFIG, ~/.kube/config;
// and, where none of these says anything, the service account of the pod it runs in. context picks
// one of the kubeconfig's contexts.
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

// Impersonation is whom to act as, by the rights of whoever the process is to impersonate them. All
// that reaches the API server goes as them, what watches and what forwards ports included.
type Impersonation struct {
	// User is never empty: an empty one would send no header, and so act with the rights of the
	// process itself.
	User   string
	Groups []string
}

// As makes a configuration that acts as somebody else.
func As(config *rest.Config, i Impersonation) (*rest.Config, error) {
	if strings.TrimSpace(i.User) == "" {
		return nil, errors.New("the user to act as has no name; without one, the process would act with its own rights")
	}
	if slices.ContainsFunc(i.Groups, func(group string) bool { return strings.TrimSpace(group) == "" }) {
		return nil, fmt.Errorf("a group to act as %s in has no name", i.User)
	}
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: i.User, Groups: i.Groups}
	return config, nil
}

// InCluster reports whether this process runs in a pod of a Kubernetes cluster, so that pods can be
// reached directly.
func InCluster() bool {
	_, err := rest.InClusterConfig()
	return err == nil
}
