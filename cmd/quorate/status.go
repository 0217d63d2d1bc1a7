package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

func newStatus(std streams) *cobra.Command {
	f := liveFlags{reading: true}
	var log logFlags
	var output string
	c := &cobra.Command{
		Use:   "status",
		Short: "Show what runs: clusters, members, and what the next pass would say",
		Long: `Status looks at the clusters that Quorate has applied, and asks etcd itself. It reads no git
repository and writes nothing.`,
		Example: `  quorate status
  quorate status --namespace prod -o json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return status(c.Context(), std, f, log, output) },
	}
	f.add(c)
	log.add(c)
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return c
}

func status(ctx context.Context, std streams, f liveFlags, logging logFlags, output string) error {
	if err := oneOf("output", output, "text", "json"); err != nil {
		return err
	}
	rep, unseen := f.look(ctx, std, logging, f.namespaces)
	var err error
	switch {
	case unseen != nil && len(rep.Clusters) == 0:
		return unseen
	case output == "json":
		err = report.States(std.out, rep)
	default:
		err = report.Members(std.out, rep, style(std.out))
	}
	return errors.Join(err, unseen)
}

// look looks at the clusters in these namespaces, or in all if there are none, and writes nothing. An error says what
// could not be listed, beside those that could.
func (f *liveFlags) look(
	ctx context.Context, std streams, logging logFlags, in namespaces,
) (report.Report, error) {
	log, err := logging.logger(std)
	if err != nil {
		return report.Report{}, err
	}
	ctx = withLog(ctx, log)
	live, err := f.live(scope{namespaces: in})
	if err != nil {
		return report.Report{}, err
	}
	defer live.Close(ctx) // it holds no lease
	return reconcile.Look(ctx, live)
}
