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
	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/internal/printable"
)

// dataDirRestore is a data directory that is restored exactly once. Next to it are a mark, which records what was
// restored, and a lock file. The mark is written before the member is put in place: a member from elsewhere has no
// mark, and a mark without a member proves nothing.
type dataDirRestore struct {
	dataDir string
	asked   result.Asked
	// lost is the ID of a cluster that may have left a member or its remains there; zero means that none is expected.
	lost uint64
}

func (o dataDirRestore) markName() string { return o.dataDir + ".restored.json" }
func (o dataDirRestore) lockName() string { return o.dataDir + ".restore.lock" }

// asked returns what the command line requests.
func (f *restoreFlags) asked(args []string) (result.Asked, error) {
	if _, err := store.ParseLocation(f.from); err != nil {
		return result.Asked{}, usageError{fmt.Errorf("--from: %w", err)}
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
	// A missing directory may be a volume that is not mounted.
	return a, existingDir("data-dir", filepath.Dir(f.r.DataDir))
}

// restoreOnce restores, unless the same command line has already done so.
func (f *restoreFlags) restoreOnce(ctx context.Context, std streams, asked result.Asked, args []string) error {
	o := dataDirRestore{f.r.DataDir, asked, f.lost}
	told, done, err := o.find()
	if err == nil && !done {
		told, done, err = f.restoreAlone(ctx, std, o, args)
	}
	if err == nil && done { // a different etcd version may be declared now
		facts := snapshot.Facts{ClusterVersion: told.ClusterVersion, StorageVersion: told.StorageVersion}
		err = f.suits(std, facts, told.Bytes)
	}
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if done {
		f.tellAgain(std, asked.Cluster, told)
	}
	return nil
}

// restoreAlone restores while it holds the lock. If another process has already restored, it returns that result.
func (f *restoreFlags) restoreAlone(
	ctx context.Context, std streams, o dataDirRestore, args []string,
) (told result.Restored, done bool, err error) {
	unlock, err := disk.Lock(ctx, o.lockName(), func() {
		fmt.Fprintf(std.err, "quorate: another process is restoring into %s: waiting for it\n", o.dataDir)
	})
	if err != nil {
		return result.Restored{}, false, err
	}
	defer unlock()
	if told, done, err = o.find(); err != nil || done {
		return told, done, err
	}
	if err := o.clear(ctx); err != nil {
		return result.Restored{}, false, blockedBy(fmt.Errorf("remove leftover files: %w", err),
			snapshot.ErrExists)
	}
	said, err := f.restore(ctx, std, args, o.record)
	if err != nil {
		return result.Restored{}, false, o.failed(err)
	}
	f.tell(std, said)
	return result.Restored{}, false, nil
}

// find reports whether the requested data is in place, and returns what was recorded about it. It returns
// snapshot.ErrExists if something else is there.
func (o dataDirRestore) find() (told result.Restored, done bool, err error) {
	found, err := snapshot.IdentityOf(o.dataDir)
	left := found.ClusterID == o.lost || err != nil // or it is no longer readable
	switch {
	case o.lost != 0 && left:
		return result.Restored{}, false, nil
	case errors.Is(err, snapshot.ErrNoMember):
		return result.Restored{}, false, o.vacant()
	}
	mark, unmarked := o.read()
	switch told = mark.Restored; {
	case errors.Is(unmarked, fs.ErrNotExist):
		return result.Restored{}, false, o.exists("it is not recorded as restored")
	case errors.Is(unmarked, result.ErrMark):
		return result.Restored{}, false, o.exists(unmarked.Error())
	case unmarked != nil:
		return result.Restored{}, false, unmarked
	case mark.Asked != o.asked:
		return result.Restored{}, false, o.exists(fmt.Sprintf("it was restored from %s at %s by another command line",
			backupIn(printable.Line(mark.Asked.Cluster), told), told.FinishedAt.Format(time.RFC3339)))
	case err != nil:
		return result.Restored{}, false, err
	case !isRestored(told, found):
		return result.Restored{}, false, o.exists(fmt.Sprintf("it is %s of cluster %s, but the restored member was "+
			"%s of %s", hexID(found.MemberID), hexID(found.ClusterID), told.MemberID, told.ClusterID))
	}
	// The process that put it there may have been killed before syncing the directories.
	return told, true, errors.Join(disk.Sync(o.dataDir), disk.Sync(filepath.Dir(o.dataDir)))
}

// isRestored reports whether found is the restored member.
func isRestored(told result.Restored, found snapshot.Identity) bool {
	return told.ClusterID == hexID(found.ClusterID) && told.MemberID == hexID(found.MemberID)
}

// vacant returns an error if the data directory has a member without a log, which is incomplete.
func (o dataDirRestore) vacant() error {
	switch _, err := os.Lstat(filepath.Join(o.dataDir, "member")); {
	case err == nil:
		return o.exists("it has no log")
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return err
	}
}

// exists returns the error for a member that is not the requested one.
func (o dataDirRestore) exists(why string) error {
	return blockedError{fmt.Errorf("%s: %w: it holds a member, and %s; nothing was changed. Name another directory, "+
		"or, if that member is not needed, remove the directory and %s", o.dataDir, snapshot.ErrExists, why,
		filepath.Base(o.markName()))}
}

// backupIn returns the display name of a cluster's backup.
func backupIn(cluster string, told result.Restored) string {
	return fmt.Sprintf("%s %s of cluster %s", cluster, store.SlotID(told.Slot), told.SourceClusterID)
}

// read reads the mark. It returns result.ErrMark if the file is not a valid mark.
func (o dataDirRestore) read() (result.Mark, error) {
	text, err := disk.Read(o.markName(), result.MaxMark)
	if err != nil {
		return result.Mark{}, err
	}
	mark, err := result.ParseMark(string(text))
	if err != nil {
		return result.Mark{}, fmt.Errorf("%s: %w", o.markName(), err)
	}
	return mark, nil
}

// clear removes files of processes that were killed before their member was in place. They may include a directory for
// the member of a lost cluster.
func (o dataDirRestore) clear(ctx context.Context) error {
	kept := filepath.Join(o.dataDir, lostMember(o.lost))
	_, nothing := os.Lstat(kept)
	_, vacant := os.Lstat(filepath.Join(o.dataDir, "member"))
	if o.lost != 0 && nothing == nil && vacant == nil {
		if err := clearAside(ctx, o.dataDir, o.lost); err != nil {
			return err
		}
	}
	err := os.Remove(o.markName())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, snapshot.RemoveLeftovers(o.dataDir))
}

// record writes and syncs the mark.
func (o dataDirRestore) record(said restored) error {
	line, err := result.Mark{Asked: o.asked, Restored: said.result()}.Encode()
	if err != nil {
		return err
	}
	return writeMark(o.markName(), line)
}

// writeMark writes and syncs a mark that does not exist yet.
func writeMark(name string, line []byte) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(line)
	return errors.Join(err, file.Sync(), file.Close(), disk.Sync(filepath.Dir(name)))
}

// failed removes the mark of a member that could not be put in place, because the mark does not describe a member that
// another process has put there. Other obstacles need manual action.
func (o dataDirRestore) failed(err error) error {
	_, missing := os.Lstat(filepath.Join(o.dataDir, "member"))
	exists := errors.Is(err, snapshot.ErrExists)
	if exists || errors.Is(missing, fs.ErrNotExist) {
		_ = os.Remove(o.markName())
	}
	if exists {
		return blockedError{err}
	}
	return err
}
