package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/clusters/backup/store"
)

// Again says which stored backups are read again, to see whether they are still what was stored.
type Again struct {
	// After is for how long a backup was not read that is due, and Count how many are read at most.
	After time.Duration
	Count int
	// MaxBytes is how large what is stored of one may be; 0 stands for any size.
	MaxBytes int64
	Now      time.Time
	Progress Progress
}

// ReadAgain is what came of it.
type ReadAgain struct {
	// Read are those that were read, and Bytes how many bytes that were. Damaged are those of them that are not what
	// was stored, and those whose manifests are not to be trusted.
	Read, Damaged []store.Backup
	Bytes         int64
	// Good is how many good backups there are, and Oldest since when the one of them was not read that was not read
	// for the longest time; zero if there is none.
	Good   int
	Oldest time.Time
	// Unread says why one that was due could not be read; nil if there is none.
	Unread error
}

// maxUnread is how many backups that cannot be read are passed over, to get at those behind them, of which as many may
// be as well.
const maxUnread = 3

// Do reads what is stored of the backups that were not read for the longest time, and records what it finds. It needs
// no key: the bytes are held against the checksum that was taken when they were stored. A backup that is deleted
// meanwhile is none, and what cannot be read says nothing about a backup.
func (a Again) Do(ctx context.Context, from store.Bucket, l store.Listing) ReadAgain {
	var found ReadAgain
	good := l.LeastRecentlyRead(a.Now)
	gone := map[store.Backup]bool{}
	unread := 0
	turns := a.turns(good)
	for i, b := range turns {
		if len(found.Read) == a.Count || unread == 2*maxUnread || ctx.Err() != nil {
			break
		}
		size, damaged, err := a.readInTime(ctx, from, b, i+1 < len(turns))
		switch {
		case errors.Is(err, store.ErrNotFound), errors.Is(err, errReplaced):
			gone[b] = true
			continue
		case err != nil:
			unread++
			if found.Unread == nil {
				found.Unread = fmt.Errorf("read backup %s again: %w", b.ID(), err)
			}
			continue
		}
		found.Read, found.Bytes = append(found.Read, b), found.Bytes+size
		if damaged {
			found.Damaged = append(found.Damaged, b)
		}
	}
	found.count(slices.DeleteFunc(good, func(b store.Backup) bool { return gone[b] }), a.Now)
	return found
}

// readInTime reads a backup in half of the time that is left, at most, if others are due: one for which that is too
// short is the first again the next time, and would keep the others out forever.
func (a Again) readInTime(
	ctx context.Context, from store.Bucket, b store.Backup, others bool,
) (size int64, damaged bool, err error) {
	end, ends := ctx.Deadline()
	if !ends || !others {
		return a.read(ctx, from, b)
	}
	share := time.Until(end) / 2
	late := fmt.Errorf("it was not read within %s, half of the time that was left, and others are due; "+
		"a longer --timeout allows more: of a Job, spec.backup.deadline", share.Round(time.Second))
	ctx, cancel := context.WithTimeoutCause(ctx, share, late)
	defer cancel()
	size, damaged, err = a.read(ctx, from, b)
	if err != nil && errors.Is(context.Cause(ctx), late) && !errors.Is(err, late) { // libraries do not know causes
		err = fmt.Errorf("%w: %w", late, err)
	}
	return size, damaged, err
}

// turns are those that are due, the least recently read first. The first ones may never be readable, as where the
// store has archived them: those behind them take turns.
func (a Again) turns(good []store.Backup) []store.Backup {
	due := slices.DeleteFunc(slices.Clone(good), func(b store.Backup) bool {
		return a.Now.Sub(b.UnreadSince(a.Now)) < a.After
	})
	if len(due) <= maxUnread {
		return due
	}
	behind := due[maxUnread:]
	at := rand.IntN(len(behind))
	return slices.Concat(due[:maxUnread], behind[at:], behind[:at])
}

// count counts the good backups, of those that were good before.
func (r *ReadAgain) count(before []store.Backup, now time.Time) {
	for _, b := range before {
		if slices.Contains(r.Damaged, b) {
			continue
		}
		r.Good++
		since := b.UnreadSince(now)
		if slices.Contains(r.Read, b) {
			since = now
		}
		if r.Oldest.IsZero() || since.Before(r.Oldest) {
			r.Oldest = since
		}
	}
}

// errReplaced is a backup of whose slot there is another one meanwhile.
var errReplaced = errors.New("it was replaced meanwhile")

// read reads what is stored of a backup, and records what it finds.
func (a Again) read(ctx context.Context, from store.Bucket, b store.Backup) (size int64, damaged bool, err error) {
	m, err := store.ReadManifest(ctx, from, b)
	switch {
	case errors.Is(err, store.ErrFormat):
		return 0, false, err
	case errors.Is(err, store.ErrManifest):
		return 0, true, store.Condemn(ctx, from, b)
	case err != nil:
		return 0, false, err
	case a.MaxBytes > 0 && m.Bytes > a.MaxBytes:
		return 0, false, fmt.Errorf("%w: %d bytes; --max-bytes raises that", ErrTooLarge, m.Bytes)
	}
	found, err := store.BeginVerification(ctx, from, m)
	if err != nil {
		return 0, false, err
	}
	size, found.Damage, err = a.compare(ctx, from, m)
	if err == nil && found.Damage != "" { // retention deletes it for that: one look may have been wrong
		var sound string
		if _, sound, err = a.compare(ctx, from, m); err == nil && sound == "" {
			err = errors.New("it was read twice, and was not the same twice")
		}
	}
	if err != nil {
		return 0, false, err
	}
	err = found.RecordRead(ctx, from)
	if errors.Is(err, store.ErrManifest) {
		err = fmt.Errorf("%w: %w", errReplaced, err)
	}
	return size, found.Damage != "", err
}

// compare reads what is stored, one byte more than there should be at most, and says what is wrong with it; empty if
// nothing is.
func (a Again) compare(
	ctx context.Context, from store.Bucket, m store.Manifest,
) (size int64, damage string, err error) {
	object, err := from.Open(ctx, m.DataPath())
	if errors.Is(err, store.ErrNotFound) {
		return 0, fmt.Sprintf("%v: its data are gone", ErrDamaged), nil
	}
	if err != nil {
		return 0, "", err
	}
	defer object.Close()
	stored := newDigest()
	_, err = io.Copy(io.MultiWriter(stored, a.Progress.counter("read", m.Bytes)),
		io.LimitReader(disk.Until(ctx, object), m.Bytes+1))
	if err != nil {
		return 0, "", fmt.Errorf("read %s: %w", m.DataPath(), err)
	}
	if stored.size != m.Bytes || stored.String() != m.SHA256 {
		return stored.size, fmt.Sprintf("%v: what is stored is not what the manifest says", ErrDamaged), nil
	}
	return stored.size, "", nil
}
