package main

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"quorate.dev/quorate/clusters/backup/snapshot"
)

// TestRecoverRejectsHostileData checks that the recovering process does not crash, whatever an attacker has written to
// a data directory, and that it reports the problem.
func TestRecoverRejectsHostileData(t *testing.T) {
	t.Parallel()
	r := newRecoveries(t)
	for name, c := range map[string]struct {
		change func(t *testing.T, member string)
		code   int
		said   string
	}{
		"a record that takes all memory": {immenseRecord, exitBlocked, "requires more memory than allowed"},
		"a snapshot of holes":            {immenseSnap, exitBlocked, "ffffffffffffffff-ffffffffffffffff.snap has 268435457 bytes, but etcd never writes more than a few MiB"},
		"a page that is its own child":   {ownChild, exitBlocked, "the database is damaged"},
		"fewer pages than it says":       {truncatedDatabase, exitBlocked, "the database is damaged"},
		"a database elsewhere":           {linked("snap/db"), exitBlocked, "snap/db is a symbolic link, which is not followed"},
		"a log elsewhere":                {linked(firstLog), exitBlocked, firstLog + " is a symbolic link, which is not followed"},
		"snapshots elsewhere":            {linked("snap/1.snap"), exitBlocked, "snap/1.snap is a symbolic link, which is not followed"},
		"a device":                       {linkedTo("snap/db", "/dev/zero"), exitBlocked, "snap/db is a symbolic link, which is not followed"},
		"a pipe for a database":          {made("snap/db", pipe), exitBlocked, "snap/db is not a regular file"},
		"a pipe for a log":               {made("wal/ffffffffffffffff-0000000000000000.wal", pipe), exitBlocked, "wal/ffffffffffffffff-0000000000000000.wal is not a regular file"},
		"a socket for a log":             {made("wal/ffffffffffffffff-0000000000000000.wal", socket), exitBlocked, "wal/ffffffffffffffff-0000000000000000.wal is not a regular file"},
		"a directory for a log":          {made("wal/ffffffffffffffff-0000000000000000.wal", emptyDir), exitBlocked, "wal/ffffffffffffffff-0000000000000000.wal is not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			r := r
			r.T = t
			r.copied()
			c.change(t, filepath.Join(r.dir(), "member"))
			for _, flags := range [][]string{{"--dry-run"}, {}, {"--prepare", "--dir=" + t.TempDir(), "--etcd-version=" + versionOf(t, r.etcd), "--initial-cluster-token=t"}} {
				r.unchanged(c.code, c.said, func() ran { return r.recover(r.dir(), flags...) })
			}
			i := imports{restores: restores{T: t, store: t.TempDir()}, etcd: r.etcd, id: snapshot.FormatID(r.id.ClusterID)}
			r.unchanged(c.code, c.said, func() ran { return i.run([]string{r.volume}) })
		})
	}
}

const firstLog = "wal/0000000000000000-0000000000000000.wal"

// immenseRecord appends a record of 200 GiB to the log, as a sparse file.
func immenseRecord(t *testing.T, member string) {
	t.Helper()
	file, end := atEndOfLog(t, member)
	defer file.Close()
	const bytes = 200 << 30
	if _, err := file.WriteAt(binary.LittleEndian.AppendUint64(nil, bytes), end); err != nil {
		t.Fatal(err)
	}
	if err := file.Truncate(end + bytes + 1<<20); err != nil {
		t.Fatal(err)
	}
}

// immenseSnap creates a large snapshot of the Raft state as a sparse file. etcd would read the whole file into memory.
func immenseSnap(t *testing.T, member string) {
	t.Helper()
	path := filepath.Join(member, "snap", "ffffffffffffffff-ffffffffffffffff.snap")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 256<<20+1); err != nil {
		t.Fatal(err)
	}
}

// atEndOfLog opens the log of a member, and returns the offset of the next record.
func atEndOfLog(t *testing.T, member string) (file *os.File, end int64) {
	t.Helper()
	path := filepath.Join(member, firstLog)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for frame := binary.LittleEndian.Uint64(content); frame != 0; frame = binary.LittleEndian.Uint64(content[end:]) {
		end += 8 + int64(frame&(1<<56-1))
		if frame>>63 == 1 {
			end += int64(frame >> 56 & 7)
		}
	}
	if file, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	return file, end
}

// ownChild makes the root page a branch whose only child is itself.
func ownChild(t *testing.T, member string) {
	t.Helper()
	path := filepath.Join(member, "snap", "db")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pageSize := int64(binary.LittleEndian.Uint32(content[24:]))
	meta := content
	if next := content[pageSize:]; binary.LittleEndian.Uint64(next[64:]) > binary.LittleEndian.Uint64(meta[64:]) {
		meta = next // the meta page of a later transaction
	}
	root := binary.LittleEndian.Uint64(meta[32:])
	page := binary.LittleEndian.AppendUint64(nil, root)
	page = binary.LittleEndian.AppendUint16(page, 1) // a branch
	page = binary.LittleEndian.AppendUint16(page, 1) // with one child
	page = binary.LittleEndian.AppendUint32(page, 0)
	page = binary.LittleEndian.AppendUint32(page, 16) // whose key follows this header
	page = binary.LittleEndian.AppendUint32(page, 0)
	page = binary.LittleEndian.AppendUint64(page, root)
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(page, int64(root)*pageSize); err != nil {
		t.Fatal(err)
	}
}

// truncatedDatabase truncates the database to its first pages.
func truncatedDatabase(t *testing.T, member string) {
	t.Helper()
	if err := os.Truncate(filepath.Join(member, "snap", "db"), 3*4096+100); err != nil {
		t.Fatal(err)
	}
}

// linked returns a function that moves a part of a member and replaces it with a link to the new location.
func linked(part string) func(*testing.T, string) {
	return func(t *testing.T, member string) {
		t.Helper()
		at, elsewhere := filepath.Join(member, part), filepath.Join(t.TempDir(), "elsewhere")
		if err := os.Rename(at, elsewhere); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		linkedTo(part, elsewhere)(t, member)
	}
}

// linkedTo returns a function that replaces a file or directory of a member with a symlink to the given path.
func linkedTo(part, elsewhere string) func(*testing.T, string) {
	return made(part, func(at string) error { return os.Symlink(elsewhere, at) })
}

// made returns a function that replaces a part of a member with the file that something creates.
func made(part string, something func(at string) error) func(*testing.T, string) {
	return func(t *testing.T, member string) {
		t.Helper()
		at := filepath.Join(member, part)
		if err := errors.Join(os.RemoveAll(at), something(at)); err != nil {
			t.Fatal(err)
		}
	}
}

func pipe(at string) error     { return unix.Mkfifo(at, 0o600) }
func emptyDir(at string) error { return os.Mkdir(at, 0o700) }
func socket(at string) error   { return unix.Mknod(at, unix.S_IFSOCK|0o600, 0) }
