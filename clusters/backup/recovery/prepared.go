package recovery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/disk"
	"quorate.dev/quorate/clusters/backup/etcdprocess"
	"quorate.dev/quorate/clusters/backup/snapshot"
)

// Files in the working directory if etcd is started externally.
const (
	// ConfigFile is the configuration file of the externally started etcd.
	ConfigFile = "etcd.yaml"
	// survivorFile identifies the copied member. It is created before the member is copied, and remains empty until the
	// copy is complete.
	survivorFile = "survivor.json"
	maxSurvivor  = 1 << 20
)

// Prepare copies the surviving member to o.Dir, for an etcd that is then started there externally with ConfigFile.
// RecoverPrepared completes the recovery. Prepare first removes an earlier copy. The etcd that ran on that copy may
// have replaced files with links, which are not followed. Prepare returns snapshot.ErrExists if the directory contains
// files of the same names that are not known to be a copy.
func Prepare(ctx context.Context, o Order) error {
	survivor, held, err := o.hold(ctx)
	if err != nil {
		return err
	}
	defer held.Close()
	if err := CheckDeclared(survivor, o.Etcd); err != nil {
		return err
	}
	if err := o.clear(); err != nil {
		return err
	}
	if err := o.copyMember(ctx, survivor, o.copyDir()); err != nil {
		return err
	}
	if err := o.writeConfig(); err != nil {
		return err
	}
	told, err := json.Marshal(survivor)
	if err != nil {
		return err
	}
	return disk.Write(filepath.Join(o.Dir, survivorFile), told)
}

// PrepareNothing replaces Prepare if nothing is left to recover. The externally started etcd then starts without data.
func PrepareNothing(o Order) error {
	if err := o.clear(); err != nil {
		return err
	}
	return o.writeConfig()
}

// clear removes an earlier copy. If the directory is not marked as containing a copy, clear does not remove any data,
// because it may be the member itself.
func (o Order) clear() error {
	mark := filepath.Join(o.Dir, survivorFile)
	var others []string
	if _, err := os.Lstat(mark); errors.Is(err, os.ErrNotExist) {
		others = []string{o.copyDir(), filepath.Join(o.Dir, ConfigFile)}
	}
	if is, err := sameFile(o.copyDir(), o.Into.DataDir); is || err != nil {
		others = append(others, o.copyDir())
	}
	for _, other := range others {
		if _, err := os.Lstat(other); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%w: %s exists, but is not known to be a copy of the member. Specify an empty "+
				"directory to work in", snapshot.ErrExists, other)
		}
	}
	if err := disk.Write(mark, nil); err != nil {
		return err
	}
	return os.RemoveAll(o.copyDir())
}

// sameFile reports whether two paths refer to the same file.
func sameFile(a, b string) (bool, error) {
	one, err := os.Stat(a)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	other, failed := os.Stat(b)
	return os.SameFile(one, other), errors.Join(err, failed)
}

func (o Order) copyDir() string { return filepath.Join(o.Dir, "data") }

func (o Order) writeConfig() error {
	config, err := o.Etcd.ConfigFile(o.copyDir())
	if err != nil {
		return err
	}
	return disk.Write(filepath.Join(o.Dir, ConfigFile), config)
}

// RecoverPrepared is like Recover, but uses the copy that Prepare created and the etcd that runs on it.
func RecoverPrepared(ctx context.Context, o Order, place func(Recovered) error) error {
	survivor, held, err := o.hold(ctx)
	if err != nil {
		return err
	}
	defer held.Close()
	if err := o.isUnchanged(survivor); err != nil {
		return err
	}
	ordered := backup.Order{Slot: time.Now(), Spool: o.Dir, Inspect: o.Inspect, Progress: o.Progress}
	taken, err := takeFrom(ctx, etcdprocess.Attach(o.Dir), survivor, ordered)
	if err != nil {
		return err
	}
	return o.make(held, survivor, taken, place)
}

// isUnchanged returns an error if the survivor has changed since it was copied.
func (o Order) isUnchanged(survivor snapshot.Survivor) error {
	copied, err := o.copied()
	if err != nil {
		return err
	}
	before, err := json.Marshal(copied)
	if err != nil {
		return err
	}
	now, err := json.Marshal(survivor)
	if err != nil {
		return err
	}
	if !bytes.Equal(before, now) {
		return fmt.Errorf("%w: the member has changed since it was copied; was etcd started with it?", ErrUnfit)
	}
	return nil
}

// copied returns the member that Prepare copied.
func (o Order) copied() (s snapshot.Survivor, err error) {
	told, err := disk.Read(filepath.Join(o.Dir, survivorFile), maxSurvivor)
	switch {
	case err != nil:
	case len(told) == 0:
		return s, fmt.Errorf("the copy in %s is incomplete. Prepare it again before starting etcd on it", o.Dir)
	default:
		err = json.Unmarshal(told, &s)
	}
	if err != nil {
		return s, fmt.Errorf("determine which member was copied to %s: %w", o.Dir, err)
	}
	return s, nil
}
