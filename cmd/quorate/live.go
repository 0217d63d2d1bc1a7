package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/shard"
	"quorate.dev/quorate/clusters/targets"
)

// kubeFlags specify the API server.
type kubeFlags struct {
	kubeconfig, context string
	// allowExec allows the kubeconfig to run a program.
	allowExec bool
	// content is the content of the kubeconfig if it does not come from a file.
	content []byte
	// found, if set, is the kubeconfig that was read earlier. The file may have changed since then.
	found *kube.Found
	// places, if set, lists the Kubernetes clusters of a command that accepts several.
	places *targetFlags
	// namespaces restricts the command to these namespaces; empty means all.
	namespaces []string
	// as is the user to impersonate. impersonates reports whether the flags for as are set, even to an empty value.
	as           kube.Impersonation
	impersonates func() bool
	// errors returns the writer for warnings from the API server.
	errors func() io.Writer
	// requested, if set, is called for each request to the API server.
	requested func(verb string, status int)
}

func (f *kubeFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.as.User, "as", "",
		"act as this user, such as quorate:tenant:shop, with only the rights of this user")
	c.Flags().StringArrayVar(&f.as.Groups, "as-group", nil, "act as a member of this group; repeatable, requires --as")
	f.errors = c.ErrOrStderr
	flags := c.Flags()
	f.impersonates = func() bool { return flags.Changed("as") || flags.Changed("as-group") }
	c.Flags().StringVar(&f.kubeconfig, "kubeconfig", "",
		"path of a kubeconfig (default: $KUBECONFIG, ~/.kube/config, or the pod's service account)")
	if f.places != nil {
		f.places.add(c)
	} else {
		c.Flags().StringVar(&f.context, "context", "", "context of the kubeconfig")
	}
	c.Flags().BoolVar(&f.allowExec, "allow-exec", false,
		"allow the kubeconfig to run a credential plugin (exec), as EKS, GKE and AKS kubeconfigs do")
}

func (f *kubeFlags) addNamespace(c *cobra.Command) {
	c.Flags().VarP(&namespacesFlag{list: &f.namespaces}, "namespace", "n",
		"use only this namespace; repeatable, or a list separated by semicolons. "+
			"If only one is set, it is also the namespace of declarations without a namespace")
}

// checkAs rejects impersonation without a user. It does not read anything.
func (f *kubeFlags) checkAs() error {
	if !f.impersonates() {
		return nil
	}
	if strings.TrimSpace(f.as.User) == "" && len(f.as.Groups) > 0 {
		return usageError{errors.New(
			"--as-group requires --as with a user name; without --as, the process would act with its own rights")}
	}
	if strings.TrimSpace(f.as.User) == "" {
		return usageError{fmt.Errorf(
			"--as %q: expected a user name; without a user name, the process would act with its own rights", f.as.User)}
	}
	for _, group := range f.as.Groups {
		if strings.TrimSpace(group) == "" {
			return usageError{fmt.Errorf("--as-group %q: expected a group name", group)}
		}
	}
	return nil
}

// client returns a client that acts as the user in --as, if set.
func (f *kubeFlags) client() (*kube.Client, error) {
	if err := f.checkAs(); err != nil {
		return nil, err
	}
	return f.clientAs(f.as)
}

// clientAs returns a client that impersonates a user or, if User is empty, acts as the process itself.
func (f *kubeFlags) clientAs(somebody kube.Impersonation) (*kube.Client, error) {
	found, err := f.find()
	if err != nil {
		return nil, err
	}
	config := found.Config()
	if somebody.User != "" {
		if config, err = kube.As(config, somebody); err != nil {
			return nil, usageError{fmt.Errorf("--as: %w", err)}
		}
	}
	config.WarningHandler = &warnings{w: f.errors()}
	config.UserAgent = "quorate/" + version()
	if f.requested != nil {
		config = kube.Counted(config, f.requested)
	}
	return kube.New(config)
}

// find returns the kubeconfig, and reads it if necessary.
func (f *kubeFlags) find() (*kube.Found, error) {
	if f.found != nil {
		return f.found, nil
	}
	return kube.Find(kube.Kubeconfig{File: f.kubeconfig, Context: f.context, AllowExec: f.allowExec,
		Content: f.content})
}

// liveFlags specify how to read the live state.
type liveFlags struct {
	kubeFlags
	access        string
	leaseDuration time.Duration
	etcdTimeout   time.Duration
	// reading is set if the command does not write anything.
	reading bool
	// maxDeletions is nil if the command does not delete clusters.
	maxDeletions *int
	// backupImage is the image for clusters with scheduled backups.
	backupImage image
	// part is the shard from the flag, or nil if the command has no such flag.
	part *part
	// round is the length of a loop's round; see loopRound.
	round time.Duration
	// kubernetes is the name of the Kubernetes cluster, or empty if the command covers only one. If it covers several,
	// pods may not be directly reachable.
	kubernetes string
	// eventsOf is the cluster whose events are also read, or empty for none.
	eventsOf string
	// recovers allows creating new clusters from the remains of lost clusters.
	recovers bool
}

