package snapshot_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"quorate.dev/quorate/clusters/backup/backuptest"
	"quorate.dev/quorate/clusters/backup/snapshot"
)

// TestEnableAuthFollowsNoLink checks that a link in place of a snapshot file is not followed. Otherwise, an etcd
// running in the same directory could make Quorate truncate the surviving member's database.
func TestEnableAuthFollowsNoLink(t *testing.T) {
	dir, content := t.TempDir(), backuptest.MustSnapshot(t)
	precious, link := filepath.Join(dir, "precious"), filepath.Join(dir, "snapshot.db")
	if err := errors.Join(os.WriteFile(precious, content, 0o600), os.Symlink(precious, link)); err != nil {
		t.Fatal(err)
	}
	if _, err := snapshot.EnableAuth(link); err == nil {
		t.Error("it was changed")
	}
	if info, err := os.Stat(precious); err != nil || info.Size() != int64(len(content)) {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := snapshot.EnableAuth(precious); err != nil {
		t.Errorf("a regular file: %v", err)
	}
}

// TestCopyMemberFollowsNoLinks checks that links in either data directory are not followed.
func TestCopyMemberFollowsNoLinks(t *testing.T) {
	for _, part := range []string{"member", "member/wal", "member/snap"} {
		from, to, outside := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "data"), t.TempDir()
		for _, dir := range []string{"member/wal", "member/snap"} {
			for _, root := range []string{from, to, outside} {
				if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.WriteFile(filepath.Join(from, "member/snap/db"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, root := range []string{to, from} {
			at := filepath.Join(root, part)
			if err := errors.Join(os.RemoveAll(at), os.Symlink(filepath.Join(outside, part), at)); err != nil {
				t.Fatal(err)
			}
			if err := snapshot.CopyMember(t.Context(), from, to); err == nil {
				t.Errorf("it was copied through a link at %s", at)
			}
		}
		if _, err := os.Stat(filepath.Join(outside, "member/snap/db")); err == nil {
			t.Errorf("%s: a file was written outside", part)
		}
	}
}
