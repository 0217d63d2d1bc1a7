package snapshot

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/internal/panics"
)

// DefaultBump is the number that a restore adds to the revision, so that clients never see the same revision with
// different data. It is sufficient for a week of 1,500 writes per second (etcd.io, "Disaster recovery").
const DefaultBump = 1_000_000_000

// Restoration describes the member to create.
type Restoration struct {
	// DataDir is the data directory to create. It must not exist, or must be empty.
	DataDir string
	// Name and PeerURL are the member's name and peer URL. InitialCluster lists the members of the cluster, as
	// NAME=URL,…. Token distinguishes the new cluster from the original.
	Name, PeerURL, InitialCluster, Token string
	// Bump is the number that is added to the revision. All earlier revisions are marked as compacted, so that watches
	// restart instead of missing events. 0 keeps the revision, which is meant only for comparing data.
	Bump uint64
	// WithoutAuth disables authentication. It is meant for a drill, in which the passwords are unknown and other
	// processes cannot reach etcd.
	WithoutAuth bool
	// Beside creates the member next to an existing member in the data directory (see Made.Exchange).
	Beside bool
}

// ErrExists is returned for a data directory that is not empty.
var ErrExists = errors.New("the data directory is not empty")

// ErrRevision is returned for a snapshot whose revision cannot be raised as requested.
var ErrRevision = errors.New("its revision cannot be raised")

// maxRevision is the maximum bump, and the maximum revision after the bump. In etcd, revisions are signed, and clients
// rely on this.
const maxRevision = math.MaxInt64 / 2

// working is the name prefix of the working directories of restores. They are inside the data directory, because it may
// be a separate volume.
const working = ".restore-"

// Workspace creates a working directory inside the data directory, and first creates the data directory if necessary.
// It returns ErrExists if the data directory is not empty. Leftovers of a killed restore and the initial content of a
// new volume do not count.
func Workspace(dataDir string) (string, error) {
	if err := vacant(dataDir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return "", err
	}
	return WorkspaceBeside(dataDir)
}

// WorkspaceBeside is like Workspace, but for a data directory that is already in use.
func WorkspaceBeside(dataDir string) (string, error) { return os.MkdirTemp(dataDir, working) }

// RemoveLeftovers removes the leftovers of killed restores from a data directory. The caller must ensure that no
// restore is running there.
func RemoveLeftovers(dataDir string) error {
	entries, err := os.ReadDir(dataDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), working) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dataDir, entry.Name())))
		}
	}
	return err
}

// Restore creates a data directory from a snapshot file that has already been inspected. The member directory inside it
// is either complete or does not exist. Alarms are removed, because they name members that no longer exist, and a
// single alarm could stop all writes.
func Restore(file string, r Restoration) error {
	made, err := Make(file, r)
	if err != nil {
		return err
	}
	defer made.Remove()
	return made.Place()
}

// Made is a member that was created from a snapshot, but is not in place yet.
type Made struct {
	// Identity is the identity that etcd will have. Revision is the revision at which etcd will start.
	Identity Identity
	Revision int64

	workspace, made, dataDir string
}

// Make creates the member without putting it in place, and flushes it to disk.
func Make(file string, r Restoration) (*Made, error) {
	if r.Bump > maxRevision {
		return nil, fmt.Errorf("restore %s: the revision cannot be raised by %d; "+
			"%d is enough for a week of 1,500 writes per second", file, r.Bump, int64(DefaultBump))
	}
	var err error
	if r.Bump, err = bumpOf(file, r.Bump); err != nil {
		return nil, fmt.Errorf("restore %s: %w", file, err)
	}
	workspace := Workspace
	if r.Beside {
		workspace = WorkspaceBeside
	}
	unfinished, err := workspace(r.DataDir)
	if err != nil {
		return nil, fmt.Errorf("restore %s: %w", file, err)
	}
	// etcd's library requires an empty directory. It does not record the directory's name.
	m := &Made{workspace: unfinished, made: filepath.Join(unfinished, "data"), dataDir: r.DataDir}
	if err := m.make(file, r); err != nil {
		m.Remove()
		return nil, fmt.Errorf("restore %s: %w", file, err)
	}
	return m, nil
}

