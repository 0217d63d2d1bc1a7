//go:build linux

package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

func TestParse(t *testing.T) {
	for line, want := range map[string]hierarchy{
		"31 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate":                            {point: "/sys/fs/cgroup", version: 2},
		"40 25 0:35 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory":                                  {point: "/sys/fs/cgroup/memory", version: 1},
		"41 25 0:36 / /sys/fs/cgroup/cpuset rw,relatime shared:9 - cgroup cgroup rw,cpuset,clone_children": {point: "/sys/fs/cgroup/cpuset", version: 1, cpuset: true},
	} {
		got, ok := parse(line)
		if !ok || got != want {
			t.Errorf("parse(%q) = %+v, %t; want %+v", line, got, ok, want)
		}
	}
	for _, line := range []string{"", "garbage", "22 1 254:0 / / rw - ext4 /dev/vda rw", "25 24 0:25 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755"} {
		if got, ok := parse(line); ok {
			t.Errorf("parse(%q) = %+v, want nothing", line, got)
		}
	}
}

func TestUsedCountsBothVersions(t *testing.T) {
	version1 := "cache 999\nrss 5\nmapped_file 7\ntotal_cache 999\ntotal_rss 100\ntotal_mapped_file 20\n"
	version2 := "anon 100\nfile 999\nfile_mapped 20\nkernel 5\n"
	for name, stat := range map[string]string{"version 1": version1, "version 2": version2} {
		if got := used(stat); got != 120 {
			t.Errorf("%s: used = %d, want 120", name, got)
		}
	}
}

// TestEnterPreparesEveryLevel uses plain directories, which can be created and removed like cgroups.
func TestEnterPreparesEveryLevel(t *testing.T) {
	root := t.TempDir()
	write := func(path, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, path), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("cpuset.cpus", "0-1\n")
	write("cpuset.mems", "0\n")
	h := hierarchy{point: root, version: 1, cpuset: true}
	if err := h.enter("/a/b"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"a/cpuset.cpus": "0-1\n", "a/b/cpuset.cpus": "0-1\n", "a/b/cpuset.mems": "0\n", "a/b/cgroup.procs": "0",
	} {
		got, err := os.ReadFile(filepath.Join(root, path))
		if err != nil || string(got) != want {
			t.Errorf("%s holds %q (%v), want %q", path, got, err, want)
		}
	}
}

func TestEnterDelegatesAboveTheGroupOnly(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"", "a", "a/b"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, dir, "cgroup.controllers"), []byte("memory\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := (hierarchy{point: root, version: 2}).enter("/a/b"); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{"": true, "a": true, "a/b": false} {
		_, err := os.Stat(filepath.Join(root, dir, "cgroup.subtree_control"))
		if (err == nil) != want {
			t.Errorf("delegated in %q: %t, want %t", dir, err == nil, want)
		}
	}
}
