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
		return usageError{errors.New("--prepare and --prepared go neither with --dry-run nor with --to")}
	case all.into.Token == "":
		return usageError{errors.New("--prepare and --prepared go with --initial-cluster-token: " +
			"one that is random is another one each time")}
	}
	return nil
}

// prepare copies the member, unless it has already been recovered.
func (f *recoverFlags) prepare(ctx context.Context, std streams) error {
	return f.inDataDir(ctx, std, func(d dataDirRecovery, order recovery.Order, told *result.Recovered) error {
		if told != nil {
			return errors.Join(d.again(std, *told), recovery.PrepareNothing(order))
		}
		return recovery.Prepare(ctx, order)
	})
}
