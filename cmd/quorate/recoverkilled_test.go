package main

import (
	"os/exec"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/backup/recovery"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
)

// TestKilledRecoverToLeavesMemberUnchanged checks that, if backing up a member is killed at any point, the member is
// unchanged, and there is either no backup or a complete backup. The next attempt creates a backup.
func TestKilledRecoverToLeavesMemberUnchanged(t *testing.T) {
	t.Parallel()
	kill := newKilling(t)
	r := newRecoveries(t)
	killed := 0
	for call, step := range map[string]int{"linkat": 1, "unlinkat": 3, "fsync": 9} {
		for n := 1; ; n += step {
			dir := t.TempDir()
			args := []string{"ns/a", "--to=file://" + dir}
			_, err := kill.at(call, n, r.args(r.dir(), args...)...)
			if found, unknown := snapshot.IdentityOf(r.dir()); unknown != nil || found != r.id {
				t.Fatalf("%s %d: the member is %+v, %v", call, n, found, unknown)
			}
			bucket, unknown := store.Location{Directory: dir}.Open(t.Context(), store.Options{})
			if unknown != nil {
				t.Fatal(unknown)
			}
			found := listed(t, bucket).Backups
			for _, b := range found {
				if _, err := store.ReadUseful(t.Context(), bucket, b); err != nil {
					t.Errorf("%s %d: %+v: %v", call, n, b, err)
				}
			}
			if err == nil {
				if len(found) != 1 {
					t.Errorf("%s %d: %+v", call, n, found)
				}
				break
			}
			killed++
		}
	}
	if killed < 4 {
		t.Errorf("it was killed %d times", killed)
	}
	if got := r.recover(r.dir(), "ns/a", "--to=file://"+t.TempDir()); got.code != exitOK {
		t.Errorf("%+v", got)
	}
}

// TestKilledRecoverWithExternalEtcdCanBeRepeated checks that, if one of the two commands of a recovery with an external
// etcd is killed at any point, either the previous or the recovered member is in place, and each command may be
// repeated.
func TestKilledRecoverWithExternalEtcdCanBeRepeated(t *testing.T) {
	t.Parallel()
	kill := newKilling(t)
	r := newRecoveries(t)
	version, killed := versionOf(t, r.etcd), 0
	args := func(which, work string) []string {
		return r.args(r.dir(), which, "--dir="+work, "--etcd-version="+version, "--initial-cluster-token=t")
	}
	work := t.TempDir()
	for call, step := range map[string]int{"renameat": 1, "renameat2": 1, "unlinkat": 4, "fsync": 9} {
		for n := 1; ; n += step {
			_, err := kill.at(call, n, args("--prepare", work)...)
			if found, unknown := snapshot.IdentityOf(r.dir()); unknown != nil || found != r.id {
				t.Fatalf("%s %d: the member is %+v, %v", call, n, found, unknown)
			}
			if err == nil {
				break
			}
			killed++
		}
	}
	for call, step := range map[string]int{"renameat2": 1, "fsync": 9} {
		for n := 1; ; n += step {
			r.copied()
			work := t.TempDir()
			if got := r.recover(r.dir(), args("--prepare", work)[4:]...); got.code != exitOK {
				t.Fatalf("%+v", got)
			}
			etcd := exec.Command(r.etcd, "--config-file="+recovery.ConfigFile)
			etcd.Dir = work
			startEtcd(t, etcd)
			_, err := kill.at(call, n, args("--prepared", work)...)
			if _, unknown := snapshot.IdentityOf(r.dir()); unknown != nil {
				t.Fatalf("%s %d: %v", call, n, unknown)
			}
			if got := r.recover(r.dir(), args("--prepared", work)[4:]...); got.code != exitOK || !strings.Contains(got.out, "recover") {
				t.Errorf("%s %d: %+v", call, n, got)
			}
			r.isRecovered()
			_ = etcd.Process.Kill()
			if err == nil {
				break
			}
			killed++
		}
	}
	if t.Logf("killed %d times", killed); killed < 4 {
		t.Errorf("it was killed %d times", killed)
	}
}
