package clusters

import (
	"errors"
	"testing"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// TestReadOnlyRunDoesNotAct checks that a read-only run does not act, regardless of the decision.
func TestReadOnlyRunDoesNotAct(t *testing.T) {
	c := &cluster{live: New(nil, Options{Reading: true}), names: objects.NamesOf("a"), own: &inventory.Cluster{}}
	for _, action := range []decide.Action{decide.ApplyObjects{}, decide.Bootstrap{Replicas: 3}, decide.RenewCertificates{}} {
		if outcome, err := c.Do(t.Context(), action); !errors.Is(err, errReading) || outcome.Changed {
			t.Errorf("%s: %+v, %v", action, outcome, err)
		}
	}
}

// TestNoSecretsWithoutTLS checks that Secrets are not required without TLS: nothing is requested, and nothing is
// reported as unseen.
func TestNoSecretsWithoutTLS(t *testing.T) {
	c := &cluster{live: New(nil, Options{Reading: true}), names: objects.NamesOf("a"), own: &inventory.Cluster{}, hidden: errors.New("forbidden")}
	c.target.Cluster.Spec.TLS.Mode = v1alpha1.TLSDisabled
	if err := c.findOwnSecret(t.Context()); err != nil || len(c.state.Unseen) > 0 {
		t.Errorf("%q, %v", c.state.Unseen, err)
	}
}
