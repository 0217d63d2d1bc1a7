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
	"quorate.dev/quorate/reconcile/panics"
)

// Survivor is a member whose data directory is left, and which does not run.
type Survivor struct {
	Identity
	// Name and PeerURLs of the member.
	Name     string
	PeerURLs []string
	// Learner: it is no voter.
	Learner bool
	// Voters and Learners of its cluster, with itself.
	Voters, Learners int
	// End of its log. Of two members, the one whose log ends later has at least what the other one has
	// that was acknowledged (the election restriction of Raft, section 5.4.1).
	End Position
	// Committed is the index up to which it knows that its log was committed. What comes after may have
	// been acknowledged all the same: a leader tells its followers with the next message.
	Committed uint64
	// Facts that can be had without reading all of the database: versions, alarms, authentication.
	Facts Facts
}

// Position is one in the log of Raft.
type Position struct{ Term, Index uint64 }

// Compare is positive where p is later than o.
func (p Position) Compare(o Position) int {
	return cmp.Or(cmp.Compare(p.Term, o.Term), cmp.Compare(p.Index, o.Index))
}

// ErrRunning is a data directory that an etcd is running on.
var ErrRunning = errors.New("an etcd is running on the data directory: stop it, and see to it that nothing " +
	"starts it again")

var (
	membersBucket   = []byte("members")
	consistentIndex = []byte("consistent_index")
)

// Database of the member in a data directory.
func Database(dataDir string) string { return filepath.Join(dataDir, member, "snap", "db") }

// Hold keeps etcd from starting on a data directory until it is closed: etcd waits for its database.
// ErrRunning says that it was there first.
func Hold(dataDir string) (*disk.Shared, error) {
	if err := hasFiles(dataDir); err != nil {
		return nil, err
	}
	return holdDatabase(dataDir)
}

// HoldRemains is Hold for what is left of a member, damaged or not: whatever else there is, etcd would wait for its
// database. Nothing is held where that is missing, or no file.
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

// hasDirectories refuses a data directory in which links lead to what may be somebody else's.
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
			return fmt.Errorf("%w: %s is no directory", ErrDamaged, dir)
		}
	}
	return nil
}

// hasFiles refuses a member in which links lead to what may be somebody else's, or that has what is neither a
// file nor a directory: etcd makes neither.
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

// maxSnap is how large a snapshot of Raft's state may be, in bytes: etcd reads the whole of it, and since
// version 3 it holds the members and no data.
const maxSnap = 256 << 20

// isSmall refuses a snapshot of Raft's state that would take all memory, as one of holes alone.
func isSmall(path string, entry os.DirEntry) error {
	if filepath.Ext(path) != ".snap" {
		return nil
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	if info.Size() > maxSnap {
		return fmt.Errorf("%w: %s has %d bytes, and etcd makes none of more than a few MiB", ErrDamaged, path,
			info.Size())
	}
	return nil
}

// isPlain refuses what is no regular file: a link would lead anywhere, and a pipe keeps its reader waiting.
func isPlain(path string, kind os.FileMode) error {
	switch {
	case kind&os.ModeSymlink != 0:
		return fmt.Errorf("%w: %s is a symbolic link, which is not followed: put there what it leads to",
			ErrDamaged, path)
	case !kind.IsRegular():
		return fmt.Errorf("%w: %s is no regular file", ErrDamaged, path)
	}
	return nil
}

// SurvivorOf reads a data directory, and changes nothing in it.
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
		return fmt.Errorf("%w: it has no list of members", ErrDamaged)
	}
	itself := false
	err = b.ForEach(func(_, text []byte) error {
		var m struct {
			ID        uint64   `json:"id"`
			Name      string   `json:"name"`
			PeerURLs  []string `json:"peerURLs"`
			IsLearner bool     `json:"isLearner"`
		}
		if err := json.Unmarshal(text, &m); err != nil {
			return fmt.Errorf("%w: a member in it is none", ErrDamaged)
		}
		if m.IsLearner {
			s.Learners++
		} else {
			s.Voters++
		}
		if m.ID == s.MemberID {
			itself, s.Name, s.PeerURLs, s.Learner = true, m.Name, m.PeerURLs, m.IsLearner
		}
		return nil
	})
	if err == nil && !itself {
		err = fmt.Errorf("member %x is not in the list of members in its database: it was removed, or has not "+
			"caught up since it joined", s.MemberID)
	}
	return err
}

// Unstarted reports whether what is in a data directory by this name is a member that was made of a
// snapshot, and that no etcd has ever been started on: one that was has elected a leader since.
func Unstarted(dir string) (bool, error) {
	var s Survivor
	err := s.readLog(dir)
	return s.End.Term == madeTerm, err
}

// madeTerm is the term of the log of a member that was made of a snapshot (etcdutl's snapshot restore).
const madeTerm = 1

// readLog reads where the log of a member ends, and what is known to be committed in it.
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
			return fmt.Errorf("%w: its log is cut off in the middle, in %s: what comes after that cannot be read",
				ErrDamaged, names[at])
		case torn || errors.Is(err, io.EOF): // its end may be torn
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

// part is a file of a log, which notes that it is the one that is being read.
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

// records are those of a log that say where it ends, in their order.
type records struct {
	entries, snapshots []Position
	// commit is what the last state says, and committed the most that one has said.
	commit, committed uint64
	metadata          []byte
}

// take takes one record into account.
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
	default: // no checksum is over the type
		return fmt.Errorf("there is no record of type %d", record.GetType())
	}
	return nil
}

// takeAll says where the log ends as etcd reads it: from its last snapshot that was committed, each entry being the
// next one of those before, or taking the place of all from its index on.
func (s *Survivor) takeAll(found records) error {
	s.Committed = max(s.Committed, found.committed)
	begun := false
	for _, snap := range found.snapshots {
		if snap.Index <= found.commit { // whoever was killed may have left one that was not
			s.End, begun = snap, true
		}
	}
	if !begun {
		return fmt.Errorf("%w: its log has no beginning", ErrDamaged)
	}
	first, after := s.End, s.End
	for _, entry := range found.entries {
		if entry.Index <= first.Index {
			continue
		}
		if entry.Index == first.Index+1 {
			after = entry
		}
		if entry.Index-1 > s.End.Index {
			return fmt.Errorf("%w: its log has entry %d after %d, and none between them", ErrDamaged, entry.Index,
				s.End.Index)
		}
		s.End = entry
	}
	if after.Term < first.Term { // written before a leader sent the snapshot, which took the place of all of the log
		return fmt.Errorf("%w: after its last snapshot, at %d, its log goes on in an earlier term", ErrDamaged,
			first.Index)
	}
	return nil
}
