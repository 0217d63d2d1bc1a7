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
	"time"

	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/clusters/backup/snapshot"
)

// Format is the format of written manifests. Manifests in other formats are rejected.
const Format = "quorate.dev/backup/v1"

// maxManifest is the maximum size of a manifest.
const maxManifest = 64 << 10

// Manifest describes a backup. It is written last and never changes.
type Manifest struct {
	Format    string    `json:"format"`
	Namespace string    `json:"namespace"`
	Cluster   string    `json:"cluster"`
	ClusterID string    `json:"clusterID"`
	Slot      time.Time `json:"slot"`
	// Data is the name of the data file next to the manifest. Bytes and SHA256 describe that file.
	Data   string `json:"data"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Compression is "zstd" or empty. Encryption is "age" or empty. Data is compressed before it is encrypted.
	Compression string `json:"compression,omitempty"`
	Encryption  string `json:"encryption,omitempty"`
	// Snapshot describes the member's snapshot.
	Snapshot Snapshot `json:"snapshot"`
	// Member is the name of the member that sent the snapshot. EtcdVersion is the member's etcd version.
	Member      string    `json:"member"`
	EtcdVersion string    `json:"etcdVersion"`
	StartedAt   time.Time `json:"startedAt"`
	FinishedAt  time.Time `json:"finishedAt"`
	// LockedUntil is the time until which the store was asked to lock the backup, or zero.
	LockedUntil time.Time `json:"lockedUntil,omitzero"`
	// Read lists commands that decode the data with widely available tools.
	Read []string `json:"read"`
}

// Snapshot describes the member's snapshot and the evidence that it is correct.
type Snapshot struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	snapshot.Facts
	// ProvenBy lists the members with the same HashKV at the snapshot's revision. If they are not a quorum, Unproven is
	// the reason.
	ProvenBy []string `json:"provenBy,omitempty"`
	// Differs lists the members whose data differs from the snapshot.
	Differs  []string `json:"differs,omitempty"`
	Unproven string   `json:"unproven,omitempty"`
}

// Backup returns the Backup that this manifest describes.
func (m Manifest) Backup() Backup {
	return Backup{Cluster: Cluster{m.Namespace, m.Cluster}, ClusterID: m.ClusterID, Slot: m.Slot,
		Suspect: m.Snapshot.Corrupt()}
}

// NewDataName returns a unique name for data. The name differs even from those of other attempts for the same slot.
func (m Manifest) NewDataName() string {
	random := make([]byte, 4)
	rand.Read(random) // never fails
	name := fmt.Sprintf("%s-%d-%s.db", SlotID(m.Slot), m.Snapshot.Revision, hex.EncodeToString(random))
	if m.Compression != "" {
		name += ".zst"
	}
	if m.Encryption != "" {
		name += ".age"
	}
	return name
}

// DataPath returns the name of the data in the store.
func (m Manifest) DataPath() string { return m.Backup().dir() + m.Data }

// ErrManifest is returned for an untrusted manifest. ErrFormat is returned if the format is unknown, possibly because a
// newer version wrote the manifest. In that case, nothing else is known about the manifest.
var (
	ErrManifest = errors.New("the manifest is not trustworthy")
	ErrFormat   = errors.New("its format is unknown")
)

// Commit stores the manifest, which makes the backup exist. If a manifest already exists, Commit returns that manifest.
// It is from another attempt for the same slot or, if an earlier response was lost, it is this manifest.
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

// ReadManifest reads the manifest of a backup. It rejects a manifest that does not describe the backup, or does not
// name data next to itself.
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

// problem returns the problem with the manifest, or nil. It returns ErrFormat if the encoding of the data may be from a
// newer version.
func (m Manifest) problem(of Backup) error {
	about := m.Backup()
	about.Verified, about.Damaged, about.Drilled = of.Verified, of.Damaged, of.Drilled
	switch {
	case about.manifestName() != of.manifestName() || !m.Slot.Equal(of.Slot):
		return errors.New("it describes a different backup")
	case m.Compression != "" && m.Compression != Zstd, m.Encryption != "" && m.Encryption != Age: // others are unknown
		return fmt.Errorf("%w: this version cannot read the encodings %.20q and %.20q; a newer version may",
			ErrFormat, m.Compression, m.Encryption)
	case !isDataName(m.Data, SlotID(m.Slot)):
		return fmt.Errorf("%.100q is not a valid data name", m.Data)
	case m.Bytes <= 0 || m.Snapshot.Bytes <= 0 || !isSHA256(m.SHA256) || !isSHA256(m.Snapshot.SHA256):
		return errors.New("sizes or checksums are missing")
	}
	return nil
}

// The encodings of data.
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
	if errors.Is(err, disk.ErrIrregular) {
		err = fmt.Errorf("%w: %w", ErrManifest, err)
	}
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

// ErrData is returned for a manifest whose data is missing or has a different size than the manifest states.
var ErrData = errors.New("the data does not match the manifest")

// ConfirmData returns ErrData unless the data exists with the expected size.
func (m Manifest) ConfirmData(ctx context.Context, b Bucket) error {
	size, err := b.Size(ctx, m.DataPath())
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, disk.ErrIrregular):
		return fmt.Errorf("%w: %w", ErrData, err)
	case err == nil && size != m.Bytes:
		return fmt.Errorf("%w: %s has %d bytes, but its manifest specifies %d "+
			"bytes", ErrData, m.DataPath(), size, m.Bytes)
	}
	return err
}

// IsNamed reports whether a manifest exists in the slot of the given data. Such a manifest may name the data.
func IsNamed(ctx context.Context, b Bucket, data string) (bool, error) {
	parts := inStore.FindStringSubmatch(data)
	if parts == nil {
		return false, fmt.Errorf("%q is not a valid data name", data)
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

// ErrUseless is returned for a backup that has a manifest but is not usable.
var ErrUseless = errors.New("the backup is not usable")

// ReadUseful reads the manifest of a backup if the backup counts, as far as this can be determined without reading the
// backup's data. It returns ErrNotFound if the manifest does not exist. It returns ErrUseless if the manifest is
// untrusted, if the backup was found damaged, or if its data is missing. No other error is evidence about the backup.
func ReadUseful(ctx context.Context, b Bucket, of Backup) (Manifest, error) {
	m, err := ReadManifest(ctx, b, of)
	if errors.Is(err, ErrManifest) {
		return Manifest{}, fmt.Errorf("%w: %w", ErrUseless, err)
	}
	if err != nil {
		return Manifest{}, err
	}
	switch _, err := b.Size(ctx, of.damagedName()); {
	case err == nil, errors.Is(err, disk.ErrIrregular):
		return Manifest{}, fmt.Errorf("%w: %s exists", ErrUseless, of.damagedName())
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

// Held returns ErrHeld while the backup is locked. Callers must check this themselves, because a store may accept the
// deletion of a locked object and only hide it.
func (m Manifest) Held(now time.Time) error {
	if m.LockedUntil.After(now) {
		return fmt.Errorf("%w: the backup is locked until %s", ErrHeld, m.LockedUntil.UTC().Format(time.RFC3339))
	}
	return nil
}

// Remove deletes a listed backup. It deletes the manifest first, so that a manifest never names missing data. It
// deletes only the marks in the listing: a mark that another process creates at the same time remains, but does not
// belong to a backup. Remove returns the error of Removable, or ErrHeld if the store does not allow the deletion.
func (l Listing) Remove(ctx context.Context, b Bucket, m Manifest) error {
	if err := l.Removable(ctx, b, m); err != nil {
		return err
	}
	backup := m.Backup()
	names := []string{backup.manifestName()}
	for _, mark := range backup.markNames() {
		if slices.Contains(l.marks[backup.stem()], mark) {
			names = append(names, mark)
		}
	}
	return remove(ctx, b, append(names, m.DataPath())...)
}

// Removable returns ErrHeld if the backup is locked, and ErrManifest if its damage mark is not a regular file, because
// the backup may then be good.
func (l Listing) Removable(ctx context.Context, b Bucket, m Manifest) error {
	backup := m.Backup()
	if slices.Contains(l.marks[backup.stem()], backup.damagedName()) {
		if _, err := b.Size(ctx, backup.damagedName()); errors.Is(err, disk.ErrIrregular) {
			return fmt.Errorf("%s: %w: %w", backup.manifestName(), ErrManifest, err)
		}
	}
	return m.Held(time.Now())
}

// remove deletes the names that exist, in the given order. Without the right to delete, a store may refuse to delete
// even a missing name.
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
