package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// backupFlags are the flags of the backup command.
type backupFlags struct {
	live     liveFlags
	members  memberFlags
	store    storeFlags
	encoding encodingFlags
	log      logFlags
	job      jobFlags
	to       string
	spool    string
	maxBytes int64
	output   string
	timeout  timeoutFlag
	// clusterID is the ID that the members must report.
	clusterID string
}

func newBackup(std streams) *cobra.Command {
	f := backupFlags{live: liveFlags{reading: true}}
	c := &cobra.Command{
		Use:   "backup [NAMESPACE/]CLUSTER --to FILE|URL",
		Short: "Back up a cluster to a file or a store, and verify the backup",
		Long: `Backup takes a snapshot from the most suitable member. It accepts the snapshot as a backup only
after checking the checksum at its end, every page, its revision against the revision that etcd
had committed before, and the hash of its data against a quorum of members.

A URL is the location of a store. Each backup in a store has a manifest, which is written last:
a backup without a manifest is ignored. A file must not exist yet, and has no manifest. It is
compressed unless its name ends in .db, and encrypted if --recipient is set. The command does not
write to Kubernetes. The exit code is 4 if etcd has a CORRUPT alarm, because the backup may then
hold the wrong data. It is also 4 if the members do not report the cluster ID in --cluster-id.

A Job created by a CronJob passes its name as --job. If the Job's pod is restarted after the backup
was stored, the command finds this backup and does not take another.`,
		Example: `  quorate backup prod/a --to a.db
  quorate backup prod/a --to s3://backups/etcd --recipient age1…
  quorate backup prod/a --to file:///srv/backups -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return takeBackup(c.Context(), std, f, args[0]) },
	}
	f.live.add(c)
	f.members.add(c)
	c.Flags().StringVar(&f.to, "to", "", "file to write, or URL of a store: "+store.Locations)
	require(c, "to")
	f.encoding.add(c)
	f.store.add(c)
	f.store.addLock(c)
	c.Flags().StringVar(&f.spool, "spool", "",
		"directory for the snapshot while it is checked (default: the system's temporary directory)")
	addMaxBytes(c, &f.maxBytes)
	c.Flags().Var((*filledText)(&f.clusterID), "cluster-id",
		"hexadecimal cluster ID that the members must report; otherwise, nothing is stored (default: any)")
	f.timeout.add(c)
	f.job.add(c)
	c.Flags().StringVarP(&f.output, "output", "o", "text", "text or json")
	f.log.add(c)
	f.live.completes(c)
	return c
}

func takeBackup(ctx context.Context, std streams, f backupFlags, argument string) error {
	if err := oneOf("output", f.output, "text", "json"); err != nil {
		return err
	}
	cluster, err := clusterNamed(argument, f.live.namespaces)
	if err != nil {
		return err
	}
	var id uint64
	if f.clusterID != "" {
		if id, err = clusterID("cluster-id", f.clusterID); err != nil {
			return err
		}
	}
	encoding, err := f.encoding.encoding(f.to)
	if err != nil {
		return err
	}
	if err := f.checkPlaces(); err != nil {
		return err
	}
	log, err := f.log.logger(std)
	if err != nil {
		return err
	}
	ctx, cancel := f.timeout.within(withLog(ctx, log))
	defer cancel()
	boundBackup()
	progress, done := bars(std.err)
	f.job.begin()
	manifest, earlier, err := f.run(ctx, backup.Order{
		Cluster: cluster, ClusterID: decide.ID(id), Encoding: encoding, Spool: f.spool,
		MaxBytes: f.maxBytes, Inspect: inspectApart,
		Progress: progress,
	})
	done()
	if err != nil {
		return fmt.Errorf("back up %s: %w", cluster, blockedBy(err, backup.ErrOtherCluster))
	}
	if earlier {
		fmt.Fprintf(std.err, "quorate: %s: backup %s already exists; no new backup was taken\n", cluster,
			manifest.Backup().ID())
	}
	f.job.end(std.err, manifest)
	return f.report(std, manifest)
}

// checkPlaces checks the paths of all files before any connection is made.
func (f *backupFlags) checkPlaces() error {
	if err := existingDir("spool", cmp.Or(f.spool, os.TempDir())); err != nil {
		return err
	}
	if err := f.job.check(f.to, len(f.members.members) > 0); err != nil {
		return err
	}
	if store.IsLocation(f.to) {
		return nil
	}
	return newFile("to", f.to)
}

// existingDir checks that a directory exists.
func existingDir(flag, name string) error {
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		return usageError{fmt.Errorf("--%s: directory %s does not exist", flag, name)}
	}
	return nil
}

// newFile checks that a file with the given name can be created.
func newFile(flag, name string) error {
	if name == "" || name == "-" {
		return usageError{fmt.Errorf("--%s %q: expected a file name", flag, name)}
	}
	if _, err := os.Lstat(name); err == nil {
		return usageError{fmt.Errorf("--%s %s: the file already exists", flag, name)}
	}
	if info, err := os.Stat(filepath.Dir(name)); err != nil || !info.IsDir() {
		return usageError{fmt.Errorf("--%s %s: directory %s does not exist", flag, name, filepath.Dir(name))}
	}
	return nil
}

// run takes a backup and stores it, or returns the backup stored by an earlier run. It opens the store first, so that
// problems with the store are reported before etcd is contacted.
func (f *backupFlags) run(ctx context.Context, o backup.Order) (m store.Manifest, earlier bool, err error) {
	if err := f.store.check(f.to); err != nil {
		return store.Manifest{}, false, err
	}
	var bucket store.Bucket
	if store.IsLocation(f.to) {
		if bucket, err = f.store.open(ctx, "to", f.to); err != nil {
			return store.Manifest{}, false, err
		}
		defer bucket.Close()
	}
	from, err := clusterSourceOf(ctx, o.Cluster, &f.live, &f.members)
	if err != nil {
		return store.Manifest{}, false, err
	}
	defer from.end()
	o.Slot, o.Fresh = f.job.slot(from.now)
	if bucket != nil {
		if found, err := backup.Find(ctx, from, bucket, o); err != nil {
			return store.Manifest{}, false, err
		} else if found != nil {
			return *found, true, nil
		}
	}
	m, err = f.take(ctx, from, bucket, o)
	return m, false, err
}

// take takes a backup and stores it in the bucket or, if the bucket is nil, in a file.
func (f *backupFlags) take(
	ctx context.Context, from backup.Source, to store.Bucket, o backup.Order,
) (m store.Manifest, err error) {
	taken, err := backup.Take(ctx, from, o)
	if err != nil {
		return store.Manifest{}, err
	}
	defer func() { err = errors.Join(err, taken.Remove()) }()
	if to == nil {
		return taken.Manifest, taken.Save(ctx, f.to, o)
	}
	return taken.Store(ctx, to, o)
}

// report prints the backup, and warns about members with different data.
func (f *backupFlags) report(std streams, m store.Manifest) error {
	printed, doubts := f.print(std.out, m), warnOf(std.err, m)
	if printed != nil {
		return printed
	}
	return doubts
}

// print writes the result as text, or as the manifest in JSON.
func (f *backupFlags) print(w io.Writer, m store.Manifest) error {
	if f.output == "json" {
		return report.Encode(w, m)
	}
	where := f.to
	if m.Data != "" {
		where = store.SlotID(m.Slot) + " in " + f.to
	}
	proof := fmt.Sprintf("the same data as %s", printable.Line(decide.Enumerate(m.Snapshot.ProvenBy)))
	if m.Snapshot.Unproven != "" {
		proof = "not compared with a quorum: " + printable.Line(m.Snapshot.Unproven)
	}
	_, err := fmt.Fprintf(w, "%s  backed up as %s\n  revision %d, %d bytes from %s, etcd %s\n  %s\n",
		m.Backup().Cluster, where, m.Snapshot.Revision, m.Snapshot.Bytes, printable.Line(m.Member),
		printable.Line(m.EtcdVersion), proof)
	return err
}

// warnOf warns about members that hold different data. If the backup itself may hold the wrong data, it returns the
// error for exit code 4.
func warnOf(w io.Writer, m store.Manifest) error {
	cluster := m.Backup().Cluster
	if len(m.Snapshot.Differs) > 0 {
		fmt.Fprintf(w, "quorate: %s: %s holds different data from the other members and this backup\n", cluster,
			printable.Line(decide.Enumerate(m.Snapshot.Differs)))
	}
	if m.Snapshot.Corrupt() {
		fmt.Fprintf(w, "quorate: %s: etcd reports that members hold different data: "+
			"this backup may hold the wrong data\n", cluster)
		return exit(exitBlocked)
	}
	return nil
}
