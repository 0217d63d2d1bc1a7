package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/backup/backuptest"
)

// TestRestoreOnFullVolumeLeavesNoMember checks that a restore without enough disk space does not leave a member behind,
// and that the error names the reason. Once there is enough space, the same command line creates the member.
func TestRestoreOnFullVolumeLeavesNoMember(t *testing.T) {
	r := newRestores(t)
	r.stored("20261122t180000z")
	r.volume = backuptest.Volume(t, "32k") // the snapshot needs 20k
	if got := r.restore(); got.code != exitError || !strings.Contains(got.err, "no space left on device") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(r.dir(), "member")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a member exists: %v", err)
	}
	backuptest.Grow(t, r.volume, "256m")
	if got := r.restore(); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	r.isWhole()
}
