package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/backup/backuptest"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/reconcile/decide"
)

func TestSlotOfJob(t *testing.T) {
	now := time.Date(2026, 11, 22, 18, 0, 30, 0, time.UTC)
	minute := now.Unix() / 60
	named := func(minutes int64) string { return fmt.Sprintf("a-backup-%d", minutes) }
	for name, want := range map[string]time.Time{
		named(minute):                      time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC),
		named(minute + 10):                 time.Date(2026, 11, 22, 18, 10, 0, 0, time.UTC),
		named(minute + 11):                 {},
		named(minute - 32*24*60 + 1):       time.Date(2026, 10, 21, 18, 1, 0, 0, time.UTC),
		named(minute - 32*24*60):           {},
		fmt.Sprint(minute):                 {},
		"-" + fmt.Sprint(minute):           time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC),
		named(minute) + "x":                {},
		named(minute) + "-x7f4q":           {},
		named(minute) + "\n":               {},
		"a-backup-gen7":                    {},
		fmt.Sprint("a-backup-gen", minute): {},
		"a-backup-20261122":                {}, // a date; as minutes, it would be a time in 2008
		"a-backup-2026112218":              {},
		"a-backup-1234567":                 {},
		"a-backup-999999999":               {},
		"a-backup":                         {},
		"":                                 {},
	} {
		slot, is := SlotOfJob(name, now)
		if !slot.Equal(want) || is == want.IsZero() {
			t.Errorf("%q: %s, %v, want %s", name, slot, is, want)
		}
	}
}

