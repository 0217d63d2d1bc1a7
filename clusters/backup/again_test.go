package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/backup/store"
)

// three stores the backups of three hours, the oldest first.
func three(t *testing.T, b store.Bucket) (o Order, all []store.Manifest) {
	t.Helper()
	o = order(t)
	for range 3 {
		all = append(all, stored(t, b, o))
		o.Slot = o.Slot.Add(time.Hour)
	}
	return o, all
}

func listed(t *testing.T, b store.Bucket) store.Listing {
	t.Helper()
	l, err := store.List(t.Context(), b, order(t).Cluster)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func ids(backups []store.Backup) string {
	var all []string
	for _, b := range backups {
		all = append(all, b.ID())
	}
	return strings.Join(all, " ")
}

// TestReadAgain checks that the least recently read backups are read, up to Count at a time, and each again only after
// a while. A reread does not change what else is known about a backup.
func TestReadAgain(t *testing.T) {
	b := bucketIn(t, t.TempDir())
	o, all := three(t, b)
	now := time.Now().UTC().Truncate(time.Second)
	if now.Before(o.Slot) {
		now = o.Slot
	}
	a := Again{After: time.Hour, Count: 2, Now: now}
	found := a.Do(t.Context(), b, listed(t, b))
	if ids(found.Read) != "20261122t180000z 20261122t190000z" || found.Bytes != all[0].Bytes+all[1].Bytes || len(found.Damaged) > 0 || found.Good != 3 ||
		!found.Oldest.Equal(all[2].Slot) || found.Unread != nil {
		t.Errorf("%+v", found)
	}
	// Marks contain the time of the read by this machine's clock.
	a.Now = now.Add(time.Second)
	found = a.Do(t.Context(), b, listed(t, b))
	if len(found.Read) == 0 || found.Read[0].ID() != "20261122t200000z" {
		t.Errorf("%+v", found)
	}
	for _, backup := range listed(t, b).Backups {
		if backup.Verified || !backup.Good() || backup.ReadAt.IsZero() {
			t.Errorf("%+v", backup)
		}
	}
	a.Now, a.Count = time.Now().Add(2*time.Hour), 3
	if found = a.Do(t.Context(), b, listed(t, b)); len(found.Read) != 3 {
		t.Errorf("%+v", found)
	}
	names, err := b.List(t.Context(), "")
	if marks := slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(name, ".read-") }); err != nil || len(marks) != 3 {
		t.Errorf("%v, %v", marks, err)
	}
	if err := store.Remove(t.Context(), b, all[0]); err != nil {
		t.Fatal(err)
	}
	if names, err := b.List(t.Context(), all[0].Backup().Cluster.String()+"/"+all[0].ClusterID+"/20261122t180000z"); err != nil || len(names) > 0 {
		t.Errorf("%v, %v", names, err)
	}
}

