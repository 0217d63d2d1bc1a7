package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/recovery"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/internal/printable"
)

// importFlags specify the data of a stopped cluster and where to store it. The embedded flags describe the member whose
// data is used.
type importFlags struct {
	recoverFlags
	// volumes are the members' volumes, and path is the data directory in each of them.
	volumes   []string
	path      string
	acceptLag bool
	maxBytes  int64
}

func newBackupsImport(std streams) *cobra.Command {
	f := &importFlags{}
	c := &cobra.Command{
		Use:   "import [NAMESPACE/]CLUSTER --data-dir DIR --cluster-id ID --to FILE|URL",
		Short: "Back up a stopped cluster from its members' data directories",
		Long: `Import reads the data directories of a stopped cluster's members and backs up the data, including
the whole write-ahead log. It uses the member whose log ends last. etcd acknowledges a write once it is
in the logs of a majority of the voters. Therefore, specify the directories of at least a majority: then no
acknowledged write is missing. Import does not write to the directories, but works on a copy.

Each --data-dir is a data directory, or a volume that contains a single data directory up to two levels
below its root. The cluster must have run etcd 3.5 or later. The exit code is 4 if acknowledged writes
may be missing, if a directory belongs to a different cluster, or if etcd is running on it.`,
		Example: `  quorate backups import prod/old --cluster-id cdf818194e3a8c32 --to s3://backups/etcd \
    --data-dir /mnt/old-0 --data-dir /mnt/old-1 --data-dir /mnt/old-2`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), std, args) },
	}
	c.Flags().StringArrayVar(&f.volumes, "data-dir", nil,
		"data directory of a stopped member, or volume that contains it; repeatable; not used with --prepared")
	c.Flags().Var((*filledText)(&f.path), "path",
		"path of the data directory below each --data-dir, such as data/default.etcd (default: found by searching)")
	c.Flags().StringVar(&f.clusterID, "cluster-id", "",
		"hexadecimal ID of the cluster; data of other clusters is rejected")
	require(c, "cluster-id")
	c.Flags().BoolVar(&f.acceptLag, "accept-lag", false, "accept data that may lack acknowledged writes")
	c.Flags().StringVar(&f.etcd, "etcd", "etcd",
		"etcd to start on the copy, as a path or a name in PATH; must have the cluster's minor version")
	c.Flags().StringVar(&f.dir, "dir", "",
		"working directory, with space for twice the data (default: the system's temporary directory)")
	c.Flags().StringVar(&f.backup.to, "to", "", "file or URL of a store to write the backup to: "+store.Locations)
	require(c, "to")
	f.backup.encoding.add(c)
	f.backup.store.add(c)
	f.backup.store.addLock(c)
	addMaxBytes(c, &f.maxBytes)
	f.timeout.add(c)
	f.apart.add(c, "copy the data to", recovery.ConfigFile)
	f.results.add(c)
	return c
}

func (f *importFlags) run(ctx context.Context, std streams, args []string) error {
	put, err := f.check(args)
	if err != nil {
		return err
	}
	f.results.begin()
	ctx, cancel := f.timeout.within(ctx)
	defer cancel()
	stored, err := f.take(ctx, std, put)
	if err != nil {
		err = blockedBy(blockedByMember(err), recovery.ErrLag, snapshot.ErrLayout, fs.ErrPermission, backup.ErrTooLarge)
		return fmt.Errorf("import %s: %w", put.Cluster, err)
	}
	if f.apart.prepare {
		return nil
	}
	if err := f.results.write(resultOf(stored).Encode); err != nil {
		return err
	}
	return f.backup.report(std, stored)
}

// check completes the flags, or returns an error if they are invalid.
func (f *importFlags) check(args []string) (put backup.Order, err error) {
	if put, err = f.target(args); err != nil {
		return put, err
	}
	put.MaxBytes = f.maxBytes
	if f.lost, err = clusterID("cluster-id", f.clusterID); err != nil {
		return put, err
	}
	if err := f.apart.check(f.dir); err != nil {
		return put, err
	}
	switch {
	case f.apart.prepared != (len(f.volumes) == 0):
		return put, usageError{errors.New("--data-dir is required, except with --prepared, which continues with the " +
			"data that --prepare copied")}
	case f.path != "" && !filepath.IsLocal(f.path):
		return put, usageError{fmt.Errorf("--path %s: expected a path below --data-dir", f.path)}
	case f.apart.prepare && len(f.results) > 0:
		return put, usageError{errors.New("--result requires --prepared: --prepare does not produce a result")}
	}
	f.dir = cmp.Or(f.dir, os.TempDir()) // otherwise, the data directory would be used
	if err := existingDir("dir", f.dir); err != nil {
		return put, err
	}
	return put, f.results.check("to", f.backup.to)
}

// take copies the data, or backs it up, or both.
func (f *importFlags) take(ctx context.Context, std streams, put backup.Order) (stored store.Manifest, err error) {
	if !f.apart.prepared {
		source, err := f.choose(ctx, std)
		if err != nil {
			return stored, err
		}
		defer source.Close() // until then, no member can acknowledge further writes
	}
	if !f.apart.prepare {
		return f.rescue(ctx, std, put)
	}
	progress, done := bars(std.err)
	defer done()
	order, err := f.order(ctx, progress)
	if err != nil {
		return stored, err
	}
	return stored, recovery.PrepareShared(ctx, order)
}

// choose finds the data directory whose log ends last. Unlike a recovery, an import does not write to the directories,
// so other users may be able to change them, as on many volumes.
func (f *importFlags) choose(ctx context.Context, std streams) (recovery.Stopped, error) {
	var dirs []string
	for _, volume := range f.volumes {
		dir, err := snapshot.FindDataDir(volume, f.path)
		if err != nil {
			return recovery.Stopped{}, explainImport(recovery.Unreadable(err))
		}
		dirs = append(dirs, dir)
	}
	latest, err := recovery.Latest(ctx, memberInChildProcess{}, f.lost, dirs)
	switch {
	case err != nil:
		return latest, explainImport(err)
	case latest.Lag != nil && !f.acceptLag:
		latest.Close()
		return latest, fmt.Errorf("%w. If you accept that, set --accept-lag (in a declaration, "+
			"spec.restore.from.claims.acceptLag)", latest.Lag)
	case latest.Lag != nil:
		fmt.Fprintln(std.err, "quorate:", printable.Line(latest.Lag.Error()))
	}
	s := latest.Survivor
	fmt.Fprintf(std.out, "using the data of member %s in %s: its log ends last, at term %d, index %d\n",
		printable.Line(s.Name), latest.DataDir, s.End.Term, s.End.Index)
	f.into.DataDir = latest.DataDir
	return latest, nil
}

// explainImport adds what the user can do about an error.
func explainImport(err error) error {
	const (
		path = "(--path; in a declaration, spec.restore.from.claims.path)"
		omit = "omit this member's data if a majority of the voters remains"
	)
	switch {
	case errors.Is(err, snapshot.ErrLayout):
		return fmt.Errorf("%w "+path+", or "+omit, err)
	case errors.Is(err, snapshot.ErrNoMember):
		return fmt.Errorf("%w. Correct the path "+path+", or "+omit, err)
	case errors.Is(err, snapshot.ErrDamaged):
		return fmt.Errorf("%w. To proceed, "+omit, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w (in a declaration, spec.restore.from.claims.runAsUser)", err)
	}
	return err
}
