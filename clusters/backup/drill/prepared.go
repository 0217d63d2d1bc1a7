package drill

import (
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
	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/internal/etcdversion"
)

const (
	// ConfigFile is the name of the configuration file of an externally started etcd, in the working directory.
	ConfigFile = "etcd.yaml"
	// drillFile records the progress of the drill.
	drillFile    = "drill.json"
	maxDrillFile = 4 << 20
	// begunFile marks the working directory as belonging to a drill.
	begunFile = "drill-begun"
)

// prepared is a drill whose etcd is started externally.
type prepared struct {
	Drill   store.Drill               `json:"drill"`
	Pending store.PendingVerification `json:"pending"`
	Facts   snapshot.Facts            `json:"facts"`
	// Since is the time at which the data directory was complete.
	Since time.Time `json:"since"`
}

// Apart holds the directories of a drill whose etcd is started externally.
type Apart struct {
	// Dir is the working directory, in which the backup is restored and etcd runs.
	Dir string
	// State is the directory in which Prepare leaves information for Finish. An untrusted etcd must not be able to
	// write to it.
	State string
}

// absolute returns a with its paths made absolute.
func (a Apart) absolute() (Apart, error) {
	dir, err := filepath.Abs(a.Dir)
	state, failed := filepath.Abs(a.State)
	return Apart{dir, state}, errors.Join(err, failed)
}

func (a Apart) drillFile() string { return filepath.Join(a.State, drillFile) }

// clear removes the files of an earlier drill. If the directory is not marked as belonging to a drill, clear does not
// remove any files, because they may belong to a real etcd.
func (a Apart) clear(made ...string) error {
	mark := filepath.Join(a.Dir, begunFile)
	if _, err := os.Lstat(mark); errors.Is(err, os.ErrNotExist) {
		for _, other := range append(made, filepath.Join(a.Dir, ConfigFile)) {
			if _, err := os.Lstat(other); !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("%w: %s exists, but was not created by a drill. Specify an empty directory "+
					"to restore in", snapshot.ErrExists, other)
			}
		}
	}
	err := disk.Write(mark, nil)
	for _, before := range append(made, a.drillFile()) {
		if err == nil {
			err = os.RemoveAll(before)
		}
	}
	return err
}

// Prepare restores a backup for an etcd of version v, which is then started externally in a.Dir with ConfigFile. Finish
// completes the drill. Prepare first removes the files of an earlier drill, whose etcd may have replaced them with
// links. It returns snapshot.ErrExists if the directory contains files of the same names that do not belong to a drill.
// It returns the same errors as Try for problems with the backup.
func Prepare(
	ctx context.Context, v etcdversion.Version, from store.Bucket, m store.Manifest, a Apart, r backup.Reading,
) (store.Drill, error) {
	a, err := a.absolute()
	if err != nil {
		return store.Drill{}, err
	}
	program := etcdprocess.Program{Version: v}
	t, err := begin(ctx, program, from, m)
	if err != nil {
		return t.Drill, err
	}
	file := filepath.Join(a.Dir, "snapshot.db")
	if err := a.clear(t.dataDir(a.Dir), file); err != nil {
		return t.Drill, fmt.Errorf("remove an earlier drill: %w", err)
	}
	if err := t.fill(ctx, from, a.Dir, r); err != nil {
		return t.Drill, err
	}
	config, err := program.ConfigFile(t.dataDir(a.Dir))
	if err != nil {
		return t.Drill, err
	}
	told, err := json.Marshal(prepared{t.Drill, t.Verification.Pending(), t.facts, time.Now().UTC()})
	if err != nil {
		return t.Drill, err
	}
	return t.Drill, errors.Join(os.Remove(file), disk.Write(filepath.Join(a.Dir, ConfigFile), config),
		disk.Write(a.drillFile(), told))
}

// Finish completes a drill in the same way as Try. Before that, Prepare must have restored a backup of the cluster for
// version v, and etcd must have been started on the restored data. If the drill was prepared for a different cluster or
// version, Finish returns only an error.
func Finish(
	ctx context.Context, v etcdversion.Version, of store.Cluster, a Apart, tell backup.Progress,
) (store.Manifest, store.Drill, error) {
	a, err := a.absolute()
	if err != nil {
		return store.Manifest{}, store.Drill{}, err
	}
	told, err := disk.Read(a.drillFile(), maxDrillFile)
	if err != nil {
		return store.Manifest{}, store.Drill{}, fmt.Errorf("determine which backup was restored in %s: %w", a.Dir, err)
	}
	var before prepared
	if err := json.Unmarshal(told, &before); err != nil {
		return store.Manifest{}, store.Drill{}, fmt.Errorf("determine which backup was restored in %s: %w", a.Dir, err)
	}
	if was := before.Pending.Manifest.Backup().Cluster; was != of || before.Drill.EtcdVersion != v.String() {
		return store.Manifest{}, store.Drill{}, fmt.Errorf("continue the drill in %s: it was prepared for %s with "+
			"etcd %s",
			a.Dir, was, before.Drill.EtcdVersion)
	}
	t := trial{
		Drill: before.Drill, manifest: before.Pending.Manifest, facts: before.Facts, watch: stopwatch{before.Since},
	}
	t.Verification = before.Pending.Resume()
	err = t.ask(ctx, etcdprocess.Attach(a.Dir), tell)
	return t.manifest, t.Drill, err
}
