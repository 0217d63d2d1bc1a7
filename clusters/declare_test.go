package clusters

import (
	"testing"

	"quorate.dev/quorate/reconcile/decide"
)

// TestEmptyMapsAreApplied checks that a map that has become empty in git is treated as omitted. If an empty map were
// applied over an owner's last entries, the API server would turn the map into null and reject it.
func TestEmptyMapsAreApplied(t *testing.T) {
	s := newStage(t)
	s.spec = "version: 3.6.16"
	s.do(s.observe(), decide.Bootstrap{Replicas: 3}, true)
	for before, after := range map[string]string{
		"pod: {nodeSelector: {a: b}}":                "pod: {nodeSelector: {}}",
		"pod: {labels: {a: b}, annotations: {a: b}}": "pod: {labels: {}, annotations: {}}",
		"pod: {tolerations: [{key: a}]}":             "pod: {tolerations: []}",
		"etcd: {options: {max-wals: '7'}}":           "etcd: {options: {}}",
		"pod: {resources: {limits: {cpu: 1}}}":       "pod: {resources: {limits: {}}}",
		"pod: {resources: {requests: {cpu: 1}}}":     "pod: {resources: {}}",
		"pod: {affinity: {podAffinity: {}}}":         "pod: {affinity: {}}",
		"pod: {affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: x}}]}}}": "pod: {affinity: {podAntiAffinity: {}}}",
		"image: {digests: {3.6.16: 'sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'}}":                                   "image: {digests: {}}",
	} {
		for _, spec := range []string{before, after} {
			s.spec = "version: 3.6.16, " + spec
			s.do(s.observe(), decide.Declare{}, true)
			if drift := s.observe().target.Drift(s.observe().own.Custom); drift != "" {
				t.Errorf("%s: %s", spec, drift)
			}
		}
	}
}
