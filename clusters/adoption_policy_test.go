package clusters

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/policy"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
)

// observed returns the cluster of a target after its etcd was asked.
func (l *life) observed(t targets.Target) *cluster {
	c := &cluster{live: l.old, target: t, names: objects.NamesOf("a"), own: &inventory.Cluster{Pods: l.pods, Claims: l.claims}}
	c.lease = &leaseHold{live: l.old, lease: leaseOf(l.old.holder.String(), time.Now())}
	c.state = decide.State{Name: "a", Record: l.record, Replicas: c.replicas(), Declared: c.declared()}
	c.askEtcd(l.Context())
	return c
}

// custom returns a custom resource that adopts the cluster at the endpoints.
func (l *life) custom() v1alpha1.EtcdCluster {
	three := int32(3)
	var e v1alpha1.EtcdCluster
	e.Name, e.Namespace = "a", "default"
	e.Spec = v1alpha1.EtcdClusterSpec{Version: "3.6.16", Replicas: &three, Lifecycle: v1alpha1.LifecycleRunning}
	e.Spec.TLS.Mode = v1alpha1.TLSDisabled
	e.Spec.Adopt = &v1alpha1.AdoptionSpec{ClusterID: "c1"}
	for _, u := range l.adopts.Endpoints {
		e.Spec.Adopt.Endpoints = append(e.Spec.Adopt.Endpoints, v1alpha1.EtcdEndpoint(u))
	}
	return e
}

// TestRefusedEndpointsAreNotAsked checks that an endpoint that the policy does not allow is not contacted.
func TestRefusedEndpointsAreNotAsked(t *testing.T) {
	l := newAdoption(t)
	d := reconcile.Declaration{Cluster: l.custom(), Applied: map[string]any{}, Source: "s"}
	desired := reconcile.Desired{Revision: "r", Clusters: []reconcile.Declaration{d},
		Sources: []reconcile.SourceState{{Name: "s", Revision: "r", Refuses: policy.Policy{}.Problems}}}
	list, _ := targets.Of(desired, inventory.ByCluster{})
	if len(list) != 1 || !strings.Contains(strings.Join(list[0].Problems, ";"), "spec.adopt.endpoints[0]") {
		t.Fatalf("not refused: %+v", list)
	}
	c := l.observed(list[0])
	if c.state.Source.Known || l.etcd.hashed.Load() > 0 {
		t.Errorf("%s: %s\nbut the endpoints were asked: cluster %s, %d members, %d hash requests", decide.Decide(c.state).Rule,
			decide.Decide(c.state), c.state.Source.ClusterID, len(c.state.Source.Members), l.etcd.hashed.Load())
	}
}

// TestEndpointsInCustomResourceAreNotAsked checks that an endpoint that only the custom resource names is not contacted,
// because no policy was applied to it.
func TestEndpointsInCustomResourceAreNotAsked(t *testing.T) {
	for what, desired := range map[string]reconcile.Desired{
		"status, backup": {Live: true, Unread: reconcile.ErrNotAsked},
		"orphan":         {Revision: "r", Sources: []reconcile.SourceState{{Name: "s", Revision: "r", Refuses: policy.Policy{}.Problems}}},
	} {
		t.Run(what, func(t *testing.T) {
			l := newAdoption(t)
			e := l.custom()
			e.Labels = objects.Labels("a")
			e.Status.DeclaredSource = "s"
			e.Status.Conditions = nil
			if what == "orphan" {
				e.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionOrphaned, Status: metav1.ConditionTrue, Message: "r no longer declares it"}}
			}
			owned := inventory.ByCluster{}
			owned.At("default", "a").Custom = &e
			list, _ := targets.Of(desired, owned)
			if len(list) != 1 {
				t.Fatalf("%+v", list)
			}
			c := l.observed(list[0])
			if c.state.Source.Known || l.etcd.hashed.Load() > 0 {
				t.Errorf("orphaned %q, problems %q: endpoints asked: %d members, %d hashes; %s", list[0].Orphaned, list[0].Problems, len(c.state.Source.Members), l.etcd.hashed.Load(), decide.Decide(c.state))
			}
		})
	}
}
