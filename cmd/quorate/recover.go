package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/datadir"
	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/clusters/backup/etcdprocess"
	"quorate.dev/quorate/clusters/backup/recovery"
	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// recoverFlags specify what to recover and where to put the result.
type recoverFlags struct {
	into      snapshot.Restoration
	clusterID string
	etcd      string
	dir       string
	dryRun    bool
	timeout   timeoutFlag
	apart     externalEtcdFlags
	results   resultFiles
	// backup specifies where to store a backup if the command takes a backup instead of creating a member.
	backup backupFlags

	lost uint64 // from clusterID
}

func newRecover(std streams) *cobra.Command {
	f := &recoverFlags{}
	c := &cobra.Command{
		Use:   "recover [[NAMESPACE/]CLUSTER] --data-dir DIR",
		Short: "Create a new cluster from one member's data directory after losing the majority",
		Long: `Recover creates the first member of a new cluster from the data directory of one member of a
cluster that has permanently lost its majority. Stop etcd on this directory first. If you can
bring back the data directories of a majority, do that instead: no data is lost.

With --dry-run, it shows the contents of the directory. If there are several directories, recover
the directory whose log ends last: at the higher term or, in the same term, at the higher index. The
log may lack writes that lost members acknowledged. The whole log is kept, including entries not known
to be committed, which etcd's --force-new-cluster drops.

Recover works on a copy, which needs space for three times the data. With --to, it backs up the member's
data and does not change the member; restore a cluster from that backup as from any other. Without
--to, it creates a member in the directory. The revision is raised, and earlier revisions are marked
as compacted, so that watches restart instead of silently missing events. The new cluster has a
different ID: returning members of the old cluster cannot join it. The old member is kept in the
directory as member.lost-ID. The command may be killed at any point and repeated.`,
		Example: `  quorate recover --data-dir /var/lib/etcd --dry-run
  quorate recover --data-dir /var/lib/etcd --cluster-id 15082e1bb141d752 --etcd /opt/etcd-3.6.16/etcd
  quorate recover prod/a --data-dir ./survivor --cluster-id 15082e1bb141d752 --to s3://backups/etcd`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), std, args) },
	}
	f.add(c)
	return c
}

func (f *recoverFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.into.DataDir, "data-dir", "", "data directory of the surviving member")
	require(c, "data-dir")
	c.Flags().StringVar(&f.clusterID, "cluster-id", "",
		"hexadecimal ID of the lost cluster, as shown by --dry-run; data of other clusters is not changed")
	c.Flags().StringVar(&f.etcd, "etcd", "etcd",
		"etcd to start on the copy, as a path or a name in PATH; must have the cluster's minor version")
	c.Flags().StringVar(&f.into.Name, "name", "", "name of the member, as passed to etcd (default: unchanged)")
	c.Flags().StringVar(&f.into.PeerURL, "peer-url", "",
		"peer URL of the member, as passed to etcd (default: unchanged)")
	c.Flags().StringVar(&f.into.Token, "initial-cluster-token", "", "token of the new cluster (default: random)")
	c.Flags().Uint64Var(&f.into.Bump, "revision-bump", snapshot.DefaultBump, "number to add to the revision")
	c.Flags().StringVar(&f.dir, "dir", "",
		"working directory, with space for twice the data (default: in the data directory)")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "show the contents of the directory without changing it")
	c.Flags().StringVar(&f.backup.to, "to", "",
		"file or URL of a store to write a backup to, instead of creating a member: "+store.Locations)
	f.backup.encoding.add(c)
	f.backup.store.add(c)
	f.backup.store.addLock(c)
	f.timeout.add(c)
	f.apart.add(c, "copy the member to", recovery.ConfigFile)
	f.results.add(c)
}

func (f *recoverFlags) run(ctx context.Context, std streams, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	put, err := f.target(args)
	if err != nil {
		return err
	}
	f.results.begin()
	ctx, cancel := f.timeout.within(ctx)
	defer cancel()
	var stored store.Manifest
	switch {
	case f.dryRun:
		err = f.describe(ctx, std)
	case f.apart.prepare:
		err = f.prepare(ctx, std)
	case f.backup.to != "":
		stored, err = f.rescue(ctx, std, put)
	default:
		err = f.recover(ctx, std)
	}
	if err != nil {
		return fmt.Errorf("recover: %w", blockedByMember(err))
	}
	if f.backup.to == "" || f.dryRun {
		return nil
	}
	return f.backup.report(std, stored)
}

