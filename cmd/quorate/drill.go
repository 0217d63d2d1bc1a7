package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/drill"
	"quorate.dev/quorate/clusters/backup/etcdprocess"
	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/report"
)

// drillFlags are the flags of the drill command.
type drillFlags struct {
	reading readingFlags
	etcd    string
	dir     string
	output  string
	dryRun  bool
	apart   externalEtcdFlags
	state   string
	results resultFiles
}

func newBackupsDrill(std streams) *cobra.Command {
	var f drillFlags
	c := &cobra.Command{
		Use:   "drill [NAMESPACE/]CLUSTER [BACKUP] --from URL",
		Short: "Test a backup: restore it, start etcd with it, and compare the data",
		Long: `Drill reads a backup back, checks it as verify does, and creates a data directory from it. It starts etcd
on this machine, inaccessible to other processes, and compares the hash of etcd's data with the backup's.
It then deletes the restored data. The duration and the result are recorded next to the manifest, and the
backup then counts as verified and drilled.
` + helpWhich + `
If etcd runs in a separate container, as in a pod, restore the backup with --prepare, start etcd, and
continue with --prepared.
If the backup is damaged, or etcd does not hold the data that was backed up, the exit code is 4. In the
second case, the backup does not count as verified until a drill with it succeeds.`,
		Example: `  quorate backups drill prod/a --from s3://backups/etcd --identity key.txt
  quorate backups drill prod/a --from file:///srv/backups --etcd /opt/etcd-3.6.16/etcd -o json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), std, args) },
	}
	f.reading.add(c, helpFrom)
	f.reading.addIdentity(c)
	c.Flags().StringVar(&f.etcd, "etcd", "etcd",
		"etcd to start, as a path or a name in PATH; must have the cluster's minor version or the next minor version")
	c.Flags().StringVar(&f.dir, "dir", "",
		"directory in which to restore the backup, with "+
			"space for three times the data (default: the system's temporary directory)")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "do not record the result")
	f.apart.add(c, "restore the backup in", drill.ConfigFile)
	c.Flags().StringVar(&f.state, "state-dir", "",
		"directory in which --prepare stores state for --prepared; etcd does not need write access to it "+
			"(default: --dir)")
	f.results.add(c)
	f.reading.timeout.add(c)
	c.Flags().StringVarP(&f.output, "output", "o", "text", "text or json")
	return c
}

func (f *drillFlags) run(ctx context.Context, std streams, args []string) error {
	if err := f.check(args); err != nil {
		return err
	}
	f.results.begin()
	ctx, cancel := f.reading.timeout.within(ctx)
	defer cancel()
	try := f.try
	if f.apart.prepared {
		try = f.finish
	}
	m, found, err := try(ctx, std, args)
	switch {
	case errors.Is(err, backup.ErrDamaged) && f.output == "json":
		found.Verification.Damage = err.Error()
		return errors.Join(report.Encode(std.out, found.Verification), exit(exitBlocked))
	case errors.Is(err, backup.ErrDamaged):
		return explainDamage(std, m, err.Error())
	case errors.Is(err, drill.ErrDiffers):
		fmt.Fprintln(std.err, "quorate:", printable.Line(err.Error()))
		return exit(exitBlocked)
	case err != nil:
		return err
	case f.apart.prepare:
		fmt.Fprintf(std.out, "%s  %s was restored in %s\n", m.Backup().Cluster, m.Backup().ID(), f.dir)
		return nil
	}
	if err := f.results.write(drilledResult(m, found).Encode); err != nil {
		return err
	}
	return f.report(std, m, found)
}

func (f *drillFlags) check(args []string) error {
	if err := oneOf("output", f.output, "text", "json"); err != nil {
		return err
	}
	for _, named := range [][2]string{{"dir", f.dir}, {"state-dir", f.state}} {
		if flag, dir := named[0], named[1]; dir != "" {
			if err := existingDir(flag, dir); err != nil {
				return err
			}
		}
	}
	switch {
	case f.state != "" && !f.apart.is():
		return usageError{errors.New("--state-dir requires --prepare or --prepared")}
	case f.apart.prepared && len(args) > 1:
		return usageError{errors.New("--prepared continues with the backup that --prepare restored: remove the " +
			"BACKUP argument")}
	case f.apart.prepare && len(f.results) > 0:
		return usageError{errors.New("--result requires --prepared: --prepare does not produce a result")}
	}
	return errors.Join(f.apart.check(f.dir), f.results.check("from", f.reading.from))
}

// where returns the directories of a drill whose etcd is started externally.
func (f *drillFlags) where() drill.Apart {
	return drill.Apart{Dir: f.dir, State: cmp.Or(f.state, f.dir)}
}

// try restores a backup, and starts etcd on the result unless etcd is started externally.
func (f *drillFlags) try(ctx context.Context, std streams, args []string) (m store.Manifest, d store.Drill, err error) {
	var program etcdprocess.Program
	if !f.apart.is() {
		if program, err = etcdprocess.Find(ctx, f.etcd); err != nil {
			return m, d, usageError{fmt.Errorf("--etcd: %w", err)}
		}
	}
	m, err = f.reading.read(ctx, std, args, func(from store.Bucket, m store.Manifest, r backup.Reading) (err error) {
		if f.apart.prepare {
			if d, err = drill.Prepare(ctx, f.apart.etcd, from, m, f.where(), r); err == nil {
				return nil // there is no result yet
			}
		} else {
			d, err = drill.Try(ctx, program, from, m, f.dir, r)
		}
		return f.record(ctx, from, d, err)
	})
	return m, d, err
}

// finish continues a prepared drill.
func (f *drillFlags) finish(
	ctx context.Context, std streams, args []string,
) (m store.Manifest, d store.Drill, err error) {
	of, err := clusterNamed(args[0], nil)
	if err != nil {
		return m, d, err
	}
	bucket, err := f.reading.store.open(ctx, "from", f.reading.from)
	if err != nil {
		return m, d, err
	}
	defer bucket.Close()
	progress, done := bars(std.err)
	defer done()
	m, d, err = drill.Finish(ctx, f.apart.etcd, of, f.where(), progress)
	return m, d, f.record(ctx, bucket, d, err)
}

// record stores the result of the drill, and returns err.
func (f *drillFlags) record(ctx context.Context, to store.Bucket, found store.Drill, err error) error {
	if f.dryRun {
		return err
	}
	if failed := record(ctx, to, found, err); failed != nil {
		return fmt.Errorf("record the result: %w", errors.Join(failed, err))
	}
	return err
}

// drilledResult returns the result that a drill writes to its pod's status.
func drilledResult(m store.Manifest, d store.Drill) result.Drilled {
	return result.Drilled{
		Slot: m.Slot, Data: m.Data, ClusterID: m.ClusterID, Revision: d.Revision, Bytes: m.Snapshot.Bytes,
		SHA256: m.Snapshot.SHA256, EtcdVersion: d.EtcdVersion, StartedAt: d.At, FinishedAt: time.Now(),
		FetchSeconds: d.FetchSeconds, RestoreSeconds: d.RestoreSeconds, StartSeconds: d.StartSeconds,
		Uncompared: d.Uncompared,
	}
}

// record stores the outcome of a drill: the backup is either good or damaged. If etcd's data differed from the backup,
// record records that, and the backup no longer counts as verified.
func record(ctx context.Context, to store.Bucket, found store.Drill, err error) error {
	switch {
	case err == nil:
		return found.Record(ctx, to)
	case errors.Is(err, backup.ErrDamaged):
		found.Verification.Damage = err.Error()
		return found.Verification.Record(ctx, to)
	case errors.Is(err, drill.ErrDiffers):
		return found.Verification.RecordDifference(ctx, to)
	}
	return nil
}

// report prints the result.
func (f *drillFlags) report(std streams, m store.Manifest, d store.Drill) error {
	if f.output == "json" {
		return report.Encode(std.out, d)
	}
	same := "holds the data that was backed up"
	if d.Uncompared != "" {
		same = "responds, but its data could not be compared: " + printable.Line(d.Uncompared)
	}
	size := fmt.Sprintf("%.1f MiB", float64(m.Snapshot.Bytes)/(1<<20))
	if m.Snapshot.Bytes < 1<<20 {
		size = fmt.Sprintf("%.1f KiB", float64(m.Snapshot.Bytes)/(1<<10))
	}
	_, err := fmt.Fprintf(std.out, "%s  %s restored: etcd %s %s, at revision %d\n"+
		"  %s in %.1fs: %.1fs to fetch and check, %.1fs to restore, %.1fs until etcd responded\n",
		m.Backup().Cluster, m.Backup().ID(), d.EtcdVersion, same, d.Revision,
		size, d.Seconds(), d.FetchSeconds, d.RestoreSeconds, d.StartSeconds)
	return err
}
