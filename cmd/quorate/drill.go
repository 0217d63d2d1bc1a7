package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/drill"
	"quorate.dev/quorate/clusters/backup/etcdprocess"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/visible"
)

// drillFlags are those of a drill.
type drillFlags struct {
	reading readingFlags
	etcd    string
	dir     string
	output  string
	dryRun  bool
}

func newBackupsDrill(std streams) *cobra.Command {
	var f drillFlags
	c := &cobra.Command{
		Use:   "drill [NAMESPACE/]CLUSTER [BACKUP] --from URL",
		Short: "Restore a backup for practice: start an etcd with it, and ask that what it holds",
		Long: `Drill reads a backup back and checks it, as verify does, makes a data directory of it, starts
an etcd on this machine that nobody else can reach, and compares the hash of what it holds
with the backup. Then all of it is thrown away. How long that took, and what was found, is
recorded beside the manifest: the backup is verified then, and drilled.
` + helpWhich + `
If the backup is damaged, or etcd does not hold what was backed up, the exit code is 4.`,
		Example: `  quorate backups drill prod/a --from s3://backups/etcd --identity key.txt
  quorate backups drill prod/a --from file:///srv/backups --etcd /opt/etcd-3.6.16/etcd -o json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), std, args) },
	}
	f.reading.add(c, helpFrom)
	f.reading.addIdentity(c)
	c.Flags().StringVar(&f.etcd, "etcd", "etcd",
		"etcd to start, as a path or a name in PATH: of the minor version that the cluster ran, or the next one")
	c.Flags().StringVar(&f.dir, "dir", "",
		"directory to restore in, with room for the data three times (default: that for temporary files)")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "record nothing")
	f.reading.timeout.add(c)
	c.Flags().StringVarP(&f.output, "output", "o", "text", "text or json")
	return c
}

func (f *drillFlags) run(ctx context.Context, std streams, args []string) error {
	if err := oneOf("output", f.output, "text", "json"); err != nil {
		return err
	}
	if f.dir != "" {
		if err := existingDir("dir", f.dir); err != nil {
			return err
		}
	}
	ctx, cancel := f.reading.timeout.within(ctx)
	defer cancel()
	program, err := etcdprocess.Find(ctx, f.etcd)
	if err != nil {
		return usageError{fmt.Errorf("--etcd: %w", err)}
	}
	var found store.Drill
	m, err := f.reading.read(ctx, std, args, func(from store.Bucket, m store.Manifest, r backup.Reading) error {
		found, err = drill.Try(ctx, program, from, m, f.dir, r)
		if f.dryRun {
			return err
		}
		if failed := record(ctx, from, found, err); failed != nil {
			return fmt.Errorf("record what was found: %w", errors.Join(failed, err))
		}
		return err
	})
	switch {
	case errors.Is(err, backup.ErrDamaged) && f.output == "json":
		found.Verification.Damage = err.Error()
		return errors.Join(report.Encode(std.out, found.Verification), exit(exitBlocked))
	case errors.Is(err, backup.ErrDamaged):
		return explainDamage(std, m, err.Error())
	case errors.Is(err, drill.ErrDiffers):
		fmt.Fprintln(std.err, "quorate:", err)
		return exit(exitBlocked)
	case err != nil:
		return err
	}
	return f.report(std, m, found)
}

// record stores what a drill has shown: that the backup is good, or damaged; or, if etcd made other
// data of it, that nobody knows, whatever was found before.
func record(ctx context.Context, to store.Bucket, found store.Drill, err error) error {
	switch {
	case err == nil:
		return found.Record(ctx, to)
	case errors.Is(err, backup.ErrDamaged):
		found.Verification.Damage = err.Error()
		return found.Verification.Record(ctx, to)
	case errors.Is(err, drill.ErrDiffers):
		return found.Verification.Withdraw(ctx, to)
	}
	return nil
}

// report says what was found.
func (f *drillFlags) report(std streams, m store.Manifest, d store.Drill) error {
	if f.output == "json" {
		return report.Encode(std.out, d)
	}
	same := "holds the data that were backed up"
	if d.Uncompared != "" {
		same = "answers, and its data could not be compared: " + visible.Line(d.Uncompared)
	}
	const mib = 1 << 20
	_, err := fmt.Fprintf(std.out, "%s  %s restored: etcd %s %s, at revision %d\n"+
		"  %.1f MiB in %.1fs: %.1fs to fetch and check, %.1fs to restore, %.1fs until etcd answered\n",
		m.Backup().Cluster, m.Backup().ID(), d.EtcdVersion, same, d.Revision,
		float64(m.Snapshot.Bytes)/mib, d.Seconds(), d.FetchSeconds, d.RestoreSeconds, d.StartSeconds)
	return err
}
