package clusters

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
)

// findObjects looks up by name the objects that were not listed as this cluster's: what is there all the same is its own without
// its labels, or somebody else's. When nothing is amiss there is nothing to look up.
func (c *cluster) findObjects(ctx context.Context) error {
	var unlisted []objects.Identity
	for _, id := range objects.Identities(&c.target.cluster) {
		if c.own.objects[id.Kind+"/"+id.Name] == nil {
			unlisted = append(unlisted, id)
		}
	}
	found, err := c.look(ctx, unlisted)
	if err != nil {
		return err
	}
	for i, object := range found {
		switch {
		case object == nil:
		case c.made(object):
			c.own.objects[unlisted[i].Kind+"/"+unlisted[i].Name] = object
		default:
			c.foreign(unlisted[i])
		}
	}
	return nil
}

// findClaims looks up by name the volume claims that the members would take, and that were not listed.
func (c *cluster) findClaims(ctx context.Context) error {
	var unlisted []objects.Identity
	for ordinal := range max(c.state.Record.Replicas(), c.state.Declared.Replicas) {
		if c.state.Replica(ordinal).VolumeUID == "" {
			unlisted = append(unlisted, objects.Identity{Kind: "PersistentVolumeClaim", Name: objects.VolumeClaimName(c.target.cluster.Name, ordinal)})
		}
	}
	found, err := c.look(ctx, unlisted)
	if err != nil {
		return err
	}
	for i, object := range found {
		// One with the label was made since the claims were listed; the next pass sees it.
		if object != nil && objects.ClusterOf(object.GetLabels()) != c.target.cluster.Name {
			c.foreign(unlisted[i])
		}
	}
	return nil
}

func (c *cluster) foreign(id objects.Identity) {
	c.state.Objects.Foreign = append(c.state.Objects.Foreign, fmt.Sprintf("%s is there and was not made by Quorate for this cluster", id))
}

// look reads objects by name, nil for those that are not there.
func (c *cluster) look(ctx context.Context, ids []objects.Identity) ([]metav1.Object, error) {
	found := make([]metav1.Object, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	for i, id := range ids {
		group.Go(func() (err error) {
			found[i], err = c.live.kube.Look(ctx, id.Kind, c.target.cluster.Namespace, id.Name)
			return err
		})
	}
	return found, group.Wait()
}

// made reports whether an object was made by Quorate for this cluster, whatever its labels say now.
func (c *cluster) made(object metav1.Object) bool {
	if label := objects.ClusterOf(object.GetLabels()); label != "" && label != c.target.cluster.Name {
		return false
	}
	if owner := metav1.GetControllerOf(object); owner != nil && (owner.Kind != v1alpha1.Kind || owner.Name != c.target.cluster.Name) {
		return false
	}
	return kube.Applied(object)
}
