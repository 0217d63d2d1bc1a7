package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"quorate.dev/quorate/internal/etcdversion"
)

// EnableDowngrade makes etcd prepare its data for the next lower minor version, such as 3.6. It succeeds if
// etcd is already doing so, or already runs that version.
func (c *Clients) EnableDowngrade(ctx context.Context, cluster Cluster, version string) error {
	return c.change(ctx, cluster, "enable the downgrade to "+version, func(leader reply) error {
		if leader.downgrade() == version || minor(leader.status.Version) == version {
			return nil
		}
		for _, step := range []clientv3.DowngradeAction{clientv3.DowngradeValidate, clientv3.DowngradeEnable} {
			err := c.requestOnce(ctx, func(ctx context.Context) error {
				_, err := leader.client.Downgrade(ctx, step, version)
				return err
			})
			if err != nil {
				return leader.explain(err, version)
			}
		}
		return nil
	})
}

// explain adds the details that etcd omits when it rejects a downgrade. After a downgrade is canceled, etcd's cluster
// version remains the lower version for some seconds, and during that time etcd rejects another downgrade to it.
func (r reply) explain(err error, version string) error {
	switch {
	case errors.Is(err, rpctypes.ErrDowngradeInProcess) && r.downgrade() != "":
		return fmt.Errorf("%w, to %s", err, r.downgrade())
	case errors.Is(err, rpctypes.ErrInvalidDowngradeTargetVersion) && r.downgrade() == "" &&
		minor(r.status.StorageVersion) == version:
		return NotYet{fmt.Errorf("the previous downgrade is still being canceled: %w", err)}
	default:
		return err
	}
}

// CancelDowngrade cancels a downgrade, if one is in progress. etcd 3.6 and newer report success even if they did not
// cancel it.
func (c *Clients) CancelDowngrade(ctx context.Context, cluster Cluster) error {
	return c.change(ctx, cluster, "cancel the downgrade", func(leader reply) error {
		err := c.requestOnce(ctx, func(ctx context.Context) error {
			_, err := leader.client.Downgrade(ctx, clientv3.DowngradeCancel, "")
			return unless(err, rpctypes.ErrNoInflightDowngrade)
		})
		if err != nil || leader.downgrade() == "" {
			return err
		}
		ctx, cancel := c.deadline(ctx)
		defer cancel()
		status, err := leader.client.Status(ctx, "")
		if err != nil {
			return fmt.Errorf("check whether the downgrade is canceled: %w", shortError{cause(ctx, err)})
		}
		if target := (reply{status: status}).downgrade(); target != "" {
			return NotYet{fmt.Errorf("etcd is still preparing for %s", target)}
		}
		return nil
	})
}

// downgrade returns the minor version that the member is preparing to downgrade to. It is empty if no downgrade is in
// progress, or if the member is older than 3.6 and does not report it.
func (r reply) downgrade() string {
	if info := r.status.DowngradeInfo; info != nil && info.Enabled {
		return minor(info.TargetVersion)
	}
	return ""
}

// minor returns the MAJOR.MINOR part of a version. It returns other text unchanged, so that the result does not equal
// any minor version.
func minor(version string) string {
	m, err := etcdversion.ParseMajorMinor(version)
	if err != nil {
		return version
	}
	return m.String()
}
