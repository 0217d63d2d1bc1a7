package objects

import (
	"bytes"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// RunsDeclared reports whether pods with the template in.Runs match the spec although their hash differs, because the
// hash was computed from the same values in a different notation. It compares Quorate's fields of the live StatefulSet,
// and the live files. A missing field or file counts as a difference.
func RunsDeclared(in Input, owned any) (bool, error) {
	set, ok := owned.(*applyappsv1.StatefulSetApplyConfiguration)
	if !ok || set == nil || set.Spec == nil || set.Spec.Template == nil || in.Runs.Version != in.Cluster.Spec.Version {
		return false, nil
	}
	live, err := convert[*applycorev1.PodTemplateSpecApplyConfiguration](set.Spec.Template)
	if err == nil && live.Spec != nil {
		err = normalizeLive(live.Spec)
	}
	if err != nil {
		return false, err
	}
	want, err := podTemplate(in.Cluster, in.Runs)
	if err != nil {
		return false, err
	}
	differences, err := Differences(want, live)
	if err != nil || len(differences) > 0 {
		return false, err
	}
	return filesAgree(in)
}

// normalizeLive normalizes a live pod spec in the same way that Normalize normalizes a declaration.
func normalizeLive(spec *applycorev1.PodSpecApplyConfiguration) error {
	affinity, err := convert[*v1alpha1.Affinity](spec.Affinity)
	if err != nil {
		return err
	}
	if spec.Affinity, err = convert[*applycorev1.AffinityApplyConfiguration](normalAffinity(affinity)); err != nil {
		return err
	}
	for i := range spec.Tolerations {
		withoutDefault(&spec.Tolerations[i].Operator, corev1.TolerationOpEqual)
	}
	for i := range spec.TopologySpreadConstraints {
		c := &spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != nil && *c.WhenUnsatisfiable == corev1.DoNotSchedule {
			withoutDefault(&c.MinDomains, 1)
		}
		withoutDefault(&c.NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor)
		withoutDefault(&c.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore)
	}
	for i := range spec.Containers {
		resources := spec.Containers[i].Resources
		if resources == nil {
			continue
		}
		normal := v1alpha1.ResourceRequirements{
			Limits: quantities(resources.Limits), Requests: quantities(resources.Requests)}
		normalizeResources(&normal)
		resources.Limits, resources.Requests = resourceList(normal.Limits), resourceList(normal.Requests)
	}
	return nil
}

func quantities(list *corev1.ResourceList) map[string]resource.Quantity {
	if list == nil {
		return nil
	}
	byName := map[string]resource.Quantity{}
	for name, quantity := range *list {
		byName[string(name)] = quantity
	}
	return byName
}

// filesAgree reports whether the live files of the template in.Runs match the spec.
func filesAgree(in Input) (bool, error) {
	live := liveOptions(in, in.Runs)
	if live == nil {
		return false, nil
	}
	delete(live, "max-learners") // the same in all files of a cluster
	if retention, is := live["auto-compaction-retention"].(string); is {
		mode := v1alpha1.CompactionRevision
		if live["auto-compaction-mode"] == "periodic" {
			mode = v1alpha1.CompactionPeriodic
		}
		live["auto-compaction-retention"] = normalRetention(mode, retention)
	}
	declared, err := declaredOptions(in)
	if err != nil {
		return false, fmt.Errorf("compare the files of the members: %w", err)
	}
	liveText, err := toJSON(live)
	if err != nil {
		return false, err
	}
	declaredText, err := toJSON(declared)
	return bytes.Equal(liveText, declaredText), err
}
