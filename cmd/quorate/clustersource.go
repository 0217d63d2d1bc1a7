package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quorate.dev/quorate/clusters/backup/store"
	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/clusters/kube"
)

// clusterSource is a cluster to back up or compare, with its current time and a function that releases it.
type clusterSource struct {
	etcd.Source
	now time.Time
	end func()
}

// clusterSourceOf finds the cluster's members through Kubernetes, or uses the members given by flags. With Kubernetes,
// the time is the API server's, because retention compares the times of all backups, wherever they were taken.
func clusterSourceOf(
	ctx context.Context, of store.Cluster, in *liveFlags, members *memberFlags,
) (clusterSource, error) {
	if len(members.members) > 0 {
		cluster, err := members.cluster(of)
		if err != nil {
			return clusterSource{}, err
		}
		clients := &etcd.Clients{Timeout: in.etcdTimeout}
		return clusterSource{clients.Source(cluster), time.Now(), clients.Close}, nil
	}
	if err := members.checkNone(); err != nil {
		return clusterSource{}, err
	}
	live, err := in.live(scope{namespaces: []string{of.Namespace}})
	if err != nil {
		return clusterSource{}, without(err, "list the members with --member, which does not require access to "+
			"Kubernetes")
	}
	end := func() { live.Close(ctx) } // live does not hold a lease
	found, err := live.Source(ctx, of.Namespace, of.Name)
	if err != nil {
		end()
		return clusterSource{}, err
	}
	now, err := live.Clock(ctx, of.Namespace)
	if err != nil {
		end()
		return clusterSource{}, err
	}
	return clusterSource{found, now, end}, nil
}

// without extends the error for a missing kubeconfig with an alternative.
func without(err error, instead string) error {
	if errors.Is(err, kube.ErrNoKubeconfig) {
		return fmt.Errorf("%w; or %s", err, instead)
	}
	return err
}
