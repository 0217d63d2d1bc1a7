package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quorate.dev/quorate/clusters/backup"
	"quorate.dev/quorate/clusters/backup/recovery"
	"quorate.dev/quorate/clusters/backup/snapshot"
	"quorate.dev/quorate/clusters/backup/store"
)

// target returns the order for storing a backup: its cluster and its encoding.
func (f *recoverFlags) target(args []string) (o backup.Order, err error) {
	to := f.backup.to
	switch {
	case to == "" && len(args) > 0:
		return o, usageError{fmt.Errorf("%s: a cluster name can be set only with --to", args[0])}
	case to == "":
		return o, nil
	case len(args) == 0:
		return o, usageError{errors.New("--to writes a backup: name the cluster, " +
			"as in quorate recover NAMESPACE/CLUSTER")}
	}
	if o.Cluster, err = clusterNamed(args[0], nil); err == nil && !store.IsLocation(to) {
		err = newFile("to", to)
	}
	if err == nil {
		o.Encoding, err = f.backup.encoding.encoding(to)
	}
	return o, err
}

// rescue takes a backup of the surviving data and stores it.
func (f *recoverFlags) rescue(
	ctx context.Context, std streams, put backup.Order,
) (stored store.Manifest, err error) {
	if err := f.backup.store.check(f.backup.to); err != nil {
		return stored, err
	}
	var bucket store.Bucket
	if store.IsLocation(f.backup.to) {
		if bucket, err = f.backup.store.open(ctx, "to", f.backup.to); err != nil {
			return stored, err
		}
		defer bucket.Close()
	}
	progress, done := bars(std.err)
	defer done()
	order, err := f.order(ctx, progress)
	if err != nil {
		return stored, err
	}
	unlock, err := f.alone(ctx, std)
	if err != nil {
		return stored, err
	}
	defer unlock()
	put.Slot, put.Fresh, put.Progress = time.Now(), true, progress
	take := recovery.Rescue
	if f.apart.prepared {
		take = recovery.RescuePrepared
	}
	err = take(ctx, order, put, func(taken backup.Taken) (err error) {
		if bucket == nil {
			stored = taken.Manifest
			return taken.Save(ctx, f.backup.to, put)
		}
		stored, err = taken.Store(ctx, bucket, put)
		return err
	})
	return stored, err
}

// alone locks the data directory and removes files left there by killed processes. If --dir names a different
// directory, alone does nothing, because the owner of the files there is unknown.
func (f *recoverFlags) alone(ctx context.Context, std streams) (done func(), err error) {
	if f.dir != "" {
		return func() {}, nil
	}
	unlock, err := f.dataDir().Lock(ctx, f.waiting(std))
	if err != nil {
		return nil, err
	}
	if err := snapshot.RemoveLeftovers(f.into.DataDir); err != nil {
		unlock()
		return nil, fmt.Errorf("remove leftover files: %w", err)
	}
	return unlock, nil
}
