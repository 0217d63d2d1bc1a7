// Package cgroup makes, enters and removes control groups in all hierarchies
// that are mounted, of version 1 and 2 alike.
package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// hierarchies reads the mounted cgroup hierarchies. A process cannot enter a
// fresh group of the version 1 cpuset controller, and has no need to.
func hierarchies() (all, enterable []string, err error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, nil, fmt.Errorf("read mounts: %w", err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		before, after, found := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(before)
		if !found || len(fields) < 5 {
			continue
		}
		kind := strings.Fields(after)[0]
		if kind != "cgroup" && kind != "cgroup2" {
			continue
		}
		point := fields[4]
		all = append(all, point)
		if !slices.Contains(strings.Split(filepath.Base(point), ","), "cpuset") {
			enterable = append(enterable, point)
		}
	}
	return all, enterable, nil
}

// Enter moves the calling process, and so those it will start, into the group.
// What ends everything in the caller's own groups then spares it.
func Enter(group string) error {
	_, points, err := hierarchies()
	if err != nil {
		return err
	}
	for _, point := range points {
		dir := filepath.Join(point, group)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make cgroup: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0); err != nil {
			return fmt.Errorf("enter cgroup: %w", err)
		}
	}
	return nil
}

// Remove removes the group and all groups below it. The kernel needs a moment
// to let go of a process that has just ended: Remove waits up to patience.
func Remove(group string, patience time.Duration) error {
	points, _, err := hierarchies()
	if err != nil {
		return err
	}
	var problems []error
	for _, point := range points {
		problems = append(problems, removeTree(filepath.Join(point, group), patience))
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
		for err != nil && !errors.Is(err, fs.ErrNotExist) && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
			err = os.Remove(dir)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove cgroup: %w", err)
		}
	}
	return nil
}

// Memory is what the processes of the group and all below it use, in bytes,
// without what the kernel would give back at once (cached files).
func Memory(group string) (int64, error) {
	points, _, err := hierarchies()
	if err != nil {
		return 0, err
	}
	for _, point := range points {
		if total, found := memory(filepath.Join(point, group)); found {
			return total, nil
		}
	}
	return 0, fmt.Errorf("read the memory of cgroup %s: no memory controller has it", group)
}

// memory reads memory.stat, whose words differ between the two versions.
func memory(dir string) (int64, bool) {
	data, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return 0, false
	}
	var total int64
	for line := range strings.Lines(string(data)) {
		var name string
		var value int64
		if _, err := fmt.Sscan(line, &name, &value); err != nil {
			continue
		}
		switch name {
		case "total_rss", "total_mapped_file", "anon", "file_mapped": // version 1, version 2
			total += value
		}
	}
	return total, true
}

// RemoveIfEmpty removes the group where nothing is below it.
func RemoveIfEmpty(group string) error {
	points, _, err := hierarchies()
	if err != nil {
		return err
	}
	for _, point := range points {
		err := os.Remove(filepath.Join(point, group))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.EBUSY) && !errors.Is(err, syscall.ENOTEMPTY) {
			return fmt.Errorf("remove cgroup: %w", err)
		}
	}
	return nil
}
