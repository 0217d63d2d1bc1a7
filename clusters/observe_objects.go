package clusters

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/panics"
	"quorate.dev/quorate/reconcile/decide"
)

// findObjects looks up by name the cluster's objects that were not listed. If such an object exists, it has lost its
// labels or is unmanaged. Normally, all objects were listed.
func (c *cluster) findObjects(ctx context.Context) error {
	var unlisted []objects.Identity
	for _, id := range objects.Identities(&c.target.Cluster) {
		if c.own.Objects[id.Kind+"/"+id.Name] == nil && !c.hides(id.Kind) {
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
			c.own.Objects[unlisted[i].Kind+"/"+unlisted[i].Name] = object
		default:
			c.foreign(unlisted[i])
		}
	}
	return nil
}

// findSlots looks up by name the members' volume claims and pods that were not listed. They count regardless of their
// labels, so that a volume is not considered lost because a list omits it. Pods are looked up only if they should
// exist.
func (c *cluster) findSlots(ctx context.Context) error {
	var claims, pods []objects.Identity
	for ordinal := range min(max(c.state.Record.Replicas(), c.state.Declared.Replicas), decide.MaxOrdinals) {
		_, recorded := c.state.Record.Member(ordinal)
		if claim := objects.VolumeClaimName(c.state.Name, ordinal); c.own.Claim(claim) == nil {
			claims = append(claims, objects.Identity{Kind: "PersistentVolumeClaim", Name: claim})
		}
		if pod := objects.PodName(c.state.Name, ordinal); recorded && c.state.Declared.Lifecycle == decide.Running &&
			c.own.Pod(pod) == nil {
			pods = append(pods, objects.Identity{Kind: "Pod", Name: pod})
		}
	}
	ids := append(claims, pods...)
	found, err := c.look(ctx, ids)
	if err != nil {
		return err
	}
	for i, object := range found {
		c.foundByName(ids[i], object)
	}
	c.state.Replicas = c.replicas()
	c.readQuotas()
	return nil
}

// foundByName adds a claim or pod that was not listed. If it has Quorate's labels, it was created after the lists were
// read.
func (c *cluster) foundByName(id objects.Identity, object metav1.Object) {
	switch o := object.(type) {
	case *corev1.PersistentVolumeClaim:
		c.own.Claims = append(c.own.Claims, o)
	case *corev1.Pod:
		c.own.Pods = append(c.own.Pods, o)
	default:
		return
	}
	lost := lostLabels(object.GetLabels(), c.target.Cluster.Name)
	switch {
	case lost == "":
	case c.madeForUs(object):
		c.relabelled(id, lost)
	default:
		c.foreign(id)
	}
}

// lostLabels returns the labels that an object lacks among those used to list and sort objects, or "".
func lostLabels(labels map[string]string, cluster string) string {
	var lost []string
	if labels[objects.LabelManagedBy] != objects.ManagedBy {
		lost = append(lost, objects.LabelManagedBy+"="+objects.ManagedBy)
	}
	if objects.ClusterOf(labels) != cluster {
		lost = append(lost, objects.LabelCluster+"="+cluster)
	}
	return strings.Join(lost, " ")
}

// madeForUs reports whether a claim or pod was created for this cluster, regardless of its current labels. A claim must
// be recorded or have a token. A pod must belong to the StatefulSet or have a version annotation.
func (c *cluster) madeForUs(object metav1.Object) bool {
	if _, is := object.(*corev1.Pod); is {
		made := objects.ReadMetadata(object.GetAnnotations())
		owner := metav1.GetControllerOf(object)
		ofOurSet := owner != nil && owner.Kind == "StatefulSet" && owner.Name == c.names.StatefulSet
		return ofOurSet || made.Version != ""
	}
	recorded := slices.ContainsFunc(c.state.Record.Members,
		func(m decide.RecordedMember) bool { return m.VolumeUID == string(object.GetUID()) })
	return recorded || objects.ReadMetadata(object.GetAnnotations()).Token != ""
}

func (c *cluster) relabelled(id objects.Identity, lost string) {
	c.state.Objects.Relabelled = append(c.state.Objects.Relabelled, fmt.Sprintf("%s has lost %s", id, lost))
}

// findLease looks up a lease with the cluster's name if it was not listed, because a lease that is unmanaged can never
// be taken.
func (c *cluster) findLease(ctx context.Context) error {
	if c.own.Lease != nil {
		return nil
	}
	id := objects.Identity{Kind: "Lease", Name: c.target.Cluster.Name}
	lease, err := c.kube().Lease(ctx, c.target.Cluster.Namespace, id.Name)
	if err != nil || lease == nil {
		return err
	}
	lost := lostLabels(lease.Labels, c.target.Cluster.Name)
	owner := metav1.GetControllerOf(lease)
	switch {
	case lost == "":
		// Another pass created the lease after leases were listed, so taking it fails.
	case owner != nil && owner.Kind == v1alpha1.Kind && owner.Name == c.target.Cluster.Name:
		c.relabelled(id, lost)
	default:
		c.foreign(id)
	}
	return nil
}

// foreign records that an object is unmanaged. Members do not depend on the backup objects, so an unmanaged backup
// object stops only backups.
func (c *cluster) foreign(id objects.Identity) {
	message := fmt.Sprintf("%s exists but was not created by Quorate for this cluster", id)
	switch id {
	case c.names.Backups():
		c.state.Backups.Foreign = message
		return
	case c.names.Drills():
		c.state.Backups.DrillForeign = message
		return
	}
	c.state.Objects.Foreign = append(c.state.Objects.Foreign, message)
}

// look reads objects by name. Elements for objects that do not exist are nil.
func (c *cluster) look(ctx context.Context, ids []objects.Identity) ([]metav1.Object, error) {
	found := make([]metav1.Object, len(ids))
	group, ctx := errgroup.WithContext(ctx)
	for i, id := range ids {
		group.Go(func() error {
			return panics.Catch(func() (err error) {
				found[i], err = c.kube().Look(ctx, id.Kind, c.target.Cluster.Namespace, id.Name)
				return err
			})
		})
	}
	return found, group.Wait()
}

// made reports whether Quorate created an object for this cluster, even if it has lost its labels.
func (c *cluster) made(object metav1.Object) bool {
	if label := objects.ClusterOf(object.GetLabels()); label != "" && label != c.target.Cluster.Name {
		return false
	}
	if owner := metav1.GetControllerOf(object); owner != nil &&
		(owner.Kind != v1alpha1.Kind || owner.Name != c.target.Cluster.Name) {
		return false
	}
	return kube.Applied(object)
}
