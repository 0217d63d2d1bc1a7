package manifests

import (
	"encoding/json"
	"maps"

	"quorate.dev/quorate/clusters/policy"
	"quorate.dev/quorate/clusters/v1alpha1"
)

// checkPolicy refuses what the object may not ask for, beside all else that is wrong with it. What is
// no image, no pod or no place for backups is told as such already.
func (d *declaration) checkPolicy(p policy.Policy, defaulted map[string]any) {
	declared, _ := defaulted["spec"].(map[string]any)
	asked := map[string]any{"image": declared["image"]}
	if backup, ok := declared["backup"].(map[string]any); ok && backup["to"] != nil {
		asked["backup"] = map[string]any{"to": backup["to"]}
	}
	if restore, ok := declared["restore"].(map[string]any); ok && restore["from"] != nil {
		asked["restore"] = map[string]any{"from": restore["from"]}
	}
	if recovery, ok := declared["recovery"].(map[string]any); ok {
		if backup, ok := recovery["backup"].(map[string]any); ok && backup["from"] != nil {
			asked["recovery"] = map[string]any{"backup": map[string]any{"from": backup["from"]}}
		}
	}
	if pod, ok := declared["pod"].(map[string]any); ok {
		pod = maps.Clone(pod)
		delete(pod, "resources") // which no policy is about, and whose quantities are not checked yet
		asked["pod"] = pod
	}
	var spec v1alpha1.EtcdClusterSpec
	text, err := json.Marshal(asked)
	if err != nil || json.Unmarshal(text, &spec) != nil {
		return
	}
	if spec.Backup != nil && spec.Backup.To.Location() == "" {
		spec.Backup = nil
	}
	if spec.Restore != nil && spec.Restore.From.Location() == "" {
		spec.Restore = nil
	}
	if spec.Recovery != nil && spec.Recovery.Backup.From.Location() == "" {
		spec.Recovery = nil
	}
	for _, refused := range p.Refusals(spec) {
		d.problem(refused.Path, "%s", refused.Message)
	}
}
