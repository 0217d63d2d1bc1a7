package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/internal/procgroup/procgrouptest"
)

// resultFile writes the result of a stored backup, as modified by change, to a file.
func (r restores) resultFile(id string, change func(*result.Result)) string {
	r.Helper()
	bucket, err := store.Location{Directory: r.store}.Open(r.Context(), store.Options{})
	if err != nil {
		r.Fatal(err)
	}
	for _, b := range listed(r.T, bucket).Backups {
		if b.ID() != id {
			continue
		}
		m, err := store.ReadManifest(r.Context(), bucket, b)
		if err != nil {
			r.Fatal(err)
		}
		told := resultOf(m)
		change(&told)
		line, err := told.Encode()
		if err != nil {
			r.Fatal(err)
		}
		return r.file(string(line))
	}
	r.Fatalf("backup %s does not exist", id)
	return ""
}

func (r restores) file(content string) string {
	r.Helper()
	name := filepath.Join(r.TempDir(), "result.json")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		r.Fatal(err)
	}
	return name
}

func unchangedResult(*result.Result) {}

// TestRestoreExpectsBackup checks that --expect restores the backup that the file names, not the newest backup, and that
// existing data with the same cluster ID and revision is kept.
func TestRestoreExpectsBackup(t *testing.T) {
	r := newRestores(t)
	const older, newer, newest = "20261121t180000z", "20261122t180000z", "20261123t180000z"
	for _, id := range []string{older, newer, newest} {
		r.stored(id)
	}
	first := r.resultFile(newer, unchangedResult)
	// Nothing is restored if the store does not contain exactly this backup.
	for name, change := range map[string]func(*result.Result){
		"data":       func(told *result.Result) { told.Data = strings.Replace(told.Data, "z-", "z-1", 1) },
		"cluster ID": func(told *result.Result) { told.ClusterID = "00000000000000bb" },
		"revision":   func(told *result.Result) { told.Revision++ },
		"checksum":   func(told *result.Result) { told.SHA256 = strings.Repeat("0", 64) },
	} {
		if got := r.restore("--expect", r.resultFile(newer, change)); got.code != exitError || !strings.Contains(got.err, "the store does not contain backup "+newer) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := r.restore("--expect", first); got.code != exitOK || !strings.Contains(got.out, "restored ns/a "+newer) {
		t.Fatalf("%+v", got)
	}
	told := r.told()
	if store.SlotID(told.Slot) != newer {
		t.Errorf("%+v", told)
	}
	r.unchanged(exitOK, newer+" of cluster aa was restored into", func() ran { return r.restore("--expect", first) })
	if again := r.told(); again != told {
		t.Errorf("%+v, then %+v", told, again)
	}
	// Changes to users do not raise the revision, so the data of a different backup may be different.
	if got := r.restore("--expect", r.resultFile(older, unchangedResult)); got.code != exitOK || store.SlotID(r.told().Slot) != newer {
		t.Errorf("the same snapshot was restored again: %+v", got)
	}
	r.unchanged(exitBlocked, "holds a newer copy of the source, at revision 12, than the backup in --expect, at revision 11: delete the directory",
		func() ran {
			return r.restore("--expect", r.resultFile(newest, func(told *result.Result) { told.Revision = 11 }))
		})
	r.unchanged(exitBlocked, "by a different command line", func() ran { return r.restore("--expect", first, "--name=a-1") })
}

// line returns the result of the last backup as it was written.
func (j jobs) line() string {
	j.Helper()
	line, err := j.told().Encode()
	if err != nil {
		j.Fatal(err)
	}
	return string(line)
}

// TestInvalidExpectIsRejected checks that invalid uses of --expect are rejected.
func TestInvalidExpectIsRejected(t *testing.T) {
	r := newRestores(t)
	r.stored("20261122t180000z")
	file := r.resultFile("20261122t180000z", unchangedResult)
	for want, more := range map[string][]string{
		"--expect requires --once":                             {"--expect", file, "--once=false"},
		"cannot be combined with --lost-cluster-id":            {"--expect", file, "--lost-cluster-id=aa"},
		"must not name the same file":                          {"--expect", file, "--result", file},
		"expected a value":                                     {"--expect="},
		"/nowhere: no such file or directory":                  {"--expect=/nowhere"},
		"result.json: not a backup result":                     {"--expect", r.file("")},
		"result.json: not a backup result: json: unknown ":     {"--expect", r.file(`{"x":1}`)},
		"already names the backup: remove the BACKUP argument": {"20261122t180000z", "--expect", file},
	} {
		if got := r.restore(more...); got.code != exitInvalid || !strings.Contains(got.err, want) {
			t.Errorf("want %q: %+v", want, got)
		}
	}
	if left := r.files(); len(left) != 1 {
		t.Errorf("%v", left)
	}
}

// TestStaleRestoreIsReplaced checks that data restored by an earlier attempt is replaced if the new backup has a different
// revision or cluster ID, even if an attempt is killed at any point. Data on which etcd has been started is kept.
func TestStaleRestoreIsReplaced(t *testing.T) {
	kill := newKilling(t)
	j, r := newJobs(t), newRestores(t)
	r.store = j.store
	if got := j.backUp("by-hand"); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	first := r.file(j.line())
	j.put(t)
	if got := j.backUp("by-hand"); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	second, killed := r.file(j.line()), 0
	for _, call := range []string{"renameat2", "fsync", "unlinkat"} {
		for n := 1; ; n++ {
			r.volume = t.TempDir()
			if got := r.restore("--expect", first); got.code != exitOK || r.told().Revision != 1 {
				t.Fatalf("%+v", got)
			}
			_, err := kill.at(call, n, r.args("--expect", second)...)
			if got := r.restore("--expect", second); got.code != exitOK || r.told().Revision != 2 {
				t.Errorf("%s %d: %+v", call, n, got)
			}
			for file := range r.files() {
				if strings.Contains(file, "/stale/") {
					t.Errorf("%s %d: stale data remains in %s", call, n, file)
				}
			}
			if err == nil {
				break
			}
			killed++
		}
	}
	if killed < 5 {
		t.Errorf("only %d attempts were killed", killed)
	}
	j.put(t)
	if got := j.backUp("by-hand"); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	third := r.file(j.line())
	held, err := disk.Lock(t.Context(), snapshot.Database(r.dir()), nil) // like an etcd that has not elected a leader yet
	if err != nil {
		t.Fatal(err)
	}
	r.unchanged(exitError, "etcd is running", func() ran { return r.restore("--expect", third) })
	held()
	etcds := etcdPrograms(t)
	client, peer := "http://"+procgrouptest.Address(), "http://"+procgrouptest.Address()
	etcd := exec.Command(etcds[len(etcds)-1], "--name=a-0", "--data-dir="+r.dir(), "--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--log-level=warn", "--log-outputs=stderr")
	serving(t, etcd, http.DefaultClient, client)
	_ = etcd.Process.Kill()
	_ = etcd.Wait()
	r.unchanged(exitBlocked, "etcd has been started on it, but the source has changed since the restore; nothing was changed",
		func() ran { return r.restore("--expect", third) })
}

// TestKilledRestoreIsRepeatedWithLaterBackup checks that, if a restore is killed and repeated with a later backup, the
// result always describes the data in the directory.
func TestKilledRestoreIsRepeatedWithLaterBackup(t *testing.T) {
	kill := newKilling(t)
	r := newRestores(t)
	const killed, later = "20261121t180000z", "20261122t180000z"
	r.stored(killed)
	r.stored(later)
	first, second := r.resultFile(killed, unchangedResult), r.resultFile(later, unchangedResult)
	outcomes := map[string]int{}
	for _, call := range []string{"renameat2", "renameat", "linkat", "fsync", "unlinkat"} {
		for n := 1; ; n++ {
			r.volume = t.TempDir()
			_, err := kill.at(call, n, r.args("--expect", first)...)
			want := killed
			if _, missing := os.Stat(filepath.Join(r.dir(), "member")); missing != nil {
				want = later
			}
			if _, unmarked := os.Stat(r.dir() + ".restored.json"); err != nil && want == later && unmarked == nil {
				outcomes["a mark without data"]++
			}
			outcomes[want]++
			if got := r.restore("--expect", second); got.code != exitOK || !strings.Contains(got.out, "ns/a "+want) || store.SlotID(r.told().Slot) != want {
				t.Errorf("%s %d: want %s: %+v", call, n, want, got)
			}
			if err == nil {
				break
			}
		}
	}
	if t.Log(outcomes); outcomes[killed] == 0 || outcomes[later] == 0 || outcomes["a mark without data"] == 0 {
		t.Errorf("%v", outcomes)
	}
}
