package drill

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/backuptest"
	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/clusters/backup/etcdprocess"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/internal/etcdversion"
)

func inspect(_ context.Context, file string) (snapshot.Facts, error) { return snapshot.Inspect(file) }

// otherHash inspects a snapshot and returns its facts with a wrong hash.
func otherHash(ctx context.Context, file string) (snapshot.Facts, error) {
	facts, err := inspect(ctx, file)
	sum := *facts.Hash + 1
	facts.Hash = &sum
	return facts, err
}

// of is the backed-up cluster.
var of = store.Cluster{Namespace: "ns", Name: "a"}

// stored stores a backup and returns the store and the manifest.
func stored(t *testing.T, inspect backup.Inspector) (store.Bucket, store.Manifest) {
	t.Helper()
	bucket, err := store.Location{Directory: t.TempDir()}.Open(t.Context(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := backup.Order{
		Cluster: of, Slot: time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC),
		Spool: t.TempDir(), Inspect: inspect,
	}
	taken, err := backup.Take(t.Context(), backuptest.Sound(backuptest.MustSnapshot(t)), o)
	if err != nil {
		t.Fatal(err)
	}
	m, err := taken.Store(t.Context(), bucket, o)
	if err != nil {
		t.Fatal(err)
	}
	return bucket, m
}

// programs returns the available etcd programs.
func programs(t *testing.T) []etcdprocess.Program {
	t.Helper()
	dir := os.Getenv("QUORATE_ETCD_DIR")
	if dir == "" {
		t.Skip("QUORATE_ETCD_DIR does not name a directory with etcd-<version>/etcd; make test sets it")
	}
	paths, err := filepath.Glob(filepath.Join(dir, "etcd-*", "etcd"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s holds no etcd-<version>/etcd (%v)", dir, err)
	}
	var found []etcdprocess.Program
	for _, path := range paths {
		p, err := etcdprocess.Find(t.Context(), path)
		if err != nil || "etcd-"+p.Version.String() != filepath.Base(filepath.Dir(path)) {
			t.Fatalf("%s: %+v, %v", path, p, err)
		}
		found = append(found, p)
	}
	return found
}

// empty fails the test if a drill has left anything behind in the directories.
func empty(t *testing.T, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: %v %v", dir, left, err)
		}
	}
}

// TestTry checks that etcd 3.6 and 3.7 start with a backup of etcd 3.6, and that older versions of etcd are rejected.
func TestTry(t *testing.T) {
	sockets := t.TempDir()
	t.Setenv("TMPDIR", sockets)
	t.Setenv("ETCD_SNAPSHOT_COUNT", "none") // etcd rejects this value
	bucket, m := stored(t, inspect)
	tried := 0
	for _, p := range programs(t) {
		dir := t.TempDir()
		d, err := Try(t.Context(), p, bucket, m, dir, backup.Reading{Inspect: inspect})
		empty(t, dir, sockets)
		if p.Version.Minor < 6 {
			if !errors.Is(err, etcdprocess.ErrVersion) {
				t.Errorf("%s: %+v, %v", p.Version, d, err)
			}
			continue
		}
		tried++
		if err != nil || d.Uncompared != "" || d.Revision != 12 || d.EtcdVersion != p.Version.String() ||
			min(d.FetchSeconds, d.RestoreSeconds, d.StartSeconds) <= 0 {
			t.Fatalf("%s: %+v, %v", p.Version, d, err)
		}
		if err := d.Record(t.Context(), bucket); err != nil {
			t.Fatal(err)
		}
	}
	listing, err := store.List(t.Context(), bucket, store.Cluster{})
	if err != nil || tried == 0 || len(listing.Backups) != 1 || !listing.Backups[0].Verified || !listing.Backups[0].Drilled {
		t.Fatalf("%d tried: %+v %v", tried, listing, err)
	}
	if err := listing.Remove(t.Context(), bucket, m); err != nil {
		t.Fatal(err)
	}
	if names, err := bucket.List(t.Context(), ""); err != nil || len(names) > 0 {
		t.Errorf("%v %v", names, err)
	}
}

