package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/backup/datadir"
	"quorate.dev/quorate/clusters/backup/recovery"
	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/reconcile/decide"
)

// TestRecoverWithExternalEtcd checks a recovery with two commands. The first command copies the member. An etcd that is
// started externally then runs on the copy, and the second command creates the new cluster. Each command may be
// repeated. A member that has changed since it was copied is not touched.
func TestRecoverWithExternalEtcd(t *testing.T) {
	t.Parallel()
	r := newRecoveries(t)
	version := versionOf(t, r.etcd)
	work := t.TempDir() // with a short path, for sockets
	told := filepath.Join(work, "result.json")
	step := func(which string, more ...string) ran {
		return r.recover(r.dir(), append([]string{which, "--dir=" + work, "--etcd-version=" + version, "--initial-cluster-token=t"}, more...)...)
	}
	for range 2 {
		if got := step("--prepare"); got.code != exitOK {
			t.Fatalf("%+v", got)
		}
	}
	etcd := exec.Command(r.etcd, "--config-file="+recovery.ConfigFile)
	etcd.Dir = work
	startEtcd(t, etcd)

	entry := filepath.Join(r.dir(), "member", "snap", "db")
	was, err := os.ReadFile(entry)
	if err != nil {
		t.Fatal(err)
	}
	survivor := filepath.Join(work, "survivor.json")
	before, err := os.ReadFile(survivor)
	if err != nil {
		t.Fatal(err)
	}
	overwriteFile(t, survivor, strings.Replace(string(before), `"Index":`, `"Index":1`, 1))
	if got := step("--prepared"); got.code != exitBlocked || !strings.Contains(got.err, "the member has changed since it was copied") {
		t.Errorf("%+v", got)
	}
	overwriteFile(t, survivor, "") // as left by a --prepare that was killed while copying
	if got := step("--prepared"); got.code != exitError || !strings.Contains(got.err, "is incomplete. Prepare it again") {
		t.Errorf("%+v", got)
	}
	overwriteFile(t, survivor, string(before))
	if is, err := os.ReadFile(entry); err != nil || string(is) != string(was) {
		t.Errorf("it has changed: %v", err)
	}

	for _, words := range []string{"recovered cluster", "is left unchanged"} {
		if got := step("--prepared", "--result="+told); got.code != exitOK || !strings.Contains(got.out, words) {
			t.Fatalf("%+v", got)
		}
		r.isRecovered()
		line, err := os.ReadFile(told)
		if said, wrong := result.ParseRecovered(strings.TrimSpace(string(line))); err != nil || wrong != nil || said.LostClusterID != snapshot.FormatID(r.id.ClusterID) {
			t.Errorf("%s: %v, %v", line, err, wrong)
		}
	}
	if got := step("--prepare"); got.code != exitOK || !strings.Contains(got.out, "is left unchanged") {
		t.Errorf("%+v", got)
	}
	for _, flags := range [][]string{{"--prepare", "--prepared"}, {"--prepare", "--dry-run"}, {"--prepared", "--dir="}, {"--prepare", "--etcd-version="},
		{"--prepare", "--etcd-version=x"}, {"--prepare", "--initial-cluster-token="}} {
		if got := step(flags[0], flags[1:]...); got.code != exitInvalid {
			t.Errorf("%q: %+v", flags, got)
		}
	}
	if got := r.recover(r.dir(), "--etcd-version="+version); got.code != exitInvalid {
		t.Errorf("%+v", got)
	}
}

// TestRecoverRejectsExternalEtcdOnOtherData checks that an etcd is rejected unless it runs on the copy.
func TestRecoverRejectsExternalEtcdOnOtherData(t *testing.T) {
	t.Parallel()
	r := newRecoveries(t)
	work := t.TempDir()
	step := func(which string) ran {
		return r.recover(r.dir(), which, "--dir="+work, "--etcd-version="+versionOf(t, r.etcd), "--initial-cluster-token=t")
	}
	if got := step("--prepare"); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	if err := os.RemoveAll(filepath.Join(work, "data")); err != nil {
		t.Fatal(err)
	}
	etcd := exec.Command(r.etcd, "--config-file="+recovery.ConfigFile)
	etcd.Dir = work
	startEtcd(t, etcd)
	if got := step("--prepared"); got.code == exitOK || !strings.Contains(got.err, "is not member "+decide.ID(r.id.MemberID).String()) {
		t.Errorf("%+v", got)
	}
	if _, done, err := (datadir.Recovery{Dir: r.dir(), Lost: r.id.ClusterID}).Find(); done || err != nil {
		t.Errorf("it was touched: %v", err)
	}
}

// TestRecoverPrepareRemovesOnlyCopies checks that the directory for the copy is removed only if it contains a copy,
// because it could be the member itself.
func TestRecoverPrepareRemovesOnlyCopies(t *testing.T) {
	r := newRecoveries(t)
	prepare := func(work string) func() ran {
		return func() ran {
			return r.recover(r.dir(), "--prepare", "--dir="+work, "--etcd-version="+versionOf(t, r.etcd), "--initial-cluster-token=t")
		}
	}
	r.unchanged(exitBlocked, "is not known to be a copy", prepare(r.volume))
	overwriteFile(t, filepath.Join(r.volume, "survivor.json"), "")
	r.unchanged(exitBlocked, "is not known to be a copy", prepare(r.volume))
	work := t.TempDir()
	if err := os.Mkdir(filepath.Join(work, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.unchanged(exitBlocked, "is not known to be a copy", prepare(work))
	if _, err := os.Stat(filepath.Join(work, "data")); err != nil {
		t.Error(err)
	}
}

func versionOf(t *testing.T, etcd string) string {
	t.Helper()
	said, err := exec.Command(etcd, "--version").Output()
	line, _, _ := strings.Cut(string(said), "\n")
	version, is := strings.CutPrefix(line, "etcd Version: ")
	if err != nil || !is {
		t.Fatalf("%s: %v", said, err)
	}
	return strings.TrimSpace(version)
}

func overwriteFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