// bumpOf returns the number that etcd's library must add to the revision of a snapshot's newest key so that the
// cluster's revision is raised by bump. The two numbers differ if revisions after that key have been compacted. bumpOf
// returns ErrRevision if the revision would overflow and become negative in etcd.
func bumpOf(file string, bump uint64) (uint64, error) {
	if bump == 0 {
		return 0, nil
	}
	var newest, key int64
	if err := reading(file, os.OpenFile, func(tx *bolt.Tx) error {
		last, _ := tx.Bucket(keyBucket).Cursor().Last()
		newest, key = newestRevision(tx), mainOf(last)
		return nil
	}); err != nil {
		return 0, err
	}
	if newest > maxRevision-int64(bump) {
		return 0, fmt.Errorf("%w by %d: it is %d, but etcd normally stays below %d. Check where the snapshot is from, "+
			"or use --revision-bump 0 to restore it unchanged, for reading only", ErrRevision, bump, newest,
			int64(maxRevision))
	}
	return bump + uint64(newest-key), nil
}

func (m *Made) make(file string, r Restoration) (err error) {
	if m.Revision, err = restoreTo(m.made, file, r); err != nil {
		return err
	}
	if m.Identity, err = IdentityOf(m.made); err != nil {
		return err
	}
	return syncTree(filepath.Join(m.made, member))
}

// Remove removes a member that has not been put in place.
func (m *Made) Remove() { _ = os.RemoveAll(m.workspace) }

// Place durably moves the finished data into the data directory. It returns ErrExists if another process did so first.
func (m *Made) Place() error {
	to := filepath.Join(m.dataDir, member)
	err := disk.Move(filepath.Join(m.made, member), to)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("restore %s: %w", to, ErrExists)
	}
	if err == nil {
		err = disk.Sync(m.dataDir)
	}
	if err != nil {
		return fmt.Errorf("restore %s: %w", to, err)
	}
	return nil
}

// Exchange durably and atomically replaces a member with the finished data. A member exists at every moment, because
// without one, etcd would start an empty cluster. The old member is kept in the data directory under the name aside.
// Exchange returns ErrExists if that name is taken. If the process is killed, the finished data may remain under that
// name. Exchange returns ErrRunning if an etcd process is waiting for the locked database, because that process would
// start with a mix of both members. held is the lock, or nil if there is no database for which etcd could wait.
func (m *Made) Exchange(aside string, held *disk.Shared) error {
	at := filepath.Join(m.dataDir, aside)
	err := syncTree(m.made)
	if err == nil {
		err = disk.Move(filepath.Join(m.made, member), at)
	}
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("keep the previous member as %s: %w", at, ErrExists)
	}
	if err != nil {
		return fmt.Errorf("put the recovered member in place: %w", err)
	}
	if held == nil {
		return Exchange(m.dataDir, aside)
	}
	err = held.Lease()
	switch {
	case errors.Is(err, disk.ErrLocked):
		return ErrRunning
	case err != nil:
		return fmt.Errorf("check whether etcd is waiting for %s: %w", m.dataDir, err)
	}
	if err := Exchange(m.dataDir, aside); err != nil || held.Leased() {
		return err
	}
	return errors.Join(ErrRunning, Exchange(m.dataDir, aside)) // etcd was started at the same time: undo the exchange
}

// Exchange atomically swaps the member in a data directory with the member kept there under the name aside.
func Exchange(dataDir, aside string) error {
	err := disk.Sync(dataDir)
	if err == nil {
		err = disk.Exchange(filepath.Join(dataDir, member), filepath.Join(dataDir, aside))
	}
	if err == nil {
		err = disk.Sync(dataDir)
	}
	if err != nil {
		return fmt.Errorf("put the recovered member in place: %w", err)
	}
	return nil
}

// member is the name of the directory inside the data directory in which etcd keeps its data.
const member = "member"

