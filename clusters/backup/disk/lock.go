package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// errLocked is a file that somebody else has locked.
var errLocked = errors.New("it is locked")

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
	for err = tryLock(file); errors.Is(err, errLocked) && ctx.Err() == nil; err = tryLock(file) {
		if wait != nil {
			wait()
			wait = nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(lockPause):
		}
	}
	if errors.Is(err, errLocked) {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return func() { _ = file.Close() }, nil // which unlocks it
}
