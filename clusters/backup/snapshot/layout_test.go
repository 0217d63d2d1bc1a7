package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFindDataDir checks that the data directory is found in the layouts of known sources, and that the path is required
// if there is not exactly one data directory.
func TestFindDataDir(t *testing.T) {
	for name, test := range map[string]struct {
		dirs       []string // that contain a member
		others     []string
		path, want string
		wrong      string
	}{
		"root":                  {dirs: []string{"."}, others: []string{"lost+found", "member/snap/sub"}, want: "."},
		"data":                  {dirs: []string{"data"}, want: "data"},
		"default.etcd":          {dirs: []string{"default.etcd"}, want: "default.etcd"},
		"new.etcd":              {dirs: []string{"new.etcd"}, want: "new.etcd"},
		"below data":            {dirs: []string{"data/default.etcd"}, want: "data/default.etcd"},
		"kept member":           {dirs: []string{"data"}, others: []string{"data/member.lost-ab/wal", "data/member.lost-ab/snap"}, want: "data"},
		"hidden":                {dirs: []string{"etcd", ".snapshot/etcd", ".snapshot"}, want: "etcd"},
		"lost and found":        {dirs: []string{"etcd", "lost+found/x"}, want: "etcd"},
		"none":                  {others: []string{"member/wal", "data/member/snap"}, wrong: "neither VOLUME nor a directory up to 2 levels below it contains member/wal and member/snap; specify"},
		"too deep":              {dirs: []string{"a/b/c"}, wrong: "neither VOLUME nor"},
		"two":                   {dirs: []string{"data", "new.etcd/x"}, wrong: "VOLUME contains 2 data directories: VOLUME/data, VOLUME/new.etcd/x; specify the path"},
		"nested":                {dirs: []string{".", "backup"}, wrong: "VOLUME contains 2 data directories: VOLUME, VOLUME/backup; specify"},
		"path to one of two":    {dirs: []string{"data", "new.etcd/x"}, path: "new.etcd/x", want: "new.etcd/x"},
		"path to the root":      {dirs: []string{".", "backup"}, path: ".", want: "."},
		"path that is missing":  {dirs: []string{"data"}, path: "etcd/data", wrong: "VOLUME/etcd does not exist; specify"},
		"path without a member": {others: []string{"data"}, path: "data", want: "data"}, // reported when it is read
	} {
		volume := t.TempDir()
		for _, dir := range test.dirs {
			test.others = append(test.others, dir+"/member/wal", dir+"/member/snap")
		}
		for _, dir := range test.others {
			if err := os.MkdirAll(filepath.Join(volume, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		got, err := FindDataDir(volume, test.path)
		if test.wrong != "" {
			if want := strings.ReplaceAll(test.wrong, "VOLUME", volume); !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got  %v\nwant %s", name, err, want)
			}
			continue
		}
		if want := filepath.Join(volume, test.want); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, want)
		}
	}
}

// TestFindDataDirFollowsNoLinks checks that links on a volume are not followed, and that the search ends.
func TestFindDataDirFollowsNoLinks(t *testing.T) {
	outside := t.TempDir()
	for _, dir := range []string{"member/wal", "member/snap"} {
		if err := os.MkdirAll(filepath.Join(outside, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		make func(volume string) error
		path string
		want string
	}{
		"data elsewhere":      {func(volume string) error { return os.Symlink(outside, filepath.Join(volume, "data")) }, "", "neither "},
		"path elsewhere":      {func(volume string) error { return os.Symlink(outside, filepath.Join(volume, "data")) }, "data", "data is not a directory"},
		"path through a link": {func(volume string) error { return os.Symlink(outside, filepath.Join(volume, "data")) }, "data/member", "data is not a directory"},
		"member elsewhere": {func(volume string) error {
			return os.Symlink(filepath.Join(outside, "member"), filepath.Join(volume, "member"))
		}, "", "member is not a directory"},
		"a loop":             {func(volume string) error { return os.Symlink(".", filepath.Join(volume, "data")) }, "", "neither "},
		"a pipe":             {func(volume string) error { return syscall.Mkfifo(filepath.Join(volume, "data"), 0o600) }, "", "neither "},
		"a pipe as the path": {func(volume string) error { return syscall.Mkfifo(filepath.Join(volume, "data"), 0o600) }, "data", "data is not a directory"},
		"many directories": {func(volume string) (err error) {
			for i := range layoutEntries {
				err = errors.Join(err, os.Mkdir(filepath.Join(volume, fmt.Sprint(i)), 0o700))
			}
			return err
		}, "", "has at least 1000 entries; specify the path"},
	} {
		volume := t.TempDir()
		if err := test.make(volume); err != nil {
			t.Fatal(err)
		}
		if got, err := FindDataDir(volume, test.path); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, test.want)
		}
	}
}
