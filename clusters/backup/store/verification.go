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
	// known and differed are the contents of the damage mark and of the mark of a failed drill at the time the
	// verification began.
	known, differed []byte
}

// maxDamage is the maximum length of the stored description of damage, in bytes.
const maxDamage = 1 << 10

// PendingVerification is a verification that another process will continue.
type PendingVerification struct {
	Verification Verification `json:"verification"`
	Manifest     Manifest     `json:"manifest"`
	// Known and Differed are the contents of the damage mark and of the mark of a failed drill at the time the
	// verification began.
	Known    []byte `json:"known,omitempty"`
	Differed []byte `json:"differed,omitempty"`
}

// Pending returns the data that another process needs to continue the verification.
func (v Verification) Pending() PendingVerification {
	return PendingVerification{v, v.of, v.known, v.differed}
}

// Resume returns the verification on which Pending was called.
func (p PendingVerification) Resume() Verification {
	v := p.Verification
	v.of, v.known, v.differed = p.Manifest, p.Known, p.Differed
	return v
}

// ErrOvertaken is returned if another process has found the backup damaged in the meantime.
var ErrOvertaken = errors.New("it was found damaged and is treated as damaged until it is verified again")

// ErrDiffered is returned if a drill has found different data in etcd, and no drill has succeeded since.
var ErrDiffered = errors.New("a drill with the backup found different data in etcd, so the backup is not treated as " +
	"verified. Run \"quorate backups drill\" with it again, or take a new backup")

// BeginVerification begins to verify a backup that is about to be read. It reads the damage and the failed drill
// recorded so far.
func BeginVerification(ctx context.Context, b Bucket, m Manifest) (Verification, error) {
	v := Verification{Format: Format, At: time.Now().UTC().Truncate(time.Second), SHA256: m.SHA256, of: m}
	var err error
	if v.known, err = markOf(ctx, b, m.Backup().damagedName()); err == nil {
		v.differed, err = markOf(ctx, b, m.Backup().differsName())
	}
	return v, err
}

// markOf returns the content of a mark, or nil if the mark does not exist.
func markOf(ctx context.Context, b Bucket, name string) ([]byte, error) {
	mark, err := b.Open(ctx, name)
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
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return text, nil
}

// Record stores the result next to the manifest, unless the manifest has been replaced. A good result removes damage
// that was recorded before the verification began. If damage has been recorded since, Record returns ErrOvertaken.
// Damage overrides earlier results, even if the store refuses to delete them. If a drill has failed with the backup,
// Record does not record a good result, because only another drill can disprove the failure, and returns ErrDiffered.
func (v Verification) Record(ctx context.Context, b Bucket) error {
	of := v.of.Backup()
	if v.Damage != "" {
		v.Damage = printable.Short(v.Damage, maxDamage)
		if err := v.of.record(ctx, b, of.damagedName(), v); err != nil {
			return err
		}
		return unlessHeld(v.withdraw(ctx, b))
	}
	now, err := v.damage(ctx, b)
	if err != nil {
		return err
	}
	differs, err := markOf(ctx, b, of.differsName())
	if err != nil {
		return err
	}
	if differs == nil {
		return v.recordGood(ctx, b, now)
	}
	if now != nil {
		err = remove(ctx, b, of.damagedName())
	}
	return errors.Join(fmt.Errorf("%s: %w", of.manifestName(), ErrDiffered), err)
}

// damage returns the content of the damage mark, or ErrOvertaken if it has changed since the verification began.
func (v Verification) damage(ctx context.Context, b Bucket) ([]byte, error) {
	now, err := markOf(ctx, b, v.of.Backup().damagedName())
	if err == nil && !bytes.Equal(now, v.known) {
		err = fmt.Errorf("%s: %w", v.of.Backup().manifestName(), ErrOvertaken)
	}
	return now, err
}

// recordGood records the backup as verified, and removes the damage mark with the given content.
func (v Verification) recordGood(ctx context.Context, b Bucket, damage []byte) error {
	of := v.of.Backup()
	err := v.of.record(ctx, b, of.verifiedName(), v)
	if errors.Is(err, ErrHeld) && confirmVerified(ctx, b, of) == nil {
		err = nil // the store refuses to replace the result, but the existing one is equivalent
	}
	if err != nil || damage == nil {
		return err // damage recorded in the meantime is kept
	}
	return remove(ctx, b, of.damagedName())
}

// RecordDifference records that a drill with the backup found different data in etcd. Until a drill succeeds, the
// backup does not count as verified, and other backups are not deleted because of it. It can still be restored, because
// the etcd of the drill may be at fault.
func (v Verification) RecordDifference(ctx context.Context, b Bucket) error {
	name := v.of.Backup().differsName()
	err := v.of.record(ctx, b, name, v)
	if errors.Is(err, ErrHeld) {
		if mark, unknown := markOf(ctx, b, name); unknown == nil && mark != nil {
			err = nil // the store refuses to replace the mark, but the existing one is equivalent
		}
	}
	if err != nil {
		return err
	}
	return unlessHeld(v.withdraw(ctx, b))
}

// unlessHeld returns err unless it is ErrHeld.
func unlessHeld(err error) error {
	if errors.Is(err, ErrHeld) {
		return nil
	}
	return err
}

// withdraw removes all good results. It removes the result of a drill first, because that result would otherwise count
// again once the backup is verified.
func (v Verification) withdraw(ctx context.Context, b Bucket) error {
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

// Record records the backup as drilled and, because a drill reads the whole backup, as verified. Like
// Verification.Record, it removes damage that was recorded before the drill began. It also removes the failure of an
// earlier drill. If another drill has failed in the meantime, Record returns ErrDiffered.
func (d Drill) Record(ctx context.Context, b Bucket) error {
	v, of := d.Verification, d.Verification.of.Backup()
	damage, err := v.damage(ctx, b)
	if err != nil {
		return err
	}
	differs, err := markOf(ctx, b, of.differsName())
	switch {
	case err != nil:
		return err
	case !bytes.Equal(differs, v.differed):
		return fmt.Errorf("%s: %w", of.manifestName(), ErrDiffered)
	}
	if err := v.recordGood(ctx, b, damage); err != nil {
		return err
	}
	if err := v.of.record(ctx, b, of.drilledName(), d); err != nil || differs == nil {
		return err // a failure recorded in the meantime is kept
	}
	return remove(ctx, b, of.differsName())
}

// Confirm returns an error unless a backup still counts as verified: its data exists, the stored result belongs to it,
// and neither damage nor a failed drill has been recorded since.
func Confirm(ctx context.Context, b Bucket, of Backup) error {
	switch _, err := b.Size(ctx, of.differsName()); {
	case err == nil:
		return fmt.Errorf("%s: %w", of.manifestName(), ErrDiffered)
	case !errors.Is(err, ErrNotFound):
		return err
	}
	return confirmVerified(ctx, b, of)
}

// confirmVerified is Confirm without regard to failed drills.
func confirmVerified(ctx context.Context, b Bucket, of Backup) error {
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
		return fmt.Errorf("%s: the verification result is for different data. Verify the backup again",
			of.verifiedName())
	}
	return nil
}
