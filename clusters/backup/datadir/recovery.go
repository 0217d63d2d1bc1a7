package datadir

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

// Recovery is a data directory in which a lost cluster is recovered exactly once. It contains a mark, which records the
// result of the recovery, and a lock file.
type Recovery struct {
	// Dir is the data directory of the surviving member.
	Dir string
	// Lost is the ID of the lost cluster.
	Lost uint64
	// Unstarted calls snapshot.Unstarted.
	Unstarted Unstarted
}

// Unstarted reports whether a member was created but etcd has never been started on it. Implementations should read the
// files in a child process, like implementations of recovery.Files.
type Unstarted func(ctx context.Context, memberDir string) (bool, error)

// LockFile returns the name of the file that is locked during a recovery.
func (r Recovery) LockFile() string { return filepath.Join(r.Dir, "recover.lock") }

func (r Recovery) markName() string { return filepath.Join(r.Dir, "recovered.json") }

// Kept returns the path under which the previous member is kept.
func (r Recovery) Kept() string { return filepath.Join(r.Dir, KeptName(r.Lost)) }

// KeptName returns the name under which a data directory keeps a member of a lost cluster.
func KeptName(lost uint64) string { return "member.lost-" + snapshot.FormatID(lost) }

// Locked locks the data directory while it calls do. told is the result of an earlier recovery in the directory, or
// nil. If another process holds the lock, Locked calls waiting and then waits. It returns recovery.ErrUnfit if the
// directory contains a member of a different cluster.
func (r Recovery) Locked(ctx context.Context, waiting func(), do func(told *result.Recovered) error) error {
	unlock, err := r.Lock(ctx, waiting)
	if err != nil {
		return err
	}
	defer unlock()
	told, before, err := r.Find()
	switch {
	case err != nil:
		return err
	case before:
		return do(&told)
	}
	return do(nil)
}

// Recover creates a member with by, which is recovery.Recover or recovery.RecoverPrepared, then records the member and
// puts it in place. It first removes the files that killed processes have left behind. The caller must hold the lock.
func (r Recovery) Recover(
	ctx context.Context, order recovery.Order,
	by func(context.Context, recovery.Order, func(recovery.Recovered) error) error,
) (told result.Recovered, made recovery.Recovered, err error) {
	if err := r.clear(ctx); err != nil {
		return told, made, fmt.Errorf("remove leftover files: %w", err)
	}
	started := time.Now()
	err = by(ctx, order, func(m recovery.Recovered) (err error) {
		made = m
		told, err = r.place(m, started)
		return err
	})
	return told, made, err
}

// Lock prevents other processes from recovering the same directory. If another process holds the lock, Lock calls
// waiting once and then waits. It returns snapshot.ErrNoMember if there is nothing to recover, and disk.ErrLink if the
// directory is a link.
func (r Recovery) Lock(ctx context.Context, waiting func()) (unlock func(), err error) {
	if err := refuseLink(r.Dir); err != nil {
		return nil, err
	}
	if _, err := snapshot.IdentityOf(r.Dir); err != nil {
		return nil, err // without a member, there is nothing to recover
	}
	return disk.Lock(ctx, r.LockFile(), waiting)
}

// Find reports whether the cluster has already been recovered in this directory. It returns recovery.ErrUnfit if the
// directory contains data of a different cluster.
func (r Recovery) Find() (told result.Recovered, done bool, err error) {
	found, err := snapshot.IdentityOf(r.Dir)
	if err != nil || found.ClusterID == r.Lost {
		return result.Recovered{}, false, err
	}
	told, err = r.read()
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, result.ErrRecovered):
		return result.Recovered{}, false, err
	case err != nil || told.LostClusterID != snapshot.FormatID(r.Lost) || !is(told, found):
		return result.Recovered{}, false, fmt.Errorf("%s: %w: the directory holds a member of cluster %x, not of %x "+
			"(--cluster-id); nothing was changed", r.Dir, recovery.ErrUnfit, found.ClusterID, r.Lost)
	}
	// The process that put the member in place may have been killed before syncing the directory.
	return told, true, disk.Sync(r.Dir)
}

// is reports whether found is the recovered member.
func is(told result.Recovered, found snapshot.Identity) bool {
	return told.ClusterID == snapshot.FormatID(found.ClusterID) && told.MemberID == snapshot.FormatID(found.MemberID)
}

func (r Recovery) read() (result.Recovered, error) {
	text, err := disk.Read(r.markName(), result.MaxMark)
	if err != nil {
		return result.Recovered{}, err
	}
	return result.ParseRecovered(string(text))
}

// clear removes the files of processes that were killed before they put the recovered member in place. These files may
// include the directory for the previous member. All other files are kept.
func (r Recovery) clear(ctx context.Context) error {
	kept := r.Kept()
	if _, err := os.Lstat(kept); err == nil {
		if err := clearKept(ctx, r.Dir, r.Lost, r.Unstarted); err != nil {
			return err
		}
	}
	return removeLeftovers(r.markName(), r.Dir)
}

// clearKept removes the directory for the previous member if that directory contains a created member on which etcd has
// never been started. Otherwise, it returns snapshot.ErrExists.
func clearKept(ctx context.Context, dataDir string, lost uint64, check Unstarted) error {
	kept := filepath.Join(dataDir, KeptName(lost))
	if !leftBehind(ctx, dataDir, kept, lost, check) {
		return fmt.Errorf("%w: %s exists and is not known to be a leftover; if it is not needed, move it away",
			snapshot.ErrExists, kept)
	}
	work, err := snapshot.WorkspaceBeside(dataDir)
	if err == nil {
		err = disk.Move(kept, filepath.Join(work, "kept")) // moved, so that a crash cannot leave part of it behind
	}
	return err
}

// leftBehind reports whether kept is an unused member that was created for this data directory and does not belong to
// the lost cluster.
func leftBehind(ctx context.Context, dataDir, kept string, lost uint64, check Unstarted) bool {
	found, unknown := snapshot.IdentityIn(kept)
	if unknown != nil || found.ClusterID == lost || !isMade(dataDir, found) {
		return false
	}
	unstarted, err := check(ctx, kept)
	return err == nil && unstarted
}

// isMade reports whether a mark shows that the member was created for this data directory, by a recovery or a restore.
// The spec may have requested first one and then the other.
func isMade(dataDir string, found snapshot.Identity) bool {
	if told, err := (Recovery{Dir: dataDir}).read(); err == nil && is(told, found) {
		return true
	}
	mark, err := Restore{Dir: dataDir}.read()
	return err == nil && IsRestored(mark.Restored, found)
}

// place writes the mark and then puts the recovered member in place.
func (r Recovery) place(m recovery.Recovered, started time.Time) (result.Recovered, error) {
	s, made := m.Survivor, m.Made
	told := result.Recovered{
		LostClusterID: snapshot.FormatID(s.ClusterID), LostMemberID: snapshot.FormatID(s.MemberID),
		Term: s.End.Term, Index: s.End.Index, Revision: m.Facts.Revision, NewRevision: made.Revision,
		StartedAt: started, FinishedAt: time.Now(),
		Suspect:   m.Suspect(),
		ClusterID: snapshot.FormatID(made.Identity.ClusterID), MemberID: snapshot.FormatID(made.Identity.MemberID),
	}
	line, err := told.Encode()
	if err == nil {
		err = writeMark(r.markName(), line)
	}
	if err != nil {
		return told, fmt.Errorf("record the recovery: %w", err)
	}
	return told, m.Place(KeptName(r.Lost))
}
