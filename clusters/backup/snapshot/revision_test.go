package snapshot_test

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"

	"quorate.dev/quorate/clusters/backup/backuptest"
	"quorate.dev/quorate/clusters/backup/snapshot"
)

// revisionKey encodes a revision as etcd stores it.
func revisionKey(revision uint64) []byte {
	return append(append(binary.BigEndian.AppendUint64(nil, revision), '_'), make([]byte, 8)...)
}

// changedSnapshot returns the path of a modified snapshot from a real etcd.
func changedSnapshot(t *testing.T, change func(*bolt.Tx) error) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.db")
	content := backuptest.MustSnapshot(t)
	if err := os.WriteFile(file, content[:len(content)-sha256.Size], 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(file, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(change), db.Close()); err != nil {
		t.Fatal(err)
	}
	if content, err = os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	if err := os.WriteFile(file, append(content, sum[:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// with returns a function that stores the given revisions. Their names are "key", "scheduledCompactRev" and
// "finishedCompactRev".
func with(revisions map[string]uint64) func(*bolt.Tx) error {
	return func(tx *bolt.Tx) error {
		for name, revision := range revisions {
			bucket, key, value := "meta", []byte(name), revisionKey(revision)
			if name == "key" {
				bucket, key, value = "key", value, []byte{}
			}
			if err := tx.Bucket([]byte(bucket)).Put(key, value); err != nil {
				return err
			}
		}
		return nil
	}
}

func restoration(dir string, bump uint64) snapshot.Restoration {
	return snapshot.Restoration{DataDir: dir, Name: "a-0", PeerURL: "http://localhost:2380",
		InitialCluster: "a-0=http://localhost:2380", Token: "t", Bump: bump}
}

// TestNegativeRevisions checks that negative revisions, which etcd ignores, are reported as damage.
func TestNegativeRevisions(t *testing.T) {
	for name, revisions := range map[string]map[string]uint64{
		"key": {"key": 1<<63 + 7}, "all bits": {"key": math.MaxUint64},
		"scheduled": {"scheduledCompactRev": 1 << 63}, "finished": {"finishedCompactRev": math.MaxUint64},
	} {
		if facts, err := snapshot.Inspect(changedSnapshot(t, with(revisions))); !errors.Is(err, snapshot.ErrDamaged) {
			t.Errorf("%s: %+v, %v", name, facts, err)
		}
	}
}

// TestRevisionsDoNotOverflow checks that either the revision is raised exactly as requested, or the restore is rejected
// and leaves nothing behind.
func TestRevisionsDoNotOverflow(t *testing.T) {
	const most = math.MaxInt64 / 2
	for name, c := range map[string]struct {
		revisions map[string]uint64
		bump      uint64
		want      int64 // 0 means that the restore is rejected
	}{
		"as etcd has it":                     {nil, 5, backuptest.Revision + 5},
		"as it is":                           {nil, 0, backuptest.Revision},
		"as far as may be":                   {nil, most - backuptest.Revision, most},
		"farther":                            {nil, most - backuptest.Revision + 1, 0},
		"near the end":                       {map[string]uint64{"key": math.MaxInt64 - 5}, snapshot.DefaultBump, 0},
		"at the end":                         {map[string]uint64{"key": math.MaxInt64}, 1, 0},
		"at the end, as it is":               {map[string]uint64{"key": math.MaxInt64}, 0, math.MaxInt64},
		"beyond the half":                    {map[string]uint64{"key": most + 1}, 1, 0},
		"compacted near the end":             {map[string]uint64{"scheduledCompactRev": math.MaxInt64 - 5}, snapshot.DefaultBump, 0},
		"compacted beyond the newest change": {map[string]uint64{"scheduledCompactRev": 1000, "finishedCompactRev": 1000}, 5, 1005},
	} {
		file, dir := changedSnapshot(t, with(c.revisions)), filepath.Join(t.TempDir(), "data")
		if _, err := snapshot.Inspect(file); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		made, err := snapshot.Make(file, restoration(dir, c.bump))
		if c.want == 0 {
			if _, there := os.Stat(dir); !errors.Is(err, snapshot.ErrRevision) || !errors.Is(there, os.ErrNotExist) {
				t.Errorf("%s: %+v, %v; %v", name, made, err, there)
			}
			continue
		}
		if err != nil || made.Revision != c.want {
			t.Errorf("%s: %+v, %v", name, made, err)
		}
	}
}
