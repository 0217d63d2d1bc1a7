package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/clusters/backup/etcdprocess"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/internal/etcdversion"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// ErrLag is returned for data that may lack writes that the cluster has acknowledged.
var ErrLag = errors.New("the data may lack acknowledged writes")

// Stopped is a member of a stopped cluster.
type Stopped struct {
	DataDir  string
	Survivor snapshot.Survivor
	// Lag is ErrLag with a reason, or nil if the member has every write that the cluster has acknowledged.
	Lag error

	held []*disk.Shared
}

// Close allows etcd to start on the data directories again.
func (s Stopped) Close() {
	for _, held := range s.held {
		held.Close()
	}
}

// Latest reads the data directories of members of a stopped cluster, and returns the voter whose log ends last. It does
// not write to the directories. All of them must belong to different members of the cluster with the given ID. etcd
// cannot start on any of the directories until the result is closed, so that what Latest returns remains true.
//
// etcd acknowledges a write once it is in the logs of a majority of the voters. Therefore, in any majority, the
// voter whose log ends last has every acknowledged write (section 5.4.1 of the Raft paper).
func Latest(ctx context.Context, files Files, clusterID uint64, dirs []string) (latest Stopped, err error) {
	var locks Stopped
	defer func() {
		if err != nil {
			locks.Close()
		}
	}()
	var members []Stopped
	for _, dir := range dirs {
		held, err := snapshot.Hold(dir) // also checks whether the files can be read
		if err != nil {
			return Stopped{}, Unreadable(err)
		}
		locks.held = append(locks.held, held)
		s, err := readStopped(ctx, files, clusterID, dir)
		if err != nil {
			return Stopped{}, err
		}
		for _, other := range members {
			if other.Survivor.MemberID == s.MemberID {
				return Stopped{}, fmt.Errorf("%w: %s and %s both hold the data of member %x; omit the older data",
					ErrUnfit, other.DataDir, dir, s.MemberID)
			}
		}
		members = append(members, Stopped{DataDir: dir, Survivor: s})
	}
	voters := slices.DeleteFunc(slices.Clone(members), func(m Stopped) bool { return m.Survivor.Learner })
	if len(voters) == 0 {
		return Stopped{}, fmt.Errorf("%w: there is only the data of learners, which may lack many acknowledged "+
			"writes; add the data of a voter", ErrUnfit)
	}
	latest = slices.MaxFunc(voters, func(a, b Stopped) int { return a.Survivor.End.Compare(b.Survivor.End) })
	latest.Lag, latest.held = lag(latest.Survivor, members), locks.held
	return latest, nil
}

// firstStopped is the first minor version whose data can be copied.
var firstStopped = etcdversion.Must("3.5.0").MajorMinor()

// readStopped reads the member in a data directory.
func readStopped(ctx context.Context, files Files, clusterID uint64, dir string) (snapshot.Survivor, error) {
	s, err := files.Survivor(ctx, dir)
	if err != nil {
		return s, err
	}
	if s.ClusterID != clusterID {
		return s, fmt.Errorf("%w: %s belongs to cluster %x, not %x", ErrUnfit, dir, s.ClusterID, clusterID)
	}
	was, err := s.Facts.MinorVersion()
	if err == nil && was != (etcdversion.MajorMinor{}) && was.Compare(firstStopped) < 0 {
		err = fmt.Errorf("%w: %s is from etcd %s. Start the source with its own tool, upgrade it to etcd %s, one "+
			"minor version at a time, and stop it again", etcdprocess.ErrVersion, dir, was, firstStopped)
	}
	return s, err
}

// lag returns ErrLag unless the members include a majority of the voters, none of which has a later log than latest.
func lag(latest snapshot.Survivor, members []Stopped) error {
	if latest.MembersMayDiffer {
		return fmt.Errorf("%w: the log of %s ends with a change to the cluster's members. Start the source, wait "+
			"until it is healthy, and stop it again", ErrLag, printable.Line(latest.Name))
	}
	for _, m := range members {
		switch s := m.Survivor; {
		case s.Learners > 0: // etcd before 3.5.20 stores promoted members as learners (etcd issue 19557)
			return fmt.Errorf("%w: the member list of %s contains learners, which may be voters. Start the source "+
				"with etcd 3.5.26 or newer, promote or remove its learners, and stop it again", ErrLag,
				printable.Line(s.Name))
		case s.Committed > latest.End.Index:
			return fmt.Errorf("%w: %s has committed entries up to index %d, but the log of %s ends at index %d: a "+
				"part of it is missing, or a member was started with --force-new-cluster", ErrLag,
				printable.Line(s.Name), s.Committed, printable.Line(latest.Name), latest.End.Index)
		}
	}
	var missing []string
	for id, name := range latest.Voters {
		if !slices.ContainsFunc(members, func(m Stopped) bool {
			return m.Survivor.MemberID == id && m.Survivor.End.Compare(latest.End) <= 0
		}) {
			missing = append(missing, fmt.Sprintf("%s (%x)", printable.Line(name), id))
		}
	}
	there, need := len(latest.Voters)-len(missing), decide.Quorum(len(latest.Voters))
	if there >= need {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("%w: this is the data of %d of %d voters, and %d are required. Add the data of %s", ErrLag, there,
		len(latest.Voters), need, strings.Join(missing, " or "))
}

// Unreadable adds the owner of a file to an error about missing permissions.
func Unreadable(err error) error {
	of, is := errors.AsType[*fs.PathError](err)
	if !is || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	path := of.Path
	info, unknown := os.Lstat(path)
	for errors.Is(unknown, fs.ErrPermission) && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		info, unknown = os.Lstat(path)
	}
	if unknown != nil {
		return err
	}
	uid, known := disk.Owner(info)
	if !known {
		return err
	}
	return fmt.Errorf("%w: %s belongs to user %d and has mode %04o, but this process runs as user %d. Run it as user "+
		"%[3]d", err, path, uid, info.Mode().Perm(), os.Geteuid())
}

// PrepareShared is like Prepare, but gives the directory's group access to the copy, because etcd and RescuePrepared
// may run as a different user. RescuePrepared completes the backup.
func PrepareShared(ctx context.Context, o Order) error {
	if err := Prepare(ctx, o); err != nil {
		return err
	}
	dir, err := disk.OpenDir(o.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, name := range []string{survivorFile, ConfigFile, filepath.Base(o.copyDir())} {
		err := fs.WalkDir(dir.FS(), name, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir():
				return dir.Chmod(path, 0o770)
			}
			return dir.Chmod(path, 0o660)
		})
		if err != nil {
			return fmt.Errorf("share the copy with etcd: %w", err)
		}
	}
	return nil
}

// RescuePrepared is like Rescue, but uses the copy that Prepare created and the etcd that runs on it. It does not read
// the member itself.
func RescuePrepared(ctx context.Context, o Order, ordered backup.Order, put func(backup.Taken) error) error {
	survivor, err := o.copied()
	if err != nil {
		return err
	}
	if survivor.ClusterID != o.ClusterID {
		return fmt.Errorf("%w: the copy in %s belongs to cluster %x, not %x", ErrUnfit, o.Dir, survivor.ClusterID,
			o.ClusterID)
	}
	ordered.Spool, ordered.Inspect, ordered.Progress = o.Dir, o.Inspect, o.Progress
	taken, err := takeFrom(ctx, etcdprocess.Attach(o.Dir), survivor, ordered)
	if err != nil {
		return err
	}
	return errors.Join(put(fromStopped(taken, survivor)), taken.Remove())
}
