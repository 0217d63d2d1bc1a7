package snapshot

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// writtenLog is a member's log, which etcd's own library writes to files of a few entries each.
type writtenLog struct {
	*testing.T
	dir string
	log *wal.WAL
}

func newLog(t *testing.T) writtenLog {
	t.Helper()
	size := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = 2 << 10
	t.Cleanup(func() { wal.SegmentSizeBytes = size })
	l := writtenLog{T: t, dir: t.TempDir()}
	metadata, err := proto.Marshal(&etcdserverpb.Metadata{NodeID: proto.Uint64(1), ClusterID: proto.Uint64(2)})
	if err == nil {
		l.log, err = wal.Create(zap.NewNop(), filepath.Join(l.dir, "wal"), metadata)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// entries writes entries of the given term, with the given commit index.
func (l writtenLog) entries(term, commit uint64, indexes ...uint64) {
	l.Helper()
	for _, index := range indexes {
		entry := &raftpb.Entry{Term: &term, Index: &index, Type: raftpb.EntryNormal.Enum(), Data: bytes.Repeat([]byte{byte(index) | 1}, 100)}
		state := &raftpb.HardState{Term: &term, Vote: proto.Uint64(1), Commit: proto.Uint64(min(commit, index))}
		if err := l.log.Save(state, []*raftpb.Entry{entry}); err != nil {
			l.Fatal(err)
		}
	}
}

func (l writtenLog) snapshot(term, index uint64) {
	l.Helper()
	if err := l.log.SaveSnapshot(&walpb.Snapshot{Term: &term, Index: &index, ConfState: &raftpb.ConfState{Voters: []uint64{1}}}); err != nil {
		l.Fatal(err)
	}
}

func (l writtenLog) close() {
	l.Helper()
	if err := l.log.Close(); err != nil {
		l.Fatal(err)
	}
}

// says returns where the log ends according to readLog.
func (l writtenLog) says() (Position, error) {
	var s Survivor
	err := s.readLog(l.dir)
	return s.End, err
}

// reads returns where the log ends when etcd reads a copy of it in a recovery.
func (l writtenLog) reads() (Position, error) {
	l.Helper()
	dir := filepath.Join(l.TempDir(), "wal")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(l.dir, "wal"))); err != nil {
		l.Fatal(err)
	}
	if _, err := commitLog(dir); err != nil {
		return Position{}, err
	}
	snapshots, err := wal.ValidSnapshotEntries(zap.NewNop(), dir)
	if err != nil || len(snapshots) == 0 {
		l.Fatal(snapshots, err)
	}
	from := snapshots[len(snapshots)-1]
	log, err := wal.OpenForRead(zap.NewNop(), dir, from)
	if err != nil {
		return Position{}, err
	}
	defer log.Close()
	_, _, entries, err := log.ReadAll()
	if len(entries) > 0 {
		last := entries[len(entries)-1]
		return Position{last.GetTerm(), last.GetIndex()}, err
	}
	return Position{from.GetTerm(), from.GetIndex()}, err
}

