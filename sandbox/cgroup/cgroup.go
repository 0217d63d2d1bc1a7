//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Enter creates the group and moves the calling process into it. Children that the process starts afterwards are in the
// group too. These processes survive if the caller's original groups are killed.
func Enter(group string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		if err := h.enter(group); err != nil {
			return err
		}
	}
	return nil
}

// Cover mounts the group over the root of every hierarchy, in the caller's mount namespace.
func Cover(group string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		tree, err := unix.OpenTree(unix.AT_FDCWD, filepath.Join(h.point, group), unix.OPEN_TREE_CLONE|
			unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return fmt.Errorf("open cgroup: %w", err)
		}
		defer unix.Close(tree)
		if err := unix.Unmount(h.point, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", h.point, err)
		}
		if err := unix.MoveMount(tree, "", unix.AT_FDCWD, h.point, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("mount %s: %w", h.point, err)
		}
	}
	return nil
}

// Remove removes the group and all groups below it. It waits up to patience, because the kernel takes a moment to
// release a process that has just ended.
func Remove(group string, patience time.Duration) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	var problems []error
	for _, h := range all {
		problems = append(problems, removeTree(filepath.Join(h.point, group), patience))
	}
	return errors.Join(problems...)
}

func removeTree(root string, patience time.Duration) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list cgroups: %w", err)
	}
	deadline := time.Now().Add(patience)
	for _, dir := range slices.Backward(dirs) {
		err := os.Remove(dir)
		for errors.Is(err, syscall.EBUSY) && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
			err = os.Remove(dir)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove cgroup: %w", err)
		}
	}
	return nil
}

// RemoveIfEmpty removes the group unless it contains other groups.
func RemoveIfEmpty(group string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		err := os.Remove(filepath.Join(h.point, group))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EBUSY) &&
			!errors.Is(err, syscall.ENOTEMPTY) {
			return fmt.Errorf("remove cgroup: %w", err)
		}
	}
	return nil
}

// Memory returns the number of bytes of memory that are used by all processes in the group and in the groups below it.
// It counts the page cache only for mapped files.
func Memory(group string) (int64, error) {
	all, err := hierarchies()
	if err != nil {
		return 0, err
	}
	for _, h := range all {
		if stat, err := os.ReadFile(filepath.Join(h.point, group, "memory.stat")); err == nil {
			return used(string(stat)), nil
		}
	}
	return 0, fmt.Errorf("read the memory of cgroup %s: it has no memory controller", group)
}

// used returns the total memory use in memory.stat, whose keys differ between the two cgroup versions.
func used(stat string) int64 {
	var total int64
	for line := range strings.Lines(stat) {
		var name string
		var value int64
		if _, err := fmt.Sscan(line, &name, &value); err != nil {
			continue
		}
		switch name {
		case "total_rss", "total_mapped_file", "anon", "file_mapped":
			total += value
		}
	}
	return total
}
