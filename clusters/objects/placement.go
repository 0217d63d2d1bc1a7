package objects

import (
	corev1 "k8s.io/api/core/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// placement sets the fields that determine where the pods may run.
func placement(c *v1alpha1.EtcdCluster, spec *applycorev1.PodSpecApplyConfiguration) error {
	pod := c.Spec.Pod
	var err error
	if pod.Affinity != nil {
		if spec.Affinity, err = convert[*applycorev1.AffinityApplyConfiguration](pod.Affinity); err != nil {
			return err
		}
	}
	if len(pod.Tolerations) > 0 {
		if spec.Tolerations, err = convert[[]applycorev1.TolerationApplyConfiguration](pod.Tolerations); err != nil {
			return err
		}
	}
	if len(pod.NodeSelector) > 0 {
		spec.WithNodeSelector(pod.NodeSelector)
	}
	if pod.PriorityClassName != "" {
		spec.WithPriorityClassName(pod.PriorityClassName)
	}
	spec.TopologySpreadConstraints, err = spreadConstraints(c)
	return err
}

func spreadConstraints(c *v1alpha1.EtcdCluster) ([]applycorev1.TopologySpreadConstraintApplyConfiguration, error) {
	own := applymetav1.LabelSelector().WithMatchLabels(Selector(c.Name))
	declared := c.Spec.Pod.TopologySpreadConstraints
	if len(declared) == 0 {
		spread := func(key string) applycorev1.TopologySpreadConstraintApplyConfiguration {
			return *applycorev1.TopologySpreadConstraint().
				WithMaxSkew(1).
				WithTopologyKey(key).
				WithWhenUnsatisfiable(corev1.ScheduleAnyway).
				WithLabelSelector(own)
		}
		return []applycorev1.TopologySpreadConstraintApplyConfiguration{spread(corev1.LabelTopologyZone),
			spread(corev1.LabelHostname)}, nil
	}
	list, err := convert[[]applycorev1.TopologySpreadConstraintApplyConfiguration](declared)
	for i := range list {
		if list[i].LabelSelector == nil {
			list[i].LabelSelector = own
		}
	}
	return list, err
}
