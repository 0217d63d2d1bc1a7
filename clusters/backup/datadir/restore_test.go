package datadir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/snapshot"
)

// TestRestoreOnceKeepsUnknownMember checks that a member without a mark is left unchanged, and that restore is not
// called.
func TestRestoreOnceKeepsUnknownMember(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(filepath.Join(dir, "member"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, done, err := Restore{Dir: dir}.Once(t.Context(), nil, func(func(result.Restored) error) error {
		t.Error("restore was called")
		return nil
	})
	if done || !errors.Is(err, snapshot.ErrExists) {
		t.Errorf("done: %t, error: %v", done, err)
	}
}

// TestFailedCreateLeavesNoDirectory checks that no directory remains if the snapshot cannot be fetched, because etcd
// would start a new cluster in it.
func TestFailedCreateLeavesNoDirectory(t *testing.T) {
	dir, failed := filepath.Join(t.TempDir(), "data"), errors.New("no such backup")
	err := Create(snapshot.Restoration{DataDir: dir}, 0, func(string) error { return failed }, func(*snapshot.Made) error {
		t.Error("record was called")
		return nil
	})
	if !errors.Is(err, failed) {
		t.Errorf("error: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory exists: %v", err)
	}
}

// TestRecoveryRequiresMember checks that nothing is locked or created in a directory without a member.
func TestRecoveryRequiresMember(t *testing.T) {
	r := Recovery{Dir: t.TempDir(), Lost: 0xa, Unstarted: func(context.Context, string) (bool, error) { return false, nil }}
	err := r.Locked(t.Context(), nil, func(*result.Recovered) error {
		t.Error("do was called")
		return nil
	})
	if !errors.Is(err, snapshot.ErrNoMember) {
		t.Errorf("error: %v", err)
	}
	if entries, err := os.ReadDir(r.Dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestLinkedDataDirectoryIsRefused checks that a link in place of the data directory is not followed, because another
// process that writes to the volume may have planted it.
func TestLinkedDataDirectoryIsRefused(t *testing.T) {
	outside := t.TempDir()
	link := filepath.Join(t.TempDir(), "data")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	_, _, restored := Restore{Dir: link}.Once(t.Context(), nil, func(func(result.Restored) error) error {
		t.Error("restore was called")
		return nil
	})
	recovered := Recovery{Dir: link, Lost: 0xa}.Locked(t.Context(), nil, func(*result.Recovered) error {
		t.Error("do was called")
		return nil
	})
	for what, err := range map[string]error{"restore": restored, "recover": recovered} {
		if !errors.Is(err, disk.ErrLink) {
			t.Errorf("%s: error: %v", what, err)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}
