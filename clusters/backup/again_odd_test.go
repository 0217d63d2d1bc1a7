package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/backup/store"
)

// odd is a store that has its ways.
type odd struct {
	store.Bucket
	// holds: it deletes nothing.
	holds bool
	// archived: what is stored under a name before this one cannot be read.
	archived string
	// short are the names of what is cut short, the first time alone.
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

// TestReadAgainWhatIsHeld: a store that holds on to old marks has backups read as any other.
func TestReadAgainWhatIsHeld(t *testing.T) {
	b := odd{Bucket: bucketIn(t, t.TempDir()), holds: true}
	three(t, b)
	now := time.Now().UTC().Truncate(time.Second)
	for i := range 2 { // marks are of when they were made, in seconds: those of the second look are other ones
		a := Again{After: time.Nanosecond, Count: 3, Now: now.Add(time.Duration(i+1) * 240 * time.Hour)}
		if found := a.Do(t.Context(), b, listed(t, b)); len(found.Read) != 3 || found.Unread != nil {
			t.Errorf("look %d: %d are read: %v", i, len(found.Read), found.Unread)
		}
		time.Sleep(1100 * time.Millisecond)
	}
}

// TestReadAgainBehindArchived: backups that can never be read do not keep others out forever.
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

// TestReadAgainLooksTwice: retention deletes what is damaged, so one look that was cut short condemns nothing.
func TestReadAgainLooksTwice(t *testing.T) {
	b := bucketIn(t, t.TempDir())
	_, all := three(t, b)
	cut := odd{Bucket: b, short: map[string]bool{all[0].DataPath(): true}}
	a := Again{After: time.Hour, Count: 1, Now: time.Now().Add(240 * time.Hour)}
	if found := a.Do(t.Context(), cut, listed(t, b)); len(found.Damaged) > 0 || found.Good != 3 || found.Unread == nil {
		t.Errorf("damaged %q, %d good, unread: %v", ids(found.Damaged), found.Good, found.Unread)
	}
}

// TestReadAgainLeavesTheRest: names that only begin as a mark does are somebody else's.
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
