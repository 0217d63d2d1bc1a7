package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/store"
)

// compareFlags specify the cluster and the backup to compare.
type compareFlags struct {
	live    liveFlags
	members memberFlags
	timeout timeoutFlag
	result  string
}

// comparePatience is the time that a cluster without a leader gets to elect one.
const comparePatience = 30 * time.Second

func newBackupsCompare(std streams) *cobra.Command {
	f := compareFlags{live: liveFlags{reading: true}}
	c := &cobra.Command{
		Use:   "compare [NAMESPACE/]CLUSTER --result FILE",
		Short: "Check that a cluster has not changed since a backup",
		Long: `Compare asks a quorum for the cluster's current revision. It fails if this is not the revision of the
backup that FILE names, or if a quorum did not confirm the backup's data. Changes that do not
raise the revision, such as changes to users and roles, are not detected.`,
		Example: `  quorate backup prod/old --to s3://backups/etcd --member https://etcd-0.example.com:2379 \
    --credentials /etc/old-etcd --result result.json
  quorate backups compare prod/old --result result.json --member https://etcd-0.example.com:2379 \
    --credentials /etc/old-etcd`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), std, args[0]) },
	}
	f.live.add(c)
	f.members.add(c)
	c.Flags().StringVar(&f.result, "result", "", "file written by \"quorate backup --result\"")
	require(c, "result")
	f.timeout.add(c)
	return c
}

func (f *compareFlags) run(ctx context.Context, std streams, argument string) error {
	cluster, err := clusterNamed(argument, f.live.namespaces)
	if err != nil {
		return err
	}
	told, err := readResult("result", f.result)
	if err != nil {
		return err
	}
	ctx, cancel := f.timeout.within(ctx)
	defer cancel()
	from, err := clusterSourceOf(ctx, cluster, &f.live, &f.members)
	if err != nil {
		return err
	}
	defer from.end()
	if err := backup.ConfirmUnchanged(ctx, from, told, comparePatience); err != nil {
		return fmt.Errorf("compare %s with backup %s: %w", cluster, store.SlotID(told.Slot), err)
	}
	_, err = fmt.Fprintf(std.out, "%s  is unchanged since %s: revision %d\n", cluster, store.SlotID(told.Slot),
		told.Revision)
	return err
}
