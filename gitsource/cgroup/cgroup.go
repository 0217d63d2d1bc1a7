// Package cgroup determines the memory limit that applies to this process and its children, usually that of a
// container.
package cgroup

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// unlimited is the smallest value that counts as no limit. Without a limit, cgroup v1 reports a huge number, rounded to
// pages.
const unlimited = 1 << 60

// MemoryLimit returns the lowest memory limit, in bytes, of this process's control group and its parents, in cgroup v2
// or v1. It returns 0 if a limit is not set or cannot be read. root is the root file system.
func MemoryLimit(root fs.FS) (bytes int64) {
	for _, g := range groups(root) {
		for dir := g.dir; ; dir = path.Dir(dir) {
			limit, ok := limitIn(root, path.Join(g.mount, dir, g.file))
			if ok && (bytes == 0 || limit < bytes) {
				bytes = limit
			}
			if dir == "/" {
				break
			}
		}
	}
	return bytes
}

// group locates the memory limits of a control group: file in dir and its parents, below mount.
type group struct{ mount, dir, file string }

// groups returns the control groups of this process in cgroup v2 and v1. Inside a container, dir may be the path on the
// host. In that case, MemoryLimit finds only parents of dir, up to the root, which is the container's own group.
func groups(root fs.FS) []group {
	content, _ := fs.ReadFile(root, "proc/self/cgroup")
	var found []group
	for line := range strings.Lines(string(content)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		dir := path.Join("/", parts[2])
		switch {
		case parts[0] == "0" && parts[1] == "":
			found = append(found, group{"sys/fs/cgroup", dir, "memory.max"},
				group{"sys/fs/cgroup/unified", dir, "memory.max"})
		case strings.Contains(","+parts[1]+",", ",memory,"):
			found = append(found, group{"sys/fs/cgroup/memory", dir, "memory.limit_in_bytes"})
		}
	}
	return found
}

func limitIn(root fs.FS, name string) (int64, bool) {
	content, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64) // "max" means no limit
	return limit, err == nil && limit > 0 && limit < unlimited
}
