package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/internal/panics"
)

// CopyMember copies the parts of a member that etcd needs to a new data directory: its log, snapshots and database, and
// any database received from a leader that is not in place yet. The member must not be running. Links in either
// directory are not followed.
func CopyMember(ctx context.Context, from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := disk.OpenDir(to)
	if err != nil {
		return err
	}
	defer target.Close()
	for dir, files := range map[string][]string{"wal": {"*.wal"}, "snap": {"*.snap", "*.snap.db", "db"}} {
		if err := copyPart(ctx, source, target, []string{member, dir}, files); err != nil {
			return err
		}
	}
	return nil
}

// copyPart copies the files that match patterns in a subdirectory of source to the same subdirectory of target.
func copyPart(ctx context.Context, source, target *os.Root, dir, patterns []string) error {
	if len(dir) == 0 {
		return copyFiles(ctx, source, target, patterns)
	}
	in, err := disk.Enter(source, dir[0])
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := disk.EnterNew(target, dir[0])
	if err != nil {
		return err
	}
	defer out.Close()
	return copyPart(ctx, in, out, dir[1:], patterns)
}

func copyFiles(ctx context.Context, source, target *os.Root, patterns []string) error {
	entries, err := fs.ReadDir(source.FS(), ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		wanted := slices.ContainsFunc(patterns, func(pattern string) bool {
			matches, err := filepath.Match(pattern, entry.Name())
			return matches && err == nil
		})
		if !wanted {
			continue
		}
		if err := copyFile(ctx, source, target, entry.Name()); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(ctx context.Context, source, target *os.Root, name string) error {
	in, err := disk.OpenIn(source, name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := target.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = disk.Copy(ctx, out, in)
	return errors.Join(err, out.Close())
}

// CommitLog marks the whole log in a data directory as committed, so that etcd keeps all of it with
// --force-new-cluster. Otherwise, etcd keeps only the entries that the member knows to be committed, and discards later
// entries, which may have been acknowledged to clients (etcd's server/etcdserver/bootstrap.go).
//
// turnsAuthOn is set if the last log entry about authentication enables it. The database may not reflect this yet, but
// an etcd started on the copy will require authentication.
func CommitLog(dataDir string) (turnsAuthOn bool, err error) {
	err = panics.Catch(func() (err error) {
		turnsAuthOn, err = commitLog(filepath.Join(dataDir, member, "wal"))
		return err
	})
	return turnsAuthOn, err
}

// endsWithAuth reports whether the last entry about authentication enables authentication.
func endsWithAuth(entries []*raftpb.Entry) bool {
	for _, entry := range slices.Backward(entries) {
		var request etcdserverpb.InternalRaftRequest
		if entry.GetType() != raftpb.EntryNormal || proto.Unmarshal(entry.GetData(), &request) != nil {
			continue
		}
		if request.AuthEnable != nil || request.AuthDisable != nil {
			return request.AuthEnable != nil
		}
	}
	return false
}

func commitLog(dir string) (turnsAuthOn bool, err error) {
	snapshots, err := wal.ValidSnapshotEntries(zap.NewNop(), dir)
	if err != nil {
		return false, err
	}
	if len(snapshots) == 0 {
		return false, fmt.Errorf("%w: the beginning of its log is missing", ErrDamaged)
	}
	from := snapshots[len(snapshots)-1]
	for repaired := false; ; repaired = true {
		log, err := wal.Open(zap.NewNop(), dir, from)
		if err != nil {
			return false, err
		}
		_, state, entries, err := log.ReadAll()
		if errors.Is(err, io.ErrUnexpectedEOF) && !repaired { // the end of the log is torn, as after a crash
			if err := log.Close(); err != nil {
				return false, err
			}
			if !wal.Repair(zap.NewNop(), dir) {
				return false, fmt.Errorf("%w: the end of its log cannot be repaired", ErrDamaged)
			}
			continue
		}
		if err == nil && len(entries) > 0 {
			turnsAuthOn = endsWithAuth(entries)
			if last := entries[len(entries)-1].GetIndex(); last > state.GetCommit() {
				state.Commit = &last
				err = log.Save(state, nil)
			}
		}
		return turnsAuthOn, errors.Join(err, log.Close())
	}
}
