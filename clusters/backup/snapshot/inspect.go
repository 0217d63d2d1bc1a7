package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/internal/etcdversion"
	"quorate.dev/quorate/internal/panics"
)

// Facts describes the content of a snapshot.
type Facts struct {
	// Revision is the revision of the newest change in the data itself. The revision that a member reports separately
	// may be from a different moment.
	Revision int64 `json:"revision"`
	// CompactRevision is the revision up to which the history has been compacted.
	CompactRevision int64 `json:"compactRevision"`
	// Changes is the number of changes, that is, the number of revisions of all keys, including deletions.
	Changes int64 `json:"changes"`
	// Hash is etcd's HashKV at Revision, or nil if it cannot be computed. In that case, HashWhy contains the reason.
	Hash    *uint32 `json:"hashKV,omitempty"`
	HashWhy string  `json:"hashKVUnknown,omitempty"`
	// ClusterVersion is the version of the cluster, as MAJOR.MINOR.0. StorageVersion is the version of the storage
	// format, which etcd has recorded since 3.6.
	ClusterVersion string `json:"clusterVersion,omitempty"`
	StorageVersion string `json:"storageVersion,omitempty"`
	// Alarms are the active alarms, as KIND MEMBER-ID.
	Alarms []string `json:"alarms,omitempty"`
	// Auth is set if authentication was enabled.
	Auth bool `json:"auth,omitempty"`
}

// Corrupt reports whether etcd had found that members held different data.
func (f Facts) Corrupt() bool {
	for _, alarm := range f.Alarms {
		if strings.HasPrefix(alarm, etcdserverpb.AlarmType_CORRUPT.String()) {
			return true
		}
	}
	return false
}

// MinorVersion returns the newest minor version of etcd that has written the data: the cluster version or, during a
// downgrade, the storage version. It returns zero if the version is unknown.
func (f Facts) MinorVersion() (newest etcdversion.MajorMinor, err error) {
	for _, text := range []string{f.ClusterVersion, f.StorageVersion} {
		if text == "" {
			continue
		}
		v, err := etcdversion.ParseRunning(text)
		if err != nil {
			return etcdversion.MajorMinor{}, fmt.Errorf("the version that the cluster ran: %w", err)
		}
		if v.MajorMinor().Compare(newest) > 0 {
			newest = v.MajorMinor()
		}
	}
	return newest, nil
}

// Suits reports whether etcd version v can be started with the data, and returns the data's minor version. The data's
// minor version must equal v's or be the one before it. etcd may start with other data too, but misread it. Data of an
// unknown version suits every etcd.
func (f Facts) Suits(v etcdversion.Version) (suits bool, of etcdversion.MajorMinor, err error) {
	of, err = f.MinorVersion()
	if err != nil {
		return false, of, err
	}
	steps := v.MajorMinor().Steps(of)
	return of == etcdversion.MajorMinor{} || steps == 0 || steps == 1, of, nil
}

// Equal reports whether f and other are equal. A hash that is missing in either of them does not count as a difference.
func (f Facts) Equal(other Facts) bool {
	sameHash := f.Hash == nil || other.Hash == nil || *f.Hash == *other.Hash
	f.Hash, other.Hash, f.HashWhy, other.HashWhy = nil, nil, "", ""
	return sameHash && reflect.DeepEqual(f, other)
}

// ErrDamaged is returned for a database that is not sound.
var ErrDamaged = errors.New("the database is damaged")

// Buckets and keys in etcd's database (etcd's server/storage/schema).
var (
	keyBucket       = []byte("key")
	metaBucket      = []byte("meta")
	clusterBucket   = []byte("cluster")
	alarmBucket     = []byte("alarm")
	authBucket      = []byte("auth")
	storageVersion  = []byte("storageVersion")
	clusterVersion  = []byte("clusterVersion")
	scheduled       = []byte("scheduledCompactRev")
	finished        = []byte("finishedCompactRev")
	authEnabled     = []byte("authEnabled")
	errUnderWay     = errors.New("a compaction was in progress")
	lockPatience    = time.Second
	maxPageProblems = 3
)

// etcd never writes values above these limits.
const (
	maxVersion = 64
	maxAlarms  = 256
)

// Inspect checks every page of a database file and returns facts about its content. It does not compare the file with
// its checksum. It returns ErrDamaged if the file is damaged. Crafted files, and files damaged by a broken disk, can
// make bbolt crash the process, so untrusted files must be inspected in a child process.
func Inspect(path string) (Facts, error) {
	var facts Facts
	err := reading(path, os.OpenFile, func(tx *bolt.Tx) (err error) {
		if err = checkPages(tx); err != nil {
			return err
		}
		facts, err = inspect(tx)
		return err
	})
	if err != nil {
		return Facts{}, fmt.Errorf("inspect %s: %w", path, err)
	}
	return facts, nil
}

// opener opens a file like os.OpenFile.
type opener func(path string, flag int, mode os.FileMode) (*os.File, error)

// openPlain opens a file for reading in a directory that others can write to.
func openPlain(path string, _ int, _ os.FileMode) (*os.File, error) { return disk.Open(path) }

// minBytes is the size of the smallest database: two pages, none of which is smaller than 4 KiB on any platform.
const minBytes = 2 * 4096