// TestPreparedDrillWithExternalEtcd checks that a drill has the same result if etcd is started externally, and that
// both halves of the drill can be repeated.
func TestPreparedDrillWithExternalEtcd(t *testing.T) {
	t.Setenv("TMPDIR", "/tmp") // socket paths must be short
	bucket, m := stored(t, inspect)
	found := programs(t)
	p := found[len(found)-1]
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	state := t.TempDir()
	if _, _, err := Finish(t.Context(), p.Version, of, Apart{dir, state}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing is prepared: %v", err)
	}
	older := p.Version
	older.Minor = 5
	if _, err := Prepare(t.Context(), older, bucket, m, Apart{dir, state}, backup.Reading{Inspect: inspect}); !errors.Is(err, etcdprocess.ErrVersion) {
		t.Errorf("%s: %v", older, err)
	}
	for range 2 {
		if _, err := Prepare(t.Context(), p.Version, bucket, m, Apart{dir, state}, backup.Reading{Inspect: inspect}); err != nil {
			t.Fatal(err)
		}
	}
	etcd := exec.CommandContext(t.Context(), p.Path, "--config-file="+ConfigFile)
	etcd.Dir, etcd.Env = dir, []string{}
	if err := etcd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = etcd.Process.Kill(); _ = etcd.Wait() })
	for range 2 {
		drilled, d, err := Finish(t.Context(), p.Version, of, Apart{dir, state}, nil)
		if err != nil || drilled.Data != m.Data || d.Uncompared != "" || d.Revision != 12 || d.EtcdVersion != p.Version.String() ||
			min(d.FetchSeconds, d.RestoreSeconds, d.StartSeconds) <= 0 {
			t.Fatalf("%+v, %v", d, err)
		}
		if err := d.Record(t.Context(), bucket); err != nil {
			t.Fatal(err)
		}
	}
	if listing, err := store.List(t.Context(), bucket, store.Cluster{}); err != nil || !listing.Backups[0].Drilled || !listing.Backups[0].Verified {
		t.Fatalf("%+v %v", listing, err)
	}
}

