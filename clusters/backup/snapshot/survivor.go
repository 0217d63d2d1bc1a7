package snapshot

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/internal/panics"
)

// Survivor is a stopped member whose data directory still exists.
type Survivor struct {
	Identity
	// Name and PeerURLs are the member's name and peer URLs.
	Name     string
	PeerURLs []string
	// Learner is set if the member is not a voter.
	Learner bool
	// Voters contains the names of the cluster's voters by their IDs, and Learners is the number of learners, including
	// this member.
	Voters   map[uint64]string
	Learners int
	// MembersMayDiffer is set if the log contains changes to the members that the database may not include yet.
	MembersMayDiffer bool
	// End is the end of the member's log. The member with the latest end has at least every acknowledged entry that any
	// other member has (the election restriction of Raft, section 5.4.1).
	End Position
	// Committed is the index up to which the member knows its log to be committed. Later entries may have been
	// acknowledged too, because a leader tells its followers about a commit only with the next message.
	Committed uint64
	// Facts contains only those facts that can be read without reading the whole database: versions, alarms,
	// authentication.
	Facts Facts
}

// Position is a position in the Raft log.
type Position struct{ Term, Index uint64 }

// Compare returns a positive number if p is later than o.
func (p Position) Compare(o Position) int {
	return cmp.Or(cmp.Compare(p.Term, o.Term), cmp.Compare(p.Index, o.Index))
}

// ErrRunning is returned for a data directory that an etcd is using.
var ErrRunning = errors.New("etcd is running on the data directory. Stop it, and make sure that nothing " +
	"starts it again")

var (
	membersBucket   = []byte("members")
	consistentIndex = []byte("consistent_index")
)

// Database returns the path of the member's database in a data directory.
func Database(dataDir string) string { return filepath.Join(dataDir, member, "snap", "db") }

// Hold locks the database in a data directory, so that an etcd started there waits until the result is closed. It
// returns ErrRunning if an etcd is already using the database.
func Hold(dataDir string) (*disk.Shared, error) {
	if err := hasFiles(dataDir); err != nil {
		return nil, err
	}
	return holdDatabase(dataDir)
}

// HoldRemains is like Hold, but for a member that may be damaged or incomplete. etcd waits for the database of such a
// member too. HoldRemains returns nil if the database is missing or is not a regular file.
func HoldRemains(dataDir string) (*disk.Shared, error) {
	info, err := os.Lstat(Database(dataDir))
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOTDIR), err == nil && !info.Mode().IsRegular():
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("hold %s: %w", dataDir, err)
	}
	return holdDatabase(dataDir)
}

func holdDatabase(dataDir string) (*disk.Shared, error) {
	held, err := disk.Share(Database(dataDir))
	if errors.Is(err, disk.ErrLocked) {
		err = ErrRunning
	}
	if err != nil {
		return nil, fmt.Errorf("hold %s: %w", dataDir, err)
	}
	return held, nil
}

// hasDirectories rejects a data directory that contains links in place of directories, because links may lead to other
// data.
func hasDirectories(dataDir string) error {
	for _, part := range []string{member, filepath.Join(member, "wal"), filepath.Join(member, "snap")} {
		dir := filepath.Join(dataDir, part)
		info, err := os.Lstat(dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return ErrNoMember
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%w: %s is not a directory", ErrDamaged, dir)
		}
	}
	return nil
}