// TestReadAgainFindsDamage checks that a backup that differs from what was stored no longer counts, regardless of
// earlier results. The same applies to a backup with a false manifest, but not to one that may be of a newer version.
func TestReadAgainFindsDamage(t *testing.T) {
	for name, c := range map[string]struct {
		spoil   func(b store.Bucket, m store.Manifest) error
		damaged bool
		unread  string
	}{
		"flipped": {func(b store.Bucket, m store.Manifest) error {
			return b.Replace(t.Context(), m.DataPath(), bytes.NewReader(make([]byte, m.Bytes)))
		}, true, ""},
		"cut": {func(b store.Bucket, m store.Manifest) error {
			return b.Replace(t.Context(), m.DataPath(), strings.NewReader("x"))
		}, true, ""},
		"without an end": {func(b store.Bucket, m store.Manifest) error {
			return b.Replace(t.Context(), m.DataPath(), bytes.NewReader(make([]byte, 10*m.Bytes)))
		}, true, ""},
		"data that are gone": {func(b store.Bucket, m store.Manifest) error { return b.Delete(t.Context(), m.DataPath()) }, true, ""},
		"a manifest that is none": {func(b store.Bucket, m store.Manifest) error {
			return b.Replace(t.Context(), manifestOf(m), strings.NewReader("{"))
		}, true, ""},
		"a manifest of another": {func(b store.Bucket, m store.Manifest) error {
			return b.Replace(t.Context(), manifestOf(m), strings.NewReader(`{"format":"`+store.Format+`","namespace":"ns","cluster":"b"}`))
		}, true, ""},
		"a manifest of a newer version": {func(b store.Bucket, m store.Manifest) error {
			return b.Replace(t.Context(), manifestOf(m), strings.NewReader(`{"format":"quorate.dev/backup/v9"}`))
		}, false, "another format"},
		"a compression of a newer version": {func(b store.Bucket, m store.Manifest) error {
			m.Compression, m.Data = "brotli", strings.TrimSuffix(m.Data, ".zst")+".br"
			return b.Replace(t.Context(), manifestOf(m), bytes.NewReader(encoded(t, m)))
		}, false, "newer"},
		"an encryption of a newer version": {func(b store.Bucket, m store.Manifest) error {
			m.Encryption = "age-v2"
			return b.Replace(t.Context(), manifestOf(m), bytes.NewReader(encoded(t, m)))
		}, false, "newer"},
		"too large": {func(store.Bucket, store.Manifest) error { return nil }, false, "--max-bytes"},
		"deleted":   {func(b store.Bucket, m store.Manifest) error { return store.Remove(t.Context(), b, m) }, false, ""},
	} {
		b := bucketIn(t, t.TempDir())
		o, all := three(t, b)
		m := all[0]
		if found, err := Verify(t.Context(), b, m, t.TempDir(), reading(nil)); err != nil || found.Record(t.Context(), b) != nil {
			t.Fatal(err)
		}
		l := listed(t, b)
		if err := c.spoil(b, m); err != nil {
			t.Fatal(err)
		}
		a := Again{Count: 1, Now: o.Slot.Add(24 * time.Hour)}
		if name == "too large" {
			a.MaxBytes = 1
		}
		found := a.Do(t.Context(), b, l)
		if damaged := len(found.Damaged) == 1 && found.Damaged[0].Slot.Equal(m.Slot); damaged != c.damaged || !c.damaged && len(found.Damaged) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
		if unread := found.Unread != nil && strings.Contains(found.Unread.Error(), c.unread); unread != (c.unread != "") {
			t.Errorf("%s: %v", name, found.Unread)
		}
		if c.damaged && (found.Good != 2 || !found.Oldest.Equal(all[1].Slot)) {
			t.Errorf("%s: %+v", name, found)
		}
		if name == "deleted" && (len(found.Read) != 1 || found.Good != 2) {
			t.Errorf("%s: %+v", name, found)
		}
		for _, left := range listed(t, b).Backups {
			if left.Slot.Equal(m.Slot) && (left.Damaged != c.damaged || left.Verified == c.damaged) {
				t.Errorf("%s: %+v", name, left)
			}
		}
	}
}

func encoded(t *testing.T, m store.Manifest) []byte {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func manifestOf(m store.Manifest) string {
	return m.Backup().Cluster.String() + "/" + m.ClusterID + "/" + m.Backup().ID() + ".json"
}

// pruning is a store that deletes a backup while it is being read.
type pruning struct {
	store.Bucket
	m store.Manifest
}

func (p pruning) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	if name == p.m.DataPath() {
		if err := store.Remove(ctx, p.Bucket, p.m); err != nil {
			return nil, err
		}
	}
	return p.Bucket.Open(ctx, name)
}

// silent is a store that never returns data.
type silent struct{ store.Bucket }

func (s silent) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	if !strings.HasSuffix(name, ".json") {
		return nil, errCut
	}
	return s.Bucket.Open(ctx, name)
}

// TestReadAgainMeanwhile checks that a backup that is deleted while it is read is not reported as damaged, and that
// nothing is left of it. A backup that the store does not return is not damaged either, but is reported.
func TestReadAgainMeanwhile(t *testing.T) {
	b := bucketIn(t, t.TempDir())
	o, all := three(t, b)
	a := Again{Count: 1, Now: o.Slot.Add(24 * time.Hour)}
	found := a.Do(t.Context(), pruning{b, all[0]}, listed(t, b))
	if ids(found.Read) != "20261122t190000z" || len(found.Damaged) > 0 || found.Unread != nil || found.Good != 2 {
		t.Errorf("%+v", found)
	}
	if names, err := b.List(t.Context(), ""); err != nil || slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, "t180000z") }) {
		t.Errorf("%v, %v", names, err)
	}
	found = Again{Count: 3, Now: a.Now}.Do(t.Context(), silent{b}, listed(t, b))
	if len(found.Read)+len(found.Damaged) > 0 || !errors.Is(found.Unread, errCut) || found.Good != 2 {
		t.Errorf("%+v", found)
	}
}

// TestReadAgainOfTheFuture checks that neither a backup nor a read mark of the future prevents other backups from being
// read.
func TestReadAgainOfTheFuture(t *testing.T) {
	b := bucketIn(t, t.TempDir())
	_, all := three(t, b)
	stem := strings.TrimSuffix(manifestOf(all[0]), ".json")
	if err := b.Create(t.Context(), stem+".read-20991122t180000z.json", strings.NewReader("{}")); err != nil {
		t.Fatal(err)
	}
	found := Again{Count: 9, Now: all[1].Slot.Add(30 * time.Minute)}.Do(t.Context(), b, listed(t, b))
	if ids(found.Read) != "20261122t180000z 20261122t190000z" || found.Good != 2 {
		t.Errorf("%+v", found)
	}
}