// TestPrepareFollowsNoPlantedLinks prepares a drill in directories in which an earlier etcd has replaced every file
// with a link. It checks that the targets of the links are not changed, and that a link in place of a directory is
// rejected.
func TestPrepareFollowsNoPlantedLinks(t *testing.T) {
	bucket, m := stored(t, inspect)
	v, reading := etcdversion.Must("3.6.16"), backup.Reading{Inspect: inspect}
	dir, state, precious := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(precious, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{filepath.Join(dir, begunFile), filepath.Join(dir, ConfigFile), filepath.Join(dir, "data"),
		filepath.Join(dir, "snapshot.db"), filepath.Join(state, drillFile)} {
		if err := os.Symlink(precious, name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Prepare(t.Context(), v, bucket, m, Apart{dir, state}, reading); err != nil {
		t.Errorf("error: %v", err)
	}
	if text, err := os.ReadFile(precious); err != nil || string(text) != "precious" {
		t.Errorf("the file outside contains %q, %v", text, err)
	}
	for _, a := range []Apart{{filepath.Join(t.TempDir(), "link"), state}, {dir, filepath.Join(t.TempDir(), "link")}} {
		for _, path := range []string{a.Dir, a.State} {
			if filepath.Base(path) == "link" {
				if err := os.Symlink(t.TempDir(), path); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := Prepare(t.Context(), v, bucket, m, a, reading); !errors.Is(err, disk.ErrLink) {
			t.Errorf("%+v: error: %v", a, err)
		}
	}
}

// TestPrepareKeepsUnrelatedFiles checks that files in the directory are removed only if they belong to a drill.
func TestPrepareKeepsUnrelatedFiles(t *testing.T) {
	bucket, m := stored(t, inspect)
	v := etcdversion.Version{Major: 3, Minor: 6, Patch: 16}
	for _, name := range []string{"data", "snapshot.db", ConfigFile} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := Prepare(t.Context(), v, bucket, m, Apart{dir, t.TempDir()}, backup.Reading{Inspect: inspect}); !errors.Is(err, snapshot.ErrExists) {
			t.Errorf("%s: %v", name, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%s: %v %v", name, entries, err)
		}
	}
}

// TestFinishRejectsOtherClusterOrVersion checks that a drill can be finished only for the cluster and version for which
// it was prepared. Otherwise, etcd is not contacted, and the result cannot change the records of the other cluster.
func TestFinishRejectsOtherClusterOrVersion(t *testing.T) {
	bucket, m := stored(t, inspect)
	dir, state := t.TempDir(), t.TempDir()
	v := etcdversion.Version{Major: 3, Minor: 6, Patch: 16}
	if _, err := Prepare(t.Context(), v, bucket, m, Apart{dir, state}, backup.Reading{Inspect: inspect}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, drillFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("etcd could write to the files that Finish uses: %v", err)
	}
	newer := v
	newer.Patch++
	for _, test := range []struct {
		v  etcdversion.Version
		of store.Cluster
	}{{v, store.Cluster{Namespace: "ns", Name: "b"}}, {v, store.Cluster{}}, {newer, of}} {
		told, d, err := Finish(t.Context(), test.v, test.of, Apart{dir, state}, nil) // no etcd is running
		if err == nil || !strings.Contains(err.Error(), "it was prepared for ns/a with etcd 3.6.16") || told.Cluster != "" || d.SHA256 != "" {
			t.Errorf("%+v: %+v, %+v, %v", test, told, d, err)
		}
	}
}

// TestDamageFailsPreparedDrill checks that damage is detected before etcd is started, and that a drill does not succeed
// if damage is found between its two halves.
func TestDamageFailsPreparedDrill(t *testing.T) {
	bucket, m := stored(t, inspect)
	dir, state := t.TempDir(), t.TempDir()
	v := etcdversion.Version{Major: 3, Minor: 6, Patch: 16}
	d, err := Prepare(t.Context(), v, bucket, m, Apart{dir, state}, backup.Reading{Inspect: inspect})
	if err != nil {
		t.Fatal(err)
	}
	told, err := os.ReadFile(filepath.Join(state, drillFile))
	if err != nil {
		t.Fatal(err)
	}
	var before prepared
	if err := json.Unmarshal(told, &before); err != nil {
		t.Fatal(err)
	}
	other, err := store.BeginVerification(t.Context(), bucket, m)
	if err != nil {
		t.Fatal(err)
	}
	other.Damage = "x"
	if err := other.Record(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	d.Verification = before.Pending.Resume()
	if err := d.Record(t.Context(), bucket); !errors.Is(err, store.ErrOvertaken) {
		t.Errorf("%v", err)
	}
	if err := bucket.Replace(t.Context(), m.DataPath(), strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(t.Context(), v, bucket, m, Apart{dir, state}, backup.Reading{Inspect: inspect}); !errors.Is(err, backup.ErrDamaged) {
		t.Errorf("%v", err)
	}
	if _, _, err := Finish(t.Context(), v, of, Apart{dir, state}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestDrillFailsOnDifferentData checks that a drill fails if etcd does not have the data that was backed up.
func TestDrillFailsOnDifferentData(t *testing.T) {
	found := programs(t)
	bucket, m := stored(t, otherHash)
	dir := t.TempDir()
	d, err := Try(t.Context(), found[len(found)-1], bucket, m, dir, backup.Reading{Inspect: otherHash})
	if !errors.Is(err, ErrDiffers) {
		t.Errorf("%+v, %v", d, err)
	}
	empty(t, dir)
}

// fake returns a program that claims to be etcd, but runs the given shell commands.
func fake(t *testing.T, does string) etcdprocess.Program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "etcd")
	script := "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'etcd Version: 3.6.16'; exit; fi\n" + does + "\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := etcdprocess.Find(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestUnresponsiveEtcdEndsDrill checks that a drill ends and leaves nothing behind if etcd exits or does not respond.
func TestUnresponsiveEtcdEndsDrill(t *testing.T) {
	sockets := t.TempDir()
	t.Setenv("TMPDIR", sockets)
	bucket, m := stored(t, inspect)
	dir := t.TempDir()
	_, err := Try(t.Context(), fake(t, "echo 'panic: \033[2J no such page' >&2; exit 2"), bucket, m, dir, backup.Reading{Inspect: inspect})
	if err == nil || !strings.Contains(err.Error(), "etcd exited before it responded: panic:") || strings.Contains(err.Error(), "\033") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	tell := func(step string, _, _ int64) {
		if step == "start etcd" {
			time.AfterFunc(200*time.Millisecond, func() { cancel(errors.New("enough")) })
		}
	}
	_, err = Try(ctx, fake(t, "exec sleep 600"), bucket, m, dir, backup.Reading{Inspect: inspect, Progress: tell})
	if err == nil || !strings.Contains(err.Error(), "wait for etcd to respond: enough") {
		t.Errorf("%v", err)
	}
	empty(t, dir, sockets)
}

// TestDrillAcceptsRelativePaths checks that etcd, which runs in a different directory, can be started with data that
// was restored to a relative path.
func TestDrillAcceptsRelativePaths(t *testing.T) {
	found := programs(t)
	bucket, m := stored(t, inspect)
	t.Chdir(t.TempDir())
	t.Setenv("TMPDIR", "tmp")
	for _, dir := range []string{"tmp", "data"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"", "data"} {
		if d, err := Try(t.Context(), found[len(found)-1], bucket, m, dir, backup.Reading{Inspect: inspect}); err != nil || d.Uncompared != "" {
			t.Errorf("%q: %+v, %v", dir, d, err)
		}
	}
	empty(t, "tmp", "data")
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), strings.Repeat("x", 100)))
	if err := os.Mkdir(os.TempDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := found[0].Start("data"); err == nil || !strings.Contains(err.Error(), "set TMPDIR to a shorter path") {
		t.Errorf("%v", err)
	}
}

// TestScripts checks that the program may be a script, that its child processes are killed with it, and that the drill
// fails if etcd has different data.
func TestScripts(t *testing.T) {
	found := programs(t)
	real := found[len(found)-1]
	bucket, m := stored(t, inspect)
	sockets := t.TempDir()
	t.Setenv("TMPDIR", sockets)
	for does, want := range map[string]error{
		real.Path + ` "$@"; true`:                                               nil,
		`exec ` + real.Path + ` "$@" --data-dir=` + t.TempDir():                 ErrDiffers,
		`(sleep 600 &) ; exec ` + real.Path + ` "$@" --data-dir=` + t.TempDir(): ErrDiffers,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		p := fake(t, does)
		d, err := Try(ctx, p, bucket, m, t.TempDir(), backup.Reading{Inspect: inspect})
		if !errors.Is(err, want) || err == nil && want != nil {
			t.Errorf("%s: %+v, %v, want %v", does, d, err, want)
		}
		cancel()
		empty(t, sockets)
	}
}

// TestFindIsBounded checks that Find does not wait for a program that runs forever, does not leave it running, and
// does not keep all of its output.
func TestFindIsBounded(t *testing.T) {
	for _, does := range []string{"yes", "sleep 600 & echo 'etcd Version: 3.6.16'"} {
		path := filepath.Join(t.TempDir(), "etcd")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+does+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		start := time.Now()
		if p, err := etcdprocess.Find(ctx, path); err == nil {
			t.Errorf("%s: %+v", does, p)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s took %s", does, took)
		}
		cancel()
	}
}

// TestFind checks that a program that is not etcd is rejected.
func TestFind(t *testing.T) {
	for program, want := range map[string]string{
		"/bin/echo":                           "is it etcd?",
		"/bin/false":                          "exit status 1",
		filepath.Join(t.TempDir(), "missing"): "no such file",
		"no-such-program":                     "not found",
	} {
		if p, err := etcdprocess.Find(t.Context(), program); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", program, p, err)
		}
	}
}
