package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/backup/datadir"
	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/clusters/backup/snapshot"
)

// inPlace restores a backup in place of an etcd cluster's surviving member.
type inPlace struct{ recoveries }

func newInPlace(t *testing.T) inPlace {
	t.Helper()
	r := inPlace{newRecoveries(t)}
	r.store, r.result = t.TempDir(), filepath.Join(t.TempDir(), "termination-log")
	r.stored("20261122t180000z")
	return r
}

func (r inPlace) lost() string { return "--lost-cluster-id=" + snapshot.FormatID(r.id.ClusterID) }

// kept returns the path at which the previous member is kept.
func (r inPlace) kept() string { return filepath.Join(r.dir(), datadir.KeptName(r.id.ClusterID)) }

// isRestored requires that the backup is in place, and that the previous member is kept unchanged.
func (r inPlace) isRestored() {
	r.Helper()
	r.unchanged(exitOK, "by the same command line", func() ran { return r.restore(r.lost()) })
	if found, err := snapshot.IdentityOf(r.dir()); err != nil || !datadir.IsRestored(r.told(), found) || found.ClusterID == r.id.ClusterID {
		r.Errorf("%+v, and it is %+v, %v", r.told(), found, err)
	}
	if was, err := snapshot.IdentityIn(r.kept()); err != nil || was != r.id {
		r.Errorf("%+v, %v; it was %+v", was, err, r.id)
	}
	for _, part := range []string{"wal/0000000000000000-0000000000000000.wal", "snap/db"} {
		was, err := os.ReadFile(filepath.Join(r.left, "member", part))
		if is, missing := os.ReadFile(filepath.Join(r.kept(), part)); err != nil || missing != nil || !bytes.Equal(was, is) {
			r.Errorf("%s is not as it was: %v %v", part, err, missing)
		}
	}
}