// hasFiles rejects a member that contains anything other than regular files and directories. etcd does not create
// anything else, and links may lead to other data.
func hasFiles(dataDir string) error {
	if err := hasDirectories(dataDir); err != nil {
		return err
	}
	for _, part := range []string{member, filepath.Join(member, "wal"), filepath.Join(member, "snap")} {
		dir := filepath.Join(dataDir, part)
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if entry.IsDir() {
				continue
			}
			if err := isPlain(filepath.Join(dir, entry.Name()), entry.Type()); err != nil {
				return err
			}
			if err := isSmall(filepath.Join(dir, entry.Name()), entry); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxSnap is the maximum size of a snapshot of the Raft state, in bytes. etcd reads the whole snapshot. Since version
// 3, such a snapshot contains the members but no data.
const maxSnap = 256 << 20

// isSmall rejects a snapshot of the Raft state that would exhaust memory, such as a sparse file.
func isSmall(path string, entry os.DirEntry) error {
	if filepath.Ext(path) != ".snap" {
		return nil
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	if info.Size() > maxSnap {
		return fmt.Errorf("%w: %s has %d bytes, but etcd never writes more than a few MiB", ErrDamaged, path,
			info.Size())
	}
	return nil
}

// isPlain rejects anything other than a regular file: a link could point anywhere, and a pipe could block its reader.
func isPlain(path string, kind os.FileMode) error {
	switch {
	case kind&os.ModeSymlink != 0:
		return fmt.Errorf("%w: %s is a symbolic link, which is not followed. Replace it with its target",
			ErrDamaged, path)
	case !kind.IsRegular():
		return fmt.Errorf("%w: %s is not a regular file", ErrDamaged, path)
	}
	return nil
}

// SurvivorOf reads a data directory without changing it.
func SurvivorOf(dataDir string) (Survivor, error) {
	if err := hasFiles(dataDir); err != nil {
		return Survivor{}, err
	}
	identity, err := IdentityOf(dataDir)
	if err != nil {
		return Survivor{}, err
	}
	found := Survivor{Identity: identity}
	err = reading(Database(dataDir), openPlain, found.readDatabase)
	if errors.Is(err, bolterrors.ErrTimeout) {
		err = ErrRunning
	}
	if err == nil {
		err = found.readLog(filepath.Join(dataDir, member))
	}
	if err != nil {
		return Survivor{}, fmt.Errorf("read the member in %s: %w", dataDir, err)
	}
	return found, nil
}

func (s *Survivor) readDatabase(tx *bolt.Tx) (err error) {
	if s.Facts, err = outline(tx); err != nil {
		return err
	}
	if index := value(tx, metaBucket, consistentIndex); len(index) == 8 {
		s.Committed = binary.BigEndian.Uint64(index)
	}
	b := tx.Bucket(membersBucket)
	if b == nil {
		return fmt.Errorf("%w: it has no member list", ErrDamaged)
	}
	itself := false
	s.Voters = map[uint64]string{}
	err = b.ForEach(func(_, text []byte) error {
		var m struct {
			ID        uint64   `json:"id"`
			Name      string   `json:"name"`
			PeerURLs  []string `json:"peerURLs"`
			IsLearner bool     `json:"isLearner"`
		}
		if err := json.Unmarshal(text, &m); err != nil {
			return fmt.Errorf("%w: its member list contains an invalid member", ErrDamaged)
		}
		if m.IsLearner {
			s.Learners++
		} else {
			s.Voters[m.ID] = m.Name
		}
		if m.ID == s.MemberID {
			itself, s.Name, s.PeerURLs, s.Learner = true, m.Name, m.PeerURLs, m.IsLearner
		}
		return nil
	})
	if err == nil && !itself {
		err = fmt.Errorf("member %x is not in the member list of its own database: the member was removed, or has "+
			"not caught up since it joined", s.MemberID)
	}
	return err
}

// Unstarted reports whether the member in directory dir was created from a snapshot and has never been started by etcd.
// Once started, etcd would have elected a leader, which begins a new term.
func Unstarted(dir string) (bool, error) {
	var s Survivor
	err := s.readLog(dir)
	return s.End.Term == madeTerm, err
}

// madeTerm is the term in the log of a member created from a snapshot (by etcdutl snapshot restore).
const madeTerm = 1

// readLog determines where the log of a member ends, and up to which index the log is known to be committed.
func (s *Survivor) readLog(dir string) error {
	return panics.Catch(func() error { return s.readRecords(dir) })
}

func (s *Survivor) readRecords(dir string) error {
	names, err := logsIn(dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	at := 0
	var files []fileutil.FileReader
	for i, name := range names {
		file, err := disk.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		files = append(files, part{fileutil.NewFileReader(file), i, &at})
	}
	decoder, found := wal.NewDecoder(files...), records{}
	for {
		var record walpb.Record
		err := decoder.Decode(&record)
		switch torn := errors.Is(err, io.ErrUnexpectedEOF); {
		case torn && at < len(names)-1:
			return fmt.Errorf("%w: its log is truncated in the middle, in %s; later entries cannot be read",
				ErrDamaged, names[at])
		case torn || errors.Is(err, io.EOF): // the end of the log may be torn
			return s.takeAll(found)
		}
		if err == nil {
			err = found.take(decoder, &record)
		}
		if err != nil {
			return fmt.Errorf("%w: its log: %w", ErrDamaged, err)
		}
	}
}

// part is a log file that stores its number in at whenever it is read.
type part struct {
	fileutil.FileReader
	number int
	at     *int
}

// Read implements fileutil.FileReader.
func (p part) Read(b []byte) (int, error) {
	*p.at = p.number
	return p.FileReader.Read(b)
}

// records holds the log records that determine where the log ends, in order.
type records struct {
	entries, snapshots []Position
	// membersChanged is the index of the last entry that changes the members.
	membersChanged uint64
	// commit is the commit index in the last state record, and committed is the highest commit index in any state
	// record.
	commit, committed uint64
	metadata          []byte
}

// take processes one record.
func (r *records) take(decoder wal.Decoder, record *walpb.Record) error {
	switch record.GetType() {
	case wal.CrcType:
		if sum := decoder.LastCRC(); sum != 0 && record.Validate(sum) != nil {
			return wal.ErrCRCMismatch
		}
		decoder.UpdateCRC(record.GetCrc())
	case wal.StateType:
		var state raftpb.HardState
		if err := proto.Unmarshal(record.Data, &state); err != nil {
			return err
		}
		r.commit, r.committed = state.GetCommit(), max(r.committed, state.GetCommit())
	case wal.EntryType:
		var entry raftpb.Entry
		if err := proto.Unmarshal(record.Data, &entry); err != nil {
			return err
		}
		r.entries = append(r.entries, Position{entry.GetTerm(), entry.GetIndex()})
		if entry.GetType() != raftpb.EntryNormal {
			r.membersChanged = max(r.membersChanged, entry.GetIndex())
		}
	case wal.SnapshotType:
		var snap walpb.Snapshot
		if err := proto.Unmarshal(record.Data, &snap); err != nil {
			return err
		}
		r.snapshots = append(r.snapshots, Position{snap.GetTerm(), snap.GetIndex()})
	case wal.MetadataType:
		if r.metadata != nil && !bytes.Equal(r.metadata, record.Data) {
			return wal.ErrMetadataConflict
		}
		r.metadata = bytes.Clone(record.Data)
	default: // the checksum does not cover the type
		return fmt.Errorf("unknown record type %d", record.GetType())
	}
	return nil
}

// takeAll determines where the log ends when etcd reads it. The log starts at the last committed snapshot. Each entry
// either follows the previous entry, or replaces all entries from its own index on.
func (s *Survivor) takeAll(found records) error {
	applied := s.Committed
	s.Committed = max(s.Committed, found.committed)
	begun := false
	for _, snap := range found.snapshots {
		if snap.Index <= found.commit { // a killed process may have left an uncommitted snapshot
			s.End, begun = snap, true
		}
	}
	if !begun {
		return fmt.Errorf("%w: the beginning of its log is missing", ErrDamaged)
	}
	s.MembersMayDiffer = max(found.membersChanged, s.End.Index) > applied // the snapshot's members may differ, too
	first, after := s.End, s.End
	for _, entry := range found.entries {
		if entry.Index <= first.Index {
			continue
		}
		if entry.Index == first.Index+1 {
			after = entry
		}
		if entry.Index-1 > s.End.Index {
			return fmt.Errorf("%w: its log has entry %d directly after entry %d", ErrDamaged, entry.Index,
				s.End.Index)
		}
		s.End = entry
	}
	if after.Term < first.Term { // these entries precede a leader's snapshot, which replaced the whole log
		return fmt.Errorf("%w: after its last snapshot, at %d, its log continues in an earlier term", ErrDamaged,
			first.Index)
	}
	return nil
}
