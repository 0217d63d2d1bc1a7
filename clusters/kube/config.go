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

	"quorate.dev/quorate/clusters/aliases"
	"quorate.dev/quorate/clusters/pki"
	"quorate.dev/quorate/visible"
)

// Kubeconfig says where to find an API server, and how to sign in there. The zero value stands for what kubectl takes:
// $KUBECONFIG, ~/.kube/config; and, where none of these says anything, the service account of the pod it runs in.
type Kubeconfig struct {
	// File is the path of a kubeconfig. Nothing else is taken if it is given.
	File string
	// Context picks one of the kubeconfig's contexts; empty: its current one.
	Context string
	// AllowExec: a program that the kubeconfig names is started to sign in.
	AllowExec bool
	// Content is that of a kubeconfig which others have written, such as one in a Secret, in the place of all above. It
	// names neither programs nor files: what is in these would be sent wherever it says.
	Content []byte
}

// Found is what a kubeconfig has said, whatever becomes of its file.
type Found struct{ config *rest.Config }

// Find finds the API server.
func Find(k Kubeconfig) (*Found, error) {
	config, err := Config(k)
	if err != nil {
		return nil, err
	}
	return &Found{config}, nil
}

// Config is how to reach it. It is the caller's.
func (f *Found) Config() *rest.Config { return rest.CopyConfig(f.config) }

// Config finds the API server.
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

// checkAddress refuses what is no address of an API server, and one with credentials in it: errors and reports show
// where the API server is.
func checkAddress(config *rest.Config) error {
	address, _, err := rest.DefaultServerUrlFor(config)
	switch {
	case err != nil: // which quotes it
		return errors.New("its server in the kubeconfig is no URL")
	case address.User != nil:
		return errors.New("the URL of its server in the kubeconfig holds credentials, and is shown in reports: give " +
			"them as the username and the password of the user, or as a token")
	}
	return nil
}

// unknownContext says which contexts there are, if the one that was picked is none of them.
func (k Kubeconfig) unknownContext(rules *clientcmd.ClientConfigLoadingRules) error {
	loaded, err := rules.Load()
	if err != nil || k.Context == "" || loaded.Contexts[k.Context] != nil || len(loaded.Contexts) == 0 {
		return nil //nolint:nilerr // whoever calls has that error
	}
	const most = 10
	names := slices.Sorted(maps.Keys(loaded.Contexts))
	listed := visible.Line(strings.Join(names[:min(most, len(names))], ", "))
	if more := len(names) - most; more > 0 {
		listed += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("the kubeconfig has no context %q; it has %s", k.Context, listed)
}

// find is the kubeconfig. Only one that nobody has named gives way to the service account.
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

// checkSignIn refuses to start a program that nobody has said may be started.
func (k Kubeconfig) checkSignIn(found clientcmd.ClientConfig, config *rest.Config) error {
	name := k.Context
	if raw, err := found.RawConfig(); err == nil && name == "" {
		name = raw.CurrentContext
	}
	switch exec, legacy := config.ExecProvider, config.AuthProvider; {
	case exec != nil && !k.AllowExec:
		return fmt.Errorf("context %q of the kubeconfig signs in by a program, %q, which would be started with all "+
			"that this process may do and know: if you trust that kubeconfig, say --allow-exec; or else give one with "+
			"a token or a client certificate", name, exec.Command)
	case legacy != nil:
		return fmt.Errorf("context %q of the kubeconfig signs in by the auth provider %q, which Kubernetes has given "+
			"up and Quorate does not have: give one with a token, a client certificate or, with --allow-exec, a "+
			"program (exec)", name, legacy.Name)
	}
	return nil
}

// configIn is the API server of a kubeconfig that others have written. No error quotes it.
func configIn(kubeconfig []byte) (*rest.Config, error) {
	if aliases.Refuse(string(kubeconfig)) != nil {
		return nil, errors.New("it has an alias of YAML, and one that is in a Secret may have none, or it is no YAML")
	}
	loaded, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, errors.New("it is no kubeconfig")
	}
	for _, user := range loaded.AuthInfos {
		switch {
		case user.Exec != nil || user.AuthProvider != nil:
			return nil, errors.New("it signs in by a program, and one that is in a Secret may start none: give a " +
				"token or a client certificate")
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
		return nil, errors.New("its current context is not usable: it wants the address of a server, and one way to " +
			"sign in")
	}
	if err := checkAddress(config); err != nil {
		return nil, err
	}
	return config, nil
}

var errFiles = errors.New("it names files, and one that is in a Secret may name none: give what is in them " +
	"(kubectl config view --flatten)")

var errLongKeys = fmt.Errorf("it has a key longer than %d KiB or a CA longer than %d KiB, and one that is in a Secret "+
	"may have neither", pki.MaxKey>>10, pki.MaxPEM>>10)

// beforeHost is what a URL has before its host: it may be a password, whatever is in it.
var beforeHost = regexp.MustCompile(`://\S*@`)

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
		return errors.New(beforeHost.ReplaceAllString(err.Error(), "://")) // it names the file, and may quote a proxy
	case rules.ExplicitPath != "":
		return fmt.Errorf("the kubeconfig %s names no cluster", rules.ExplicitPath)
	case named != "" && !there:
		return fmt.Errorf("no file that KUBECONFIG names is there: %s", named)
	case there:
		return fmt.Errorf("no kubeconfig names a cluster: %s", strings.Join(rules.Precedence, ", "))
	}
	return ErrNoKubeconfig
}

// ErrNoKubeconfig says that nothing says where the API server is.
var ErrNoKubeconfig = errors.New("there is no kubeconfig, and this is no pod: say --kubeconfig or set KUBECONFIG")

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
