package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"quorate.dev/quorate/clusters/backup/store"
)

// odd is a store with unusual behavior.
type odd struct {
	store.Bucket
	// holds makes it refuse deletions.
	holds bool
	// archived makes data with names before this one unreadable.
	archived string
	// short lists the names whose content is truncated, but only on the first read.
	short map[string]bool
}

func (o odd) Delete(ctx context.Context, name string) error {
	if o.holds {
		return fmt.Errorf("delete %s: %w", name, store.ErrHeld)
	}
	return o.Bucket.Delete(ctx, name)
}

func (o odd) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	isData := strings.Contains(name, ".db")
	if isData && name < o.archived {
		return nil, errors.New("InvalidObjectState: archived")
	}
	r, err := o.Bucket.Open(ctx, name)
	if err != nil || !isData || !o.short[name] {
		return r, err
	}
	delete(o.short, name)
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(r, 9), r}, nil
}

// TestReadAgainWhatIsHeld checks that rereads continue if a store refuses to delete old marks.
func TestReadAgainWhatIsHeld(t *testing.T) {
	b := odd{Bucket: bucketIn(t, t.TempDir()), holds: true}
	three(t, b)
	now := time.Now().UTC().Truncate(time.Second)
	for i := range 2 { // marks contain their time in seconds, so those of the second read differ
		a := Again{After: time.Nanosecond, Count: 3, Now: now.Add(time.Duration(i+1) * 240 * time.Hour)}
		if found := a.Do(t.Context(), b, listed(t, b)); len(found.Read) != 3 || found.Unread != nil {
			t.Errorf("look %d: %d are read: %v", i, len(found.Read), found.Unread)
		}
		time.Sleep(1100 * time.Millisecond)
	}
}

// TestReadAgainBehindArchived checks that backups that can never be read do not block others forever.
func TestReadAgainBehindArchived(t *testing.T) {
	b := bucketIn(t, t.TempDir())
	o, all := three(t, b)
	last := ""
	for range 4 {
		last = stored(t, b, o).Backup().ID()
		o.Slot = o.Slot.Add(time.Hour)
	}
	directory := strings.TrimSuffix(all[0].DataPath(), all[0].Data)
	archives := odd{Bucket: b, archived: directory + last}
	for range 200 {
		a := Again{After: time.Hour, Count: 1, Now: time.Now().Add(240 * time.Hour)}
		if found := a.Do(t.Context(), archives, listed(t, b)); ids(found.Read) == last {
			return
		}
	}
	t.Errorf("%s is never read", last)
}

// slow is a store that delays reads of data: by the configured time for a backup, or else by a second.
type slow struct {
	store.Bucket
	takes map[string]time.Duration
}

func (s slow) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	if !strings.Contains(name, ".db") {
		return s.Bucket.Open(ctx, name)
	}
	takes := time.NewTimer(max(time.Second, s.takes[name]))
	defer takes.Stop()
	select {
	case <-takes.C:
		return s.Bucket.Open(ctx, name)
	case <-ctx.Done():
		return nil, fmt.Errorf("open %s: %w", name, ctx.Err())
	}
}

// TestReadAgainBehindLarge checks that a backup that takes too long uses half of the time, so that those after it are
// read. If no others are due, it may use all of the time. The least recently read backup is still first.
func TestReadAgainBehindLarge(t *testing.T) {
	dir := t.TempDir()
	_, all := three(t, bucketIn(t, dir))
	synctest.Test(t, func(t *testing.T) {
		b := slow{bucketIn(t, dir), map[string]time.Duration{}}
		time.Sleep(time.Until(all[2].Slot.Add(720 * time.Hour)))
		job := func() (ReadAgain, time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
			defer cancel()
			begun := time.Now()
			found := Again{After: 24 * time.Hour, Count: 1, Now: begun.UTC().Truncate(time.Second)}.Do(ctx, b, listed(t, b))
			took := time.Since(begun)
			time.Sleep(time.Hour)
			return found, took
		}
		b.takes[all[0].DataPath()] = 5 * time.Minute
		for i, want := range []struct {
			read   string
			took   time.Duration
			unread string
		}{
			{"20261122t190000z", 4*time.Minute + time.Second, "20261122t180000z again: it was not read within 4m0s"},
			{"20261122t200000z", 4*time.Minute + time.Second, "20261122t180000z again: it was not read within 4m0s"},
			{"20261122t180000z", 5 * time.Minute, ""}, // no others are due
			{"", 0, ""},
		} {
			found, took := job()
			if ids(found.Read) != want.read || took != want.took || found.Good != 3 || len(found.Damaged) > 0 ||
				(found.Unread != nil) != (want.unread != "") || found.Unread != nil && !strings.Contains(found.Unread.Error(), want.unread) {
				t.Errorf("Job %d: read %q in %s, %d good, damaged %q, unread: %v", i, ids(found.Read), took, found.Good, ids(found.Damaged), found.Unread)
			}
		}
		time.Sleep(48 * time.Hour) // two that use half each leave a quarter for the third
		b.takes[all[1].DataPath()], b.takes[all[2].DataPath()] = time.Hour, time.Minute
		b.takes[all[0].DataPath()] = time.Hour
		for range 2 {
			if found, took := job(); ids(found.Read) != "20261122t200000z" && len(found.Read) > 0 || took > 8*time.Minute || !found.Oldest.Before(time.Now().Add(-24*time.Hour)) {
				t.Errorf("read %q in %s, the oldest since %s, unread: %v", ids(found.Read), took, found.Oldest, found.Unread)
			}
		}
		for _, backup := range listed(t, b).Backups {
			if since := time.Since(backup.ReadAt); (since < 24*time.Hour) != (backup.ID() == "20261122t200000z") {
				t.Errorf("%s was read %s ago", backup.ID(), since)
			}
		}
	})
}

// TestReadAgainLooksTwice checks that one truncated read does not condemn a backup, because retention deletes damaged
// ones.
func TestReadAgainLooksTwice(t *testing.T) {
	b := bucketIn(t, t.TempDir())
	_, all := three(t, b)
	cut := odd{Bucket: b, short: map[string]bool{all[0].DataPath(): true}}
	a := Again{After: time.Hour, Count: 1, Now: time.Now().Add(240 * time.Hour)}
	if found := a.Do(t.Context(), cut, listed(t, b)); len(found.Damaged) > 0 || found.Good != 3 || found.Unread == nil {
		t.Errorf("damaged %q, %d good, unread: %v", ids(found.Damaged), found.Good, found.Unread)
	}
}

// TestReadAgainLeavesTheRest checks that names that only begin like a mark are left alone.
func TestReadAgainLeavesTheRest(t *testing.T) {
	b := bucketIn(t, t.TempDir())
	_, all := three(t, b)
	name := strings.TrimSuffix(all[0].DataPath(), all[0].Data) + all[0].Backup().ID() + ".read-me.txt"
	if err := b.Create(t.Context(), name, strings.NewReader("mine")); err != nil {
		t.Fatal(err)
	}
	a := Again{After: time.Hour, Count: 1, Now: time.Now().Add(240 * time.Hour)}
	a.Do(t.Context(), b, listed(t, b))
	if _, err := b.Size(t.Context(), name); err != nil {
		t.Errorf("it is gone: %v", err)
	}
}
