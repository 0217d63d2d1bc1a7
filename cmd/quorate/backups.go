package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/report"
)

func newBackups(std streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "backups",
		Short: "List, verify, compare, drill, fetch, prune and import the backups in a store",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q for backups; expected list, verify, compare, "+
					"drill, fetch, prune or import", args[0])}
			}
			return c.Help()
		},
	}
	c.AddCommand(newBackupsList(std), newBackupsVerify(std), newBackupsCompare(std), newBackupsDrill(std),
		newBackupsFetch(std), newBackupsPrune(std), newBackupsImport(std))
	for _, of := range c.Commands() {
		(&kubeFlags{}).completes(of) // the store may also contain backups of other clusters
	}
	return c
}

func newBackupsList(std streams) *cobra.Command {
	var f readingFlags
	var output string
	c := &cobra.Command{
		Use:   "list [[NAMESPACE/]CLUSTER] --from URL",
		Short: "List the backups of one cluster or of all clusters",
		Example: `  quorate backups list --from file:///srv/backups
  quorate backups list prod/a --from s3://backups/etcd -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return listBackups(c.Context(), std, f, output, strings.Join(args, ""))
		},
	}
	f.add(c, helpFrom)
	f.timeout.add(c)
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return c
}

func listBackups(ctx context.Context, std streams, f readingFlags, output, argument string) error {
	if err := oneOf("output", output, "text", "json"); err != nil {
		return err
	}
	var of store.Cluster
	if argument != "" {
		var err error
		if of, err = clusterNamed(argument, nil); err != nil {
			return err
		}
	}
	ctx, cancel := f.timeout.within(ctx)
	defer cancel()
	bucket, listing, err := f.list(ctx, of)
	if err != nil {
		return err
	}
	defer bucket.Close()
	if len(listing.Backups) == 0 {
		fmt.Fprintln(std.err, "quorate:", f.none(of))
	}
	if output == "json" {
		return printJSON(std.out, listing)
	}
	return printBackups(std.out, listing)
}

func printJSON(w io.Writer, listing store.Listing) error {
	type entry struct {
		Namespace string    `json:"namespace"`
		Cluster   string    `json:"cluster"`
		ClusterID string    `json:"clusterID"`
		Backup    string    `json:"backup"`
		Slot      time.Time `json:"slot"`
		Revision  int64     `json:"revision,omitempty"`
		State     string    `json:"state"`
	}
	entries, revisions := []entry{}, listing.Revisions()
	for _, b := range listing.Backups {
		entries = append(entries, entry{
			b.Cluster.Namespace, b.Cluster.Name, snapshot.DisplayID(b.ClusterID), b.ID(), b.Slot, revisions[b],
			stateOf(b),
		})
	}
	return report.Encode(w, entries)
}

func printBackups(w io.Writer, listing store.Listing) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CLUSTER\tBACKUP\tCLUSTER ID\tREVISION\tSTATE")
	revisions := listing.Revisions()
	for _, b := range listing.Backups {
		revision := "-"
		if known := revisions[b]; known > 0 {
			revision = strconv.FormatInt(known, 10)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", b.Cluster, b.ID(), snapshot.DisplayID(b.ClusterID), revision,
			stateOf(b))
	}
	return table.Flush()
}

// stateOf returns the state of a backup as one word.
func stateOf(b store.Backup) string {
	switch {
	case b.Damaged:
		return "damaged"
	case b.Suspect:
		return "suspect"
	case b.Differs:
		return "differs"
	case b.Drilled && b.Verified:
		return "drilled"
	case b.Verified:
		return "verified"
	}
	return "stored"
}

const helpWhich = `BACKUP is a name shown by "quorate backups list" (default: the newest usable backup).`

func newBackupsVerify(std streams) *cobra.Command {
	var f readingFlags
	var spool string
	var dryRun bool
	c := &cobra.Command{
		Use:   "verify [NAMESPACE/]CLUSTER [BACKUP] --from URL",
		Short: "Read a backup back, check it, and record the result in the store",
		Long: `Verify reads a backup back from the store, and checks the stored data, the snapshot that etcd
sent, and every page of the snapshot. The result is recorded next to the manifest: older backups are
pruned only after a newer backup has been verified, and a damaged backup no longer counts as a backup.
` + helpWhich + `
The exit code is 4 if the backup is damaged. If a drill found different data in etcd, the backup counts as
verified again only after another drill succeeds.`,
		Example: `  quorate backups verify prod/a --from s3://backups/etcd --identity key.txt`,
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			return verifyBackup(c.Context(), std, f, spool, dryRun, args)
		},
	}
	f.add(c, helpFrom)
	f.addIdentity(c)
	f.timeout.add(c)
	c.Flags().StringVar(&spool, "spool", "",
		"directory for the snapshot while it is checked (default: the system's temporary directory)")
	c.Flags().StringVar(&f.result, "result", "",
		"file written by \"quorate backup --result\": use the backup that it names")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "do not record the result")
	return c
}

