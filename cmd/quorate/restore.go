package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/datadir"
	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/internal/etcdversion"
)

// restoreFlags specify what to restore and where to put it.
type restoreFlags struct {
	readingFlags
	r       snapshot.Restoration
	results resultFiles
	// once is set if a restore that the same command line has already completed is not repeated.
	once bool
	// etcd is the version that will use the data. quota is the maximum size of its database.
	etcd  string
	quota int64
	// lostID is the ID of a lost cluster. If the directory contains a member of that cluster, the member is kept there.
	lostID string
	// expect is a file that contains the result of the backup to restore.
	expect string

	version etcdversion.Version
	lost    uint64 // from lostID
}

func newRestore(std streams) *cobra.Command {
	f := &restoreFlags{}
	c := &cobra.Command{
		Use:   "restore [[NAMESPACE/]CLUSTER [BACKUP]] --from FILE|URL --data-dir DIR",
		Short: "Create a data directory from a backup, without Kubernetes",
		Long: `Restore checks a backup, and creates the data directory of a new member from it. With this
directory, etcd starts a new cluster. The source is a file, or a store and a cluster.
` + helpWhich + `
If the store has backups of several cluster IDs, name the backup: after an accident, the newest
backup may be of an empty cluster.

The revision is raised, and earlier revisions are marked as compacted, so that watches restart
instead of silently missing events. Alarms are not restored. The token, which is random by default,
prevents members of the old cluster from joining by mistake.

With --once, the command may be killed at any point, repeated, and run several times in parallel:
data that the same command line has restored is left unchanged. The restored backup is recorded in
DIR.restored.json. If the backup is damaged or suspect, does not match --etcd-version or --quota, or
the directory holds different data, the exit code is 4.

With --expect, each attempt to copy a cluster can take a new backup. Data from a different backup is
left unchanged, and the exit code is 4.

With --lost-cluster-id, DIR may contain a member, or the remains of a member, of the cluster with
this ID, which has permanently lost its majority. The backup replaces the old data, which is kept in
DIR as member.lost-ID.`,
		Example: `  quorate restore --from a.db --data-dir /var/lib/etcd
  quorate restore prod/a --from s3://backups/etcd --identity key.txt --data-dir /var/lib/etcd \
    --name a-0 --peer-url https://a-0.example.com:2380`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), std, args) },
	}
	f.add(c)
	return c
}

func (f *restoreFlags) add(c *cobra.Command) {
	f.readingFlags.add(c, "file with a backup (compressed, encrypted, or neither), or URL of a store: "+store.Locations)
	f.addIdentity(c)
	f.timeout.addFor(c, "waiting for another restore, and reading and checking the backup")
	c.Flags().StringVar(&f.r.DataDir, "data-dir", "", "directory to create; it must be empty or not exist")
	require(c, "data-dir")
	c.Flags().StringVar(&f.r.Name, "name", "default", "name of the member, as passed to etcd")
	c.Flags().StringVar(&f.r.PeerURL, "peer-url", "http://localhost:2380",
		"peer URL of the member, as passed to etcd")
	c.Flags().StringVar(&f.r.InitialCluster, "initial-cluster", "",
		"comma-separated NAME=URL of all members of the new cluster (default: only this member)")
	c.Flags().StringVar(&f.r.Token, "initial-cluster-token", "",
		"token of the new cluster, the same for all of its members (default: random)")
	c.Flags().Uint64Var(&f.r.Bump, "revision-bump", snapshot.DefaultBump,
		"number to add to the revision; use 0 only to compare data")
	c.Flags().BoolVar(&f.once, "once", false,
		"keep data already restored by the same command line, and remove files left behind when it was killed; "+
			"requires a store and --initial-cluster-token")
	c.Flags().StringVar(&f.lostID, "lost-cluster-id", "",
		"hexadecimal ID of a lost cluster; if --data-dir contains its member, that data is kept there under a "+
			"different name; requires --once")
	c.Flags().Var((*filledText)(&f.expect), "expect",
		"with --once, restore the backup that this file names, and fail if --data-dir already holds data from a "+
			"different backup; the file is written by \"quorate backup --result\"")
	f.results.add(c)
	c.Flags().StringVar(&f.etcd, "etcd-version", "",
		"version of etcd that will be started with the data; a backup from a minor version other than this or the "+
			"previous one is rejected (default: any)")
	addBytes(c.Flags(), &f.quota, "quota",
		"maximum database size of etcd, in bytes; a backup that is not smaller is rejected (default: any)")
}

func (f *restoreFlags) run(ctx context.Context, std streams, args []string) error {
	asked, err := f.check(args)
	if err != nil {
		return err
	}
	f.results.begin()
	ctx, cancel := f.timeout.within(ctx)
	defer cancel()
	if f.once {
		return f.restoreOnce(ctx, std, asked, args)
	}
	said, err := f.restore(ctx, std, args, func(restored) error { return nil })
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	f.tell(std, said)
	return nil
}

