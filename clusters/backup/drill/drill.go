// Package drill practices restores: it restores a backup into a temporary etcd, compares the data, and then discards
// it. A drill takes as long as a restore.
package drill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/etcdprocess"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/reconcile/decide"
)

// ErrDiffers is returned if etcd does not have the data that was backed up.
var ErrDiffers = errors.New("etcd does not have the data that was backed up")

// Try restores a backup in a temporary directory below dir, and then removes the directory. It keeps the revision, so
// that the HashKV of the started etcd can be compared with the HashKV of the original members. If Try returns no error,
// the backup is good. It reports problems with the backup as backup.ErrDamaged, etcdprocess.ErrVersion or ErrDiffers.
// Even if Try returns an error, the result contains the Verification if it had begun.
func Try(
	ctx context.Context, p etcdprocess.Program, from store.Bucket, m store.Manifest, dir string, r backup.Reading,
) (store.Drill, error) {
	work, err := workspace(dir)
	if err != nil {
		return store.Drill{}, fmt.Errorf("test the restore: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	t, err := begin(ctx, p, from, m)
	if err != nil {
		return t.Drill, err
	}
	if err := t.fill(ctx, from, work, r); err != nil {
		return t.Drill, err
	}
	r.Progress.Step("start etcd")
	s, err := p.Start(t.dataDir(work))
	if err != nil {
		return t.Drill, fmt.Errorf("start etcd: %w", err)
	}
	defer s.Stop()
	return t.Drill, t.ask(ctx, s, r.Progress)
}

// workspace creates a directory for the restore. Its path is absolute because etcd runs in a different directory.
func workspace(dir string) (string, error) {
	dir, err := filepath.Abs(cmp.Or(dir, os.TempDir()))
	if err != nil {
		return "", err
	}
	return os.MkdirTemp(dir, "drill-")
}

// trial is a drill in progress.
type trial struct {
	store.Drill
	program  etcdprocess.Program
	manifest store.Manifest
	facts    snapshot.Facts
	watch    stopwatch
}

// begin performs the checks that are possible before the backup is fetched, and begins the verification.
func begin(ctx context.Context, p etcdprocess.Program, from store.Bucket, m store.Manifest) (*trial, error) {
	t := &trial{program: p, manifest: m, watch: stopwatch{time.Now()}}
	if err := p.Suits(m.Snapshot.Facts); err != nil {
		return t, err
	}
	v, err := store.BeginVerification(ctx, from, m)
	if err != nil {
		return t, err
	}
	t.Drill = store.Drill{
		Format: store.Format, At: v.At, SHA256: m.SHA256, EtcdVersion: p.Version.String(), Verification: v,
	}
	return t, nil
}

func (t *trial) dataDir(work string) string { return filepath.Join(work, "data") }

// fill fetches the backup, checks it, and creates a data directory from it.
func (t *trial) fill(ctx context.Context, from store.Bucket, work string, r backup.Reading) (err error) {
	file := filepath.Join(work, "snapshot.db")
	if t.facts, err = backup.Fetch(ctx, from, t.manifest, file, r); err != nil {
		return err
	}
	if err := t.program.Suits(t.facts); err != nil {
		return err
	}
	t.Revision, t.FetchSeconds = t.facts.Revision, t.watch.lap()
	r.Progress.Step("restore")
	if err := snapshot.Restore(file, snapshot.Restoration{
		DataDir: t.dataDir(work), Name: etcdprocess.Member, PeerURL: etcdprocess.PeerURL,
		InitialCluster: etcdprocess.Member + "=" + etcdprocess.PeerURL, Token: etcdprocess.Member, WithoutAuth: true,
	}); err != nil {
		return err
	}
	t.RestoreSeconds = t.watch.lap()
	return nil
}

// ask waits until the etcd that was started with the restored data responds, and then compares its data.
func (t *trial) ask(ctx context.Context, s *etcdprocess.Server, tell backup.Progress) error {
	if err := t.serves(ctx, s, tell); err != nil {
		return fmt.Errorf("test the restore of %s with etcd %s: %w", t.manifest.DataPath(), t.EtcdVersion, err)
	}
	return nil
}

func (t *trial) serves(ctx context.Context, s *etcdprocess.Server, tell backup.Progress) error {
	clients := &etcd.Clients{}
	defer clients.Close()
	revision, err := s.Ready(ctx, clients)
	if err != nil {
		return err
	}
	t.StartSeconds = t.watch.lap()
	if revision < t.facts.Revision { // expiring leases raise the revision
		return fmt.Errorf("%w: etcd is at revision %d, but the backup is at revision "+
			"%d", ErrDiffers, revision, t.facts.Revision)
	}
	tell.Step("compare with the backup")
	t.Uncompared, err = compare(ctx, s, clients, t.facts)
	return err
}

// compare compares etcd's data with the backup. If the hash of the backup is unknown, it skips the comparison and
// returns the reason in unknown.
func compare(
	ctx context.Context, s *etcdprocess.Server, clients *etcd.Clients, facts snapshot.Facts,
) (unknown string, err error) {
	if facts.Hash == nil {
		return cmp.Or(facts.HashWhy, "the hash of the backup is unknown"), nil
	}
	proof := clients.Prove(ctx, s.Cluster(),
		decide.Hash{Revision: facts.Revision, CompactRevision: facts.CompactRevision, Sum: *facts.Hash})
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("compare with the backup: %w", context.Cause(ctx))
	case len(proof.Differs) > 0:
		return "", fmt.Errorf("%w, at revision %d", ErrDiffers, facts.Revision)
	case proof.Why != "":
		return "", fmt.Errorf("compare with the backup: %s; last output of etcd: %q", proof.Why, s.LastWord())
	}
	return "", nil
}

// stopwatch measures the duration of each step.
type stopwatch struct{ since time.Time }

// lap returns the seconds since the previous lap.
func (w *stopwatch) lap() float64 {
	now := time.Now()
	defer func() { w.since = now }()
	return now.Sub(w.since).Seconds()
}
