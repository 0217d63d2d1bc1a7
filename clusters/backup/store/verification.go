package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"quorate.dev/quorate/visible"
)

// Verification is what is found when a backup is read back.
type Verification struct {
	Format string `json:"format"`
	// At is when it was begun: what happened to the backup since, it has not seen.
	At     time.Time `json:"at"`
	SHA256 string    `json:"sha256"`
	// Damage that was found, empty if there is none. It is stored as a short line: an error may repeat what strangers
	// have written.
	Damage string `json:"damage,omitempty"`

	of Manifest
	// known is the damage that was on record when it was begun, as it is stored.
	known []byte
}

// maxDamage is how many bytes of the damage are stored.
const maxDamage = 1 << 10

// PendingVerification is one that was begun, and that another process goes on with.
type PendingVerification struct {
	Verification Verification `json:"verification"`
	Manifest     Manifest     `json:"manifest"`
	// Known is the damage that was on record when it was begun, as it is stored.
	Known []byte `json:"known,omitempty"`
}

// Pending returns what another process needs to go on.
func (v Verification) Pending() PendingVerification { return PendingVerification{v, v.of, v.known} }

// Resume returns the verification that Pending was asked for.
func (p PendingVerification) Resume() Verification {
	v := p.Verification
	v.of, v.known = p.Manifest, p.Known
	return v
}

// ErrOvertaken is a backup that somebody else has found damaged while it was being read.
var ErrOvertaken = errors.New("it was found damaged meanwhile, and stays so until it is verified again")

// BeginVerification notes what is on record of a backup that is about to be read.
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
	text, err := io.ReadAll(io.LimitReader(mark, maxManifest)) // strangers may have made it longer
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", v.of.Backup().damagedName(), err)
	}
	return text, nil
}

// Record stores what was found, beside the manifest, if that is still the one it was. That a backup
// is sound takes back damage that was on record before, and none that was found since: ErrOvertaken. Damage outweighs
// what was found before, which may stay where the store holds on to it.
func (v Verification) Record(ctx context.Context, b Bucket) error {
	of := v.of.Backup()
	if v.Damage != "" {
		v.Damage = visible.Short(v.Damage, maxDamage)
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
		return nil // the store holds on to what says so already
	}
	if err != nil || now == nil {
		return err // what is on record since then stays
	}
	return remove(ctx, b, of.damagedName())
}

// RecordRead stores that what is stored was read again, and takes the place of what said so before: that it is what it
// was says no more of it than was known. Damage is recorded as Record does.
func (v Verification) RecordRead(ctx context.Context, b Bucket) error {
	if v.Damage != "" {
		return v.Record(ctx, b)
	}
	of := v.of.Backup()
	if err := v.of.record(ctx, b, of.readName(v.At), v); err != nil {
		return err
	}
	before, err := of.readNames(ctx, b)
	if err != nil {
		return err
	}
	for _, name := range before {
		if name >= of.readName(v.At) {
			continue // what somebody else has noted meanwhile stays
		}
		if err := unlessHeld(remove(ctx, b, name)); err != nil {
			return err // the newest one counts, where the store holds on to others
		}
	}
	return nil
}

// Condemn records that a backup is damaged whose manifest is not to be trusted, so that it counts no more: ErrNotFound
// if there is none any more. Of a manifest that is right, or may be that of a newer version, nothing is recorded.
func Condemn(ctx context.Context, b Bucket, of Backup) error {
	_, err := ReadManifest(ctx, b, of)
	if !errors.Is(err, ErrManifest) || errors.Is(err, ErrFormat) {
		return err
	}
	found := Verification{Format: Format, At: time.Now().UTC().Truncate(time.Second),
		Damage: visible.Short(err.Error(), maxDamage)}
	text, err := json.MarshalIndent(found, "", "  ")
	if err != nil {
		return fmt.Errorf("write what was found: %w", err)
	}
	if err := b.Replace(ctx, of.damagedName(), bytes.NewReader(append(text, '\n'))); err != nil {
		return err
	}
	return unlessHeld(remove(ctx, b, of.drilledName(), of.verifiedName()))
}

// unlessHeld is an error, unless it is that the store holds on to something.
func unlessHeld(err error) error {
	if errors.Is(err, ErrHeld) {
		return nil
	}
	return err
}

// Withdraw takes back whatever was found that was good, so that nothing is given up for the backup. What
// a drill has shown goes first: it would count again as soon as the backup is verified.
func (v Verification) Withdraw(ctx context.Context, b Bucket) error {
	return remove(ctx, b, v.of.Backup().drilledName(), v.of.Backup().verifiedName())
}

// record stores what was found beside the manifest, if that is still the one it was.
func (m Manifest) record(ctx context.Context, b Bucket, name string, found any) error {
	of := m.Backup()
	if now, err := ReadManifest(ctx, b, of); err != nil {
		return err
	} else if now.Data != m.Data {
		return fmt.Errorf("%s: %w: it was replaced meanwhile", of.manifestName(), ErrManifest)
	}
	text, err := json.MarshalIndent(found, "", "  ")
	if err != nil {
		return fmt.Errorf("write what was found: %w", err)
	}
	return b.Replace(ctx, name, bytes.NewReader(append(text, '\n')))
}

// Drill is what a trial restore showed: etcd starts with the backup, and holds what was backed up.
type Drill struct {
	Format string    `json:"format"`
	At     time.Time `json:"at"`
	// SHA256 of the data as they are stored.
	SHA256 string `json:"sha256"`
	// EtcdVersion of the etcd that was started, and Revision of the backup, which it had reached.
	EtcdVersion string `json:"etcdVersion"`
	Revision    int64  `json:"revision"`
	// Seconds for fetching and checking the backup, making a data directory of it, and until etcd
	// answered.
	FetchSeconds   float64 `json:"fetchSeconds"`
	RestoreSeconds float64 `json:"restoreSeconds"`
	StartSeconds   float64 `json:"startSeconds"`
	// Uncompared says why the data could not be compared, which is that the backup's hash is not
	// known; empty if they were, and are the same.
	Uncompared string `json:"uncompared,omitempty"`

	// Verification that is part of it.
	Verification Verification `json:"-"`
}

// Seconds that all of it took.
func (d Drill) Seconds() float64 { return d.FetchSeconds + d.RestoreSeconds + d.StartSeconds }

// Record stores what was found as Verification does: the backup is verified as well, since it was
// read back.
func (d Drill) Record(ctx context.Context, b Bucket) error {
	if err := d.Verification.Record(ctx, b); err != nil {
		return err
	}
	return d.Verification.of.record(ctx, b, d.Verification.of.Backup().drilledName(), d)
}

// Confirm reports whether a backup is what was verified: its data are there, what was found is about
// them, and nobody has found damage since.
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
		return fmt.Errorf("%s: what was found is about other data; verify it again", of.verifiedName())
	}
	return nil
}
