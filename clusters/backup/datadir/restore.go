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
	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/internal/printable"
)

// Restore is a data directory that is restored exactly once. Next to it are a mark, which records the request and the
// result, and a lock file. The mark is written before the member is put in place, so a member without a mark was not
// created by a restore. A mark without a member does not prove anything.
type Restore struct {
	// Dir is the data directory. It may not exist yet.
	Dir   string
	Asked result.Asked
	// Lost is the ID of a lost cluster. The directory may contain a member of that cluster, which may be incomplete.
	// Zero means that no such member is expected.
	Lost uint64
	// Unstarted calls snapshot.Unstarted. It is used only if Lost is set.
	Unstarted Unstarted
}

// LockFile returns the name of the file that is locked during a restore.
func (r Restore) LockFile() string { return r.Dir + ".restore.lock" }

func (r Restore) markName() string { return r.Dir + ".restored.json" }

// Once calls restore unless the requested data is already in place. If it is, done is true, and told is the recorded
// result. The function restore must create the member with Create, and call record before the member is put in place.
// If another process is restoring into the directory, Once calls waiting and then waits. It returns snapshot.ErrExists
// if the directory contains a member other than the requested one, and disk.ErrLink if the directory is a link.
func (r Restore) Once(
	ctx context.Context, waiting func(), restore func(record func(result.Restored) error) error,
) (told result.Restored, done bool, err error) {
	if err := refuseLink(r.Dir); err != nil {
		return result.Restored{}, false, err
	}
	if told, done, err = r.find(); err != nil || done {
		return told, done, err
	}
	unlock, err := disk.Lock(ctx, r.LockFile(), waiting)
	if err != nil {
		return result.Restored{}, false, err
	}
	defer unlock()
	if told, done, err = r.find(); err != nil || done { // another process may have completed the restore
		return told, done, err
	}
	if err := r.clear(ctx); err != nil {
		return result.Restored{}, false, fmt.Errorf("remove leftover files: %w", err)
	}
	if err := restore(r.record); err != nil {
		return result.Restored{}, false, r.failed(err)
	}
	return result.Restored{}, false, nil
}

// find reports whether the requested data is in place, and returns the recorded result. It returns snapshot.ErrExists
// if the directory contains anything else.
func (r Restore) find() (told result.Restored, done bool, err error) {
	found, err := snapshot.IdentityOf(r.Dir)
	left := found.ClusterID == r.Lost || err != nil // or the member can no longer be read
	switch {
	case r.Lost != 0 && left:
		return result.Restored{}, false, nil
	case errors.Is(err, snapshot.ErrNoMember):
		return result.Restored{}, false, r.vacant()
	}
	mark, unmarked := r.read()
	switch told = mark.Restored; {
	case errors.Is(unmarked, fs.ErrNotExist):
		return result.Restored{}, false, r.exists("the member is not recorded as restored")
	case errors.Is(unmarked, result.ErrMark):
		return result.Restored{}, false, r.exists(unmarked.Error())
	case unmarked != nil:
		return result.Restored{}, false, unmarked
	case mark.Asked != r.Asked:
		return result.Restored{}, false, r.exists(fmt.Sprintf("the member was restored from %s at %s by a different "+
			"command line",
			BackupName(printable.Line(mark.Asked.Cluster), told), told.FinishedAt.Format(time.RFC3339)))
	case err != nil:
		return result.Restored{}, false, err
	case !IsRestored(told, found):
		return result.Restored{}, false, r.exists(fmt.Sprintf("the member is %x of cluster %x, but the restored "+
			"member was %s of %s", found.MemberID, found.ClusterID, snapshot.DisplayID(told.MemberID),
			snapshot.DisplayID(told.ClusterID)))
	}
	// The process that put the member in place may have been killed before syncing the directories.
	return told, true, errors.Join(disk.Sync(r.Dir), disk.Sync(filepath.Dir(r.Dir)))
}

// IsRestored reports whether found is the restored member.
func IsRestored(told result.Restored, found snapshot.Identity) bool {
	return told.ClusterID == snapshot.FormatID(found.ClusterID) && told.MemberID == snapshot.FormatID(found.MemberID)
}

// vacant returns an error if the data directory contains a member. Such a member is incomplete, because it has no log.
func (r Restore) vacant() error {
	switch _, err := os.Lstat(filepath.Join(r.Dir, "member")); {
	case err == nil:
		return r.exists("the member does not have a log")
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return err
	}
}

// exists returns the error for a member other than the requested one.
func (r Restore) exists(why string) error {
	return fmt.Errorf("%s: %w: the directory holds a member, and %s; "+
		"nothing was changed. Specify a different directory or, if "+
		"the member is not needed, remove the directory and %s", r.Dir, snapshot.ErrExists, why,
		filepath.Base(r.markName()))
}

// BackupName returns the display name of a restored backup of the cluster, NAMESPACE/NAME.
func BackupName(cluster string, told result.Restored) string {
	return fmt.Sprintf("%s %s of cluster %s", cluster, store.SlotID(told.Slot),
		snapshot.DisplayID(told.SourceClusterID))
}

// read reads the mark. It returns result.ErrMark if the file is not a valid mark.
func (r Restore) read() (result.Mark, error) {
	text, err := disk.Read(r.markName(), result.MaxMark)
	if err != nil {
		return result.Mark{}, err
	}
	mark, err := result.ParseMark(string(text))
	if err != nil {
		return result.Mark{}, fmt.Errorf("%s: %w", r.markName(), err)
	}
	return mark, nil
}

// clear removes the files of processes that were killed before they put their member in place. These files may include
// a directory for the member of a lost cluster.
func (r Restore) clear(ctx context.Context) error {
	kept := filepath.Join(r.Dir, KeptName(r.Lost))
	_, nothing := os.Lstat(kept)
	_, vacant := os.Lstat(filepath.Join(r.Dir, "member"))
	if r.Lost != 0 && nothing == nil && vacant == nil {
		if err := clearKept(ctx, r.Dir, r.Lost, r.Unstarted); err != nil {
			return err
		}
	}
	return removeLeftovers(r.markName(), r.Dir)
}

// removeLeftovers removes a mark, and the files that killed processes have left behind in a data directory.
func removeLeftovers(mark, dataDir string) error {
	err := os.Remove(mark)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, snapshot.RemoveLeftovers(dataDir))
}

// record writes and syncs the mark.
func (r Restore) record(told result.Restored) error {
	line, err := result.Mark{Asked: r.Asked, Restored: told}.Encode()
	if err != nil {
		return err
	}
	return writeMark(r.markName(), line)
}

// writeMark creates the mark and syncs it. It returns an error if the mark already exists.
func writeMark(name string, line []byte) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(line)
	return errors.Join(err, file.Sync(), file.Close(), disk.Sync(filepath.Dir(name)))
}

// failed removes the mark of a member that could not be put in place. Otherwise, the mark would remain next to a member
// from another process, which it does not describe.
func (r Restore) failed(err error) error {
	_, missing := os.Lstat(filepath.Join(r.Dir, "member"))
	if errors.Is(err, snapshot.ErrExists) || errors.Is(missing, fs.ErrNotExist) {
		_ = os.Remove(r.markName())
	}
	return err
}
