package manifests

import (
	"encoding/json"

	"quorate.dev/quorate/clusters/policy"
	"quorate.dev/quorate/clusters/schema"
	"quorate.dev/quorate/clusters/v1alpha1"
)

// checkPolicy reports settings that the policy does not allow. It skips fields that cannot be decoded, and backups
// without a store, because they have already been reported.
func (d *declaration) checkPolicy(p policy.Policy, defaulted map[string]any) {
	if schema.CheckQuantities(defaulted) != nil {
		return // already reported; decoding invalid quantities can take minutes
	}
	declared, _ := defaulted["spec"].(map[string]any)
	var spec v1alpha1.EtcdClusterSpec
	for name, value := range declared {
		with := spec
		if text, err := json.Marshal(map[string]any{name: value}); err == nil && json.Unmarshal(text, &with) == nil {
			spec = with
		}
	}
	if spec.Backup != nil && isNoStore(spec.Backup.To) {
		spec.Backup = nil
	}
	if spec.Restore != nil && !spec.Restore.From.Copies() && isNoStore(spec.Restore.From.BackupDestination) {
		spec.Restore = nil
	}
	if spec.Recovery != nil && spec.Recovery.Backup != nil && isNoStore(spec.Recovery.Backup.From) {
		spec.Recovery = nil
	}
	for _, refused := range p.Refusals(spec) {
		d.problem(refused.Path, "%s", refused.Message)
	}
}

// isNoStore reports whether a destination does not name a store of any kind.
func isNoStore(d v1alpha1.BackupDestination) bool {
	return d == v1alpha1.BackupDestination{SecretName: d.SecretName, ServiceAccountName: d.ServiceAccountName}
}
