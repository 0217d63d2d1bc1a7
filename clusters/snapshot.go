package clusters

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
)

// ErrNoCluster is returned for a cluster without a custom resource.
var ErrNoCluster = errors.New("EtcdCluster not found")

// Source finds a cluster and returns an etcd.Source for its members. It is read-only.
func (l *Live) Source(ctx context.Context, namespace, name string) (etcd.Source, error) {
	observed, err := l.Observe(ctx, reconcile.Desired{Live: true, Unread: reconcile.ErrNotAsked}, nil)
	if err != nil {
		return etcd.Source{}, err
	}
	for _, found := range observed.Clusters {
		if c, is := found.(*cluster); is && c.target.Key() == (inventory.Key{Namespace: namespace, Name: name}) {
			return c.source(ctx)
		}
	}
	return etcd.Source{}, errors.Join(fmt.Errorf("%s/%s: %w", namespace, name, ErrNoCluster), observed.Unlisted)
}

// Clock requests the time from the API server of a namespace.
func (l *Live) Clock(ctx context.Context, namespace string) (time.Time, error) {
	return l.at(namespace).Clock(ctx)
}

func (c *cluster) source(ctx context.Context) (etcd.Source, error) {
	if _, err := c.State(ctx); err != nil {
		return etcd.Source{}, err
	}
	pods, tls := c.asked(), c.clientTLS()
	switch {
	case len(pods) == 0:
		return etcd.Source{}, fmt.Errorf("%s: no member pod is running", c.target.Key())
	case tls == nil && c.target.Cluster.Spec.TLS.Mode == v1alpha1.TLSManaged:
		return etcd.Source{}, fmt.Errorf("%s: %s", c.target.Key(), c.whyNoClient())
	}
	return c.live.etcd.Source(c.etcd(pods, tls)), nil
}