// blockedByMember turns an error that a member's files cause into a blockedError.
func blockedByMember(err error) error {
	return blockedBy(err, snapshot.ErrNoMember, snapshot.ErrRunning, snapshot.ErrDamaged, snapshot.ErrExists,
		snapshot.ErrRevision, recovery.ErrUnfit, etcdprocess.ErrVersion, errTooLarge)
}

func (f *recoverFlags) check() (err error) {
	if f.into.DataDir, err = filepath.Abs(f.into.DataDir); err != nil {
		return usageError{fmt.Errorf("--data-dir: %w", err)}
	}
	if err := existingDir("data-dir", f.into.DataDir); err != nil {
		return err
	}
	f.into.DataDir, err = ownedByUs("data-dir", f.into.DataDir, ".", "member", "member/wal", "member/snap")
	if err != nil {
		return err
	}
	if f.dir != "" {
		if err := existingDir("dir", f.dir); err != nil {
			return err
		}
		if f.dir, err = ownedByUs("dir", f.dir); err != nil {
			return err
		}
	}
	switch {
	case f.clusterID != "":
		f.lost, err = clusterID("cluster-id", f.clusterID)
	case !f.dryRun:
		err = usageError{errors.New("--cluster-id is required: set the ID of the lost cluster, which --dry-run shows")}
	}
	if err != nil {
		return err
	}
	if err := f.results.checkFiles(); err != nil {
		return err
	}
	return f.apart.checkRecovery(f)
}

// clusterID parses a flag value as a cluster ID.
func clusterID(flag, text string) (uint64, error) {
	id, err := strconv.ParseUint(text, 16, 64)
	if err != nil || id == 0 {
		return 0, usageError{fmt.Errorf("--%s %q: expected hexadecimal digits, such as 15082e1bb141d752", flag, text)}
	}
	return id, nil
}

// ownedByUs returns the absolute path of a directory. When running as root, it also resolves links, and rejects the
// directory if another user may change the given parts or a parent directory: that user could make root read, change or
// delete other files.
func ownedByUs(flag, dir string, parts ...string) (string, error) {
	whole, err := filepath.Abs(dir)
	if err == nil && os.Geteuid() == 0 {
		whole, err = filepath.EvalSymlinks(whole)
	}
	if err != nil || os.Geteuid() != 0 {
		return whole, err
	}
	changed, err := disk.LedByOthers(filepath.Join(whole, "member"))
	for _, part := range parts {
		if err != nil || changed != "" {
			break
		}
		var others bool
		part = filepath.Join(whole, part)
		switch others, err = disk.ChangedByOthers(part); {
		case errors.Is(err, fs.ErrNotExist):
			return whole, nil // a missing member is reported elsewhere
		case others:
			changed = part
		}
	}
	switch {
	case err != nil:
		return whole, fmt.Errorf("--%s: %w", flag, err)
	case changed != "":
		return whole, usageError{fmt.Errorf("--%s: users other than root can change %s: run this command as the etcd "+
			"user, with setpriv --reuid=UID --regid=GID --clear-groups, or use a directory that only root can "+
			"change, in parents that only root can change",
			flag, changed)}
	}
	return whole, nil
}

// describe prints the state of the surviving member.
func (f *recoverFlags) describe(ctx context.Context, std streams) error {
	s, err := memberInChildProcess{}.Survivor(ctx, f.into.DataDir)
	if err != nil {
		return err
	}
	role := fmt.Sprintf("a voter, one of %d", len(s.Voters))
	if s.Learner {
		role = "a learner, which must not be used to create a cluster"
	}
	minor := printable.Line(strings.TrimSuffix(s.Facts.ClusterVersion, ".0"))
	fmt.Fprintf(std.out, "member %s (%x) of cluster %x: %s\n", printable.Line(s.Name), s.MemberID, s.ClusterID, role)
	fmt.Fprintf(std.out, "its log ends at term %d, index %d; entries up to index %d are known to be "+
		"committed\n", s.End.Term, s.End.Index,
		min(s.Committed, s.End.Index))
	fmt.Fprintf(std.out, "its data is from etcd %s\n", cmp.Or(minor, "of an unknown version"))
	if len(s.Voters) > 2 {
		fmt.Fprintf(std.out, "if you can bring back %d of %d members with their data, do that instead: no data is "+
			"lost\n",
			decide.Quorum(len(s.Voters)), len(s.Voters))
	}
	warnSuspect(std, s.Facts.Corrupt())
	return nil
}

