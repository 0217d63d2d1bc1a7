package backup

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"quorate.dev/quorate/clusters/backup/backuptest"
	"quorate.dev/quorate/clusters/backup/store"
)

// TestFullDisk checks that a full disk is reported at every step, leaves no partial files, and never causes a backup to
// be marked as damaged. The next attempt succeeds once there is space.
func TestFullDisk(t *testing.T) {
	disk := backuptest.Volume(t, "8k") // the snapshot takes 20 KiB
	b, o := bucketIn(t, t.TempDir()), order(t)
	m := stored(t, b, o)
	taken, err := Take(t.Context(), sound(t), o)
	if err != nil {
		t.Fatal(err)
	}
	saved := filepath.Join(t.TempDir(), "saved.db")
	if err := taken.Save(t.Context(), saved, o); err != nil {
		t.Fatal(err)
	}
	onDisk := o
	onDisk.Spool = disk
	inStore := bucketIn(t, disk)
	deeds := map[string]func() error{
		"take": func() error {
			taken, err := Take(t.Context(), sound(t), onDisk)
			return errors.Join(err, remove(err, taken.File))
		},
		"store": func() error { _, err := taken.Store(t.Context(), inStore, o); return err },
		"save": func() error {
			err := taken.Save(t.Context(), filepath.Join(disk, "a.db"), o)
			return errors.Join(err, remove(err, filepath.Join(disk, "a.db")))
		},
		"fetch": func() error {
			_, err := Fetch(t.Context(), b, m, filepath.Join(disk, "a.db"), reading(nil))
			return errors.Join(err, remove(err, filepath.Join(disk, "a.db")))
		},
		"decode": func() error {
			_, err := Decode(t.Context(), saved, filepath.Join(disk, "a.db"), reading(nil))
			return errors.Join(err, remove(err, filepath.Join(disk, "a.db")))
		},
		"verify": func() error {
			found, err := Verify(t.Context(), b, m, disk, reading(nil))
			if found.Damage != "" {
				t.Errorf("it is called damaged: %s", found.Damage)
			}
			return err
		},
	}
	for what, deed := range deeds {
		if err := deed(); !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
		if listing, err := store.List(t.Context(), inStore, store.Cluster{}); err != nil || len(listing.Backups)+len(listing.Data) > 0 {
			t.Errorf("%s: %+v, %v", what, listing, err)
		}
		_ = filepath.WalkDir(disk, func(path string, entry os.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				t.Errorf("%s: %s is left, %v", what, path, err)
			}
			return nil
		})
	}
	backuptest.Grow(t, disk, "4m")
	for what, deed := range deeds {
		if err := deed(); err != nil {
			t.Errorf("%s, with room: %v", what, err)
		}
	}
}

// remove removes a file after a successful step, so that the next attempt can create the file again.
func remove(failed error, path string) error {
	if failed == nil {
		return os.Remove(path)
	}
	return nil
}
