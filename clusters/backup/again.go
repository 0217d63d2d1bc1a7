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

// Again specifies which stored backups to reread, to check whether they are still intact.
type Again struct {
	// After is the minimum age of the last read. Count is the maximum number of backups to read.
	After time.Duration
	Count int
	// MaxBytes is the maximum stored size of a backup; 0 means no limit.
	MaxBytes int64
	Now      time.Time
	Progress Progress
}

// ReadAgain is the result of rereading backups.
type ReadAgain struct {
	// Read lists the backups that were read, and Bytes is their total size. Damaged lists those that are not intact or
	// have untrusted manifests.
	Read, Damaged []store.Backup
	Bytes         int64
	// Good is the number of good backups. Oldest is when the least recently read of them was last read, or zero if
	// there are none.
	Good   int
	Oldest time.Time
	// Unread is why a backup that was due could not be read, or nil.
	Unread error
}

// maxUnread is how many unreadable backups may come first before others get a turn. As many of those others may be
// unreadable, too.
const maxUnread = 3

// Do rereads the backups that have not been read for the longest time, and records the results. It needs no key: the
// stored bytes are compared with the checksum from when they were stored. A backup that is deleted in the meantime is
// skipped, and a failed read says nothing about a backup.
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

// readInTime reads a backup. If others are due, it uses at most half of the remaining time: a backup that takes longer
// would be first again the next time, and block the others forever.
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
	if err != nil && errors.Is(context.Cause(ctx), late) && !errors.Is(err, late) { // libraries ignore causes
		err = fmt.Errorf("%w: %w", late, err)
	}
	return size, damaged, err
}

// turns returns the backups that are due, the least recently read first. The first few may never be readable, for
// example if the store has archived them, so the order of the others starts at a random one.
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

// count counts the good backups among those that were good before.
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

// errReplaced is returned if another backup has replaced this one in its slot.
var errReplaced = errors.New("it was replaced meanwhile")

// read reads the stored bytes of a backup and records the result.
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
	if err == nil && found.Damage != "" { // retention deletes damaged backups, and a single read may be wrong
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

// compare reads the stored bytes, at most one more than expected, and returns what is wrong with them, or "".
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