// found returns the existing backup of the slot, or nil.
func found(t *testing.T, b store.Bucket, o Order) *store.Manifest {
	t.Helper()
	m, err := Find(t.Context(), sound(t), b, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// counts checks that the wanted backup is found in the slot.
func counts(t *testing.T, b store.Bucket, o Order, want store.Manifest) {
	t.Helper()
	if m := found(t, b, o); m == nil || m.Data != want.Data || !m.Slot.Equal(want.Slot) {
		t.Errorf("found %+v, want %+v", m, want)
	}
	if read, err := Verify(t.Context(), b, want, t.TempDir(), reading(nil)); err != nil || read.Damage != "" {
		t.Errorf("%+v %v", read, err)
	}
}

// TestFindReturnsExistingBackup checks that a later attempt finds an existing backup of the slot, no matter where the
// first attempt was killed.
func TestFindReturnsExistingBackup(t *testing.T) {
	b, o := bucketIn(t, t.TempDir()), order(t)
	if m := found(t, b, o); m != nil {
		t.Errorf("found %+v", m)
	}
	counts(t, b, o, stored(t, b, o))

	attempt := func(after bool) (store.Bucket, Order) {
		b, o := bucketIn(t, t.TempDir()), order(t)
		taken, err := Take(t.Context(), sound(t), o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := taken.Store(t.Context(), &faulty{Bucket: b, left: 4, after: after}, o); !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		return b, o
	}
	b, o = attempt(false) // the data was stored, but not the manifest
	if m := found(t, b, o); m != nil {
		t.Errorf("found %+v without a manifest", m)
	}
	counts(t, b, o, stored(t, b, o))

	b, o = attempt(true)
	m := found(t, b, o)
	if m == nil {
		t.Fatal("the stored backup is not found")
	}
	counts(t, b, o, *m)
	if listing, err := store.List(t.Context(), b, o.Cluster); err != nil || len(listing.Backups) != 1 || len(listing.Data) != 1 {
		t.Errorf("%+v %v", listing, err)
	}
	o.Fresh = true
	if m := found(t, b, o); m != nil {
		t.Errorf("found %+v, and it has to be fresh", m)
	}
}

// TestBackupOfOtherClusterIDIsNotUsed checks that a backup with a different cluster ID is not used, even if it has the
// same slot and name.
func TestBackupOfOtherClusterIDIsNotUsed(t *testing.T) {
	dir := t.TempDir()
	b, o := bucketIn(t, dir), order(t)
	other := sound(t)
	other.ID = 0xbb
	taken, err := Take(t.Context(), other, o)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := taken.Store(t.Context(), b, o)
	if err != nil || theirs.ClusterID != "00000000000000bb" {
		t.Fatal(theirs, err)
	}
	if m := found(t, b, o); m != nil {
		t.Errorf("found %+v", m)
	}
	ours := stored(t, b, o)
	if ours.ClusterID != "00000000000000aa" || !ours.Slot.Equal(theirs.Slot) {
		t.Errorf("%+v", ours)
	}
	counts(t, b, o, ours)

	// The same applies if that manifest is copied to this cluster's names.
	b = bucketIn(t, t.TempDir())
	text, err := os.ReadFile(filepath.Join(dir, "ns/a/00000000000000bb", store.SlotID(o.Slot)+".json"))
	if err == nil {
		err = b.Create(t.Context(), "ns/a/00000000000000aa/"+store.SlotID(o.Slot)+".json", bytes.NewReader(text))
	}
	if err != nil {
		t.Fatal(err)
	}
	if m := found(t, b, o); m != nil {
		t.Errorf("found %+v", m)
	}
	counts(t, b, o, stored(t, b, o))
}

// TestInvalidBackupDoesNotBlockSlot checks that Find does not return an invalid backup of the slot, and that it does
// not prevent a new backup.
func TestInvalidBackupDoesNotBlockSlot(t *testing.T) {
	for name, spoil := range map[string]func(data, manifest string) error{
		"its data are gone":     func(data, _ string) error { return os.Remove(data) },
		"its data are cut":      func(data, _ string) error { return os.Truncate(data, 100) },
		"it was found damaged":  func(_, manifest string) error { return write(manifest, ".damaged.json", "{}") },
		"its manifest is none":  func(_, manifest string) error { return write(manifest, ".json", "{") },
		"its manifest is empty": func(_, manifest string) error { return write(manifest, ".json", "") },
	} {
		dir := t.TempDir()
		b, o := bucketIn(t, dir), order(t)
		first := stored(t, b, o)
		data := filepath.Join(dir, filepath.FromSlash(first.DataPath()))
		if err := spoil(data, filepath.Join(filepath.Dir(data), first.Backup().ID())); err != nil {
			t.Fatal(err)
		}
		if m := found(t, b, o); m != nil {
			t.Errorf("%s: found %+v", name, m)
		}
		second := stored(t, b, o)
		if !second.Slot.Equal(first.Slot.Add(time.Second)) || second.Data == first.Data {
			t.Errorf("%s: %+v and %+v", name, first, second)
		}
		counts(t, b, o, second)
		if third := stored(t, b, o); third.Data != second.Data {
			t.Errorf("%s: %+v and %+v", name, second, third)
		}
	}
}

// TestPlantedManifestsCannotDateBackupAhead checks that planted manifests move a backup by at most mostOccupied. With
// more of them, the backup fails.
func TestPlantedManifestsCannotDateBackupAhead(t *testing.T) {
	dir := t.TempDir()
	b, o := bucketIn(t, dir), order(t)
	planted := filepath.Join(dir, "ns/a/00000000000000aa")
	if err := os.MkdirAll(planted, 0o700); err != nil {
		t.Fatal(err)
	}
	for ahead := time.Duration(0); ahead < mostOccupied; ahead += time.Second {
		if err := write(filepath.Join(planted, store.SlotID(o.Slot.Add(ahead))), ".json", "{"); err != nil {
			t.Fatal(err)
		}
	}
	if m := stored(t, b, o); m.Slot.Sub(o.slot()) != mostOccupied {
		t.Errorf("%s, requested for %s", m.Slot, o.Slot)
	}
	o.Fresh = true
	taken, err := Take(t.Context(), sound(t), o)
	if err == nil {
		_, err = taken.Store(t.Context(), b, o)
	}
	if err == nil || !strings.Contains(err.Error(), store.SlotID(o.Slot)) || !strings.Contains(err.Error(), "who can write to the store") {
		t.Error(err)
	}
}

func write(stem, suffix, text string) error { return os.WriteFile(stem+suffix, []byte(text), 0o600) }

// TestSuspectBackupDoesNotBlockSlot checks that a suspect backup does not count as the slot's backup, and that a second
// suspect backup of the slot is not stored.
func TestSuspectBackupDoesNotBlockSlot(t *testing.T) {
	b, o := bucketIn(t, t.TempDir()), order(t)
	corrupt := o
	corrupt.Inspect = func(ctx context.Context, file string) (snapshot.Facts, error) {
		facts, err := inspect(ctx, file)
		facts.Alarms = []string{"CORRUPT aa"}
		return facts, err
	}
	suspect := stored(t, b, corrupt)
	if m := found(t, b, o); m != nil || !suspect.Backup().Suspect {
		t.Errorf("found %+v", m)
	}
	if again := stored(t, b, corrupt); again.Data != suspect.Data || !again.Backup().Suspect {
		t.Errorf("%+v, then %+v", suspect, again)
	}
	good := stored(t, b, o)
	if !good.Slot.Equal(suspect.Slot) || good.Backup().Suspect {
		t.Errorf("%+v", good)
	}
	counts(t, b, o, good)
}

// noQuorum is a cluster that does not respond.
type noQuorum struct{ *backuptest.Member }

func (noQuorum) ClusterID(context.Context) (decide.ID, error) { return 0, errCut }

// TestFindErrorIsNotMissingBackup checks that a store or cluster that does not respond is not treated as having no
// backup.
func TestFindErrorIsNotMissingBackup(t *testing.T) {
	b, o := bucketIn(t, t.TempDir()), order(t)
	stored(t, b, o)
	for n := 1; n <= 3; n++ {
		if m, err := Find(t.Context(), sound(t), &faulty{Bucket: b, left: n}, o); !errors.Is(err, errCut) || m != nil {
			t.Errorf("%d: %+v, %v", n, m, err)
		}
	}
	if m, err := Find(t.Context(), noQuorum{sound(t)}, b, o); !errors.Is(err, errCut) || m != nil {
		t.Errorf("%+v, %v", m, err)
	}
}