func (l writtenLog) files() []string {
	l.Helper()
	names, err := logsIn(l.dir)
	if err != nil {
		l.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func upTo(first, last uint64) (indexes []uint64) {
	for ; first <= last; first++ {
		indexes = append(indexes, first)
	}
	return indexes
}

// longLog returns a log with several files and a snapshot in the middle.
func longLog(t *testing.T) writtenLog {
	t.Helper()
	l := newLog(t)
	l.entries(1, 30, upTo(1, 30)...)
	l.snapshot(1, 25)
	l.entries(2, 60, upTo(28, 60)...) // some of these replace earlier entries
	l.close()
	if len(l.files()) < 4 {
		t.Fatal(l.files())
	}
	return l
}

// TestLogTruncatedInMiddleIsDamaged checks that a truncated file in the middle of a log is reported as damage, and not
// treated as the end of the log.
func TestLogTruncatedInMiddleIsDamaged(t *testing.T) {
	l := longLog(t)
	if end, err := l.says(); err != nil || end != (Position{2, 60}) {
		t.Fatal(end, err)
	}
	middle := l.files()[1]
	info, err := os.Stat(middle)
	if err == nil {
		err = os.Truncate(middle, info.Size()-5)
	}
	if err != nil {
		t.Fatal(err)
	}
	if end, err := l.says(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "truncated in the middle, in "+middle) || end != (Position{}) {
		t.Errorf("%+v, %v", end, err)
	}
}

// TestDamagedLogEndsWhereRecoveryEnds checks that a log that is truncated or changed anywhere is either reported as
// damaged, or ends where it ends in a recovery.
func TestDamagedLogEndsWhereRecoveryEnds(t *testing.T) {
	whole := longLog(t)
	chance := rand.New(rand.NewPCG(1, 2))
	refused, torn := 0, 0
	for i, name := range whole.files() {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		used := len(bytes.TrimRight(content, "\x00"))
		damage := map[string][]byte{}
		for range 60 {
			at := chance.IntN(used)
			damage["cut off"] = content[:at]
			damage["zeros from there"] = append(slices.Clone(content[:at]), make([]byte, len(content)-at)...)
			flipped := slices.Clone(content)
			flipped[at] ^= 1 << chance.IntN(8)
			damage["one bit"] = flipped
			for what, content := range damage {
				if err := os.WriteFile(name, content, 0o600); err != nil {
					t.Fatal(err)
				}
				says, err := whole.says()
				if err != nil {
					refused++
					continue
				}
				if says != (Position{2, 60}) {
					torn++
				}
				if reads, err := whole.reads(); err != nil || reads != says {
					t.Errorf("file %d, %s at %d of %d: it is reported to end at %+v, but is read up to %+v, %v", i, what, at, used, says, reads, err)
				}
			}
		}
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if refused < 100 || torn < 20 {
		t.Errorf("%d refused, %d torn", refused, torn)
	}
}

// TestLogEndsWhereEtcdStopsReading checks that a log ends where etcd stops reading it.
func TestLogEndsWhereEtcdStopsReading(t *testing.T) {
	for name, c := range map[string]struct {
		write func(writtenLog)
		want  Position // zero means damaged
	}{
		"a snapshot that was never committed, of one who was killed": {func(l writtenLog) {
			l.entries(1, 5, upTo(1, 5)...)
			l.snapshot(3, 500)
		}, Position{1, 5}},
		"a snapshot that a leader has sent": {func(l writtenLog) {
			l.entries(1, 5, upTo(1, 5)...)
			l.snapshot(3, 500)
			l.entries(3, 501, 501)
		}, Position{3, 501}},
		"entries that were replaced": {func(l writtenLog) {
			l.entries(1, 2, upTo(1, 9)...)
			l.entries(2, 2, 3)
		}, Position{2, 3}},
		"a gap": {func(l writtenLog) {
			l.entries(1, 5, upTo(1, 5)...)
			l.entries(1, 5, 500)
		}, Position{}},
		"the largest index": {func(l writtenLog) {
			l.entries(1, 5, upTo(1, 5)...)
			l.entries(1<<64-1, 5, 1<<64-1)
		}, Position{}},
		"what a leader of before has sent after the snapshot of a later one": {func(l writtenLog) {
			l.entries(5, 400, upTo(1, 600)...)
			l.snapshot(6, 500)
			if err := l.log.Save(&raftpb.HardState{Term: proto.Uint64(6), Vote: proto.Uint64(1), Commit: proto.Uint64(500)}, nil); err != nil {
				l.Fatal(err)
			}
		}, Position{}},
	} {
		l := newLog(t)
		c.write(l)
		l.close()
		end, err := l.says()
		if want := c.want != (Position{}); want != (err == nil) || err == nil && end != c.want || err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %+v, %v", name, end, err)
		}
		if reads, unread := l.reads(); err == nil && (unread != nil || reads != end) {
			t.Errorf("%s: it is read up to %+v, %v", name, reads, unread)
		}
	}
}

// TestLogWithoutFirstFileIsDamaged checks that a log is reported as damaged if its first files are missing and it has
// no snapshot.
func TestLogWithoutFirstFileIsDamaged(t *testing.T) {
	l := newLog(t)
	l.entries(1, 60, upTo(1, 60)...)
	l.close()
	if err := os.Remove(l.files()[0]); err != nil {
		t.Fatal(err)
	}
	if end, err := l.says(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "the beginning of its log is missing") {
		t.Errorf("%+v, %v", end, err)
	}
}

// TestMembersMayDiffer checks that changes to the members that the database may not include yet are found in the log.
func TestMembersMayDiffer(t *testing.T) {
	l := newLog(t)
	l.entries(1, 9, upTo(1, 9)...)
	change := &raftpb.Entry{Term: proto.Uint64(1), Index: proto.Uint64(10), Type: raftpb.EntryConfChange.Enum(), Data: []byte{}}
	if err := l.log.Save(&raftpb.HardState{Term: proto.Uint64(1), Vote: proto.Uint64(1), Commit: proto.Uint64(10)}, []*raftpb.Entry{change}); err != nil {
		t.Fatal(err)
	}
	l.entries(1, 12, upTo(11, 12)...)
	requires := func(applied uint64, want bool) {
		t.Helper()
		s := Survivor{Committed: applied}
		if err := s.readLog(l.dir); err != nil || s.MembersMayDiffer != want {
			t.Errorf("applied up to %d: %t, %v", applied, s.MembersMayDiffer, err)
		}
	}
	requires(9, true)
	requires(10, false)
	l.snapshot(1, 12) // as sent by a leader
	l.close()
	requires(11, true)
	requires(12, false)
}
