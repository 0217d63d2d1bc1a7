package kube

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
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
		return nil, fmt.Errorf("find the API server: %w", explainConfig(rules, err))
	}
	return config, nil
}

// explainConfig says of an error which file it is about, and what to do where there is none.
func explainConfig(rules *clientcmd.ClientConfigLoadingRules, err error) error {
	var path *fs.PathError
	named := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	there := slices.ContainsFunc(rules.Precedence,
		func(file string) bool { _, err := os.Stat(file); return err == nil })
	switch {
	case rules.ExplicitPath != "" && errors.As(err, &path):
		return fmt.Errorf("read the kubeconfig %s: %w", rules.ExplicitPath, path.Err)
	case !clientcmd.IsEmptyConfig(err):
		return err // it names the file
	case rules.ExplicitPath != "":
		return fmt.Errorf("the kubeconfig %s names no cluster", rules.ExplicitPath)
	case named != "" && !there:
		return fmt.Errorf("no file that KUBECONFIG names is there: %s", named)
	case there:
		return fmt.Errorf("no kubeconfig names a cluster: %s", strings.Join(rules.Precedence, ", "))
	}
	return errors.New("there is no kubeconfig, and this is no pod: say --kubeconfig or set KUBECONFIG")
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
