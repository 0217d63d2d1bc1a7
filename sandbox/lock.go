//go:build linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lock creates the sandbox's directory and gives the caller the exclusive right to change the sandbox, until the caller
// calls unlock or exits.
func (s *Sandbox) lock(ctx context.Context) (unlock func(), err error) {
	for said := false; ; said = true {
		dir, err := s.tryLock()
		if err != nil {
			return nil, err
		}
		if dir != nil {
			return func() { dir.Close() }, nil
		}
		if !said {
			s.Progress.Say("waiting for another command on sandbox " + s.Name)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another command on sandbox %s: %w", s.Name, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// lockExisting is like lock, but fails if the sandbox does not exist.
func (s *Sandbox) lockExisting(ctx context.Context) (unlock func(), err error) {
	if _, err := os.Stat(s.Dir()); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("find sandbox %s: %w", s.Name, ErrAbsent)
	}
	return s.lock(ctx)
}

// tryLock returns the locked directory, or nil if another command holds it.
func (s *Sandbox) tryLock() (*os.File, error) {
	if err := os.MkdirAll(s.Dir(), 0o755); err != nil {
		return nil, fmt.Errorf("create the directory of sandbox %s: %w", s.Name, err)
	}
	dir, err := os.Open(s.Dir())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // another command has just removed the directory
	}
	if err != nil {
		return nil, fmt.Errorf("open the directory of sandbox %s: %w", s.Name, err)
	}
	locked, err := flock(dir)
	// The lock is valid only if the directory still existed when it was locked.
	if err != nil || !locked || !s.isDir(dir) {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

func flock(dir *os.File) (locked bool, err error) {
	err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", dir.Name(), err)
	}
	return true, nil
}

func (s *Sandbox) isDir(dir *os.File) bool {
	ours, err := dir.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(s.Dir())
	return err == nil && os.SameFile(ours, now)
}
