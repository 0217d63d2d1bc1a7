package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/backup/result"
	"quorate.dev/quorate/clusters/backup/store"
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
// existing data counts as done only if it is from the same snapshot.
func TestRestoreExpectsBackup(t *testing.T) {
	t.Parallel()
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
	same := r.resultFile(older, unchangedResult) // of the same snapshot
	for _, file := range []string{first, same} {
		r.unchanged(exitOK, newer+" of cluster aa was restored into", func() ran { return r.restore("--expect", file) })
		if again := r.told(); again != told {
			t.Errorf("%+v, then %+v", told, again)
		}
	}
	for name, change := range map[string]func(*result.Result){
		"later":             func(told *result.Result) { told.Revision = 13 },
		"earlier":           func(told *result.Result) { told.Revision = 11 },
		"different cluster": func(told *result.Result) { told.ClusterID = "00000000000000bb" },
		"different data":    func(told *result.Result) { told.SHA256 = strings.Repeat("0", 64) }, // such as users
	} {
		r.unchanged(exitBlocked, "holds data from a different backup, of cluster aa at revision 12; nothing was changed. To restore cluster ",
			func() ran { return r.restore("--expect", r.resultFile(newest, change)) })
		if text, err := os.ReadFile(r.result); err != nil || len(text) > 0 {
			t.Errorf("%s: result %q, %v", name, text, err)
		}
	}
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
	t.Parallel()
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

// TestKilledRestoreIsRepeatedWithLaterBackup checks that, if a restore is killed and repeated with a later backup, the
// later backup is restored unless the killed restore had completed. The result always describes the data.
func TestKilledRestoreIsRepeatedWithLaterBackup(t *testing.T) {
	t.Parallel()
	kill := newKilling(t)
	j, r := newJobs(t), newRestores(t)
	r.store = j.store
	var files []string
	for range 2 {
		if got := j.backUp("by-hand"); got.code != exitOK {
			t.Fatalf("%+v", got)
		}
		files = append(files, r.file(j.line()))
		j.put(t)
	}
	outcomes := map[string]int{}
	for _, call := range []string{"renameat2", "renameat", "linkat", "fsync", "unlinkat"} {
		for n := 1; ; n++ {
			r.volume = t.TempDir()
			_, err := kill.at(call, n, r.args("--expect", files[0])...)
			if _, missing := os.Stat(filepath.Join(r.dir(), "member")); missing == nil {
				outcomes["completed"]++
				r.unchanged(exitBlocked, "at revision 1; nothing was changed. To restore", func() ran { return r.restore("--expect", files[1]) })
				if got := r.restore("--expect", files[0]); got.code != exitOK || r.told().Revision != 1 {
					t.Errorf("%s %d: %+v", call, n, got)
				}
			} else {
				if _, unmarked := os.Stat(r.dir() + ".restored.json"); unmarked == nil {
					outcomes["a mark without data"]++
				}
				outcomes["killed"]++
				if got := r.restore("--expect", files[1]); got.code != exitOK || r.told().Revision != 2 {
					t.Errorf("%s %d: %+v", call, n, got)
				}
			}
			if err == nil {
				break
			}
		}
	}
	if t.Log(outcomes); outcomes["killed"] == 0 || outcomes["completed"] == 0 || outcomes["a mark without data"] == 0 {
		t.Errorf("%v", outcomes)
	}
}
