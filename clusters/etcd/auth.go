package etcd

import (
	"context"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// AuthEnabled returns whether authentication is on. If it is on, the common name in a client's certificate is the
// client's user. Before 3.7, etcd returns this information only to the root user.
func (c *Clients) AuthEnabled(ctx context.Context, cluster Cluster) (enabled bool, err error) {
	err = c.change(ctx, cluster, "check whether authentication is enabled", func(leader reply) error {
		ctx, cancel := c.deadline(ctx)
		defer cancel()
		answer, err := leader.client.auth.AuthStatus(clientv3.WithRequireLeader(ctx), &etcdserverpb.AuthStatusRequest{})
		if err != nil {
			return shortError{cause(ctx, err)}
		}
		enabled = answer.Enabled
		return nil
	})
	return enabled, err
}