func (f *liveFlags) add(c *cobra.Command) {
	f.kubeFlags.add(c)
	f.addNamespace(c)
	c.Flags().StringVar(&f.access, "etcd-access", "auto",
		"how etcd is reached: direct (pod network), port-forward (through the API server), or auto: "+
			"direct inside a cluster, port-forward outside")
	c.Flags().DurationVar(&f.etcdTimeout, "etcd-timeout", 2*time.Second,
		"maximum time for an etcd member to respond")
}

func (f *liveFlags) addLease(c *cobra.Command) {
	c.Flags().DurationVar(&f.leaseDuration, "lease-duration", 15*time.Second,
		"how long a cluster stays locked after the pass acting on it dies, at most 10m")
}

func (f *liveFlags) addDeletions(c *cobra.Command) {
	most := number(1)
	f.maxDeletions = (*int)(&most)
	c.Flags().Var(&most, strings.TrimPrefix(targets.FlagMaxDeletions, "--"),
		"maximum number of clusters per source (per namespace with --source cluster) whose deletion with data "+
			"one run may start (lifecycle Deleted, retention Delete); the others wait")
}

func (f *liveFlags) addBackupImage(c *cobra.Command) {
	c.Flags().Var(&f.backupImage, strings.TrimPrefix(targets.FlagBackupImage, "--"),
		"Quorate image, with a tag or digest, for the pods that back up clusters with spec.backup and "+
			"create clusters with spec.restore (default: none; clusters that need it are rejected)")
}

func (f *liveFlags) addRecovery(c *cobra.Command) {
	c.Flags().BoolVar(&f.recovers, strings.TrimPrefix(targets.FlagAllowRecovery, "--"), false,
		"allow spec.recovery to replace a cluster that has permanently lost its majority; "+
			"set it only on the run that performs the recovery")
}

// image is a container image.
type image string

// imageReference matches REGISTRY/REPOSITORY:TAG@DIGEST, with a tag, a digest or both.
var imageReference = regexp.MustCompile(`^([a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?(:[0-9]{1,5})?/)?` +
	`[a-z0-9]+((\.|_{1,2}|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_{1,2}|-+)[a-z0-9]+)*)*` +
	`(:[A-Za-z0-9_][-A-Za-z0-9_.]{0,127}|(:[A-Za-z0-9_][-A-Za-z0-9_.]{0,127})?@sha256:[a-f0-9]{64})$`)

// Set implements pflag.Value.
func (i *image) Set(s string) error {
	const longest = 255 + 128 + 72
	if len(s) > longest || !imageReference.MatchString(s) {
		return errors.New("expected an image with a tag or digest, such as registry.example.com/quorate:v1")
	}
	*i = image(s)
	return nil
}

// String implements pflag.Value.
func (i *image) String() string { return string(*i) }

// Type implements pflag.Value.
func (i *image) Type() string { return "string" }

// number is a number greater than or equal to 0.
type number int

// Set implements pflag.Value.
func (n *number) Set(s string) error {
	value, err := strconv.Atoi(s)
	if err != nil || value < 0 {
		return errors.New("must be a number, 0 or greater")
	}
	*n = number(value)
	return nil
}

// String implements pflag.Value.
func (n *number) String() string { return strconv.Itoa(int(*n)) }

// Type implements pflag.Value.
func (n *number) Type() string { return "int" }

// check rejects flags that are invalid in every Kubernetes cluster, and returns the shard.
func (f *liveFlags) check() (shard.Shard, error) {
	if err := oneOf("etcd-access", f.access, choices["etcd-access"]...); err != nil {
		return shard.Shard{}, err
	}
	if f.leaseDuration > clusters.MaxLeaseDuration {
		return shard.Shard{}, usageError{fmt.Errorf("kubernetes.leaseDuration %s: must be at most ten minutes",
			f.leaseDuration)}
	}
	if err := f.checkAs(); err != nil {
		return shard.Shard{}, err
	}
	return f.shard()
}

// live returns the live side of a run with the given scope.
func (f *liveFlags) live(s scope) (*clusters.Live, error) {
	part, err := f.check()
	if err != nil {
		return nil, err
	}
	client, err := f.client()
	if err != nil {
		return nil, err
	}
	tenants, err := s.clients(f.clientAs)
	if err != nil {
		return nil, err
	}
	boundGarbage()
	return clusters.New(client, clusters.Options{
		Namespaces:    s.namespaces,
		Tenants:       tenants,
		Reading:       f.reading,
		PortForward:   f.access == "port-forward" || f.access == "auto" && (f.kubernetes != "" || !kube.InCluster()),
		LeaseDuration: f.leaseDuration,
		Timeout:       f.etcdTimeout,
		Shard:         part,
		MaxDeletions:  f.maxDeletions,
		BackupImage:   string(f.backupImage),
		AllowRecovery: f.recovers,
		Round:         f.round,
	}), nil
}
