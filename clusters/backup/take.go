// Package backup takes, verifies, stores and reads backups of a cluster.
package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/reconcile/decide"
)

// Source is a cluster to back up.
type Source interface {
	// ClusterID returns the cluster ID that a quorum has confirmed.
	ClusterID(ctx context.Context) (decide.ID, error)
	// Snapshot requests the database from the most suitable member that is not in except.
	Snapshot(ctx context.Context, except ...string) (*etcd.Snapshot, error)
	// CurrentRevision returns the cluster ID that a quorum has confirmed, and the cluster's current revision.
	CurrentRevision(ctx context.Context) (decide.ID, int64, error)
	// Prove asks members whether they hold the same data as a snapshot.
	Prove(ctx context.Context, wanted decide.Hash) etcd.Proof
}

// Inspector returns facts about a snapshot file. It is snapshot.Inspect, or a function that calls snapshot.Inspect in a
// child process.
type Inspector func(ctx context.Context, file string) (snapshot.Facts, error)

// Progress is called with the current step, the number of bytes processed so far, and the total, or 0 if the total is
// unknown.
type Progress func(step string, done, total int64)

// Order specifies a backup to take.
type Order struct {
	Cluster store.Cluster
	// Slot is the time for which the backup is taken. If a backup of the slot already exists, it is used instead,
	// unless Fresh is set. With Fresh, the backup uses the next free second as its slot.
	Slot  time.Time
	Fresh bool
	// ClusterID is the cluster ID that the members must report. Zero accepts any cluster.
	ClusterID decide.ID
	Encoding  Encoding
	// Spool is the directory that holds the snapshot while it is being checked. Spooling makes it possible to read the
	// snapshot from etcd as fast as possible, because a database grows while it is being read.
	Spool string
	// MaxBytes is the maximum size of a snapshot.
	MaxBytes int64
	Inspect  Inspector
	Progress Progress
}

// ErrOld is returned for a snapshot that lacks changes that etcd acknowledged before the snapshot was requested.
var ErrOld = errors.New("the snapshot lacks changes that etcd has acknowledged")

// ErrDiffers is returned for a snapshot whose data differs from that of other members.
var ErrDiffers = errors.New("members hold data that differs from the snapshot")

// ErrOtherCluster is returned if the members report a cluster ID that differs from Order.ClusterID.
var ErrOtherCluster = errors.New("the members belong to a different cluster")

// accept returns ErrOtherCluster if the Order requires a cluster ID other than id.
func (o Order) accept(id decide.ID) error {
	if o.ClusterID == 0 || o.ClusterID == id {
		return nil
	}
	return fmt.Errorf("%w: they report the cluster ID %x, not %x; nothing was stored", ErrOtherCluster,
		uint64(id), uint64(o.ClusterID))
}

// Taken is a snapshot that was received, checked and, as far as possible, proven.
type Taken struct {
	// File is the path of the snapshot. Remove deletes it.
	File string
	// Manifest describes the backup, except for facts that are known only after the backup is stored.
	Manifest store.Manifest
}

// Remove deletes the file.
func (t Taken) Remove() error { return os.Remove(t.File) }

// Take receives a snapshot into a file in the spool directory, and verifies every page and the checksum at the end. It
// compares the snapshot's revision with the acknowledged revision, and the hash of its data with the hashes of a quorum
// of members. If a member's data differs from a quorum's, Take requests a snapshot from the next member.
func Take(ctx context.Context, from Source, o Order) (Taken, error) {
	var found error
	var differing []string
	for {
		started := time.Now().UTC()
		s, err := from.Snapshot(ctx, differing...)
		if err != nil {
			return Taken{}, cmp.Or(found, err)
		}
		taken, err := receiveAndProve(ctx, from, o, s, started)
		switch {
		case errors.Is(err, ErrDiffers) && !slices.Contains(differing, s.Member):
			found, differing = cmp.Or(found, err), append(differing, s.Member)
		case err != nil:
			return Taken{}, cmp.Or(found, err)
		default:
			return taken, nil
		}
	}
}

// receiveAndProve receives a snapshot that was requested at the given time, and checks it as described for Take.
func receiveAndProve(
	ctx context.Context, from Source, o Order, s *etcd.Snapshot, started time.Time,
) (taken Taken, err error) {
	defer s.Body.Close()
	if err := o.accept(s.ClusterID); err != nil {
		return Taken{}, err
	}
	file, err := os.CreateTemp(o.Spool, "snapshot-*.db")
	if err != nil {
		return Taken{}, fmt.Errorf("spool the snapshot: %w", err)
	}
	defer func() {
		if err != nil {
			leave(file.Name())
		}
	}()
	sent := snapshot.NewTrailer()
	if err := errors.Join(receive(file, sent, s, o), file.Close()); err != nil {
		return Taken{}, fmt.Errorf("receive the snapshot of %s: %w", s.Member, err)
	}
	s.Body.Close()
	m := store.Manifest{
		Format: store.Format, Namespace: o.Cluster.Namespace, Cluster: o.Cluster.Name,
		ClusterID: hexadecimal(s.ClusterID), Slot: o.slot(),
		Compression: o.Encoding.compression(), Encryption: o.Encoding.encryption(),
		Member: s.Member, EtcdVersion: s.Version, StartedAt: started,
		Snapshot: store.Snapshot{Bytes: sent.Size(), SHA256: sent.Sum()},
	}
	o.Progress.Step("check every page")
	if m.Snapshot.Facts, err = o.Inspect(ctx, file.Name()); err != nil {
		return Taken{}, err
	}
	if m.Snapshot.Revision < s.Revision {
		return Taken{}, fmt.Errorf("%w: it is at revision %d, but %s had acknowledged %d", ErrOld,
			m.Snapshot.Revision, s.Member, s.Revision)
	}
	o.Progress.Step("compare with the members")
	if err := prove(ctx, from, &m.Snapshot); err != nil {
		return Taken{}, err
	}
	return Taken{file.Name(), m}, nil
}

