package retention_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/backup/retention"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
)

// TestNothingIsDeletedBecauseOfPlantedLinks plants links in place of backups, damage marks and results in a directory
// store, and checks that retention deletes only what it would delete without the links. In particular, it keeps a
// backup that only a link marks as damaged.
func TestNothingIsDeletedBecauseOfPlantedLinks(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)
	bucket, err := store.Location{Directory: dir}.Open(t.Context(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var all []store.Manifest
	for day := range 6 { // the newest first
		m := store.Manifest{
			Format: store.Format, Namespace: "ns", Cluster: "a", ClusterID: "00000000000000aa", Slot: now.AddDate(0, 0, -day),
			Bytes: 3, SHA256: strings.Repeat("ab", 32),
			Snapshot: store.Snapshot{Bytes: 3, SHA256: strings.Repeat("cd", 32), Facts: snapshot.Facts{Revision: 7}},
		}
		m.Data = m.NewDataName()
		_, failed := m.Commit(t.Context(), bucket)
		v, unknown := store.BeginVerification(t.Context(), bucket, m)
		if err := errors.Join(bucket.Create(t.Context(), m.DataPath(), strings.NewReader("abc")), failed, unknown); err != nil {
			t.Fatal(err)
		}
		if day < 2 {
			if err := v.Record(t.Context(), bucket); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, m)
	}
	policy := retention.Policy{Last: 4}
	plan := func() []store.Backup {
		listing, err := store.List(t.Context(), bucket, store.Cluster{Namespace: "ns", Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		return retention.Prune(listing, policy, now.Add(time.Hour)).Delete
	}
	before := plan()
	if len(before) != 2 {
		t.Fatalf("without links, %v are deleted", before)
	}
	link := func(name string) {
		if err := os.Symlink(filepath.Join(t.TempDir(), "x"), filepath.Join(dir, "ns", "a", "00000000000000aa", name)); err != nil {
			t.Fatal(err)
		}
	}
	for hours := range 5 {
		id := store.SlotID(now.Add(-time.Duration(hours+1) * time.Hour))
		link(id + ".json")
		link(id + ".verified.json")
	}
	after := slices.DeleteFunc(plan(), func(b store.Backup) bool {
		_, err := store.ReadManifest(t.Context(), bucket, b)
		return errors.Is(err, store.ErrManifest) // a planted backup, which is not deleted either
	})
	if !slices.Equal(before, after) {
		t.Errorf("with links, %v are deleted, not %v", after, before)
	}
	link(all[2].Backup().ID() + ".damaged.json")
	listing, err := store.List(t.Context(), bucket, store.Cluster{Namespace: "ns", Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if err := listing.Removable(t.Context(), bucket, all[2]); !errors.Is(err, store.ErrManifest) {
		t.Errorf("a backup with a link as its damage mark is shown as removable: %v", err)
	}
	if err := listing.Remove(t.Context(), bucket, all[2]); !errors.Is(err, store.ErrManifest) {
		t.Errorf("a backup with a link as its damage mark was removed: %v", err)
	}
	if _, err := store.ReadManifest(t.Context(), bucket, all[2].Backup()); err != nil {
		t.Error(err)
	}
}
