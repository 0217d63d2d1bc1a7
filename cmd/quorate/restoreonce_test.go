package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/backuptest"
	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/internal/etcdversion"
	"quorate.dev/quorate/internal/procgroup/procgrouptest"
)

// restores restores backups to a volume in the way Jobs do.
type restores struct {
	*testing.T
	store, volume, result string
}

func newRestores(t *testing.T) restores {
	t.Helper()
	return restores{t, t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "termination-log")}
}

// dir returns the data directory.
func (r restores) dir() string { return filepath.Join(r.volume, "data") }

// stored stores a backup of ns/a.
func (r restores) stored(id string) {
	r.Helper()
	slot, err := store.ParseSlot(id)
	if err != nil {
		r.Fatal(err)
	}
	bucket, err := store.Location{Directory: r.store}.Open(r.Context(), store.Options{})
	if err != nil {
		r.Fatal(err)
	}
	o := backup.Order{
		Cluster: store.Cluster{Namespace: "ns", Name: "a"}, Slot: slot, Spool: r.TempDir(), Encoding: backup.Encoding{Compress: true},
		Inspect: func(_ context.Context, file string) (snapshot.Facts, error) { return snapshot.Inspect(file) },
	}
	taken, err := backup.Take(r.Context(), backuptest.Sound(backuptest.MustSnapshot(r.T)), o)
	if err == nil {
		_, err = taken.Store(r.Context(), bucket, o)
	}
	if err != nil {
		r.Fatal(err)
	}
}

// args returns the arguments of a Job followed by more. If a flag is set twice, the last value is used.
func (r restores) args(more ...string) []string {
	return append([]string{"restore", "ns/a", "--from=file://" + r.store, "--data-dir=" + r.dir(), "--name=a-0", "--peer-url=http://127.0.0.1:2380",
		"--initial-cluster-token=ns-a-t", "--once", "--result=" + r.result}, more...)
}

func (r restores) restore(more ...string) ran {
	var out, stderr bytes.Buffer
	code := execute(r.Context(), r.args(more...), streams{out: &out, err: &stderr})
	return ran{code: code, out: out.String(), err: strings.Join(strings.Fields(stderr.String()), " ")}
}

// told returns the result of the last restore.
func (r restores) told() result.Restored {
	r.Helper()
	text, err := os.ReadFile(r.result)
	if err != nil {
		r.Fatal(err)
	}
	told, err := result.ParseRestored(string(text))
	if err != nil {
		r.Fatalf("%v: %s", err, text)
	}
	return told
}

// files returns all files in the volume, with their size, time and mode.
func (r restores) files() map[string]string {
	r.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(r.volume, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		found[path] = fmt.Sprint(info.Size(), info.ModTime(), info.Mode())
		return nil
	})
	if err != nil {
		r.Fatal(err)
	}
	return found
}

// unchanged requires that a command does not change anything in the volume.
func (r restores) unchanged(want int, said string, command func() ran) {
	r.Helper()
	before := r.files()
	got := command()
	if got.code != want || !strings.Contains(got.out+got.err, said) {
		r.Errorf("want exit code %d and %q: %+v", want, said, got)
	}
	if after := r.files(); fmt.Sprint(after) != fmt.Sprint(before) {
		r.Errorf("it has changed\n%v\nto\n%v", before, after)
	}
}

