package etcd

import (
	"context"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// AuthEnabled reports whether authentication is enabled. If it is, etcd uses the common name in a client's certificate
// as the user name. Before 3.7, etcd returns this information only to the root user.
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