// receive writes a snapshot to a file and verifies the checksum at the end of the snapshot.
func receive(file *os.File, sent *snapshot.Trailer, s *etcd.Snapshot, o Order) error {
	to := io.MultiWriter(file, sent, o.Progress.counter("receive", s.Size))
	if err := copyUpTo(o.MaxBytes, to, s.Body); err != nil {
		return err
	}
	return sent.Check()
}

// prove records which members hold the same data. A backup without proof is still useful. But if a member's data
// differs, the backup is rejected unless a quorum agrees with the snapshot.
func prove(ctx context.Context, from Source, s *store.Snapshot) error {
	if s.Hash == nil {
		s.Unproven = s.HashWhy
		return nil
	}
	proof := from.Prove(ctx, decide.Hash{Revision: s.Revision, CompactRevision: s.CompactRevision, Sum: *s.Hash})
	s.ProvenBy, s.Differs, s.Unproven = proof.By, proof.Differs, proof.Why
	if proof.Why != "" && len(proof.Differs) > 0 {
		return fmt.Errorf("%w: %q; find out which data is right before you rely on a backup", ErrDiffers,
			proof.Differs)
	}
	return nil
}

// Store stores a taken backup. The backup does not exist until its manifest is written, which happens last. If a valid
// backup of the slot already exists, Store returns its manifest and leaves no other data behind.
func (t Taken) Store(ctx context.Context, to store.Bucket, o Order) (store.Manifest, error) {
	m := t.Manifest
	place, earlier, err := placeOf(ctx, to, m.Backup(), o.Fresh)
	if err != nil {
		return store.Manifest{}, err
	}
	if earlier != nil {
		return *earlier, nil
	}
	m.Slot = place
	m.Data = m.NewDataName()
	m.LockedUntil = store.LockedUntil(to, time.Now())
	stored := newDigest()
	if err := t.upload(ctx, to, m.DataPath(), o, stored); err != nil {
		return store.Manifest{}, err
	}
	m.Bytes, m.SHA256 = stored.size, stored.String()
	if err := m.ConfirmData(ctx, to); err != nil {
		return store.Manifest{}, fmt.Errorf("inspect the stored backup: %w", err)
	}
	m.Read = howToRead(m)
	m.FinishedAt = time.Now().UTC()
	committed, err := m.Commit(ctx, to)
	if err != nil {
		return store.Manifest{}, err
	}
	if committed.Data != m.Data { // another attempt was faster
		if err := to.Delete(ctx, m.DataPath()); err != nil && !errors.Is(err, store.ErrHeld) {
			return store.Manifest{}, err
		}
		if o.Fresh {
			return store.Manifest{}, fmt.Errorf("store %s: another backup was stored for the same second. "+
				"Take this backup again", committed.Backup().ID())
		}
	}
	if err := committed.ConfirmData(ctx, to); err != nil {
		return store.Manifest{}, fmt.Errorf("inspect the stored backup: %w", err)
	}
	return committed, nil
}

func (t Taken) upload(ctx context.Context, to store.Bucket, name string, o Order, stored *digest) error {
	r, w := io.Pipe()
	go func() { w.CloseWithError(t.encode(ctx, io.MultiWriter(w, stored), o)) }()
	defer r.Close()
	err := to.Create(ctx, name, r)
	if errors.Is(err, store.ErrExists) { // the name is unique, so a request was repeated after its response was lost
		if size, unknown := to.Size(ctx, name); unknown == nil && size == stored.size {
			return nil
		}
	}
	return err
}

// encode writes the snapshot in its stored form. It returns an error if the bytes read from the spool do not match the
// proven snapshot.
func (t Taken) encode(ctx context.Context, w io.Writer, o Order) error {
	file, err := os.Open(t.File)
	if err != nil {
		return fmt.Errorf("read the spooled snapshot: %w", err)
	}
	defer file.Close()
	read := newDigest()
	proven := t.Manifest.Snapshot
	plain := io.TeeReader(disk.Until(ctx, file), io.MultiWriter(read, o.Progress.counter("store", proven.Bytes)))
	if err := o.Encoding.encode(w, plain); err != nil {
		return err
	}
	if read.size != proven.Bytes || read.String() != proven.SHA256 {
		return fmt.Errorf("read the spooled snapshot: it differs from the received snapshot; is the disk of %s "+
			"full or broken?",
			t.File)
	}
	return nil
}

// Save writes the taken backup to a new file in its stored form, without a manifest. The file is either complete or
// does not exist.
func (t Taken) Save(ctx context.Context, path string, o Order) error {
	out, err := os.CreateTemp(filepath.Dir(path), unfinished)
	if err != nil {
		return fmt.Errorf("save the backup: %w", err)
	}
	defer leave(out.Name())
	err = t.encode(ctx, out, o)
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil {
		err = name(out.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("save the backup: %w", err)
	}
	return nil
}
