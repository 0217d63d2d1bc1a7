package snapshot

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"

	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/reconcile/panics"
)

// DefaultBump is by how much a restore raises the revision, so that no client ever sees a revision
// again that meant other data: a week of 1,500 writes a second (etcd.io, "Disaster recovery").
const DefaultBump = 1_000_000_000

// Restoration says what member a snapshot becomes.
type Restoration struct {
	// DataDir that is made. It must not exist, or be empty.
	DataDir string
	// Name and peer URL of the member, and its cluster: NAME=URL,…, and the token that tells it from
	// the one that was.
	Name, PeerURL, InitialCluster, Token string
	// Bump is by how much the revision is raised, and all before it marked as compacted, so that
	// watches start again in place of missing events. 0 leaves it as it was: for comparing data only.
	Bump uint64
	// WithoutAuth turns authentication off: for a trial, in which nobody knows the passwords, and which
	// nobody else can reach.
	WithoutAuth bool
}

// ErrExists is a data directory that holds something.
var ErrExists = errors.New("the data directory is not empty")

// maxRevision is how far a revision may be raised: etcd's are signed, and clients count on.
const maxRevision = math.MaxInt64 / 2

// working is what the directories begin with in which a restoration works, inside the data directory:
// that may be a volume of its own.
const working = ".restore-"

// Workspace makes a directory inside the data directory to work in, and the data directory itself if
// it is not there. ErrExists says that it holds something; what a restoration left that was killed,
// and what a new volume has, is nothing.
func Workspace(dataDir string) (string, error) {
	if err := vacant(dataDir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(dataDir, working)
}

// Restore makes a data directory from the snapshot in a file, which was inspected before. What makes
// it one, the directory member, is there as a whole, or not at all. Alarms are left out: they name
// members that are no more, and one of them would stop all writes.
func Restore(file string, r Restoration) error {
	if r.Bump > maxRevision {
		return fmt.Errorf("restore %s: the revision cannot be raised by %d; "+
			"%d is enough for a week of 1,500 writes a second", file, r.Bump, int64(DefaultBump))
	}
	unfinished, err := Workspace(r.DataDir)
	if err != nil {
		return fmt.Errorf("restore %s: %w", file, err)
	}
	defer func() { _ = os.RemoveAll(unfinished) }()
	// etcd's library wants one that is empty, and its name is in nothing that it writes.
	made := filepath.Join(unfinished, "data")
	if err := restoreTo(made, file, r); err != nil {
		return fmt.Errorf("restore %s: %w", file, err)
	}
	if err := place(filepath.Join(made, member), r.DataDir); err != nil {
		return fmt.Errorf("restore %s: %w", file, err)
	}
	return nil
}

// member is what etcd keeps its data in, inside the data directory.
const member = "member"

// vacant reports what stands in the way in a data directory.
func vacant(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if name := entry.Name(); name != "lost+found" && !strings.HasPrefix(name, working) {
			return fmt.Errorf("%s: %w: it holds %s; name a new one", dir, ErrExists, name)
		}
	}
	return err
}

func restoreTo(dir, file string, r Restoration) error {
	err := panics.Catch(func() error {
		return snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
			SnapshotPath: file, OutputDataDir: dir,
			Name: r.Name, PeerURLs: strings.Split(r.PeerURL, ","),
			InitialCluster: r.InitialCluster, InitialClusterToken: r.Token,
			RevisionBump: r.Bump, MarkCompacted: r.Bump > 0,
		})
	})
	if err != nil {
		return err
	}
	return update(filepath.Join(dir, member, "snap", "db"), func(tx *bolt.Tx) error {
		if err := clearAlarms(tx); err != nil || !r.WithoutAuth {
			return err
		}
		return disableAuth(tx)
	})
}

// update changes a database.
func update(database string, change func(*bolt.Tx) error) error {
	db, err := bolt.Open(database, 0o600, &bolt.Options{Timeout: lockPatience})
	if err != nil {
		return err
	}
	return errors.Join(db.Update(change), db.Close())
}

// clearAlarms removes the alarms that came along.
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

// disableAuth leaves users and roles as they are, and asks nobody who they are.
func disableAuth(tx *bolt.Tx) error {
	if b := tx.Bucket(authBucket); b != nil {
		return b.Put(authEnabled, []byte{0})
	}
	return nil
}

// place puts the finished data into the data directory, for good.
func place(finished, dataDir string) error {
	if err := syncTree(finished); err != nil {
		return err
	}
	to := filepath.Join(dataDir, member)
	if _, err := os.Lstat(to); err == nil { // somebody else was first
		return fmt.Errorf("%s: %w", to, ErrExists)
	}
	if err := os.Rename(finished, to); err != nil {
		return err
	}
	return disk.Sync(dataDir)
}

// syncTree writes all of it to the disk.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return disk.Sync(path)
	})
}
