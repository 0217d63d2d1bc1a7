// Package cgroup tells how much memory this process may use, with all that it starts: what the
// container that it runs in is given.
package cgroup

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// unlimited is what version 1 says, rounded to pages, where there is no limit.
const unlimited = 1 << 60

// MemoryLimit is the least memory limit, in bytes, of the control group that this process is in and
// of those around it, of version 2 or 1. It is 0 if there is none, or none that can be read. root
// is the file system of the machine.
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

// group is where the memory limits of a control group are: dir below a mount.
type group struct{ mount, dir, file string }

// groups are those that the process is in, by each version. Inside a container, dir can be as the
// machine outside calls it, and then only what is around it is found, which is the container's own.
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
	limit, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64) // "max" is none
	return limit, err == nil && limit > 0 && limit < unlimited
}