// check completes the flags, or returns an error if they are invalid.
func (f *restoreFlags) check(args []string) (result.Asked, error) {
	if err := f.checkFrom(args); err != nil {
		return result.Asked{}, err
	}
	var err error
	if f.etcd != "" {
		if f.version, err = etcdversion.Parse(f.etcd); err != nil {
			return result.Asked{}, usageError{fmt.Errorf("--etcd-version: %w", err)}
		}
	}
	if f.r.DataDir, err = filepath.Abs(f.r.DataDir); err != nil {
		return result.Asked{}, usageError{fmt.Errorf("--data-dir: %w", err)}
	}
	if f.once && f.r.Token == "" {
		return result.Asked{}, usageError{errors.New("--once requires --initial-cluster-token: " +
			"a random token differs each time")}
	}
	if err := f.checkLost(); err != nil {
		return result.Asked{}, err
	}
	if err := f.checkExpect(args); err != nil {
		return result.Asked{}, err
	}
	f.r.InitialCluster = cmp.Or(f.r.InitialCluster, f.r.Name+"="+f.r.PeerURL)
	f.r.Token = cmp.Or(f.r.Token, rand.Text())
	if err := f.results.check("from", f.from); err != nil || !f.once {
		return result.Asked{}, err
	}
	return f.asked(args)
}

// asked returns the restore that the command line requests.
func (f *restoreFlags) asked(args []string) (result.Asked, error) {
	if _, err := parseLocation("from", f.from); err != nil {
		return result.Asked{}, err
	}
	of, err := clusterNamed(args[0], nil)
	if err != nil {
		return result.Asked{}, err
	}
	a := result.Asked{
		From: f.from, Endpoint: f.store.endpoint(f.from), Cluster: of.String(), Name: f.r.Name, PeerURL: f.r.PeerURL,
		InitialCluster: f.r.InitialCluster, Token: f.r.Token, RevisionBump: f.r.Bump,
	}
	if len(args) > 1 {
		slot, err := store.ParseSlot(args[1])
		if err != nil {
			return result.Asked{}, usageError{err}
		}
		a.Backup = store.SlotID(slot)
	}
	// If the parent directory is missing, a volume may not be mounted.
	return a, existingDir("data-dir", filepath.Dir(f.r.DataDir))
}

// checkLost parses the ID of the lost cluster whose member the directory may contain.
func (f *restoreFlags) checkLost() (err error) {
	if f.lostID == "" {
		return nil
	}
	if !f.once {
		return usageError{errors.New("--lost-cluster-id requires --once")}
	}
	if f.lost, err = clusterID("lost-cluster-id", f.lostID); err != nil {
		return err
	}
	f.r.Beside = true
	if _, missing := os.Lstat(f.r.DataDir); errors.Is(missing, fs.ErrNotExist) { // the directory will be created
		return err
	}
	f.r.DataDir, err = ownedByUs("data-dir", f.r.DataDir, ".", "member")
	return err
}

func (f *restoreFlags) checkFrom(args []string) error {
	switch inStore := store.IsLocation(f.from); {
	case inStore && len(args) == 0:
		return usageError{errors.New(
			"--from is the URL of a store: name the cluster as well, as in quorate restore NAMESPACE/CLUSTER; for a " +
				"file, omit file://")}
	case !inStore && len(args) > 0:
		return usageError{fmt.Errorf("--from %s is a file, which contains one backup: remove %s", f.from,
			strings.Join(args, " "))}
	case !inStore && f.once:
		return usageError{errors.New("--once requires the URL of a store as --from")}
	}
	return nil
}

// restoreOnce restores a backup unless the same command line has already done so.
func (f *restoreFlags) restoreOnce(ctx context.Context, std streams, asked result.Asked, args []string) error {
	r := datadir.Restore{Dir: f.r.DataDir, Asked: asked, Lost: f.lost, Unstarted: memberInChildProcess{}.unstarted}
	told, done, err := r.Once(ctx, func() {
		fmt.Fprintf(std.err, "quorate: another process is restoring into %s: waiting for it\n", r.Dir)
	}, func(record func(result.Restored) error) error {
		said, err := f.restore(ctx, std, args, func(said restored) error { return record(said.result()) })
		if err == nil {
			f.tell(std, said)
		}
		return err
	})
	if err == nil && done {
		err = f.sameSnapshot(told)
	}
	if err == nil && done { // the etcd version may have changed since then
		facts := snapshot.Facts{ClusterVersion: told.ClusterVersion, StorageVersion: told.StorageVersion}
		err = f.suits(std, facts, told.Bytes)
	}
	if err != nil {
		return fmt.Errorf("restore: %w", blockedBy(err, snapshot.ErrExists))
	}
	if done {
		f.tellAgain(std, asked.Cluster, told)
	}
	return nil
}

// restored describes restored data.
type restored struct {
	// what is the name of the source to display: a file, or a backup in a store.
	what  string
	facts snapshot.Facts
	// manifest is the backup's manifest, if it comes from a store.
	manifest store.Manifest
	// revision and identity are the revision and the identity that etcd will have.
	revision          int64
	identity          snapshot.Identity
	started, finished time.Time
}

