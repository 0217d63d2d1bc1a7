package main

import (
	"context"
	"errors"

	"quorate.dev/quorate/clusters/backup/recovery"
	"quorate.dev/quorate/clusters/backup/result"
)

// checkRecovery rejects flags that cannot be combined with an externally started etcd.
func (f *externalEtcdFlags) checkRecovery(all *recoverFlags) error {
	switch err := f.check(all.dir); {
	case err != nil || !f.is():
		return err
	case all.dryRun || all.backup.to != "":
		return usageError{errors.New("--prepare and --prepared cannot be combined with --dry-run or --to")}
	case all.into.Token == "":
		return usageError{errors.New("--prepare and --prepared require --initial-cluster-token: " +
			"a random token differs each time")}
	}
	return nil
}

// prepare copies the member, unless it has already been recovered.
func (f *recoverFlags) prepare(ctx context.Context, std streams) error {
	return f.inDataDir(ctx, std, func(order recovery.Order, told *result.Recovered) error {
		if told != nil {
			return errors.Join(f.tellRecoveredBefore(std, *told), recovery.PrepareNothing(order))
		}
		return recovery.Prepare(ctx, order)
	})
}
