package clusters

import (
	"testing"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/reconcile/decide"
)

// restartsNothing fails the test if the given spec requires different pods.
func (s *stage) restartsNothing(spec string) {
	s.Helper()
	s.spec = spec
	c := s.observe()
	if c.state.WantsOtherPods() {
		s.Errorf("%s: the spec requires pod hash %s, but new pods have %s", spec, c.state.Declared.SpecHash, c.state.Objects.RunsHash)
	}
	for _, r := range c.state.Replicas {
		if r.PodSpecHash != c.state.Declared.SpecHash {
			s.Errorf("%s: the spec requires pod hash %s, but a-%d has %s", spec, c.state.Declared.SpecHash, r.Ordinal, r.PodSpecHash)
		}
	}
	for _, a := range []decide.Action{decide.Declare{}, decide.ApplyObjects{}} { // either may have nothing to do
		if _, err := s.observe().Do(s.Context(), a); err != nil {
			s.Fatalf("%s: %v", a, err)
		}
	}
	if again := s.observe(); again.runs() != c.runs() {
		s.Errorf("%s: new pods have hash %s, no longer %s", spec, again.runs(), c.runs())
	}
	s.settled(s.observe())
}

// TestRespelledSpecDoesNotRestartPods checks that a declaration in a different notation does not restart pods, whether
// they were created before or after declarations were normalized. A declaration with a different meaning does restart
// them.
func TestRespelledSpecDoesNotRestartPods(t *testing.T) {
	s := newStage(t)
	spellings := []string{
		`version: 3.6.16, storage: {size: 1073741824}, etcd: {autoCompaction: {mode: Periodic, retention: 60m}, electionTimeout: 2000ms}, ` +
			`pod: {affinity: {podAffinity: {}}, resources: {limits: {memory: 1073741824, cpu: "0.5"}, requests: {memory: 1024Mi}}, tolerations: []}`,
		`version: 3.6.16, storage: {size: 1Gi}, etcd: {autoCompaction: {mode: Periodic, retention: 3600s}, electionTimeout: 2s, options: {}}, ` +
			`pod: {affinity: {podAntiAffinity: {}, nodeAffinity: {}}, resources: {limits: {memory: 1Gi, cpu: 500m}, requests: {cpu: "0.5"}}}`,
		`version: 3.6.16, storage: {size: 1024Mi}, etcd: {autoCompaction: {mode: Periodic, retention: 1h}, electionTimeout: 1s1000ms}, ` +
			`pod: {affinity: {}, resources: {limits: {memory: 1Gi, cpu: 500m}, requests: {memory: 1Gi, cpu: 500m}}, nodeSelector: {}}`,
	}
	s.spec = spellings[0]
	before := s.observe()
	// These objects look like those created before normalization, with the original notation and a hash of it.
	before.buildable = before.target.Cluster.DeepCopy()
	before.buildable.UID, before.state.Declared.SpecHash = "none", "before"
	s.do(before, decide.Bootstrap{Replicas: 3}, true)
	if runs := s.set().Spec.Template.Annotations[objects.AnnotationSpecHash]; runs != "before" {
		t.Fatalf("the pods have hash %s", runs)
	}
	s.form()
	s.makePods()
	for _, spec := range append(spellings, spellings[0]) {
		s.restartsNothing(spec)
	}

	s.spec = spellings[0] + ", networkPolicy: {clients: [{pods: {app: web}}]}"
	s.restartsNothing(s.spec)
	s.spec = `version: 3.6.16, storage: {size: 1Gi}, etcd: {autoCompaction: {mode: Periodic, retention: 61m}}`
	c := s.observe()
	declared := objects.DeclaredTemplate(&c.target.Cluster)
	if !c.state.WantsOtherPods() || c.state.Declared.SpecHash != declared.SpecHash {
		t.Errorf("the spec requires pod hash %s, not %s", c.state.Declared.SpecHash, declared)
	}
	s.do(c, decide.Declare{}, true)
	s.do(s.observe(), decide.StartRollout{Version: declared.Version, SpecHash: declared.SpecHash}, true)
	s.spec = `version: 3.6.16, storage: {size: 1Gi}, etcd: {autoCompaction: {mode: Periodic, retention: 1h1m}, heartbeatInterval: 100ms}`
	if c := s.observe(); c.state.WantsOtherPods() || c.runs() != declared {
		t.Errorf("the spec requires pod hash %s, but new pods have %s", c.state.Declared.SpecHash, c.runs())
	}
}
