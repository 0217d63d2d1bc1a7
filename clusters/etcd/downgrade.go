package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"quorate.dev/quorate/etcdversion"
)

// EnableDowngrade has etcd prepare its data for the minor version below its own, such as 3.6. It is
// enough if it is doing that, or runs that version.
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

// explain says what etcd's refusal of a downgrade leaves out. After a downgrade was taken back,
// etcd's cluster version is the lower one for some seconds more, and nothing can be downgraded to
// it.
func (r reply) explain(err error, version string) error {
	switch {
	case errors.Is(err, rpctypes.ErrDowngradeInProcess) && r.downgrade() != "":
		return fmt.Errorf("%w, to %s", err, r.downgrade())
	case errors.Is(err, rpctypes.ErrInvalidDowngradeTargetVersion) && r.downgrade() == "" &&
		minor(r.status.StorageVersion) == version:
		return NotYet{fmt.Errorf("the last one is still being taken back: %w", err)}
	default:
		return err
	}
}

// CancelDowngrade takes a downgrade back, if one is under way. etcd 3.6 and newer say that they
// have done it even if they have not.
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
			return fmt.Errorf("ask whether it is done: %w", told{cause(ctx, err)})
		}
		if target := (reply{status: status}).downgrade(); target != "" {
			return NotYet{fmt.Errorf("etcd still prepares for %s", target)}
		}
		return nil
	})
}

// downgrade returns the minor version that the member prepares a downgrade to; empty if it does
// not, or is older than 3.6 and does not say.
func (r reply) downgrade() string {
	if info := r.status.DowngradeInfo; info != nil && info.Enabled {
		return minor(info.TargetVersion)
	}
	return ""
}

// minor returns MAJOR.MINOR of a version; the text as it is where it is none, so that it is taken
// for no other.
func minor(version string) string {
	m, err := etcdversion.ParseMajorMinor(version)
	if err != nil {
		return version
	}
	return m.String()
}