// TestRestoreOnceReusesEarlierRestore checks that an earlier restore by the same command line is reused after checking
// only the volume, and that nothing else in the volume is replaced.
func TestRestoreOnceReusesEarlierRestore(t *testing.T) {
	t.Parallel()
	r := newRestores(t)
	r.stored("20261121t180000z")
	r.stored("20261122t180000z")
	if got := r.restore("--etcd-version=3.6.16", "--quota=2147483648"); got.code != exitOK || got.err != "" || !strings.Contains(got.out, "restored ns/a 20261122t180000z") {
		t.Fatalf("%+v", got)
	}
	first := r.told()
	found, err := snapshot.IdentityOf(r.dir())
	if err != nil || first.ClusterID != snapshot.FormatID(found.ClusterID) || first.MemberID != snapshot.FormatID(found.MemberID) || first.SourceClusterID != "00000000000000aa" ||
		first.Revision != backuptest.Revision || first.NewRevision != backuptest.Revision+snapshot.DefaultBump || first.Suspect {
		t.Errorf("%+v, and it is %+v, %v", first, found, err)
	}
	entries, err := os.ReadDir(r.dir())
	if err != nil || len(entries) != 1 || entries[0].Name() != "member" {
		t.Errorf("%v %v", entries, err)
	}
	if err := os.RemoveAll(r.store); err != nil {
		t.Fatal(err)
	}
	const again = "was restored into"
	r.unchanged(exitOK, again, func() ran { return r.restore() })
	r.unchanged(exitOK, "\n  --initial-cluster-token=ns-a-t\n", func() ran { return r.restore() })
	if second := r.told(); second != first {
		t.Errorf("%+v, then %+v", first, second)
	}
	r.unchanged(exitBlocked, "etcd 4.0.0 must not be started with this backup", func() ran { return r.restore("--etcd-version=4.0.0") })
	r.unchanged(exitBlocked, "etcd's quota is 4096", func() ran { return r.restore("--quota=4096") })
	for _, other := range []string{"--name=a-1", "--peer-url=http://127.0.0.1:2381", "--initial-cluster-token=ns-a-u", "--revision-bump=1", "--from=file:///srv"} {
		r.unchanged(exitBlocked, "the member was restored from ns/a 20261122t180000z of cluster aa at", func() ran { return r.restore(other) })
		if text, err := os.ReadFile(r.result); err != nil || len(text) > 0 {
			t.Errorf("%s: %s %v", other, text, err)
		}
	}
	// A command line that names the restored backup counts as a different command line.
	r.unchanged(exitBlocked, "by a different command line", func() ran { return r.again("20261122t180000z") })
	// Without the mark, the origin of the member is unknown. An unreadable mark does not prove the origin, either.
	mark := r.dir() + ".restored.json"
	text, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]string{"": "not a restore marker", string(text[:40]): "not a restore marker",
		strings.Replace(string(text), first.MemberID, "00000000000000bb", 1): "but the restored member was bb of"} {
		if err := os.WriteFile(mark, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		r.unchanged(exitBlocked, want, func() ran { return r.restore() })
	}
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	r.unchanged(exitBlocked, "the member is not recorded as restored", func() ran { return r.restore() })
}

// again restores the backup with the given name.
func (r restores) again(which string) ran {
	var out, stderr bytes.Buffer
	args := slices.Insert(r.args(), 2, which)
	code := execute(r.Context(), args, streams{out: &out, err: &stderr})
	return ran{code: code, out: out.String(), err: strings.Join(strings.Fields(stderr.String()), " ")}
}