// vacant returns an error if a data directory is not empty.
func vacant(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if name := entry.Name(); name != "lost+found" && !strings.HasPrefix(name, working) {
			return fmt.Errorf("%s: %w: it contains %s. Specify a new directory", dir, ErrExists, name)
		}
	}
	return err
}

// restoreTo creates a data directory from a snapshot file and returns its revision.
func restoreTo(dir, file string, r Restoration) (revision int64, err error) {
	err = panics.Catch(func() error {
		return snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
			SnapshotPath: file, OutputDataDir: dir,
			Name: r.Name, PeerURLs: strings.Split(r.PeerURL, ","),
			InitialCluster: r.InitialCluster, InitialClusterToken: r.Token,
			RevisionBump: r.Bump, MarkCompacted: r.Bump > 0,
		})
	})
	if err != nil {
		return 0, err
	}
	err = update(filepath.Join(dir, member, "snap", "db"), func(tx *bolt.Tx) error {
		revision = newestRevision(tx)
		if err := clearAlarms(tx); err != nil || !r.WithoutAuth {
			return err
		}
		return setAuth(tx, 0)
	})
	return revision, err
}

// DisableAuth disables authentication in a data directory, for a drill.
func DisableAuth(dataDir string) error {
	return update(Database(dataDir), func(tx *bolt.Tx) error { return setAuth(tx, 0) })
}

// newestRevision is like lastRevision, but only for a sound database, in which keys are sorted by revision.
func newestRevision(tx *bolt.Tx) int64 {
	newest, _ := tx.Bucket(keyBucket).Cursor().Last()
	return max(1, mainOf(newest), mainOf(value(tx, metaBucket, scheduled)), mainOf(value(tx, metaBucket, finished)))
}

// openToChange opens an existing file in a directory that others can write to.
func openToChange(path string, _ int, _ os.FileMode) (*os.File, error) {
	return disk.OpenToChange(path)
}

// update opens a database and changes it.
func update(database string, change func(*bolt.Tx) error) error {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	err := panics.Catch(func() error {
		db, err := bolt.Open(database, 0o600, &bolt.Options{Timeout: lockPatience, OpenFile: openToChange})
		if err != nil {
			return err
		}
		return errors.Join(db.Update(change), db.Close())
	})
	if caught := (*panics.Error)(nil); isDamage(err) || errors.As(err, &caught) {
		err = fmt.Errorf("%w: the database cannot be changed", ErrDamaged)
	}
	return err
}

// clearAlarms removes all alarms from a database.
func clearAlarms(tx *bolt.Tx) error {
	if tx.Bucket(alarmBucket) == nil {
		return nil
	}
	if err := tx.DeleteBucket(alarmBucket); err != nil {
		return err
	}
	_, err := tx.CreateBucket(alarmBucket)
	return err
}

// EnableAuth enables authentication in a snapshot file, and updates the checksum. It does not follow a link in place of
// the file, because an etcd running in the same directory may have replaced the file.
func EnableAuth(file string) (*Trailer, error) {
	database, err := disk.OpenToChange(file)
	if err != nil {
		return nil, err
	}
	defer database.Close()
	info, err := database.Stat()
	if err == nil {
		err = database.Truncate(info.Size() - sha256.Size)
	}
	if err == nil {
		err = update(file, func(tx *bolt.Tx) error { return setAuth(tx, 1) })
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, database); err != nil {
		return nil, err
	}
	if _, err := database.Write(sum.Sum(nil)); err != nil {
		return nil, err
	}
	all := NewTrailer()
	if _, err := io.Copy(all, io.NewSectionReader(database, 0, math.MaxInt64)); err != nil {
		return nil, err
	}
	return all, errors.Join(all.Check(), database.Sync())
}

// setAuth enables or disables authentication. It keeps users and roles.
func setAuth(tx *bolt.Tx, on byte) error {
	if b := tx.Bucket(authBucket); b != nil {
		return b.Put(authEnabled, []byte{on})
	}
	return nil
}

// syncTree flushes a directory tree to disk.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return disk.Sync(path)
	})
}
