package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

func newValidate(std streams) *cobra.Command {
	var source sourceFlags
	var output outputs
	var config configFlag
	c := &cobra.Command{
		Use:   "validate",
		Short: "Check declarations without a Kubernetes cluster",
		Long: `Validate reads the declarations and checks them as the API server would: the same schema
and the same rules, evaluated offline. It reports all problems in all files, with file
and line.`,
		Example: `  quorate validate --source .
  quorate validate --source https://git.example.com/fleet.git --branch main --path clusters`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := config.apply(&source); err != nil {
				return err
			}
			return validate(c.Context(), std, &source, &output)
		},
	}
	source.addShowing(c, helpSource)
	source.anyDestination = true // the run determines which destinations and adoptions are allowed
	output.add(c, "text", "json", "markdown", "github", "junit", "sarif")
	c.Flags().VarP(&namespacesFlag{list: &source.namespaces}, "namespace", "n",
		"namespace of declarations that do not set one, if only one namespace is specified (default \"default\")")
	config.add(c, inPipelines...)
	return c
}

func validate(ctx context.Context, std streams, source *sourceFlags, output *outputs) error {
	if err := output.check(); err != nil {
		return err
	}
	if err := source.check(); err != nil {
		return err
	}
	if source.live() {
		return usageError{fmt.Errorf(
			"--source %s: the API server has already checked these custom resources; "+
				"specify a repository or a directory",
			ofCluster)}
	}
	set, err := source.set()
	if err != nil {
		return err
	}
	desired := set.Declared(ctx, func(reconcile.Desired) {})
	failure := desired.Failure()
	if failure != nil && !desired.AnyRead() {
		return failure
	}
	desired = desired.ResolveOwners(func(string) reconcile.Previous { return reconcile.Previous{} })
	rep := report.Report{Revision: desired.Revision, Signer: desired.Signer, Sources: desired.SourcesRead(),
		Problems: append(desired.Problems, unbuildable(desired.Clusters)...), Warnings: desired.Warnings}
	for _, d := range desired.Clusters {
		rep.Clusters = append(rep.Clusters, report.Cluster{Namespace: d.Cluster.Namespace, Name: d.Cluster.Name,
			Warnings: d.Warnings, Where: d.Where})
	}
	if failure != nil {
		rep.Error = strings.ReplaceAll(failure.Error(), "\n", "; ")
	}
	if err := output.report(std, outcome{"validate", rep, nil, source}); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	switch {
	case failure != nil && !errors.Is(failure, gitsource.ErrOptions):
		return exit(exitError)
	case failure != nil || len(rep.Problems) > 0:
		return exit(exitInvalid)
	}
	return nil
}

// unbuildable returns the problems that would prevent a pass from building objects, such as options that the declared
// etcd version does not support.
func unbuildable(declared []reconcile.Declaration) []report.Problem {
	var problems []report.Problem
	for _, d := range declared {
		c := d.Cluster
		for _, message := range objects.Check(c.Spec, c.Namespace, c.Name) {
			problem := d.Where
			problem.Cluster, problem.Message = c.Namespace+"/"+c.Name, message
			path, _, _ := strings.Cut(message, ":")
			problem.Line = d.LineOf(path)
			problems = append(problems, problem)
		}
	}
	return problems
}
