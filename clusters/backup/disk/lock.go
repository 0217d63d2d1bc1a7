package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrLocked is returned if another process holds the lock.
var ErrLocked = errors.New("it is locked")

// lockPause is the interval between attempts to lock. A blocking lock call cannot be canceled.
const lockPause = 100 * time.Millisecond

// Lock locks path, which it creates if necessary, until unlock is called or the process exits. If another process, or
// another call in this process, holds the lock, Lock calls wait once and then waits. The file is never removed, because
// two processes could then each lock a different file.
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
	return func() { _ = file.Close() }, nil // releases the lock
}

// Share takes a shared lock on a file until the result is closed or the process exits. Other processes can take a
// shared lock too, but not an exclusive one. Share does not wait: it returns ErrLocked if another process holds an
// exclusive lock.
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

// Shared is a file with a shared lock, which is held until Close.
type Shared struct{ file *os.File }

// Close releases the lock.
func (s *Shared) Close() { _ = s.file.Close() }
