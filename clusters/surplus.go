package clusters

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
)

// identities are the objects of the cluster that there are to be, and those that there are no
// longer to be.
func (c *cluster) identities() []objects.Identity {
	list := objects.Identities(&c.target.cluster)
	if c.surplus() != nil {
		list = append(list, c.names.Policy())
	}
	return list
}

// surplus is the NetworkPolicy that Quorate made, if git declares none any more. One of somebody
// else under that name is theirs, whatever its labels are.
func (c *cluster) surplus() metav1.Object {
	id := c.names.Policy()
	policy := c.own.objects[id.Kind+"/"+id.Name]
	if policy == nil || c.target.cluster.Spec.NetworkPolicy != nil || !kube.Applied(policy) {
		return nil
	}
	if owner := metav1.GetControllerOf(policy); owner == nil || owner.Kind != v1alpha1.Kind || owner.Name != c.target.cluster.Name {
		return nil
	}
	return policy
}

func (c *cluster) compareSurplus() {
	if c.surplus() != nil && c.target.cluster.Spec.Lifecycle != v1alpha1.LifecycleDeleted {
		c.drift(c.names.Policy().Kind+"/"+c.names.NetworkPolicy, "not declared")
	}
}

// deleteSurplus deletes what is not declared any more, and says what that was; empty if nothing
// was.
func (c *cluster) deleteSurplus(ctx context.Context) (string, error) {
	policy := c.surplus()
	if policy == nil {
		return "", nil
	}
	outcome, err := c.delete(ctx, c.names.Policy(), string(policy.GetUID()))
	if err != nil || !outcome.Changed {
		return "", err
	}
	return outcome.Detail, nil
}
