package recovery

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"quorate.dev/quorate/clusters/backup/backuptest"
	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/clusters/backup/etcdprocess"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/internal/etcdversion"
)

// survivor creates a member and returns an order to recover it.
func survivor(t *testing.T) Order {
	t.Helper()
	file, dataDir := filepath.Join(t.TempDir(), "snapshot.db"), filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(file, backuptest.MustSnapshot(t), 0o600); err != nil {
		t.Fatal(err)
	}
	into := snapshot.Restoration{
		DataDir: dataDir, Name: "a-0", PeerURL: "http://a-0:2380", InitialCluster: "a-0=http://a-0:2380", Token: "t",
	}
	if err := snapshot.Restore(file, into); err != nil {
		t.Fatal(err)
	}
	identity, err := snapshot.IdentityOf(dataDir)
	if err != nil {
		t.Fatal(err)
	}
	return Order{
		Into: snapshot.Restoration{DataDir: dataDir}, ClusterID: identity.ClusterID, Dir: t.TempDir(),
		Etcd: etcdprocess.Program{Version: etcdversion.Must("3.6.16")}, Files: TrustedFiles{},
	}
}

// TestPrepareFollowsNoPlantedLinks prepares a recovery in a directory in which an earlier etcd has replaced every file
// and directory with a link, and checks that the targets of the links are not changed.
func TestPrepareFollowsNoPlantedLinks(t *testing.T) {
	for what, prepare := range map[string]func(Order) error{
		"member": func(o Order) error { return Prepare(t.Context(), o) }, "nothing": PrepareNothing,
	} {
		o, outside := survivor(t), t.TempDir()
		want := map[string]string{}
		for _, name := range []string{survivorFile, ConfigFile, "data"} {
			want[name] = "precious " + name
			target := filepath.Join(outside, name)
			if err := errors.Join(os.WriteFile(target, []byte(want[name]), 0o600), os.Symlink(target, filepath.Join(o.Dir, name))); err != nil {
				t.Fatal(err)
			}
		}
		if err := prepare(o); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		got := map[string]string{}
		for name := range want {
			text, err := os.ReadFile(filepath.Join(outside, name))
			if err != nil {
				t.Fatal(err)
			}
			got[name] = string(text)
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: the files outside have changed: %q", what, got)
		}
		if info, err := os.Lstat(filepath.Join(o.Dir, ConfigFile)); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s: %s is still a link: %v, %v", what, ConfigFile, info, err)
		}
	}
}

// TestPrepareRefusesLinkedDirectory checks that a working directory that is a link is rejected.
func TestPrepareRefusesLinkedDirectory(t *testing.T) {
	o := survivor(t)
	link := filepath.Join(t.TempDir(), "work")
	if err := os.Symlink(o.Dir, link); err != nil {
		t.Fatal(err)
	}
	work := o.Dir
	o.Dir = link
	if err := Prepare(t.Context(), o); !errors.Is(err, disk.ErrLink) {
		t.Errorf("error: %v", err)
	}
	if entries, err := os.ReadDir(work); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}
