package layout

import (
	"net/netip"
	"testing"
)

func TestAddressesAreApart(t *testing.T) {
	all, services := netip.MustParsePrefix(PodCIDR), netip.MustParsePrefix(ServiceCIDR)
	if all.Overlaps(services) {
		t.Errorf("pods %s and services %s overlap", all, services)
	}
	if !services.Contains(netip.MustParseAddr(APIServerService)) {
		t.Errorf("%s is not in %s", APIServerService, services)
	}
	seen := map[netip.Addr]bool{netip.MustParseAddr(ControlPlane): true}
	var ranges []netip.Prefix
	for n := Node(1); n <= MaxNodes; n++ {
		address, pods := netip.MustParseAddr(n.Address()), netip.MustParsePrefix(n.PodCIDR())
		if seen[address] || !all.Contains(address) {
			t.Errorf("%s: address %s is taken or outside %s", n.Name(), address, all)
		}
		seen[address] = true
		for other := range seen {
			if pods.Contains(other) {
				t.Errorf("%s: a pod could have the address %s", n.Name(), other)
			}
		}
		for _, other := range ranges {
			if pods.Overlaps(other) {
				t.Errorf("%s: its pods %s overlap with %s", n.Name(), pods, other)
			}
		}
		ranges = append(ranges, pods)
	}
}
