package objects

import (
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

// configMap holds the record and the configuration files of the recorded members.
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
