package kube

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"quorate.dev/quorate/clusters/pki"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/internal/yamlguard"
)

// Kubeconfig specifies an API server and how to authenticate to it. The zero value means kubectl's defaults,
// $KUBECONFIG and ~/.kube/config, or the pod's service account if the defaults specify nothing.
type Kubeconfig struct {
	// File is the path of a kubeconfig. If it is set, there is no fallback.
	File string
	// Context selects one of the kubeconfig's contexts. Empty means its current context.
	Context string
	// AllowExec allows the kubeconfig to start a credential plugin.
	AllowExec bool
	// Content is an untrusted kubeconfig, for example from a Secret, which replaces all of the above. It must not name
	// programs or files, because the content of files would be sent to its server.
	Content []byte
}

// Found is a loaded kubeconfig, independent of later changes to its file.
type Found struct{ config *rest.Config }

// Find loads the configuration for the API server.
func Find(k Kubeconfig) (*Found, error) {
	config, err := Config(k)
	if err != nil {
		return nil, err
	}
	return &Found{config}, nil
}

// Config returns a copy of the configuration, which the caller may change.
func (f *Found) Config() *rest.Config { return rest.CopyConfig(f.config) }

// Config returns the client configuration for the API server.
func Config(k Kubeconfig) (*rest.Config, error) {
	if k.Content != nil {
		return configIn(k.Content)
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.File
	found, err := k.find(rules)
	var config *rest.Config
	if err == nil {
		config, err = found.ClientConfig()
	}
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", cmp.Or(k.unknownContext(rules), explainConfig(rules, err)))
	}
	if err := k.checkSignIn(found, config); err != nil {
		return nil, err
	}
	if err := checkAddress(config); err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	return config, nil
}

// checkAddress rejects an API server address that is invalid or contains credentials, because the address is shown in
// errors and reports.
func checkAddress(config *rest.Config) error {
	address, _, err := rest.DefaultServerUrlFor(config)
	switch {
	case err != nil: // err quotes the address
		return errors.New("its server in the kubeconfig is not a URL")
	case address.User != nil:
		return errors.New("its server URL in the kubeconfig contains credentials, and reports show this URL. Use the " +
			"username and password of the user entry instead, or a token")
	}
	return nil
}

// unknownContext returns an error that lists the existing contexts if the selected context does not exist.
func (k Kubeconfig) unknownContext(rules *clientcmd.ClientConfigLoadingRules) error {
	loaded, err := rules.Load()
	if err != nil || k.Context == "" || loaded.Contexts[k.Context] != nil || len(loaded.Contexts) == 0 {
		return nil //nolint:nilerr // the caller has that error
	}
	const most = 10
	names := slices.Sorted(maps.Keys(loaded.Contexts))
	listed := printable.Line(strings.Join(names[:min(most, len(names))], ", "))
	if more := len(names) - most; more > 0 {
		listed += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("the kubeconfig does not contain context %q; its contexts are %s", k.Context, listed)
}

// find loads the kubeconfig. The service account is a fallback only if no file was named.
func (k Kubeconfig) find(rules *clientcmd.ClientConfigLoadingRules) (clientcmd.ClientConfig, error) {
	overrides := &clientcmd.ConfigOverrides{CurrentContext: k.Context}
	if k.File == "" {
		return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides), nil
	}
	loaded, err := rules.Load()
	if err != nil {
		return nil, err
	}
	return clientcmd.NewNonInteractiveClientConfig(*loaded, k.Context, overrides, rules), nil
}

// checkSignIn rejects a configuration that would start a credential plugin, unless plugins are allowed.
func (k Kubeconfig) checkSignIn(found clientcmd.ClientConfig, config *rest.Config) error {
	name := k.Context
	if raw, err := found.RawConfig(); err == nil && name == "" {
		name = raw.CurrentContext
	}
	switch exec, legacy := config.ExecProvider, config.AuthProvider; {
	case exec != nil && !k.AllowExec:
		return fmt.Errorf("context %q of the kubeconfig authenticates by running a program, %q, which would have all "+
			"rights and secrets of this process. If you trust the kubeconfig, set --allow-exec; otherwise use a "+
			"kubeconfig with a token or a client certificate", name, exec.Command)
	case legacy != nil:
		return fmt.Errorf("context %q of the kubeconfig uses the auth provider %q, which Kubernetes has removed. "+
			"Use a kubeconfig with a token, a client certificate or, with --allow-exec, a program (exec)",
			name, legacy.Name)
	}
	return nil
}

