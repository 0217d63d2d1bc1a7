package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/fleet"
	"quorate.dev/quorate/clusters/fleetfile"
	"quorate.dev/quorate/clusters/shard"
)

// targetFlags specify the Kubernetes clusters of a command that accepts several.
type targetFlags struct {
	contexts []string
	fleet    string
	// named reports whether --fleet is set, even to an empty value.
	named func() bool
}

func (f *targetFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.contexts, "context", nil,
		"context of the kubeconfig; repeatable, one for each Kubernetes cluster")
	c.Flags().StringVar(&f.fleet, "fleet", "",
		"file that lists several Kubernetes clusters, each with a name and a kubeconfig, a context or a Secret")
	flags := c.Flags()
	f.named = func() bool { return flags.Changed("fleet") }
}

// several reports whether a command covers several Kubernetes clusters. If so, the command must name them.
func (f *targetFlags) several() bool { return f.fleet != "" || len(f.contexts) > 1 }

// kubeTarget is a Kubernetes cluster that a command covers. Its name is empty unless the command may cover several.
type kubeTarget = fleetfile.Cluster

// check rejects invalid combinations, without reading the fleet file.
func (f *targetFlags) check() error {
	switch {
	case f.fleet != "" && len(f.contexts) > 0:
		return usageError{errors.New("--fleet and --context: the fleet file sets the contexts; " +
			"remove one of the flags")}
	case f.fleet == "" && f.named != nil && f.named():
		return usageError{errors.New(
			`--fleet "": expected a file name; without it, the run would use one Kubernetes cluster`)}
	case len(f.contexts) < 2:
		return nil
	}
	given := map[string]bool{}
	for _, name := range f.contexts {
		switch {
		case name == "":
			return usageError{errors.New(`--context "": expected a context name, because --context is repeated`)}
		case given[name]:
			return usageError{fmt.Errorf("--context %s: specified twice", name)}
		}
		given[name] = true
	}
	return nil
}

// places returns the Kubernetes clusters in the flags, or a single default cluster. It validates the fleet file.
func (f *targetFlags) places() ([]kubeTarget, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	switch {
	case f.fleet != "":
		list, err := fleet.ReadFile(f.fleet)
		if err != nil {
			return nil, usageError{fmt.Errorf("--fleet: %w", err)}
		}
		return list, nil
	case len(f.contexts) == 0:
		return []kubeTarget{{}}, nil
	case len(f.contexts) == 1:
		return []kubeTarget{{Context: f.contexts[0]}}, nil
	}
	var list []kubeTarget
	for _, name := range f.contexts {
		list = append(list, kubeTarget{Name: name, Context: name})
	}
	return list, nil
}

// at returns the flags for one of the Kubernetes clusters.
func (f *liveFlags) at(p kubeTarget) *liveFlags {
	own := *f
	own.context, own.kubernetes = p.Context, p.Name
	if p.Kubeconfig != "" {
		own.kubeconfig = p.Kubeconfig
	}
	if s, err := shard.Parse(p.Shard); err == nil && f.part != nil { // the shard was checked before
		own.part = (*part)(&s)
	}
	return &own
}

// register identifies the Kubernetes clusters of a command, and holds the flags for each of them.
type register struct {
	*fleet.Register
	flags []*liveFlags
}

// register identifies each Kubernetes cluster. If there is only one, it does not have to be identified.
func (f *liveFlags) register(ctx context.Context, targets []kubeTarget) (*register, error) {
	m := &register{}
	for _, p := range targets {
		m.flags = append(m.flags, f.at(p))
	}
	if !f.places.several() {
		m.Register = fleet.Known(targets)
		return m, nil
	}
	var err error
	m.Register, err = fleet.Identify(ctx, targets, func(ctx context.Context, i int) (_ fleet.Connection, err error) {
		own := m.flags[i]
		if own.content, err = f.kubeconfigOf(ctx, targets[i]); err != nil {
			return nil, err
		}
		if own.found, err = own.find(); err != nil { // read once, so that the run uses the identified cluster
			return nil, err
		}
		return own.client()
	})
	if err != nil {
		return nil, usageError{err}
	}
	return m, nil
}

// kubeconfigOf returns the kubeconfig in the Secret of a target, or nil if the target has no Secret. The Secret is in
// the Kubernetes cluster that the flags or the pod specify.
func (f *liveFlags) kubeconfigOf(ctx context.Context, p kubeTarget) ([]byte, error) {
	if p.Secret == "" {
		return nil, nil
	}
	client, err := f.client()
	if err != nil {
		return nil, err
	}
	namespace, name, _ := strings.Cut(p.Secret, "/")
	return client.KubeconfigIn(ctx, namespace, name)
}
