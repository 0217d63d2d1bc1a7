package objects

import (
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// TestNetworkPolicyIsChecked checks that a NetworkPolicy that Kubernetes would reject is reported as a problem with the
// declaration. Otherwise, Kubernetes would reject it in every pass, and nothing else could be applied.
func TestNetworkPolicyIsChecked(t *testing.T) {
	labels := func(key string) map[string]v1alpha1.PodLabelValue { return map[string]v1alpha1.PodLabelValue{key: "x"} }
	for _, test := range []struct {
		peer v1alpha1.NetworkPeer
		want string
	}{
		{v1alpha1.NetworkPeer{CIDR: "192.0.2.0/24"}, ""},
		{v1alpha1.NetworkPeer{CIDR: "2001:db8::/32"}, ""},
		{v1alpha1.NetworkPeer{Pods: labels("example.com/app"), Namespaces: labels("kubernetes.io/metadata.name")}, ""},
		{v1alpha1.NetworkPeer{CIDR: "192.0.2.5/24"}, `spec.networkPolicy.clients[0].cidr: "192.0.2.5/24" has bits set beyond the prefix length: write 192.0.2.0/24`},
		{v1alpha1.NetworkPeer{CIDR: "2001:db8::1/32"}, "write 2001:db8::/32"},
		{v1alpha1.NetworkPeer{CIDR: "1:2:3:4:5:6:7::/64"}, "write 1:2:3:4::/64"},
		{v1alpha1.NetworkPeer{CIDR: "192.0.2.0"}, "must be an address range"},
		{v1alpha1.NetworkPeer{Pods: labels("a..b/x")}, "spec.networkPolicy.clients[0].pods"},
		{v1alpha1.NetworkPeer{Namespaces: labels("a.-b/x")}, "spec.networkPolicy.clients[0].namespaces"},
	} {
		got := strings.Join(checkNetworkPolicy(&v1alpha1.NetworkPolicySpec{Clients: []v1alpha1.NetworkPeer{test.peer}}), "\n")
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%+v: %q, want %q", test.peer, got, test.want)
		}
	}
}
