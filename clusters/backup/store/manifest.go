package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"quorate.dev/quorate/clusters/backup/snapshot"
)

// Format of the manifests that are written here. One of another format is not read.
const Format = "quorate.dev/backup/v1"

// maxManifest is how long a manifest may be.
const maxManifest = 64 << 10

// Manifest says what a backup is. It is written last, and never again.
type Manifest struct {
	Format    string    `json:"format"`
	Namespace string    `json:"namespace"`
	Cluster   string    `json:"cluster"`
	ClusterID string    `json:"clusterID"`
	Slot      time.Time `json:"slot"`
	// Data is the name of the file beside the manifest, with its size and checksum as it is stored.
	Data   string `json:"data"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Compression is "zstd" or empty, and Encryption "age" or empty: compressed first.
	Compression string `json:"compression,omitempty"`
	Encryption  string `json:"encryption,omitempty"`
	// Snapshot is what the member sent.
	Snapshot Snapshot `json:"snapshot"`
	// Member it was taken from, and the version of etcd that ran there.
	Member      string    `json:"member"`
	EtcdVersion string    `json:"etcdVersion"`
	StartedAt   time.Time `json:"startedAt"`
	FinishedAt  time.Time `json:"finishedAt"`
	// LockedUntil is until when the store was told to keep the backup; zero if it was told nothing.
	LockedUntil time.Time `json:"lockedUntil,omitzero"`
	// Read says how to get at the data with nothing but common tools.
	Read []string `json:"read"`
}

// Snapshot is what the member sent, and what proves it.
type Snapshot struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	snapshot.Facts
	// ProvenBy are the members whose HashKV at the snapshot's revision was the snapshot's, and
	// Unproven says why it is not by a quorum of them.
	ProvenBy []string `json:"provenBy,omitempty"`
	// Differs are members that hold other data than the quorum and the snapshot do.
	Differs  []string `json:"differs,omitempty"`
	Unproven string   `json:"unproven,omitempty"`
}

// Backup is what the names of a backup with this manifest say.
func (m Manifest) Backup() Backup {
	return Backup{Cluster: Cluster{m.Namespace, m.Cluster}, ClusterID: m.ClusterID, Slot: m.Slot,
		Suspect: m.Snapshot.Corrupt()}
}

// NewDataName is a name for data that nobody else uses, not even another attempt at the same slot.
func (m Manifest) NewDataName() string {
	random := make([]byte, 4)
	rand.Read(random) // it never fails
	name := fmt.Sprintf("%s-%d-%s.db", SlotID(m.Slot), m.Snapshot.Revision, hex.EncodeToString(random))
	if m.Compression != "" {
		name += ".zst"
	}
	if m.Encryption != "" {
		name += ".age"
	}
	return name
}

// DataPath is where the data are.
func (m Manifest) DataPath() string { return m.Backup().dir() + m.Data }

// ErrManifest is a manifest that cannot be believed. ErrFormat is one of a version that may be newer, of which
// nothing more is known.
var (
	ErrManifest = errors.New("the manifest is not to be trusted")
	ErrFormat   = errors.New("it is of another format")
)

// Commit stores the manifest, which makes the backup exist. If there is one already, it is returned:
// another attempt at the same slot, or this one, whose answer was lost.
func (m Manifest) Commit(ctx context.Context, b Bucket) (Manifest, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return Manifest{}, fmt.Errorf("write a manifest: %w", err)
	}
	err = b.Create(ctx, m.Backup().manifestName(), bytes.NewReader(append(text, '\n')))
	if errors.Is(err, ErrExists) {
		return ReadManifest(ctx, b, m.Backup())
	}
	return m, err
}

// ReadManifest reads the manifest of a backup. It must be about that backup, and name data beside
// it.
func ReadManifest(ctx context.Context, b Bucket, of Backup) (Manifest, error) {
	text, err := readAll(ctx, b, of.manifestName())
	if err != nil {
		return Manifest{}, err
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return Manifest{}, fmt.Errorf("%s: %w: %w", of.manifestName(), ErrManifest, err)
	}
	if m.Format != Format {
		return Manifest{}, fmt.Errorf("%s: %w: %w: %.40q; this version reads %s",
			of.manifestName(), ErrManifest, ErrFormat, m.Format, Format)
	}
	if problem := m.problem(of); problem != nil {
		return Manifest{}, fmt.Errorf("%s: %w: %w", of.manifestName(), ErrManifest, problem)
	}
	return m, nil
}

// problem is what is wrong with it: ErrFormat if its data are encoded as only a newer version may know.
func (m Manifest) problem(of Backup) error {
	about := m.Backup()
	about.Verified, about.Damaged, about.Drilled = of.Verified, of.Damaged, of.Drilled
	switch {
	case about.manifestName() != of.manifestName() || !m.Slot.Equal(of.Slot):
		return errors.New("it is about another backup")
	case m.Compression != "" && m.Compression != Zstd, m.Encryption != "" && m.Encryption != Age: // so is what follows
		return fmt.Errorf("%w: %.20q and %.20q are no encodings that this version reads; a newer one may",
			ErrFormat, m.Compression, m.Encryption)
	case !isDataName(m.Data, SlotID(m.Slot)):
		return fmt.Errorf("%.100q is no name of data", m.Data)
	case m.Bytes <= 0 || m.Snapshot.Bytes <= 0 || !isSHA256(m.SHA256) || !isSHA256(m.Snapshot.SHA256):
		return errors.New("sizes or checksums are missing")
	}
	return nil
}

// How data may be encoded.
const (
	Zstd = "zstd"
	Age  = "age"
)

func isSHA256(s string) bool {
	digest, err := hex.DecodeString(s)
	return err == nil && len(digest) == 32
}

func readAll(ctx context.Context, b Bucket, name string) ([]byte, error) {
	r, err := b.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case len(text) > maxManifest:
		return nil, fmt.Errorf("read %s: %w: it is longer than %d bytes", name, ErrManifest, maxManifest)
	}
	return text, nil
}

// ErrData is a manifest whose data are not there, or are not as long as it says.
var ErrData = errors.New("the data are not those of the manifest")

// ConfirmData reports whether the data are there, as long as they should be: ErrData if not.
func (m Manifest) ConfirmData(ctx context.Context, b Bucket) error {
	size, err := b.Size(ctx, m.DataPath())
	switch {
	case errors.Is(err, ErrNotFound):
		return fmt.Errorf("%w: %w", ErrData, err)
	case err == nil && size != m.Bytes:
		return fmt.Errorf("%w: %s has %d bytes, and its manifest says %d", ErrData, m.DataPath(), size, m.Bytes)
	}
	return err
}

// IsNamed reports whether there is a manifest of the slot of data, which may name them.
func IsNamed(ctx context.Context, b Bucket, data string) (bool, error) {
	parts := inStore.FindStringSubmatch(data)
	if parts == nil {
		return false, fmt.Errorf("%q is no name of data", data)
	}
	slot, err := ParseSlot(parts[4])
	if err != nil {
		return false, err
	}
	for _, suspect := range []bool{false, true} {
		of := Backup{Cluster: Cluster{parts[1], parts[2]}, ClusterID: parts[3], Slot: slot, Suspect: suspect}
		if _, err := b.Size(ctx, of.manifestName()); !errors.Is(err, ErrNotFound) {
			return err == nil, err
		}
	}
	return false, nil
}

// ErrUseless is a backup that has a manifest and does not count all the same.
var ErrUseless = errors.New("the backup counts for nothing")

// ReadUseful reads the manifest of a backup that counts, as far as the store says without its data
// being read: ErrNotFound if there is no manifest, and ErrUseless if it is not to be trusted, the
// backup was found damaged, or its data are not there. Any other error says nothing about it.
func ReadUseful(ctx context.Context, b Bucket, of Backup) (Manifest, error) {
	m, err := ReadManifest(ctx, b, of)
	if errors.Is(err, ErrManifest) {
		return Manifest{}, fmt.Errorf("%w: %w", ErrUseless, err)
	}
	if err != nil {
		return Manifest{}, err
	}
	switch _, err := b.Size(ctx, of.damagedName()); {
	case err == nil:
		return Manifest{}, fmt.Errorf("%w: %s is there", ErrUseless, of.damagedName())
	case !errors.Is(err, ErrNotFound):
		return Manifest{}, err
	}
	if err := m.ConfirmData(ctx, b); errors.Is(err, ErrData) {
		return Manifest{}, fmt.Errorf("%w: %w", ErrUseless, err)
	} else if err != nil {
		return Manifest{}, err
	}
	return m, nil
}

// Held is ErrHeld as long as the backup is locked. A store may take a deletion all the same, and hide what it keeps.
func (m Manifest) Held(now time.Time) error {
	if m.LockedUntil.After(now) {
		return fmt.Errorf("%w: it is locked until %s", ErrHeld, m.LockedUntil.UTC().Format(time.RFC3339))
	}
	return nil
}

// Remove deletes a backup, the manifest first: a manifest never names data that are gone. What the
// store holds on to is ErrHeld.
func Remove(ctx context.Context, b Bucket, m Manifest) error {
	backup := m.Backup()
	if err := remove(ctx, b, backup.manifestName()); err != nil {
		return err
	}
	read, err := backup.readNames(ctx, b)
	if err != nil {
		return err
	}
	return remove(ctx, b, append(append(read, backup.markNames()...), m.DataPath())...)
}

// Remove deletes a backup that was listed as the function of that name does, without asking again what there is of it,
// which takes long where there are many: a mark that was made meanwhile stays, and is about no backup.
func (l Listing) Remove(ctx context.Context, b Bucket, m Manifest) error {
	backup := m.Backup()
	names := []string{backup.manifestName()}
	for _, mark := range l.marks[backup.stem()] {
		if readRest.MatchString(strings.TrimPrefix(mark, backup.stem())) {
			names = append(names, mark)
		}
	}
	for _, mark := range backup.markNames() {
		if slices.Contains(l.marks[backup.stem()], mark) {
			names = append(names, mark)
		}
	}
	return remove(ctx, b, append(names, m.DataPath())...)
}

// remove deletes what is there of these, in this order. Whoever has no right to delete may be told so of what is not
// there, too.
func remove(ctx context.Context, b Bucket, names ...string) error {
	for _, name := range names {
		err := b.Delete(ctx, name)
		if errors.Is(err, ErrHeld) {
			if _, missing := b.Size(ctx, name); errors.Is(missing, ErrNotFound) {
				err = missing
			}
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return nil
}
