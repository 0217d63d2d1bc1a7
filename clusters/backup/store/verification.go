package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"quorate.dev/quorate/internal/printable"
)

// Verification is the result of reading a stored backup.
type Verification struct {
	Format string `json:"format"`
	// At is the time at which the verification began. The result does not cover later changes to the backup.
	At     time.Time `json:"at"`
	SHA256 string    `json:"sha256"`
	// Damage describes the damage that was found, or is empty. It is stored as a short line, because errors may contain
	// untrusted text.
	Damage string `json:"damage,omitempty"`

	of Manifest
	// known is the content of the damage mark at the time the verification began.
	known []byte
}

// maxDamage is the maximum length of the stored description of damage, in bytes.
const maxDamage = 1 << 10

// PendingVerification is a verification that another process will continue.
type PendingVerification struct {
	Verification Verification `json:"verification"`
	Manifest     Manifest     `json:"manifest"`
	// Known is the content of the damage mark at the time the verification began.
	Known []byte `json:"known,omitempty"`
}

// Pending returns the data that another process needs to continue the verification.
func (v Verification) Pending() PendingVerification { return PendingVerification{v, v.of, v.known} }

// Resume returns the verification on which Pending was called.
func (p PendingVerification) Resume() Verification {
	v := p.Verification
	v.of, v.known = p.Manifest, p.Known
	return v
}

// ErrOvertaken is returned if another process has found the backup damaged in the meantime.
var ErrOvertaken = errors.New("it was found damaged and counts as damaged until it is verified again")

// BeginVerification begins to verify a backup that is about to be read. It reads the damage recorded so far.
func BeginVerification(ctx context.Context, b Bucket, m Manifest) (Verification, error) {
	v := Verification{Format: Format, At: time.Now().UTC().Truncate(time.Second), SHA256: m.SHA256, of: m}
	var err error
	v.known, err = v.damageOnRecord(ctx, b)
	return v, err
}

func (v Verification) damageOnRecord(ctx context.Context, b Bucket) ([]byte, error) {
	mark, err := b.Open(ctx, v.of.Backup().damagedName())
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer mark.Close()
	// A mark may have been replaced by a very long file.
	text, err := io.ReadAll(io.LimitReader(mark, maxManifest))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", v.of.Backup().damagedName(), err)
	}
	return text, nil
}

// Record stores the result next to the manifest, unless the manifest has been replaced. A good result removes damage
// that was recorded before the verification began. If damage has been recorded since, Record returns ErrOvertaken.
// Damage overrides earlier results, even if the store refuses to delete them.
func (v Verification) Record(ctx context.Context, b Bucket) error {
	of := v.of.Backup()
	if v.Damage != "" {
		v.Damage = printable.Short(v.Damage, maxDamage)
		if err := v.of.record(ctx, b, of.damagedName(), v); err != nil {
			return err
		}
		return unlessHeld(v.Withdraw(ctx, b))
	}
	now, err := v.damageOnRecord(ctx, b)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, v.known) {
		return fmt.Errorf("%s: %w", of.manifestName(), ErrOvertaken)
	}
	err = v.of.record(ctx, b, of.verifiedName(), v)
	if errors.Is(err, ErrHeld) && Confirm(ctx, b, of) == nil {
		return nil // the store refuses to replace the result, but the existing one is equivalent
	}
	if err != nil || now == nil {
		return err // damage recorded in the meantime is kept
	}
	return remove(ctx, b, of.damagedName())
}

// unlessHeld returns err unless it is ErrHeld.
func unlessHeld(err error) error {
	if errors.Is(err, ErrHeld) {
		return nil
	}
	return err
}

// Withdraw removes all good results, so that other backups are not deleted because of this one. It removes the result
// of a drill first, because that result would otherwise count again once the backup is verified.
func (v Verification) Withdraw(ctx context.Context, b Bucket) error {
	return remove(ctx, b, v.of.Backup().drilledName(), v.of.Backup().verifiedName())
}

// record stores a result next to the manifest, unless the manifest has been replaced.
func (m Manifest) record(ctx context.Context, b Bucket, name string, found any) error {
	of := m.Backup()
	if now, err := ReadManifest(ctx, b, of); err != nil {
		return err
	} else if now.Data != m.Data {
		return fmt.Errorf("%s: %w: it has been replaced", of.manifestName(), ErrManifest)
	}
	text, err := json.MarshalIndent(found, "", "  ")
	if err != nil {
		return fmt.Errorf("write the verification result: %w", err)
	}
	return b.Replace(ctx, name, bytes.NewReader(append(text, '\n')))
}

// Drill is the result of a drill in which etcd was started with the backup and had the backup's data.
type Drill struct {
	Format string    `json:"format"`
	At     time.Time `json:"at"`
	// SHA256 is the checksum of the stored data.
	SHA256 string `json:"sha256"`
	// EtcdVersion is the version of the etcd that was started. Revision is the revision of the backup, which etcd
	// reached.
	EtcdVersion string `json:"etcdVersion"`
	Revision    int64  `json:"revision"`
	// FetchSeconds is the time taken to fetch and check the backup, RestoreSeconds to create a data directory from it,
	// and StartSeconds until etcd responded.
	FetchSeconds   float64 `json:"fetchSeconds"`
	RestoreSeconds float64 `json:"restoreSeconds"`
	StartSeconds   float64 `json:"startSeconds"`
	// Uncompared is the reason why the data could not be compared: the backup's hash is unknown. It is empty if the
	// data was compared and is the same.
	Uncompared string `json:"uncompared,omitempty"`

	// Verification is the verification that is part of the drill.
	Verification Verification `json:"-"`
}

// Seconds returns the total duration.
func (d Drill) Seconds() float64 { return d.FetchSeconds + d.RestoreSeconds + d.StartSeconds }

// Record stores the result like Verification.Record. It also records the backup as verified, because a drill reads the
// whole backup.
func (d Drill) Record(ctx context.Context, b Bucket) error {
	if err := d.Verification.Record(ctx, b); err != nil {
		return err
	}
	return d.Verification.of.record(ctx, b, d.Verification.of.Backup().drilledName(), d)
}

// Confirm returns an error unless a backup still counts as verified: its data exists, the stored result belongs to it,
// and no damage has been found since.
func Confirm(ctx context.Context, b Bucket, of Backup) error {
	m, err := ReadUseful(ctx, b, of)
	if err != nil {
		return err
	}
	text, err := readAll(ctx, b, of.verifiedName())
	if err != nil {
		return err
	}
	var found Verification
	if err := json.Unmarshal(text, &found); err != nil {
		return fmt.Errorf("%s: %w", of.verifiedName(), err)
	}
	if found.SHA256 != m.SHA256 || found.Damage != "" {
		return fmt.Errorf("%s: the verification result is for different data. Verify it again", of.verifiedName())
	}
	return nil
}