func verifyBackup(ctx context.Context, std streams, f readingFlags, spool string, dryRun bool, args []string) error {
	ctx, cancel := f.timeout.within(ctx)
	defer cancel()
	var found store.Verification
	m, err := f.read(ctx, std, args, func(from store.Bucket, m store.Manifest, r backup.Reading) (err error) {
		found, err = backup.Verify(ctx, from, m, spool, r)
		if err != nil || dryRun {
			return err
		}
		if err := found.Record(ctx, from); err != nil {
			return fmt.Errorf("record the result: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if found.Damage != "" {
		return explainDamage(std, m, found.Damage)
	}
	_, err = fmt.Fprintf(std.out, "%s  %s is sound: revision %d, %d bytes\n", m.Backup().Cluster, m.Backup().ID(),
		m.Snapshot.Revision, m.Snapshot.Bytes)
	return err
}

// explainDamage reports that a backup is damaged, and returns the error for the corresponding exit code.
func explainDamage(std streams, m store.Manifest, damage string) error {
	fmt.Fprintf(std.out, "%s  %s is damaged\n", m.Backup().Cluster, m.Backup().ID())
	fmt.Fprintln(std.err, "quorate:", printable.Line(damage))
	return exit(exitBlocked)
}

// clockSkew is the maximum expected difference between the clocks of two machines.
const clockSkew = 5 * time.Minute

// find opens the store, and reads the manifest of the backup selected by the arguments. It warns if the selected backup
// may not be the expected one.
func (f *readingFlags) find(ctx context.Context, std streams, args []string) (store.Bucket, store.Manifest, error) {
	of, err := clusterNamed(args[0], nil)
	if err != nil {
		return nil, store.Manifest{}, err
	}
	bucket, listing, err := f.list(ctx, of)
	if err != nil {
		return nil, store.Manifest{}, err
	}
	if len(listing.Backups) == 0 {
		bucket.Close()
		return nil, store.Manifest{}, fmt.Errorf("%s; to list all backups, run quorate backups list", f.none(of))
	}
	m, err := f.choose(ctx, std, bucket, listing, args[1:])
	if err != nil {
		bucket.Close()
		return nil, store.Manifest{}, fmt.Errorf("find the backup of %s: %w", of, err)
	}
	return bucket, m, nil
}

// read finds the backup selected by the arguments, and calls do to read it.
func (f *readingFlags) read(
	ctx context.Context, std streams, args []string,
	do func(from store.Bucket, m store.Manifest, r backup.Reading) error,
) (store.Manifest, error) {
	bucket, m, err := f.find(ctx, std, args)
	if err != nil {
		return store.Manifest{}, err
	}
	defer bucket.Close()
	reading, done, err := f.reading(std)
	if err != nil {
		return store.Manifest{}, err
	}
	defer done()
	return m, do(bucket, m, reading)
}

// choose reads the manifest of the backup named by the arguments or by a result.
func (f *readingFlags) choose(
	ctx context.Context, std streams, bucket store.Bucket, listing store.Listing, which []string,
) (store.Manifest, error) {
	if f.wanted != nil {
		return resultManifest(ctx, bucket, listing, *f.wanted)
	}
	if f.result == "" {
		if f.narrow != nil && len(which) == 0 {
			var err error
			if listing, err = f.narrow(listing); err != nil {
				return store.Manifest{}, err
			}
		}
		return manifestOf(ctx, std, bucket, listing, which)
	}
	if len(which) > 0 {
		return store.Manifest{}, usageError{errors.New("--result already names the backup: remove the BACKUP argument")}
	}
	told, err := readResult("result", f.result)
	if err != nil {
		return store.Manifest{}, err
	}
	m, err := resultManifest(ctx, bucket, listing, told)
	if err != nil {
		return store.Manifest{}, fmt.Errorf("--result %s: %w", f.result, err)
	}
	return m, nil
}

// readResult reads a file written by "quorate backup --result". flag is the name of the flag that sets the file name.
func readResult(flag, name string) (result.Result, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return result.Result{}, usageError{fmt.Errorf("--%s: %w", flag, err)}
	}
	told, err := result.ParseResult(strings.TrimSpace(string(text)))
	if err != nil {
		return result.Result{}, usageError{fmt.Errorf("--%s %s: %w", flag, name, err)}
	}
	return told, nil
}

// resultManifest reads the manifest of the backup that a result describes.
func resultManifest(
	ctx context.Context, bucket store.Bucket, listing store.Listing, told result.Result,
) (store.Manifest, error) {
	for _, b := range listing.At(told.Slot) {
		if b.ClusterID != told.ClusterID {
			continue
		}
		m, err := store.ReadManifest(ctx, bucket, b)
		if err != nil {
			return store.Manifest{}, err
		}
		if m.Data == told.Data && m.Snapshot.Revision == told.Revision && m.Snapshot.SHA256 == told.SHA256 {
			return m, nil
		}
	}
	return store.Manifest{}, fmt.Errorf("the store does not contain backup %s with data %s", store.SlotID(told.Slot),
		told.Data)
}

func manifestOf(
	ctx context.Context, std streams, bucket store.Bucket, listing store.Listing, which []string,
) (store.Manifest, error) {
	if len(which) == 0 {
		return newestOf(ctx, std, bucket, listing)
	}
	slot, err := store.ParseSlot(which[0])
	if err != nil {
		return store.Manifest{}, usageError{err}
	}
	switch found := listing.At(slot); len(found) {
	case 0:
		return store.Manifest{}, fmt.Errorf("backup %s does not exist; to list backups, run quorate backups list",
			which[0])
	case 1:
		return store.ReadManifest(ctx, bucket, found[0])
	default:
		return store.Manifest{}, fmt.Errorf("%d clusters with different IDs have a backup named %s: use a copy of the "+
			"store that contains only one of these clusters", len(found), which[0])
	}
}

// errNoneUsable is returned if every backup in the store is damaged, suspect, or dated in the future.
var errNoneUsable = errors.New("none of this cluster's backups in the store is usable")

// newestOf returns the newest usable backup. It warns about newer, unusable backups. It also warns if the cluster IDs
// of the backups differ, because after an accident the newest backup may be of an empty cluster.
func newestOf(ctx context.Context, std streams, bucket store.Bucket, listing store.Listing) (store.Manifest, error) {
	until := time.Now().Add(clockSkew)
	newest, some := listing.Until(until).Newest()
	if !some {
		return store.Manifest{}, fmt.Errorf("%w (number of backups: %d); to see why, run quorate backups list",
			errNoneUsable, len(listing.Backups))
	}
	others := map[string]bool{}
	for _, b := range listing.Backups {
		if b.Slot.After(newest.Slot) {
			why := stateOf(b)
			if b.Slot.After(until) {
				why = "its time is in the future"
			}
			fmt.Fprintf(std.err, "quorate: %s is newer than %s but was skipped (%s)\n", b.ID(), newest.ID(), why)
		}
		if b.ClusterID != newest.ClusterID && !others[b.ClusterID] {
			others[b.ClusterID] = true
			fmt.Fprintf(std.err, "quorate: %s is a backup of cluster %s; the store also contains backups of cluster "+
				"%s: run quorate backups list\n", newest.ID(),
				snapshot.DisplayID(newest.ClusterID), snapshot.DisplayID(b.ClusterID))
		}
	}
	warnOfLater(std.err, listing, newest)
	m, err := store.ReadManifest(ctx, bucket, newest)
	if errors.Is(err, store.ErrManifest) {
		err = fmt.Errorf("%w; name another backup shown by quorate backups list", err)
	}
	return m, err
}

// warnOfLater prints a warning if an older backup with the same cluster ID has a higher revision than the newest
// backup. The revisions of a cluster ID only increase, but slots depend on clocks, which may be wrong.
func warnOfLater(w io.Writer, listing store.Listing, newest store.Backup) {
	revisions := listing.Revisions()
	latest := newest
	for _, b := range listing.Backups {
		before := b.Good() && b.ClusterID == newest.ClusterID && b.Slot.Before(newest.Slot)
		if before && revisions[b] > revisions[latest] {
			latest = b
		}
	}
	if latest != newest && revisions[newest] > 0 {
		fmt.Fprintf(w, "quorate: %s has a higher revision than %s (%d and %d): a clock was wrong, or a copy of the "+
			"cluster is also backed up in this store; name the backup that you want\n",
			latest.ID(), newest.ID(), revisions[latest], revisions[newest])
	}
}

func newBackupsFetch(std streams) *cobra.Command {
	var f readingFlags
	var to string
	c := &cobra.Command{
		Use:   "fetch [NAMESPACE/]CLUSTER [BACKUP] --from URL --to FILE",
		Short: "Write a backup to a file, as a snapshot that etcd's own tools accept",
		Long: `Fetch reads a backup from the store, checks it, and writes it to a file that must not exist yet.
The file contains the snapshot exactly as the member sent it, decrypted and decompressed.
` + helpWhich,
		Example: `  quorate backups fetch prod/a --from s3://backups/etcd --identity key.txt --to a.db`,
		Args:    cobra.RangeArgs(1, 2),
		RunE:    func(c *cobra.Command, args []string) error { return fetchBackup(c.Context(), std, f, to, args) },
	}
	f.add(c, helpFrom)
	f.addIdentity(c)
	f.timeout.add(c)
	c.Flags().StringVar(&to, "to", "", "file to write")
	require(c, "to")
	return c
}

func fetchBackup(ctx context.Context, std streams, f readingFlags, to string, args []string) error {
	if err := newFile("to", to); err != nil {
		return err
	}
	ctx, cancel := f.timeout.within(ctx)
	defer cancel()
	m, err := f.read(ctx, std, args, func(from store.Bucket, m store.Manifest, r backup.Reading) error {
		_, err := backup.Fetch(ctx, from, m, to, r)
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, "%s  %s was written to %s: revision %d, etcd "+
		"%s\n", m.Backup().Cluster, m.Backup().ID(), to,
		m.Snapshot.Revision, printable.Line(m.EtcdVersion))
	return err
}
