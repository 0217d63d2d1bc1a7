package objects

import (
	"k8s.io/apimachinery/pkg/util/intstr"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applypolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// disruptionBudget returns the PodDisruptionBudget that prevents evictions of members that are needed for quorum.
// Numbers that are unknown do not lower the budget.
func disruptionBudget(in Input) *applypolicyv1.PodDisruptionBudgetApplyConfiguration {
	c := in.Cluster
	needed := decide.MinAvailable(in.Voters, in.Guests, in.Learners, len(in.Record.Members), replicas(c))
	return applypolicyv1.PodDisruptionBudget(NamesOf(c.Name).PodDisruptionBudget, c.Namespace).
		WithLabels(Labels(c.Name)).
		WithOwnerReferences(owner(c)).
		WithSpec(applypolicyv1.PodDisruptionBudgetSpec().
			WithMinAvailable(intstr.FromInt(max(needed, in.MinAvailable))).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(Selector(c.Name))))
}

// replicas returns the declared number of members.
func replicas(c *v1alpha1.EtcdCluster) int {
	if c.Spec.Replicas == nil {
		return 0
	}
	return int(*c.Spec.Replicas)
}
