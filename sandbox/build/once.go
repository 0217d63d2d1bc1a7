package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Once returns the path of the cache entry with this name. If the entry does not exist, Once calls make to create it at
// a temporary path. Entries appear atomically, and only one process creates entries at a time.
func (c *Cache) Once(ctx context.Context, name string, make func(unfinished string) error) (string, error) {
	path := filepath.Join(c.Dir, name)
	if has, err := exists(path); has || err != nil {
		return path, err
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	if has, err := exists(path); has || err != nil {
		return path, err // created by the process that held the lock before
	}
	// Only an interrupted process can have left the directory, because this process now holds the lock.
	unfinished := filepath.Join(c.Dir, ".unfinished")
	if err := os.RemoveAll(unfinished); err != nil {
		return "", fmt.Errorf("remove interrupted builds from the cache: %w", err)
	}
	if err := make(unfinished); err != nil {
		return "", errors.Join(err, os.RemoveAll(unfinished))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("create a directory in the cache: %w", err)
	}
	if err := os.Rename(unfinished, path); err != nil {
		return "", fmt.Errorf("put %s into the cache: %w", name, err)
	}
	return path, nil
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the cache: %w", err)
	}
	return true, nil
}

// lock waits until no other process is creating entries, and locks the cache.
func (c *Cache) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("create the cache: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(c.Dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the cache: %w", err)
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			file.Close()
			return nil, fmt.Errorf("lock the cache: %w", err)
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("wait for another build process: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