// order builds the recovery order, including the etcd to start.
func (f *recoverFlags) order(ctx context.Context, progress backup.Progress) (recovery.Order, error) {
	order := recovery.Order{
		Into: f.into, ClusterID: f.lost, Dir: f.dir, Inspect: inspectApart,
		Files: memberInChildProcess{}, Progress: progress,
	}
	if f.apart.is() {
		order.Etcd.Version = f.apart.etcd
		return order, nil
	}
	program, err := etcdprocess.Find(ctx, f.etcd)
	if err != nil {
		return recovery.Order{}, usageError{fmt.Errorf("--etcd: %w", err)}
	}
	order.Etcd = program
	return order, nil
}

// dataDir returns the data directory into which the lost cluster is recovered.
func (f *recoverFlags) dataDir() datadir.Recovery {
	return datadir.Recovery{Dir: f.into.DataDir, Lost: f.lost, Unstarted: memberInChildProcess{}.unstarted}
}

// waiting returns a function that reports that another process is using the same data directory.
func (f *recoverFlags) waiting(std streams) func() {
	return func() {
		fmt.Fprintf(std.err, "quorate: another process is recovering %s: waiting for it\n", f.into.DataDir)
	}
}

// inDataDir calls do while holding the lock of the data directory. told describes an earlier recovery in the directory;
// it is nil if there was none.
func (f *recoverFlags) inDataDir(
	ctx context.Context, std streams, do func(order recovery.Order, told *result.Recovered) error,
) error {
	progress, done := bars(std.err)
	defer done()
	order, err := f.order(ctx, progress)
	if err != nil {
		return err
	}
	return f.dataDir().Locked(ctx, f.waiting(std), func(told *result.Recovered) error { return do(order, told) })
}

// recover creates a member from the surviving data, unless that has already been done.
func (f *recoverFlags) recover(ctx context.Context, std streams) error {
	return f.inDataDir(ctx, std, func(order recovery.Order, told *result.Recovered) error {
		if told != nil {
			if err := f.tellRecoveredBefore(std, *told); err != nil {
				return err
			}
			if !f.apart.is() {
				tellStartAgain(ctx, std, f.into.DataDir, *told)
			}
			warnSuspect(std, told.Suspect)
			return f.results.write(told.Encode)
		}
		by := recovery.Recover
		if f.apart.prepared {
			by = recovery.RecoverPrepared
		}
		now, made, err := f.dataDir().Recover(ctx, order, by)
		if err != nil {
			return err
		}
		tellRecovered(std, f.dataDir(), made)
		return f.results.write(now.Encode)
	})
}

// tellRecoveredBefore reports that the cluster was already recovered, and removes files left by a process that was
// killed right after the recovery.
func (f *recoverFlags) tellRecoveredBefore(std streams, told result.Recovered) error {
	fmt.Fprintf(std.out, "%s was recovered at %s and is left unchanged\n", f.into.DataDir,
		told.FinishedAt.Format(time.RFC3339))
	if err := snapshot.RemoveLeftovers(f.into.DataDir); err != nil {
		return fmt.Errorf("remove leftover files: %w", err)
	}
	return nil
}

// tellStartAgain prints how to start etcd with the recovered data, unless etcd has already been started with it. It
// omits the initial cluster token, which the data does not contain and etcd no longer needs.
func tellStartAgain(ctx context.Context, std streams, dataDir string, told result.Recovered) {
	files := memberInChildProcess{}
	if unstarted, err := files.unstarted(ctx, filepath.Join(dataDir, "member")); err != nil || !unstarted {
		return
	}
	s, err := files.Survivor(ctx, dataDir)
	if err != nil {
		return
	}
	s.Facts.Revision = told.Revision
	tellStart(std, s.Facts, snapshot.Restoration{
		DataDir: dataDir, Name: s.Name, PeerURL: strings.Join(s.PeerURLs, ","),
		InitialCluster: recovery.InitialCluster(s.Name, s.PeerURLs),
	}, told.NewRevision)
}

// tellRecovered prints what was recovered, and how to start etcd with the recovered data.
func tellRecovered(std streams, d datadir.Recovery, r recovery.Recovered) {
	s := r.Survivor
	fmt.Fprintf(std.out, "recovered cluster %x from member %s into %s\n", s.ClusterID, printable.Line(s.Name), d.Dir)
	if unknown := s.End.Index - min(s.Committed, s.End.Index); unknown > 0 {
		fmt.Fprintf(std.out, "it has the whole log, including %s at the end that may not have been acknowledged\n",
			entries(unknown))
	}
	fmt.Fprintf(std.out, "data that only the lost members held is lost; the old member is kept in %s\n", d.Kept())
	tellStart(std, r.Facts, r.Into, r.Made.Revision)
	warnSuspect(std, r.Suspect())
}

func entries(n uint64) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}