// TestRestoreOnceKeepsUnknownFiles checks that a member of unknown origin is not changed, whatever the mark contains.
func TestRestoreOnceKeepsUnknownFiles(t *testing.T) {
	t.Parallel()
	r := newRestores(t)
	r.stored("20261122t180000z")
	if err := os.MkdirAll(filepath.Join(r.dir(), "member"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.unchanged(exitBlocked, "the directory holds a member, and the member does not have a log", func() ran { return r.restore() })
	if err := os.Remove(filepath.Join(r.dir(), "member")); err != nil {
		t.Fatal(err)
	}
	// The remains of killed attempts and a mark without a member do not prevent a restore.
	left := filepath.Join(r.dir(), ".restore-1", "data", "member")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(left, "db"), r.dir() + ".restored.json"} {
		if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.restore(); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	r.told()
	if entries, err := os.ReadDir(r.dir()); err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
	// An unknown file prevents the restore. The file is kept, and the mark is removed.
	other := newRestores(t)
	other.store = r.store
	if err := os.MkdirAll(other.dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other.dir(), "notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := other.restore(); got.code != exitBlocked || !strings.Contains(got.err, "it contains notes") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(other.dir() + ".restored.json"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// process returns a command that runs this program as quorate and collects its output.
func (r restores) process(said *bytes.Buffer, args ...string) *exec.Cmd {
	r.Helper()
	quorate := exec.CommandContext(r.Context(), testProgram(r.T), args...)
	quorate.Args[0] = "quorate" // TestMain checks this name
	quorate.Stdout, quorate.Stderr = said, said
	return quorate
}

// TestConcurrentRestoresRestoreOnce checks that, if several processes run concurrently, one of them restores the backup
// and all of them report the restore. A process that waits too long does not change anything.
func TestConcurrentRestoresRestoreOnce(t *testing.T) {
	t.Parallel()
	r := newRestores(t)
	r.stored("20261122t180000z")
	unlock, err := disk.Lock(t.Context(), r.dir()+".restore.lock", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.restore("--timeout=200ms"); got.code != exitError || !strings.Contains(got.err, "another process is restoring into") || !strings.Contains(got.err, "it took longer than --timeout 200ms") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(r.dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	const number = 3
	ended := make(chan error, number)
	said, results := make([]bytes.Buffer, number), make([]string, number)
	for i := range number {
		results[i] = filepath.Join(t.TempDir(), "result")
		quorate := r.process(&said[i], r.args("--result="+results[i])...)
		if err := quorate.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { ended <- quorate.Wait() }()
	}
	unlock()
	for range number {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	first := 0
	for i := range number {
		if !strings.Contains(said[i].String(), "is left unchanged") {
			first++
		}
		r.result = results[i]
		if told := r.told(); told.StartedAt.IsZero() {
			t.Errorf("%+v", told)
		}
		one, err := os.ReadFile(results[0])
		if text, failed := os.ReadFile(results[i]); err != nil || failed != nil || !bytes.Equal(text, one) {
			t.Errorf("%s, then %s; %v %v", one, text, err, failed)
		}
	}
	if first != 1 {
		t.Errorf("%d have restored: %v", first, said)
	}
}

// TestKilledRestoreLeavesNoPartialMember checks that, if a restore is killed at any point, there is either no member or
// the requested member. The next attempt creates the member and leaves no other files behind.
func TestKilledRestoreLeavesNoPartialMember(t *testing.T) {
	t.Parallel()
	kill := newKilling(t)
	r := newRestores(t)
	r.stored("20261122t180000z")
	killed := 0
	for _, write := range []string{"mkdirat", "renameat", "renameat2", "unlinkat", "linkat", "fsync", "fdatasync", "ftruncate", "fallocate", "flock", "pwrite64"} {
		r.volume = t.TempDir()
		for n := 1; ; n++ {
			said, err := kill.at(write, n, r.args()...)
			_, missing := os.Stat(filepath.Join(r.dir(), "member"))
			if err == nil && missing != nil {
				t.Fatalf("%s %d: %v: %s", write, n, missing, said)
			}
			if err != nil {
				killed++
			}
			if missing == nil {
				r.isWhole()
				r.volume = t.TempDir()
			} // otherwise, the next process is killed in the same volume
			if err == nil {
				break
			}
		}
	}
	if t.Logf("killed %d times", killed); killed < 20 {
		t.Errorf("it was killed %d times only", killed)
	}
}

// isWhole requires that the requested member exists, that the same command line reports the restore, and that killed
// attempts have left no copy of the data behind.
func (r restores) isWhole() {
	r.Helper()
	if got := r.restore(); got.code != exitOK || !strings.Contains(got.out, "by the same command line") {
		r.Fatalf("%+v", got)
	}
	told := r.told()
	if found, err := snapshot.IdentityOf(r.dir()); err != nil || told.MemberID != snapshot.FormatID(found.MemberID) || told.ClusterID != snapshot.FormatID(found.ClusterID) {
		r.Errorf("%+v, and it is %+v, %v", told, found, err)
	}
	for path := range r.files() {
		if rest, left := strings.CutPrefix(path, filepath.Join(r.dir(), ".restore-")); left && strings.HasSuffix(rest, "db") {
			r.Errorf("%s is left", path)
		}
	}
}

// TestRestoreRejectsUnsuitableVersionOrQuota checks that data is not restored for an etcd version that must not start
// with it, or for a quota with which etcd would reject writes.
func TestRestoreRejectsUnsuitableVersionOrQuota(t *testing.T) {
	t.Parallel()
	const quota = 20480
	for name, c := range map[string]struct {
		cluster, storage, etcd string
		bytes                  int64
		refused, note          string
	}{
		"the same":        {"3.6.0", "3.6.0", "3.6.16", 100, "", ""},
		"the next":        {"3.6.0", "3.6.0", "3.7.3", 100, "", ""},
		"without format":  {"3.5.0", "", "3.5.35", 100, "", ""},
		"newer":           {"3.6.0", "3.6.0", "3.5.35", 100, "the data is from etcd 3.6", ""},
		"much older":      {"3.5.0", "", "3.7.3", 100, "use etcd 3.5 or 3.6 (--etcd-version, or spec.version in the declaration)", ""},
		"another major":   {"3.6.0", "3.6.0", "4.0.0", 100, "must not be started with this backup", ""},
		"downgrading":     {"3.5.0", "3.6.0", "3.5.35", 100, "the data is from etcd 3.6", ""},
		"unknown":         {"", "", "3.6.16", 100, "", "does not record its etcd version"},
		"unreadable":      {"x\x1b", "", "3.6.16", 100, "the version that the cluster ran", ""},
		"no version":      {"9.9.0", "", "", 100, "", ""},
		"below the quota": {"3.6.0", "", "3.6.16", quota + 31, "", ""},
		"the quota":       {"3.6.0", "", "3.6.16", quota + 32, "the backup's database has 20480 bytes, but etcd's quota is 20480: etcd would reject writes (NOSPACE); raise the quota (--quota, or spec.etcd.quota in the declaration)", ""},
	} {
		f := restoreFlags{etcd: c.etcd, quota: quota}
		if c.etcd != "" {
			f.version = etcdversion.Must(c.etcd)
		}
		var stderr bytes.Buffer
		err := f.suits(streams{err: &stderr}, snapshot.Facts{ClusterVersion: c.cluster, StorageVersion: c.storage}, c.bytes)
		if (err != nil) != (c.refused != "") || err != nil && (!strings.Contains(err.Error(), c.refused) || !errors.As(err, &blockedError{})) {
			t.Errorf("%s: %v", name, err)
		}
		if said := stderr.String(); (said != "") != (c.note != "") || !strings.Contains(said, c.note) {
			t.Errorf("%s: %s", name, said)
		}
	}
}

// TestSuspectBackupIsRestoredOnlyByName checks that a suspect backup is restored only if it is named, with a warning.
func TestSuspectBackupIsRestoredOnlyByName(t *testing.T) {
	t.Parallel()
	j := newJobs(t)
	if err := j.post("/v3/maintenance/alarm", `{"action":"ACTIVATE","memberID":"1","alarm":"CORRUPT"}`); err != nil {
		t.Fatal(err)
	}
	if got := j.backUp("by-hand"); got.code != exitBlocked {
		t.Fatalf("%+v", got)
	}
	r := newRestores(t)
	r.store = j.store
	if got := r.restore(); got.code != exitBlocked || !strings.Contains(got.err, "none of this cluster's backups in the store is usable") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(r.dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for range 2 {
		if got := r.again(store.SlotID(j.told().Slot)); got.code != exitOK || !strings.Contains(got.err, "members held different data") || !r.told().Suspect {
			t.Errorf("%+v", got)
		}
	}
}

// TestEtcdStartsSealedOnRestoredData checks that each etcd version starts with data restored from its own backup, using
// the configuration of a sealed member, which cannot start without its data. etcd must have the identity in the result.
func TestEtcdStartsSealedOnRestoredData(t *testing.T) {
	t.Parallel()
	for _, program := range etcdPrograms(t) {
		version := strings.TrimPrefix(filepath.Base(filepath.Dir(program)), "etcd-")
		t.Run(version, func(t *testing.T) {
			j := jobs{t, newMemberOf(t, program), t.TempDir(), filepath.Join(t.TempDir(), "result")}
			if err := j.post("/v3/kv/put", `{"key":"aw==","value":"dg=="}`); err != nil {
				t.Fatal(err)
			}
			if got := j.backUp("by-hand"); got.code != exitOK {
				t.Fatalf("%+v", got)
			}
			r := newRestores(t)
			r.store = j.store
			peer := "http://" + procgrouptest.Address()
			flags := []string{"--peer-url=" + peer, "--etcd-version=" + version, "--quota=2Gi"}
			if got := r.restore(flags...); got.code != exitOK {
				t.Fatalf("%+v", got)
			}
			told := r.told()
			if told.SourceClusterID != j.told().ClusterID || told.ClusterID == told.SourceClusterID || told.Data != j.told().Data {
				t.Errorf("%+v of %+v", told, j.told())
			}
			url := "http://" + procgrouptest.Address()
			startEtcd(t, exec.Command(program, "--name=a-0", "--data-dir="+r.dir(), "--listen-client-urls="+url, "--advertise-client-urls="+url, "--listen-peer-urls="+peer,
				"--initial-advertise-peer-urls="+peer, "--initial-cluster-token=ns-a-t", "--initial-cluster-state=existing", "--initial-cluster=sealed=http://sealed.invalid:2380",
				"--strict-reconfig-check=true", "--log-level=warn", "--log-outputs=stderr"))
			identity, revision := askWho(t, url)
			if told.ClusterID != snapshot.FormatID(identity.ClusterID) || told.MemberID != snapshot.FormatID(identity.MemberID) || revision != told.NewRevision {
				t.Errorf("it is %+v at %d, and the result is %+v", identity, revision, told)
			}
			// While etcd is running, the same command line does not change anything.
			if got := r.restore(flags...); got.code != exitOK || r.told() != told {
				t.Errorf("%+v: %+v", got, r.told())
			}
		})
	}
}

// TestRestoreFromSeveralClustersRequiresBackupName checks that the backup must be named if the store contains backups
// of several clusters, because the newest backup may be of an empty cluster that was created later.
func TestRestoreFromSeveralClustersRequiresBackupName(t *testing.T) {
	t.Parallel()
	r := newRestores(t)
	r.stored("20261122t180000z")
	const another, later = "00000000000000bb", "20261123t180000z"
	bucket, err := store.Location{Directory: r.store}.Open(t.Context(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	own := listed(t, bucket).Backups[0]
	m, err := store.ReadManifest(t.Context(), bucket, own)
	if err != nil {
		t.Fatal(err)
	}
	if m.Slot, err = store.ParseSlot(later); err != nil {
		t.Fatal(err)
	}
	m.ClusterID = another
	m.Data = m.NewDataName()
	if err := bucket.Create(t.Context(), m.DataPath(), strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Commit(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{snapshot.DisplayID(own.ClusterID) + " (1, newest " + own.ID() + ")", snapshot.DisplayID(another) + " (1, newest " + later + ")", "specify the backup to restore"} {
		if got := r.restore(); got.code != exitBlocked || !strings.Contains(got.err, id) {
			t.Errorf("%s: %+v", id, got)
		}
	}
	if got := r.restore(own.ID()); got.code != exitOK {
		t.Errorf("%+v", got)
	}
}