// TestRestoreReplacesMemberOfLostCluster checks that a backup replaces a member of the lost cluster, and that the
// replaced member is kept. A member of a different cluster or a running member is not replaced.
func TestRestoreReplacesMemberOfLostCluster(t *testing.T) {
	t.Parallel()
	r := newInPlace(t)
	r.unchanged(exitBlocked, "the data directory is not empty", func() ran { return r.restore() })
	r.unchanged(exitBlocked, "the data directory is not empty", func() ran { return r.restore("--lost-cluster-id=ab") })
	r.unchanged(exitInvalid, "expected hexadecimal digits", func() ran { return r.restore("--lost-cluster-id=a-0") })
	r.unchanged(exitInvalid, "requires --once", func() ran { return r.restore(r.lost(), "--once=false") })
	if got := r.restore(r.lost(), "--from=file://"+t.TempDir()); got.code != exitError || !strings.Contains(got.err, "no backup of ns/a in file:///") {
		t.Errorf("%+v", got)
	}
	waiting, err := os.OpenFile(filepath.Join(r.dir(), "member", "snap", "db"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.restore(r.lost()); got.code != exitBlocked || !strings.Contains(got.err, "etcd is running on the data directory") {
		t.Errorf("%+v", got)
	}
	if found, err := snapshot.IdentityOf(r.dir()); err != nil || found != r.id {
		t.Errorf("%+v, %v", found, err)
	}
	if err := waiting.Close(); err != nil {
		t.Fatal(err)
	}

	if got := r.restore(r.lost()); got.code != exitOK || got.err != "" {
		t.Fatalf("%+v", got)
	}
	r.isRestored()
	told := r.told()
	r.unchanged(exitBlocked, "by a different command line", func() ran { return r.restore(r.lost(), "--initial-cluster-token=another") })
	url, _ := r.start(r.dir(), "--initial-cluster=a-0=http://127.0.0.1:2380", "--initial-cluster-token=ns-a-t")
	_, said := post(t, url+"/v3/kv/range", `{"key":"aw=="}`)
	if !strings.Contains(said, fmt.Sprintf(`"revision":"%d"`, told.NewRevision)) || strings.Contains(said, `"value":"dg=="`) {
		t.Errorf("it must begin at revision %d, without the lost cluster's data: %s", told.NewRevision, said)
	}
}

// TestRestoreInPlaceRefusesRunningEtcd checks that an etcd that is running on the surviving data, or waiting for it, is
// detected regardless of what else the directory contains.
func TestRestoreInPlaceRefusesRunningEtcd(t *testing.T) {
	t.Parallel()
	r := newInPlace(t)
	for name, odd := range map[string]func(member string) error{
		"a link":           func(member string) error { return os.Symlink("db", filepath.Join(member, "snap", "old")) },
		"a large snapshot": func(member string) error { return emptyFile(filepath.Join(member, "snap", "0.snap"), 1<<40) },
		"no log":           func(member string) error { return os.RemoveAll(filepath.Join(member, "wal")) },
	} {
		r.copied()
		member := filepath.Join(r.dir(), "member")
		if err := odd(member); err != nil {
			t.Fatal(err)
		}
		database, err := os.OpenFile(filepath.Join(member, "snap", "db"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		before, err := os.Stat(member)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.restore(r.lost()); got.code != exitBlocked || !strings.Contains(got.err, "etcd is running on the data directory") {
			t.Errorf("%s: %+v", name, got)
		}
		if after, err := os.Stat(member); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s: a different member is in place: %v", name, err)
		}
		if err := database.Close(); err != nil {
			t.Fatal(err)
		}
		if got := r.restore(r.lost()); got.code != exitOK {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestBlockedRestoreAndRecoverDoNotBlockEachOther checks that a restored member that could not be put in place does not
// block a recovery, and vice versa.
func TestBlockedRestoreAndRecoverDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	r := newInPlace(t)
	restore, recover := func() ran { return r.restore(r.lost()) }, func() ran { return r.recover(r.dir()) }
	for name, order := range map[string][]func() ran{"a recovery after a restore": {restore, recover}, "a restore after a recovery": {recover, restore}} {
		r.copied()
		waiting, err := os.OpenFile(filepath.Join(r.dir(), "member", "snap", "db"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := order[0](); got.code != exitBlocked || !strings.Contains(got.err, "etcd is running on the data directory") {
			t.Errorf("%s: %+v", name, got)
		}
		if _, err := os.Stat(r.kept()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := waiting.Close(); err != nil {
			t.Fatal(err)
		}
		if got := order[1](); got.code != exitOK {
			t.Errorf("%s: %+v", name, got)
		}
		if was, err := snapshot.IdentityIn(r.kept()); err != nil || was != r.id {
			t.Errorf("%s: %+v, %v; it was %+v", name, was, err, r.id)
		}
		if is, err := snapshot.IdentityOf(r.dir()); err != nil || is.ClusterID == r.id.ClusterID {
			t.Errorf("%s: %+v, %v", name, is, err)
		}
		if got := order[1](); got.code != exitOK {
			t.Errorf("%s: once more: %+v", name, got)
		}
		if got := order[0](); got.code == exitOK {
			t.Errorf("%s: the previous member: %+v", name, got)
		}
	}
}

// emptyFile creates a sparse file.
func emptyFile(name string, size int64) error {
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		return err
	}
	return os.Truncate(name, size)
}

// TestRestoreInPlaceKeepsDamagedMember checks that whatever remains of a damaged member is kept.
func TestRestoreInPlaceKeepsDamagedMember(t *testing.T) {
	t.Parallel()
	r := newInPlace(t)
	for name, damage := range map[string]func(member string) error{
		"no member":      os.RemoveAll,
		"nothing at all": func(member string) error { return os.RemoveAll(filepath.Dir(member)) },
		"no log":         func(member string) error { return os.RemoveAll(filepath.Join(member, "wal")) },
		"an empty log": func(member string) error {
			return os.Truncate(filepath.Join(member, "wal", "0000000000000000-0000000000000000.wal"), 0)
		},
		"no database": func(member string) error { return os.Remove(filepath.Join(member, "snap", "db")) },
		"a file in place of a database": func(member string) error {
			return os.WriteFile(filepath.Join(member, "snap", "db"), []byte("x"), 0o600)
		},
	} {
		r.copied()
		member := filepath.Join(r.dir(), "member")
		if err := damage(member); err != nil {
			t.Fatal(err)
		}
		before := ""
		if _, err := os.Stat(member); err == nil {
			before = contents(t, member)
		}
		if got := r.restore(r.lost()); got.code != exitOK {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		if found, err := snapshot.IdentityOf(r.dir()); err != nil || !datadir.IsRestored(r.told(), found) {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
		_, err := os.Stat(r.kept())
		switch {
		case before == "" && !errors.Is(err, os.ErrNotExist):
			t.Errorf("%s: %s is there: %v", name, r.kept(), err)
		case before != "" && strings.ReplaceAll(contents(t, r.kept()), r.kept(), member) != before:
			t.Errorf("%s: %s is kept; it was %s", name, contents(t, r.kept()), before)
		}
		r.unchanged(exitOK, "by the same command line", func() ran { return r.restore(r.lost()) })
	}
}

// TestKilledRestoreInPlaceKeepsPreviousMember checks that, if a restore is killed at any point, either the previous
// member is in place, or the restored member is in place and the previous member is next to it. After the next attempt,
// both exist.
func TestKilledRestoreInPlaceKeepsPreviousMember(t *testing.T) {
	t.Parallel()
	kill := newKilling(t)
	r := newInPlace(t)
	killed := 0
	for call, step := range map[string]int{"renameat2": 1, "fsync": 3} {
		fresh := func() {
			r.copied()
			if err := os.RemoveAll(r.dir() + ".restored.json"); err != nil {
				t.Fatal(err)
			}
		}
		fresh()
		for n := 1; ; n += step {
			said, err := kill.at(call, n, r.restores.args(r.lost())...)
			if err != nil {
				killed++
			}
			found, unknown := snapshot.IdentityOf(r.dir())
			if unknown != nil {
				t.Fatalf("%s %d: %v", call, n, unknown)
			}
			if found == r.id && err == nil {
				t.Fatalf("%s %d: it is reported as restored: %s", call, n, said)
			}
			if got := r.restore(r.lost()); got.code != exitOK {
				t.Errorf("%s %d: %+v", call, n, got)
			}
			r.isRestored()
			fresh()
			if err == nil {
				break
			}
		}
	}
	if killed < 3 {
		t.Errorf("it was killed %d times", killed)
	}
}

// TestRestoreInPlaceKeepsExistingFiles checks that files that already exist at the path for the previous member are
// kept.
func TestRestoreInPlaceKeepsExistingFiles(t *testing.T) {
	r := newInPlace(t)
	if err := os.MkdirAll(filepath.Join(r.kept(), "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	unlock, err := disk.Lock(t.Context(), datadir.Restore{Dir: r.dir()}.LockFile(), nil) // creates the lock file next to the directory
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	r.unchanged(exitBlocked, "is not known to be a leftover", func() ran { return r.restore(r.lost()) })
}
