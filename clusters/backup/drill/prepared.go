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
	"quorate.dev/quorate/etcdversion"
)

// What is in the directory to restore in, where somebody else starts etcd.
const (
	// ConfigFile is what that etcd is started with, in that directory.
	ConfigFile = "etcd.yaml"
	// drillFile says how far the drill has come.
	drillFile    = "drill.json"
	maxDrillFile = 4 << 20
)

// prepared is a drill whose etcd somebody else starts.
type prepared struct {
	Drill   store.Drill               `json:"drill"`
	Pending store.PendingVerification `json:"pending"`
	Facts   snapshot.Facts            `json:"facts"`
	// Since is when the data directory was there.
	Since time.Time `json:"since"`
}

// Prepare restores a backup in a directory, for an etcd of that version that somebody else starts there by
// ConfigFile. What was there of a drill before is gone. Finish does the rest. Errors are those of Try.
func Prepare(
	ctx context.Context, v etcdversion.Version, from store.Bucket, m store.Manifest, dir string, r backup.Reading,
) (store.Drill, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return store.Drill{}, err
	}
	t, err := begin(ctx, etcdprocess.Program{Version: v}, from, m)
	if err != nil {
		return t.Drill, err
	}
	file := filepath.Join(dir, "snapshot.db")
	for _, before := range []string{filepath.Join(dir, drillFile), t.dataDir(dir), file} {
		if err := os.RemoveAll(before); err != nil {
			return t.Drill, fmt.Errorf("clear away an earlier drill: %w", err)
		}
	}
	if err := t.fill(ctx, from, dir, r); err != nil {
		return t.Drill, err
	}
	config, err := etcdprocess.ConfigFile(t.dataDir(dir))
	if err != nil {
		return t.Drill, err
	}
	told, err := json.Marshal(prepared{t.Drill, t.Verification.Pending(), t.facts, time.Now().UTC()})
	if err != nil {
		return t.Drill, err
	}
	return t.Drill, errors.Join(os.Remove(file), os.WriteFile(filepath.Join(dir, ConfigFile), config, 0o600),
		os.WriteFile(filepath.Join(dir, drillFile), told, 0o600))
}

// Finish is what Try does with an etcd, where Prepare has restored the backup, and etcd runs on it.
func Finish(ctx context.Context, dir string, tell backup.Progress) (store.Manifest, store.Drill, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return store.Manifest{}, store.Drill{}, err
	}
	told, err := disk.Read(filepath.Join(dir, drillFile), maxDrillFile)
	if err != nil {
		return store.Manifest{}, store.Drill{}, fmt.Errorf("read which backup was restored in %s: %w", dir, err)
	}
	var before prepared
	if err := json.Unmarshal(told, &before); err != nil {
		return store.Manifest{}, store.Drill{}, fmt.Errorf("read which backup was restored in %s: %w", dir, err)
	}
	t := trial{
		Drill: before.Drill, manifest: before.Pending.Manifest, facts: before.Facts, watch: stopwatch{before.Since},
	}
	t.Verification = before.Pending.Resume()
	err = t.ask(ctx, etcdprocess.Attach(dir), tell)
	return t.manifest, t.Drill, err
}