// reading opens a database and calls read. If pages refer to positions outside the file, bbolt panics or faults;
// reading reports both as damage.
func reading(path string, open opener, read func(*bolt.Tx) error) error {
	file, err := open(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if info.Size() < minBytes { // bbolt would turn an empty file into a database
		return fmt.Errorf("%w: it has only %d bytes", ErrDamaged, info.Size())
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	err = panics.Catch(func() error {
		db, err := bolt.Open(path, 0o400, &bolt.Options{ReadOnly: true, Timeout: lockPatience, OpenFile: open})
		if isDamage(err) {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if err != nil {
			return err // a problem with this machine: no memory, no permission, or a lock
		}
		defer db.Close()
		return db.View(func(tx *bolt.Tx) error {
			if tx.Size() > info.Size() {
				return fmt.Errorf("%w: it has %d of %d bytes", ErrDamaged, info.Size(), tx.Size())
			}
			return read(tx)
		})
	})
	if panicked, is := errors.AsType[*panics.Error](err); is {
		return fmt.Errorf("%w: %.200s", ErrDamaged, fmt.Sprint(panicked.Value))
	}
	return err
}

// isDamage reports whether an error from opening a database is about the file's content.
func isDamage(err error) bool {
	return errors.Is(err, bolterrors.ErrInvalid) || errors.Is(err, bolterrors.ErrChecksum) ||
		errors.Is(err, bolterrors.ErrVersionMismatch)
}

// checkPages checks all pages. bbolt does this in a separate goroutine, so a panic there crashes the process (see
// Inspect).
func checkPages(tx *bolt.Tx) error {
	var problems []string
	for problem := range tx.Check() {
		if len(problems) < maxPageProblems {
			problems = append(problems, problem.Error())
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("%w: %s", ErrDamaged, strings.Join(problems, "; "))
	}
	return nil
}

func inspect(tx *bolt.Tx) (Facts, error) {
	f, err := outline(tx)
	if err != nil {
		return Facts{}, err
	}
	if f.Revision, f.Changes, err = lastRevision(tx); err != nil {
		return Facts{}, err
	}
	f.CompactRevision = mainOf(value(tx, metaBucket, scheduled))
	if finished := mainOf(value(tx, metaBucket, finished)); f.CompactRevision < 0 || finished < 0 {
		return Facts{}, fmt.Errorf("%w: it was compacted at a negative revision", ErrDamaged)
	}
	hash, err := hashKV(tx, f.Revision, f.CompactRevision)
	switch {
	case errors.Is(err, errUnderWay):
		f.HashWhy = err.Error()
	case err != nil:
		return Facts{}, err
	default:
		f.Hash = &hash
	}
	return f, nil
}

// outline returns the facts that can be read without reading the whole database.
func outline(tx *bolt.Tx) (f Facts, err error) {
	if tx.Bucket(keyBucket) == nil || tx.Bucket(metaBucket) == nil {
		return Facts{}, fmt.Errorf("%w: it has no key bucket; is it an etcd snapshot?", ErrDamaged)
	}
	f.StorageVersion = string(value(tx, metaBucket, storageVersion))
	f.ClusterVersion = string(value(tx, clusterBucket, clusterVersion))
	f.Auth = string(value(tx, authBucket, authEnabled)) == "\x01"
	if len(f.StorageVersion) > maxVersion || len(f.ClusterVersion) > maxVersion {
		return Facts{}, fmt.Errorf("%w: it contains a version longer than %d bytes", ErrDamaged, maxVersion)
	}
	f.Alarms, err = alarms(tx)
	return f, err
}

func value(tx *bolt.Tx, bucket, key []byte) []byte {
	b := tx.Bucket(bucket)
	if b == nil {
		return nil
	}
	return b.Get(key)
}

func alarms(tx *bolt.Tx) (found []string, err error) {
	b := tx.Bucket(alarmBucket)
	if b == nil {
		return nil, nil
	}
	err = b.ForEach(func(k, _ []byte) error {
		var alarm etcdserverpb.AlarmMember
		if err := proto.Unmarshal(k, &alarm); err != nil {
			return fmt.Errorf("%w: an alarm: %w", ErrDamaged, err)
		}
		if len(found) == maxAlarms {
			return fmt.Errorf("%w: it contains more than %d alarms", ErrDamaged, maxAlarms)
		}
		found = append(found, fmt.Sprintf("%s %x", alarm.Alarm, alarm.MemberID))
		return nil
	})
	return found, err
}

// lastRevision returns the newest revision and the number of changes. If there are no changes, etcd is at revision 1,
// or at the revision of the last compaction.
func lastRevision(tx *bolt.Tx) (revision, changes int64, err error) {
	revision = max(1, mainOf(value(tx, metaBucket, scheduled)), mainOf(value(tx, metaBucket, finished)))
	err = tx.Bucket(keyBucket).ForEach(func(k, _ []byte) error {
		if !isRevision(k) {
			return fmt.Errorf("%w: %x is not a revision", ErrDamaged, k)
		}
		revision = max(revision, mainOf(k))
		changes++
		return nil
	})
	return revision, changes, err
}

// A revision consists of 8 bytes, "_", 8 bytes and, if a key was deleted, "t" (etcd's storage/mvcc/revision.go). The
// numbers are signed, and etcd ignores negative revisions.
const revisionBytes = 17

func isRevision(k []byte) bool {
	tombstone := len(k) == revisionBytes+1 && k[revisionBytes] == 't'
	return (len(k) == revisionBytes || tombstone) && k[8] == '_' && mainOf(k) >= 0
}

func isTombstone(k []byte) bool { return len(k) == revisionBytes+1 }

// mainOf returns the main part of a revision, or 0.
func mainOf(k []byte) int64 {
	if len(k) < revisionBytes {
		return 0
	}
	return int64(binary.BigEndian.Uint64(k))
}
