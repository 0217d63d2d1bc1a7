package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/fleetfile"
	"quorate.dev/quorate/clusters/shard"
)

// targetFlags specify the Kubernetes clusters of a command that accepts several.
type targetFlags struct {
	contexts []string
	fleet    string
	// named reports whether --fleet is set, even to an empty name.
	named func() bool
}

func (f *targetFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.contexts, "context", nil,
		"context of the kubeconfig; repeatable, one for each Kubernetes cluster")
	c.Flags().StringVar(&f.fleet, "fleet", "",
		"file that lists several Kubernetes clusters, each with a name and a kubeconfig, a context or a Secret")
	f.named = func() bool { return c.Flags().Changed("fleet") }
}

// several reports whether a command covers several Kubernetes clusters, and so must name them.
func (f *targetFlags) several() bool { return f.fleet != "" || len(f.contexts) > 1 }

// kubeTarget is a Kubernetes cluster of a command. Its name is empty unless there may be several.
type kubeTarget = fleetfile.Cluster

// places returns the given Kubernetes clusters, or a single default one. It validates the fleet file.
func (f *targetFlags) places() ([]kubeTarget, error) {
	switch {
	case f.fleet != "" && len(f.contexts) > 0:
		return nil, usageError{errors.New("--fleet and --context: the file sets the context; remove one of them")}
	case f.fleet != "":
		return f.read()
	case f.named != nil && f.named():
		return nil, usageError{errors.New(
			`--fleet "": expected a file name; without it, the run would use one Kubernetes cluster`)}
	case len(f.contexts) == 1:
		return []kubeTarget{{Context: f.contexts[0]}}, nil
	case len(f.contexts) == 0:
		return []kubeTarget{{}}, nil
	}
	var list []kubeTarget
	given := map[string]bool{}
	for _, name := range f.contexts {
		switch {
		case name == "":
			return nil, usageError{errors.New(`--context "": expected a context name, because there are several`)}
		case given[name]:
			return nil, usageError{fmt.Errorf("--context %s: specified twice", name)}
		}
		given[name] = true
		list = append(list, kubeTarget{Name: name, Context: name})
	}
	return list, nil
}

// read reads the fleet file. Paths in it are relative to the file.
func (f *targetFlags) read() ([]kubeTarget, error) {
	file, err := os.Open(f.fleet)
	if err != nil {
		return nil, usageError{fmt.Errorf("--fleet: %w", err)}
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, fleetfile.MostBytes+1))
	if err != nil {
		return nil, usageError{fmt.Errorf("--fleet: %w", err)}
	}
	list, problems := fleetfile.Parse(text)
	var errs []error
	for _, p := range problems {
		errs = append(errs, fmt.Errorf("%s:%d: %s", f.fleet, p.Line, p.Message))
	}
	if len(errs) > 0 {
		return nil, usageError{fmt.Errorf("--fleet: %w", errors.Join(errs...))}
	}
	for i := range list {
		if p := &list[i].Kubeconfig; *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(filepath.Dir(f.fleet), *p)
		}
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
	if s, err := shard.Parse(p.Shard); err == nil && f.part != nil { // it was checked before
		own.part = (*part)(&s)
	}
	return &own
}