// configIn returns the configuration in an untrusted kubeconfig. Its errors never quote the content.
func configIn(kubeconfig []byte) (*rest.Config, error) {
	if yamlguard.Refuse(string(kubeconfig)) != nil {
		return nil, errors.New("it is not valid YAML, or it contains a YAML alias, which is not allowed in a " +
			"kubeconfig in a Secret")
	}
	loaded, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, errors.New("it is not a kubeconfig")
	}
	for _, user := range loaded.AuthInfos {
		switch {
		case user.Exec != nil || user.AuthProvider != nil:
			return nil, errors.New("it authenticates by running a program, which is not allowed for a kubeconfig in " +
				"a Secret. Use a token or a client certificate")
		case user.TokenFile+user.ClientCertificate+user.ClientKey != "":
			return nil, errFiles
		case len(user.ClientKeyData) > pki.MaxKey:
			return nil, errLongKeys
		}
	}
	for _, cluster := range loaded.Clusters {
		switch {
		case cluster.CertificateAuthority != "":
			return nil, errFiles
		case pki.CheckLength(cluster.CertificateAuthorityData) != nil:
			return nil, errLongKeys
		}
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*loaded, "", nil, nil).ClientConfig()
	if err != nil {
		return nil, errors.New("its current context is not usable: the context must specify a server address and one " +
			"authentication method")
	}
	if err := checkAddress(config); err != nil {
		return nil, err
	}
	return config, nil
}

var errFiles = errors.New("it refers to files, which is not allowed for a kubeconfig in a Secret. Embed the content " +
	"of the files " +
	"(kubectl config view --flatten)")

var errLongKeys = fmt.Errorf("it contains a key longer than %d KiB or a CA longer than %d KiB, which is not allowed "+
	"for a kubeconfig in a Secret", pki.MaxKey>>10, pki.MaxPEM>>10)

// beforeHost matches the part of a URL before the host, which may contain a password in any form.
var beforeHost = regexp.MustCompile(`://\S*@`)

// explainConfig adds the name of the file to an error, or an instruction if no kubeconfig exists.
func explainConfig(rules *clientcmd.ClientConfigLoadingRules, err error) error {
	var path *fs.PathError
	named := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	there := slices.ContainsFunc(rules.Precedence,
		func(file string) bool { _, err := os.Stat(file); return err == nil })
	switch {
	case rules.ExplicitPath != "" && errors.As(err, &path):
		return fmt.Errorf("read the kubeconfig %s: %w", rules.ExplicitPath, path.Err)
	case !clientcmd.IsEmptyConfig(err):
		return errors.New(beforeHost.ReplaceAllString(err.Error(), "://")) // names the file, but may quote a proxy
	case rules.ExplicitPath != "":
		return fmt.Errorf("the kubeconfig %s does not name a cluster", rules.ExplicitPath)
	case named != "" && !there:
		return fmt.Errorf("no file in KUBECONFIG exists: %s", named)
	case there:
		return fmt.Errorf("none of the kubeconfigs names a cluster: %s", strings.Join(rules.Precedence, ", "))
	}
	return ErrNoKubeconfig
}

// ErrNoKubeconfig is returned if nothing specifies the API server.
var ErrNoKubeconfig = errors.New("no kubeconfig found, and not running in a pod. Use --kubeconfig or set KUBECONFIG")

// Impersonation specifies a user to impersonate, if the process has the right to do so. All requests to the API
// server are made as that user, including watches and port-forwards.
type Impersonation struct {
	// User is never empty. With an empty name, no header would be sent, and requests would have the rights of the
	// process itself.
	User   string
	Groups []string
}

// As returns a copy of the configuration that impersonates a user.
func As(config *rest.Config, i Impersonation) (*rest.Config, error) {
	if strings.TrimSpace(i.User) == "" {
		return nil, errors.New("the user to impersonate has an empty name, so the process would act with its own " +
			"rights")
	}
	if slices.ContainsFunc(i.Groups, func(group string) bool { return strings.TrimSpace(group) == "" }) {
		return nil, fmt.Errorf("a group of the impersonated user %s has an empty name", i.User)
	}
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: i.User, Groups: i.Groups}
	return config, nil
}

// InCluster reports whether this process runs in a pod of a Kubernetes cluster and can therefore reach pods directly.
func InCluster() bool {
	_, err := rest.InClusterConfig()
	return err == nil
}
