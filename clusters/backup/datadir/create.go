// Package datadir restores or recovers the member in an etcd data directory exactly once, even if processes are killed
// at any point, repeated, or run in parallel.
package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/clusters/backup/snapshot"
)

// Create creates a member from the snapshot that fetch writes to a file. It calls record before it puts the member in
// place. lost is the ID of a lost cluster, or zero. If lost is set, the directory may contain a member of that cluster,
// which may be incomplete. Create keeps that member in the directory as KeptName. It returns snapshot.ErrExists if the
// directory contains anything else, snapshot.ErrRevision if the revision cannot be raised, and snapshot.ErrRunning if
// etcd is running on the lost member.
func Create(
	into snapshot.Restoration, lost uint64, fetch func(file string) error, record func(*snapshot.Made) error,
) (err error) {
	_, missing := os.Lstat(into.DataDir)
	defer func() {
		if err != nil && missing != nil {
			_ = os.Remove(into.DataDir) // otherwise, etcd would start a new cluster in the empty directory
		}
	}()
	spool, err := workspace(into.DataDir, lost)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(spool) }()
	file := filepath.Join(spool, "snapshot.db")
	if err := fetch(file); err != nil {
		return err
	}
	made, err := snapshot.Make(file, into)
	if err != nil {
		return err
	}
	defer made.Remove()
	// The copy is removed first, so that it is not left behind if the process is killed after this.
	if err := errors.Join(os.RemoveAll(spool), record(made)); err != nil {
		return err
	}
	return place(made, into.DataDir, lost)
}

// refuseLink returns disk.ErrLink if the data directory is a link, because another process that writes to the volume
// may have planted it.
func refuseLink(dataDir string) error {
	dir, err := disk.OpenDir(dataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("check the data directory: %w", err)
	}
	return dir.Close()
}

// workspace returns a working directory on the same file system as the data directory.
func workspace(dataDir string, lost uint64) (string, error) {
	if lost == 0 {
		return snapshot.Workspace(dataDir)
	}
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return "", err
	}
	return snapshot.WorkspaceBeside(dataDir)
}

// place puts the member in place. It keeps an existing member of the lost cluster next to the new one, even if it is
// damaged and has no database.
func place(made *snapshot.Made, dataDir string, lost uint64) error {
	if lost == 0 {
		return made.Place()
	}
	if _, missing := os.Lstat(filepath.Join(dataDir, "member")); errors.Is(missing, fs.ErrNotExist) {
		return made.Place()
	}
	held, err := snapshot.HoldRemains(dataDir)
	if held != nil {
		defer held.Close()
	}
	if err == nil {
		err = made.Exchange(KeptName(lost), held)
	}
	return err
}
