package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/clusters/backup/recovery"
	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/snapshot"
)

// inDataDir runs do while the data directory is locked. told is what was recovered there before, or nil.
func (f *recoverFlags) inDataDir(
	ctx context.Context, std streams, do func(d dataDirRecovery, order recovery.Order, told *result.Recovered) error,
) error {
	progress, done := bars(std.err)
	defer done()
	order, err := f.order(ctx, progress)
	if err != nil {
		return err
	}
	d := dataDirRecovery{f.into.DataDir, f.lost}
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
		return do(d, order, &told)
	}
	return do(d, order, nil)
}

// dataDirRecovery is a data directory into which the lost cluster is recovered exactly once. It contains a mark, which
// records what was recovered, and a lock file.
type dataDirRecovery struct {
	dataDir string
	lost    uint64
}

func (d dataDirRecovery) markName() string { return filepath.Join(d.dataDir, "recovered.json") }
func (d dataDirRecovery) lockName() string { return filepath.Join(d.dataDir, "recover.lock") }

// aside returns the name under which the previous member is kept in the data directory.
func (d dataDirRecovery) aside() string { return lostMember(d.lost) }

// lostMember returns the name under which a data directory keeps a member of a lost cluster.
func lostMember(lost uint64) string { return "member.lost-" + hexID(lost) }

// lock prevents other processes from recovering the same directory.
func (d dataDirRecovery) lock(ctx context.Context, std streams) (unlock func(), err error) {
	if _, err := snapshot.IdentityOf(d.dataDir); err != nil {
		return nil, err // without a member, there is nothing to recover
	}
	return disk.Lock(ctx, d.lockName(), func() {
		fmt.Fprintf(std.err, "quorate: another process is recovering %s: waiting for it\n", d.dataDir)
	})
}

// find reports whether the cluster has already been recovered in this directory. It returns recovery.ErrUnfit if the
// directory holds data of another cluster.
func (d dataDirRecovery) find() (told result.Recovered, done bool, err error) {
	found, err := snapshot.IdentityOf(d.dataDir)
	if err != nil || found.ClusterID == d.lost {
		return result.Recovered{}, false, err
	}
	told, err = d.read()
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, result.ErrRecovered):
		return result.Recovered{}, false, err
	case err != nil || told.LostClusterID != hexID(d.lost) || !is(told, found):
		return result.Recovered{}, false, fmt.Errorf("%s: %w: it holds a member of cluster %s, not of %s "+
			"(--cluster-id); nothing was changed", d.dataDir, recovery.ErrUnfit, hexID(found.ClusterID), hexID(d.lost))
	}
	// The process that put it there may have been killed before syncing the directory.
	return told, true, disk.Sync(d.dataDir)
}

// again reports that the cluster was already recovered, and removes the files of a process that was killed right after
// that.
func (d dataDirRecovery) again(std streams, told result.Recovered) error {
	fmt.Fprintf(std.out, "%s was recovered at %s and is left unchanged\n", d.dataDir,
		told.FinishedAt.Format(time.RFC3339))
	if err := snapshot.RemoveLeftovers(d.dataDir); err != nil {
		return fmt.Errorf("remove leftover files: %w", err)
	}
	return nil
}

// is reports whether found is the recovered member.
func is(told result.Recovered, found snapshot.Identity) bool {
	return told.ClusterID == hexID(found.ClusterID) && told.MemberID == hexID(found.MemberID)
}

func (d dataDirRecovery) read() (result.Recovered, error) {
	text, err := disk.Read(d.markName(), result.MaxMark)
	if err != nil {
		return result.Recovered{}, err
	}
	return result.ParseRecovered(string(text))
}

// clear removes files of processes that were killed before the recovered member was in place. They may include a
// directory for the previous member. All other files are kept.
func (d dataDirRecovery) clear(ctx context.Context) error {
	kept := filepath.Join(d.dataDir, d.aside())
	if _, err := os.Lstat(kept); err == nil {
		if err := clearAside(ctx, d.dataDir, d.lost); err != nil {
			return err
		}
	}
	err := os.Remove(d.markName())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, snapshot.RemoveLeftovers(d.dataDir))
}

// clearAside removes the directory for the previous member if it holds a created member on which etcd has never
// started. Otherwise it returns snapshot.ErrExists.
func clearAside(ctx context.Context, dataDir string, lost uint64) error {
	kept := filepath.Join(dataDir, lostMember(lost))
	if !leftBehind(ctx, dataDir, kept, lost) {
		return fmt.Errorf("%w: %s exists and is not known to be a leftover; if it is not needed, move it away",
			snapshot.ErrExists, kept)
	}
	work, err := snapshot.WorkspaceBeside(dataDir)
	if err == nil {
		err = disk.Move(kept, filepath.Join(work, "kept")) // moved so that it is removed completely or not at all
	}
	return err
}

// leftBehind reports whether kept is an unused member that was created for the data directory and is not of the lost
// cluster.
func leftBehind(ctx context.Context, dataDir, kept string, lost uint64) bool {
	found, unknown := snapshot.IdentityIn(kept)
	if unknown != nil || found.ClusterID == lost || !isMade(dataDir, found) {
		return false
	}
	unstarted, err := memberInChildProcess{}.unstarted(ctx, kept)
	return err == nil && unstarted
}

// isMade reports whether a mark shows that a member was created for the data directory, by a recovery or a restore: the
// spec may have requested one after the other.
func isMade(dataDir string, found snapshot.Identity) bool {
	if told, err := (dataDirRecovery{dataDir: dataDir}).read(); err == nil && is(told, found) {
		return true
	}
	mark, err := dataDirRestore{dataDir: dataDir}.read()
	return err == nil && isRestored(mark.Restored, found)
}

// place writes the mark, and then puts the recovered member in place.
func (d dataDirRecovery) place(r recovery.Recovered, started time.Time) (result.Recovered, error) {
	s, made := r.Survivor, r.Made
	told := result.Recovered{
		LostClusterID: hexID(s.ClusterID), LostMemberID: hexID(s.MemberID), Term: s.End.Term, Index: s.End.Index,
		Revision: r.Facts.Revision, NewRevision: made.Revision, StartedAt: started, FinishedAt: time.Now(),
		Suspect:   r.Suspect(),
		ClusterID: hexID(made.Identity.ClusterID), MemberID: hexID(made.Identity.MemberID),
	}
	line, err := told.Encode()
	if err == nil {
		err = writeMark(d.markName(), line)
	}
	if err != nil {
		return told, fmt.Errorf("record what is recovered: %w", err)
	}
	return told, r.Place(d.aside())
}
