package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/reconcile/report"
)

func newExplain(std streams) *cobra.Command {
	f := liveFlags{reading: true}
	var log logFlags
	var output string
	c := &cobra.Command{
		Use:   "explain [NAMESPACE/]CLUSTER",
		Short: "Explain the state of a cluster: the result of every rule, and which rule decides",
		Long: `Explain observes one cluster that Quorate has applied, queries etcd itself, and evaluates every rule
in order. The first rule that applies decides. For each other rule, explain shows the result if the rule
applies, and the description if it does not. It does not read git or write anything.`,
		Example: `  quorate explain prod/a
  quorate explain a --namespace prod -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return explainCluster(c.Context(), std, f, log, args[0], output)
		},
	}
	f.add(c)
	log.add(c)
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	f.completes(c)
	return c
}

func explainCluster(
	ctx context.Context, std streams, f liveFlags, logging logFlags, argument, output string,
) error {
	if err := oneOf("output", output, "text", "json"); err != nil {
		return err
	}
	of, err := clusterNamed(argument, f.namespaces)
	if err != nil {
		return err
	}
	rep, unseen := f.look(ctx, std, logging, []string{of.Namespace})
	for _, c := range rep.Clusters {
		switch {
		case c.Key() != of.String():
			continue
		case output == "json":
			err = report.Opinions(std.out, c)
		default:
			err = report.Explain(std.out, c, style(std.out))
		}
		if err == nil && c.Error != "" {
			err = exit(exitError)
		}
		return errors.Join(err, unseen)
	}
	if unseen != nil {
		return unseen
	}
	return fmt.Errorf("explain %s: Quorate has not applied a cluster with that name; to list all clusters, run "+
		"quorate status", of)
}
