// Package cgroup creates, enters, covers and removes control groups in all mounted hierarchies, both version 1 and
// version 2.
package cgroup

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hierarchy is a mounted tree of control groups.
type hierarchy struct {
	point   string
	version int
	cpuset  bool // version 1 with the cpuset controller, which must be configured before use
}

func hierarchies() ([]hierarchy, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	defer file.Close()
	var all []hierarchy
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if h, ok := parse(lines.Text()); ok {
			all = append(all, h)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("find control groups: none are mounted; mount them at /sys/fs/cgroup")
	}
	return all, nil
}

// parse parses a line of proc(5) mountinfo.
func parse(line string) (hierarchy, bool) {
	mount, filesystem, found := strings.Cut(line, " - ")
	fields, kind := strings.Fields(mount), strings.Fields(filesystem)
	if !found || len(fields) < 5 || len(kind) < 3 {
		return hierarchy{}, false
	}
	switch kind[0] {
	case "cgroup":
		return hierarchy{point: fields[4], version: 1, cpuset: slices.Contains(strings.Split(kind[2], ","), "cpuset")},
			true
	case "cgroup2":
		return hierarchy{point: fields[4], version: 2}, true
	default:
		return hierarchy{}, false
	}
}

// enter creates the group and its ancestors, makes them usable, and moves the calling process into the group. The
// ancestors can delegate controllers only after the process has left them.
func (h hierarchy) enter(group string) error {
	above := []string{h.point}
	dir := h.point
	for name := range strings.SplitSeq(strings.Trim(group, "/"), "/") {
		dir = filepath.Join(dir, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
			return fmt.Errorf("create cgroup: %w", err)
		}
		if err := h.inherit(above[len(above)-1], dir); err != nil {
			return err
		}
		above = append(above, dir)
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0); err != nil {
		return fmt.Errorf("enter cgroup: %w", err)
	}
	for _, dir := range above[:len(above)-1] {
		if err := h.delegate(dir); err != nil {
			return err
		}
	}
	return nil
}

// delegate enables all controllers of dir for the groups below dir.
func (h hierarchy) delegate(dir string) error {
	if h.version == 1 {
		return nil
	}
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("read the controllers of a cgroup: %w", err)
	}
	for controller := range strings.FieldsSeq(string(controllers)) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0); err != nil {
			return fmt.Errorf("delegate a controller to cgroups: %w", err)
		}
	}
	return nil
}

// inherit copies the settings of the parent group to a new group of the version 1 cpuset controller. A group cannot
// contain processes while these settings are empty.
func (h hierarchy) inherit(above, dir string) error {
	if !h.cpuset {
		return nil
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		own, err := os.ReadFile(filepath.Join(dir, file))
		if err == nil && len(strings.TrimSpace(string(own))) > 0 {
			continue
		}
		value, err := os.ReadFile(filepath.Join(above, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), value, 0)
		}
		if err != nil {
			return fmt.Errorf("inherit %s: %w", file, err)
		}
	}
	return nil
}
