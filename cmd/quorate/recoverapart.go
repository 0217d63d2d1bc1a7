package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/backup/recovery"
	"quorate.dev/quorate/etcdversion"
)

// apartFlags are for where somebody else starts etcd, as a pod does that has it in another container: one
// command copies the member, and another one takes the snapshot of what runs on the copy.
type apartFlags struct {
	prepare, prepared bool
	version           string
	etcd              etcdversion.Version
}

func (f *apartFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.prepare, "prepare", false,
		"only copy the member to --dir, for an etcd that somebody else starts there, in that directory, with "+
			"--config-file="+recovery.ConfigFile)
	c.Flags().BoolVar(&f.prepared, "prepared", false, "go on with what --prepare has copied, and that etcd")
	c.Flags().StringVar(&f.version, "etcd-version", "", "version of that etcd")
}

// is reports whether somebody else starts etcd.
func (f *apartFlags) is() bool { return f.prepare || f.prepared }

func (f *apartFlags) check(all *recoverFlags) (err error) {
	switch {
	case !f.is() && f.version != "":
		return usageError{errors.New("--etcd-version goes with --prepare and --prepared")}
	case !f.is():
		return nil
	case f.prepare && f.prepared:
		return usageError{errors.New("--prepare comes first, and --prepared after it")}
	case all.dryRun || all.backup.to != "":
		return usageError{errors.New("--prepare and --prepared go neither with --dry-run nor with --to")}
	case all.dir == "" || f.version == "":
		return usageError{errors.New("--prepare and --prepared go with --dir and --etcd-version")}
	case all.into.Token == "":
		return usageError{errors.New("--prepare and --prepared go with --initial-cluster-token: " +
			"one that is random is another one each time")}
	}
	if f.etcd, err = etcdversion.Parse(f.version); err != nil {
		return usageError{fmt.Errorf("--etcd-version: %w", err)}
	}
	return nil
}

// prepare copies the member, unless it was recovered before.
func (f *recoverFlags) prepare(ctx context.Context, std streams) error {
	progress, done := bars(std.err)
	defer done()
	order, err := f.order(ctx, progress)
	if err != nil {
		return err
	}
	d := recovering{f.into.DataDir, f.lost}
	unlock, err := d.lock(ctx, std)
	if err != nil {
		return err
	}
	defer unlock()
	told, before, err := d.find()
	switch {
	case err != nil:
		return err
	case before:
		fmt.Fprintf(std.out, "%s was recovered at %s, and is left as it is\n", d.dataDir,
			told.FinishedAt.Format(time.RFC3339))
		return recovery.PrepareNothing(order)
	}
	return recovery.Prepare(ctx, order)
}
