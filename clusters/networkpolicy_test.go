package clusters

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/reconcile/decide"
)

// TestNetworkPolicy turns the NetworkPolicy of a cluster on and off on a real API server. It checks that the
// NetworkPolicy is created, corrected, and deleted once git no longer declares it, and that an unmanaged NetworkPolicy
// is never changed.
func TestNetworkPolicy(t *testing.T) {
	s := running(t)
	policies := s.server.Client.NetworkingV1().NetworkPolicies("default")
	theirs := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if _, err := policies.Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	plain, with := s.spec, s.spec+", networkPolicy: {clients: [{pods: {app: web}}], metrics: [{cidr: 192.0.2.0/24}]}"
	s.settled(s.observe()) // an unmanaged policy does not matter while git does not declare a policy
	s.spec = with
	s.do(s.observe(), decide.Declare{}, true)
	s.decided("ForeignObjects", "NetworkPolicy a")
	if err := policies.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	c := s.decided("ApplyObjects", "NetworkPolicy a: missing")
	s.do(c, decide.ApplyObjects{}, true)
	s.settled(s.observe())
	patch := []byte(`{"spec":{"ingress":[{}]}}`) // allows all traffic
	if _, err := policies.Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c = s.decided("ApplyObjects", "NetworkPolicy a: changed at spec.ingress")
	s.do(c, decide.ApplyObjects{}, true)
	made, err := policies.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || len(made.Spec.Ingress) != 3 || len(made.Spec.Ingress[1].From) != 2 {
		t.Fatalf("%+v, %v", made, err)
	}

	s.spec = plain
	s.do(s.observe(), decide.Declare{}, true)
	late := s.decided("ApplyObjects", "NetworkPolicy a: not declared")
	s.do(late, decide.ApplyObjects{}, true)
	s.settled(s.observe())
	if _, err := policies.Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatalf("the NetworkPolicy still exists: %v", err)
	}
	s.do(late, decide.ApplyObjects{}, false)
	if _, err := policies.Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Errorf("a late pass has deleted an unmanaged object: %v", err)
	}
}
