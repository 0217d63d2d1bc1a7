package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/backup/retention"
	"quorate.dev/quorate/clusters/backup/store"
)

// TestConcurrentOperationsKeepBackupsConsistent runs backups, verifications, drills and prunes on one store at the same
// time, first two and then ten of each. It checks that every manifest keeps its data, that no backup is reported as
// damaged, and that the newest verified backup is kept.
func TestConcurrentOperationsKeepBackupsConsistent(t *testing.T) {
	for _, each := range []int{2, 10} {
		t.Run(fmt.Sprint(each), func(t *testing.T) {
			b, o := bucketIn(t, t.TempDir()), order(t)
			now := o.Slot.Add(time.Hour)
			stored(t, b, o)
			var proven proven
			var all sync.WaitGroup
			for i := range each {
				all.Go(func() {
					for round := range 4 { // two workers back up each slot
						o := o
						o.Slot = o.Slot.Add(time.Duration(round*each+i/2) * time.Second)
						taken, err := Take(t.Context(), sound(t), o)
						if err == nil {
							_, err = taken.Store(t.Context(), b, o)
						}
						// Since then, another worker may have stored a backup of the slot, and a third may have pruned
						// it.
						if err != nil && !errors.Is(err, store.ErrNotFound) {
							t.Errorf("back up: %v", err)
						}
					}
				})
				for _, record := range []func(context.Context, store.Bucket, store.Verification) error{
					func(ctx context.Context, b store.Bucket, v store.Verification) error { return v.Record(ctx, b) },
					func(ctx context.Context, b store.Bucket, v store.Verification) error {
						return (store.Drill{Format: store.Format, Verification: v}).Record(ctx, b)
					},
				} {
					all.Go(func() {
						for range 4 {
							verifyNewest(t, b, o.Cluster, record, &proven)
						}
					})
				}
				all.Go(func() {
					for range 8 {
						prune(t, b, o.Cluster, now)
					}
				})
			}
			all.Wait()
			newest := requireLaws(t, b, o.Cluster)
			if last := proven.newest; last.After(newest) {
				t.Errorf("the backup of %s was verified, and the newest that is is of %s", last, newest)
			}
			verifyNewest(t, b, o.Cluster, func(ctx context.Context, b store.Bucket, v store.Verification) error { return v.Record(ctx, b) }, &proven)
			for range 4 {
				prune(t, b, o.Cluster, now)
			}
			listing, err := store.List(t.Context(), b, o.Cluster)
			if err != nil || len(listing.Backups) != 1 || !listing.Backups[0].Slot.Equal(proven.newest) {
				t.Errorf("%+v, %v", listing.Backups, err)
			}
		})
	}
}

// proven records the newest slot with a verified backup.
type proven struct {
	mu     sync.Mutex
	newest time.Time
}

func verifyNewest(
	t *testing.T, b store.Bucket, of store.Cluster, record func(context.Context, store.Bucket, store.Verification) error, p *proven,
) {
	listing, err := store.List(t.Context(), b, of)
	if err != nil {
		t.Errorf("list: %v", err)
		return
	}
	newest, _ := listing.Newest()
	m, err := store.ReadManifest(t.Context(), b, newest)
	var found store.Verification
	if err == nil {
		found, err = Verify(t.Context(), b, m, t.TempDir(), reading(nil))
	}
	if err == nil {
		err = record(t.Context(), b, found)
	}
	// Since then, the backup may have been pruned, and stored again by another worker for the same slot.
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrManifest) {
		t.Errorf("verify: %v", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && found.Damage == "" && newest.Slot.After(p.newest) {
		p.newest = newest.Slot
	}
}

// prune deletes all backups that the retention policy allows it to delete.
func prune(t *testing.T, b store.Bucket, of store.Cluster, now time.Time) {
	listing, err := store.List(t.Context(), b, of)
	if err != nil {
		t.Errorf("list: %v", err)
		return
	}
	plan := retention.Prune(listing, retention.Policy{Last: 1}, now)
	if plan.Why != "" {
		return
	}
	if err := store.Confirm(t.Context(), b, plan.RestsOn); err != nil {
		if !errors.Is(err, store.ErrNotFound) { // a newer backup has replaced it
			t.Errorf("confirm: %v", err)
		}
		return
	}
	for _, old := range plan.Delete {
		m, err := store.ReadManifest(t.Context(), b, old)
		if err == nil {
			err = listing.Remove(t.Context(), b, m)
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("prune: %v", err)
		}
	}
}

// requireLaws checks that every manifest has its data, and returns the newest slot with a verified backup.
func requireLaws(t *testing.T, b store.Bucket, of store.Cluster) (newest time.Time) {
	t.Helper()
	listing, err := store.List(t.Context(), b, of)
	if err != nil {
		t.Fatal(err)
	}
	for _, backup := range listing.Backups {
		if _, err := store.ReadUseful(t.Context(), b, backup); err != nil {
			t.Errorf("%+v: %v", backup, err)
		}
		if backup.Verified && backup.Slot.After(newest) {
			newest = backup.Slot
		}
	}
	return newest
}

// echoing is a store that reports every object that it creates as already existing, as if the response to a first
// request had been lost and the request repeated.
type echoing struct{ store.Bucket }

func (e echoing) Create(ctx context.Context, name string, content io.Reader) error {
	if err := e.Bucket.Create(ctx, name, content); err != nil {
		return err
	}
	return store.ErrExists
}

// TestStoreRetryAcceptsOwnData checks that data becomes a normal backup even if the response to the request that stored
// it was lost. Data of a different size does not, because this process did not store it.
func TestStoreRetryAcceptsOwnData(t *testing.T) {
	b, o := bucketIn(t, t.TempDir()), order(t)
	m := stored(t, echoing{b}, o)
	if listing, err := store.List(t.Context(), b, o.Cluster); err != nil || len(listing.Backups) != 1 || len(listing.Data) != 1 {
		t.Errorf("%+v, %v", listing, err)
	}
	if found, err := Verify(t.Context(), b, m, t.TempDir(), reading(nil)); err != nil || found.Damage != "" {
		t.Errorf("%+v, %v", found, err)
	}
	o.Slot = o.Slot.Add(time.Hour)
	taken, err := Take(t.Context(), sound(t), o)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := taken.Store(t.Context(), cutting{echoing{b}}, o); !errors.Is(err, store.ErrExists) {
		t.Errorf("%+v, %v", m, err)
	}
	if listing, err := store.List(t.Context(), b, o.Cluster); err != nil || len(listing.Backups) != 1 {
		t.Errorf("%+v, %v", listing, err)
	}
}

// cutting is a store that truncates the objects that it creates.
type cutting struct{ store.Bucket }

func (c cutting) Create(ctx context.Context, name string, content io.Reader) error {
	text, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	return c.Bucket.Create(ctx, name, bytes.NewReader(text[:len(text)-1]))
}
