package cgroup

import (
	"testing"
	"testing/fstest"
)

func TestMemoryLimit(t *testing.T) {
	const v2, v1 = "0::/a/b\n", "9:cpu,memory:/a/b\n8:pids:/\n0::/\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing":                {nil, 0},
		"version 2":              {map[string]string{"proc/self/cgroup": v2, "sys/fs/cgroup/a/b/memory.max": "268435456\n"}, 256 << 20},
		"version 2, none":        {map[string]string{"proc/self/cgroup": v2, "sys/fs/cgroup/a/b/memory.max": "max\n"}, 0},
		"version 2, around":      {map[string]string{"proc/self/cgroup": v2, "sys/fs/cgroup/a/memory.max": "1000\n", "sys/fs/cgroup/a/b/memory.max": "max\n"}, 1000},
		"version 2, the least":   {map[string]string{"proc/self/cgroup": v2, "sys/fs/cgroup/a/memory.max": "1000\n", "sys/fs/cgroup/a/b/memory.max": "2000\n"}, 1000},
		"version 2, a container": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1000\n"}, 1000},
		"version 1":              {map[string]string{"proc/self/cgroup": v1, "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "1000\n"}, 1000},
		"version 1, none":        {map[string]string{"proc/self/cgroup": v1, "sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"version 1, a container": {map[string]string{"proc/self/cgroup": v1, "sys/fs/cgroup/memory/memory.limit_in_bytes": "1000\n"}, 1000},
		"not a number":           {map[string]string{"proc/self/cgroup": v2, "sys/fs/cgroup/a/b/memory.max": "x\n"}, 0},
		"not a line":             {map[string]string{"proc/self/cgroup": "x\n:\n", "sys/fs/cgroup/memory.max": "1000\n"}, 0},
		"another controller":     {map[string]string{"proc/self/cgroup": "9:memoryless:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "1000\n"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			root := fstest.MapFS{}
			for name, content := range c.files {
				root[name] = &fstest.MapFile{Data: []byte(content)}
			}
			if got := MemoryLimit(root); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}
