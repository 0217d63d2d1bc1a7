package objects

import (
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

// configMap holds the record, and one configuration file per recorded member.
func configMap(in Input) (*applycorev1.ConfigMapApplyConfiguration, error) {
	c := in.Cluster
	record, err := EncodeRecord(in.Record)
	if err != nil {
		return nil, err
	}
	data := map[string]string{RecordKey: record}
	for _, m := range in.Record.Members {
		if data[ConfigKey(c.Name, m.Ordinal)], err = memberConfig(in, m); err != nil {
			return nil, err
		}
	}
	return applycorev1.ConfigMap(NamesOf(c.Name).ConfigMap, c.Namespace).
		WithLabels(Labels(c.Name)).
		WithOwnerReferences(owner(c)).
		WithData(data), nil
}
