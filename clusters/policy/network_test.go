package policy

import (
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// TestNetworkPeers checks that a bound source may allow access to its members only from its own namespaces and from the
// peers that a setting allows.
func TestNetworkPeers(t *testing.T) {
	cidr := func(text string) v1alpha1.NetworkPeer { return v1alpha1.NetworkPeer{CIDR: text} }
	namespaces := func(labels ...string) v1alpha1.NetworkPeer {
		peer := v1alpha1.NetworkPeer{Namespaces: map[string]v1alpha1.PodLabelValue{}}
		for _, label := range labels {
			key, value, _ := strings.Cut(label, "=")
			peer.Namespaces[key] = v1alpha1.PodLabelValue(value)
		}
		return peer
	}
	const name = "kubernetes.io/metadata.name="
	for _, test := range []struct {
		patterns string
		peer     v1alpha1.NetworkPeer
		want     string
	}{
		{"", v1alpha1.NetworkPeer{Pods: map[string]v1alpha1.PodLabelValue{"app": "api"}}, "allowed"},
		{"", namespaces(name + "shop"), "allowed"},
		{"", namespaces(name+"shop", "a=b"), "allowed"},
		{"", namespaces(name + "bank"), "refused"},
		{"", namespaces("team=shop"), "refused"},
		{"", cidr("192.0.2.0/24"), "refused"},
		{name + "monitoring", namespaces(name + "monitoring"), "allowed"},
		{name + "monitoring", namespaces(name + "bank"), "refused"},
		{name + "monitoring", namespaces("a=b", name+"monitoring"), "allowed"}, // selects only some pods of monitoring
		{"team", namespaces("team=bank"), "allowed"},
		{"team=shop", cidr("192.0.2.0/24"), "refused"},
		{"192.0.2.0/24", cidr("192.0.2.0/24"), "allowed"},
		{"192.0.2.0/24", cidr("192.0.2.128/25"), "allowed"},
		{"192.0.2.0/24", cidr("192.0.2.7/24"), "allowed"}, // the same range as the pattern
		{"192.0.2.0/24", cidr("192.0.0.0/16"), "refused"},
		{"192.0.2.0/24", cidr("0.0.0.0/0"), "refused"},
		{"0.0.0.0/0", cidr("::/0"), "refused"},
		{"0.0.0.0/0;::/0", cidr("::/0"), "allowed"},
		{"::/0", cidr("::ffff:c000:200/120"), "allowed"},
		{"192.0.2.0/24", cidr("::ffff:c000:200/120"), "refused"},
		{"192.0.2.0/24", cidr("192.0.2.0/024"), "refused"},
		{"**", cidr("0.0.0.0/0"), "allowed"},
		{"**", namespaces("a=b"), "allowed"},
	} {
		p := limited(t, NetworkPeers, test.patterns).Within([]string{"shop"})
		p.Images = Allowed{}
		for _, policy := range []v1alpha1.NetworkPolicySpec{{Clients: []v1alpha1.NetworkPeer{test.peer}}, {Metrics: []v1alpha1.NetworkPeer{test.peer}}} {
			spec := v1alpha1.EtcdClusterSpec{NetworkPolicy: &policy}
			if got := p.Problems(spec); (test.want == "allowed") != (len(got) == 0) {
				t.Errorf("%q of %+v: %q, want it %s", test.patterns, test.peer, got, test.want)
			}
			if got := (Policy{}).Problems(spec); len(got) > 0 {
				t.Errorf("a source that is not bound: %q", got)
			}
		}
	}
}
