package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/adoption"
	"quorate.dev/quorate/clusters/backup/store"
)

// adoptInspectFlags are the flags of "adopt inspect".
type adoptInspectFlags struct {
	live     liveFlags
	log      logFlags
	from     string
	caSecret string
}

func newAdopt(std streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "adopt",
		Short: "Prepare to adopt an etcd cluster that another tool runs",
		Args:  cobra.NoArgs,
	}
	c.AddCommand(newAdoptInspect(std))
	return c
}

func newAdoptInspect(std streams) *cobra.Command {
	f := adoptInspectFlags{live: liveFlags{reading: true}}
	c := &cobra.Command{
		Use:   "inspect NAMESPACE/NAME --from RESOURCE/NAME",
		Short: "Inspect an etcd cluster, and print a declaration that adopts it",
		Long: `Inspect reads the object that manages an etcd cluster, queries etcd, and prints a declaration of the new
cluster (NAMESPACE/NAME). The object must be in the namespace of the new cluster. Comments in the declaration
list what prevents the adoption, what to do before you push the declaration, and where each field of a custom
resource belongs. The command does not change anything in Kubernetes or etcd.

The object is a StatefulSet or one of these custom resources:
  ` + strings.Join(adoption.Resources(), "\n  ") + `

Exit codes: 0 if the etcd cluster can be adopted, 4 if it cannot be adopted yet.`,
		Example: `  quorate adopt inspect prod/orders --from statefulset/etcd > clusters/orders.yaml
  quorate adopt inspect prod/orders --from etcd.druid.gardener.cloud/main --ca-secret etcd-ca`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.inspect(c.Context(), std, args[0])
		},
	}
	c.Flags().StringVar(&f.from, "from", "",
		"etcd cluster to adopt: statefulset/NAME, or RESOURCE.GROUP/NAME for a custom resource (required)")
	c.Flags().StringVar(&f.caSecret, "ca-secret", "",
		"Secret with the CA of the etcd cluster to adopt, for spec.adopt.caSecretName; required if that cluster "+
			"uses TLS")
	f.live.add(c)
	f.log.add(c)
	return c
}

func (f *adoptInspectFlags) inspect(ctx context.Context, std streams, argument string) error {
	of, err := clusterNamed(argument, f.live.namespaces)
	if err != nil {
		return err
	}
	if f.from == "" {
		return usageError{errors.New("--from is required: specify the source, such as statefulset/NAME")}
	}
	ref, err := adoption.ParseRef(f.from)
	if err != nil {
		return usageError{fmt.Errorf("--from: %w", err)}
	}
	log, err := f.log.logger(std)
	if err != nil {
		return err
	}
	found, err := f.look(withLog(ctx, log), of, ref)
	if err != nil {
		return fmt.Errorf("inspect %s: %w", f.from, err)
	}
	if err := found.Write(std.out); err != nil {
		return err
	}
	if len(found.Problems) > 0 {
		return exit(exitBlocked)
	}
	return nil
}

func (f *adoptInspectFlags) look(
	ctx context.Context, of store.Cluster, ref adoption.Ref,
) (adoption.Inspection, error) {
	client, err := f.live.client()
	if err != nil {
		return adoption.Inspection{}, err
	}
	live, err := f.live.live(scope{namespaces: []string{of.Namespace}})
	if err != nil {
		return adoption.Inspection{}, err
	}
	defer live.Close(ctx) // live does not hold a lease
	return adoption.Inspect(ctx, client, live, of.Namespace, ref,
		adoption.Plan{Name: of.Name, CASecretName: f.caSecret})
}
