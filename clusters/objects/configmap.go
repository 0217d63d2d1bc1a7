package objects

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

// configMap returns the ConfigMap with the record and the configuration files of the recorded members.
func configMap(in Input) (*applycorev1.ConfigMapApplyConfiguration, error) {
	c := in.Cluster
	record, err := EncodeRecord(in.Record)
	if err != nil {
		return nil, err
	}
	data, err := memberFiles(in)
	if err != nil {
		return nil, err
	}
	data[RecordKey] = record
	return applycorev1.ConfigMap(NamesOf(c.Name).ConfigMap, c.Namespace).
		WithLabels(Labels(c.Name)).
		WithOwnerReferences(owner(c)).
		WithData(data), nil
}

// UnwantedKeys returns, in order, the keys of a live ConfigMap that should not exist. Apply keeps these keys because
// another field manager owns them, such as the tool that restored the ConfigMap. They must be removed, because a member
// starts with any file that exists. For other kinds, UnwantedKeys returns nil.
func UnwantedKeys(wanted Object, live metav1.Object) []string {
	want, ok := wanted.Apply.(*applycorev1.ConfigMapApplyConfiguration)
	found, isConfigMap := live.(*corev1.ConfigMap)
	if !ok || !isConfigMap {
		return nil
	}
	unwanted := slices.Collect(maps.Keys(found.BinaryData))
	for key := range found.Data {
		if _, wanted := want.Data[key]; !wanted {
			unwanted = append(unwanted, key)
		}
	}
	slices.Sort(unwanted)
	return unwanted
}
