package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrLocked is a file that somebody else has locked.
var ErrLocked = errors.New("it is locked")

// lockPause is how long to wait before asking for a lock again: a wait that the system ends by itself
// cannot be given up.
const lockPause = 100 * time.Millisecond

// Lock locks a file, and makes it if it is not there, until it is unlocked or the process ends. While
// another process has locked it, or the same one by another call, it waits, which it tells by wait
// once. The file stays: one that is removed could be locked by two.
func Lock(ctx context.Context, path string, wait func()) (unlock func(), err error) {
	file, err := openRegular(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for err = tryLock(file); errors.Is(err, ErrLocked) && ctx.Err() == nil; err = tryLock(file) {
		if wait != nil {
			wait()
			wait = nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(lockPause):
		}
	}
	if errors.Is(err, ErrLocked) {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return func() { _ = file.Close() }, nil // which unlocks it
}

// Share keeps others from locking a file until it is unlocked or the process ends; they may share it, too.
// It does not wait: ErrLocked says that somebody else has locked it.
func Share(path string) (*Shared, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	if err := tryShare(file); err != nil {
		return nil, errors.Join(fmt.Errorf("share %s: %w", path, err), file.Close())
	}
	return &Shared{file}, nil
}

// Shared is a file whose lock is shared until it is closed.
type Shared struct{ file *os.File }

// Close gives the lock up.
func (s *Shared) Close() { _ = s.file.Close() }