// result returns the result for a backup from a store.
func (r restored) result() result.Restored {
	m := r.manifest
	return result.Restored{
		Slot: m.Slot, Data: m.Data, SourceClusterID: m.ClusterID, Revision: m.Snapshot.Revision,
		ClusterVersion: m.Snapshot.ClusterVersion, StorageVersion: m.Snapshot.StorageVersion,
		NewRevision: r.revision, Bytes: m.Snapshot.Bytes, SHA256: m.Snapshot.SHA256,
		StartedAt: r.started, FinishedAt: r.finished,
		Suspect: m.Snapshot.Corrupt(), ClusterID: snapshot.FormatID(r.identity.ClusterID),
		MemberID: snapshot.FormatID(r.identity.MemberID),
	}
}

// restore creates the data directory. It calls record before it puts the directory in place.
func (f *restoreFlags) restore(
	ctx context.Context, std streams, args []string, record func(restored) error,
) (said restored, err error) {
	started := time.Now()
	reading, done, err := f.reading(std)
	if err != nil {
		return restored{}, err
	}
	defer done()
	err = datadir.Create(f.r, f.lost, func(file string) (err error) {
		said, err = f.bring(ctx, std, file, reading, args)
		return err
	}, func(made *snapshot.Made) error {
		said.started, said.finished, said.revision, said.identity = started, time.Now(), made.Revision, made.Identity
		return record(said)
	})
	return said, blockedBy(err, snapshot.ErrRevision, snapshot.ErrRunning)
}

// errWhichCluster is returned if the newest backup in the store may be of a different cluster than intended.
var errWhichCluster = errors.New("specify the backup to restore (in a declaration, with spec.restore.backup); to " +
	"list backups, run quorate backups list")

// ofOneCluster returns the listing, and an error if its backups have different cluster IDs. A cluster that was
// recreated, and may be empty, has a different ID.
func ofOneCluster(listing store.Listing) (store.Listing, error) {
	byID := map[string][]store.Backup{}
	for _, b := range listing.Backups {
		byID[b.ClusterID] = append(byID[b.ClusterID], b)
	}
	if len(byID) > 1 {
		return listing, fmt.Errorf("the store has backups of %d cluster IDs: %s; %w", len(byID), describeIDs(byID),
			errWhichCluster)
	}
	return listing, nil
}

// idsNamed is the maximum number of cluster IDs in a message.
const idsNamed = 5

// describeIDs lists cluster IDs with their backups, beginning with the ID of the newest backup.
func describeIDs(byID map[string][]store.Backup) string {
	newest := func(id string) store.Backup {
		return slices.MaxFunc(byID[id], func(a, b store.Backup) int { return a.Slot.Compare(b.Slot) })
	}
	ids := slices.SortedFunc(maps.Keys(byID), func(a, b string) int {
		return cmp.Or(newest(b).Slot.Compare(newest(a).Slot), cmp.Compare(a, b))
	})
	var parts []string
	for _, id := range ids[:min(len(ids), idsNamed)] {
		parts = append(parts, fmt.Sprintf("%s (%d, newest %s)", snapshot.DisplayID(id), len(byID[id]), newest(id).ID()))
	}
	if more := len(ids) - idsNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// bring downloads the backup to a file and checks it.
func (f *restoreFlags) bring(
	ctx context.Context, std streams, file string, reading backup.Reading, args []string,
) (restored, error) {
	if !store.IsLocation(f.from) {
		return f.bringFile(ctx, std, file, reading)
	}
	f.narrow = ofOneCluster
	bucket, m, err := f.find(ctx, std, args)
	if err != nil {
		return restored{}, blockedBy(err, errNoneUsable, errWhichCluster, store.ErrManifest)
	}
	defer bucket.Close()
	if err := f.suits(std, m.Snapshot.Facts, m.Snapshot.Bytes); err != nil {
		return restored{}, fmt.Errorf("%s: %w", m.DataPath(), err)
	}
	facts, err := backup.Fetch(ctx, bucket, m, file, reading)
	if err != nil {
		return restored{}, blockedBy(err, backup.ErrDamaged, store.ErrManifest)
	}
	what := fmt.Sprintf("%s %s of cluster %s", m.Backup().Cluster, m.Backup().ID(), snapshot.DisplayID(m.ClusterID))
	return restored{what: what, facts: facts, manifest: m}, nil
}

// blockedBy turns an error into a blockedError if it matches one of the given errors.
func blockedBy(err error, these ...error) error {
	if slices.ContainsFunc(these, func(one error) bool { return errors.Is(err, one) }) {
		return blockedError{err}
	}
	return err
}

func (f *restoreFlags) bringFile(
	ctx context.Context, std streams, file string, reading backup.Reading,
) (restored, error) {
	facts, err := backup.Decode(ctx, f.from, file, reading)
	if err != nil {
		return restored{}, blockedBy(err, snapshot.ErrDamaged, snapshot.ErrTruncated, snapshot.ErrChecksum)
	}
	info, err := os.Stat(file)
	if err != nil {
		return restored{}, err
	}
	return restored{what: f.from, facts: facts}, f.suits(std, facts, info.Size())
}
