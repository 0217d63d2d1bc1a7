package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// sourceFlags say where declarations come from. They implement reconcile.Source.
type sourceFlags struct {
	location string
	source   source
	// namespace limits to one namespace; it is another flag's.
	namespace string
}

func (f *sourceFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.location, "source", "", "URL of a git repository, path of a local one, or a directory (required)")
	f.source.add(c.Flags())
}

func (f *sourceFlags) check() error {
	if f.location == "" {
		return usageError{fmt.Errorf("--source is required: a git repository or a directory")}
	}
	s, err := f.source.with(f.location)
	if err != nil {
		return err
	}
	if err := s.checkVerify(); err != nil {
		return err
	}
	return s.options().Check()
}

func (f *sourceFlags) fetch(ctx context.Context) (gitsource.Desired, error) {
	s, err := f.source.with(f.location)
	if err != nil {
		return gitsource.Desired{}, err
	}
	s.namespace = f.namespace
	return s.fetch(ctx)
}

// Fetch implements reconcile.Source.
func (f *sourceFlags) Fetch(ctx context.Context) (reconcile.Desired, error) {
	fetched, err := f.fetch(ctx)
	if err != nil {
		return reconcile.Desired{}, err
	}
	desired := reconcile.Desired{Revision: fetched.Revision.String(), Signer: fetched.Revision.Signer, Problems: problemsOf(fetched)}
	for _, d := range fetched.Clusters {
		if f.namespace != "" && d.Cluster.Namespace != f.namespace {
			continue
		}
		desired.Clusters = append(desired.Clusters, reconcile.Declaration{Cluster: d.Cluster, Applied: d.Applied, Warnings: d.Warnings})
	}
	return desired, nil
}

func problemsOf(fetched gitsource.Desired) []report.Problem {
	var problems []report.Problem
	for _, p := range fetched.Problems {
		problems = append(problems, report.Problem{File: p.File, Line: p.Line, Cluster: p.Cluster, Message: p.Message})
	}
	return problems
}
