package policy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// labelNamespace is the label that Kubernetes sets on each namespace to the namespace's name.
const labelNamespace = "kubernetes.io/metadata.name"

// checkPeer checks the pattern for a network peer: an address range or a namespace label.
func checkPeer(pattern string) error {
	address, _, _ := strings.Cut(pattern, "/")
	_, noAddress := netip.ParseAddr(address)
	if noAddress != nil {
		return entryOf(pattern).checkLabel()
	}
	addresses, err := netip.ParsePrefix(pattern)
	if err != nil || addresses != addresses.Masked() {
		return fmt.Errorf("%q is not an address range such as 10.0.0.0/8, in which all bits after the prefix are zero",
			pattern)
	}
	return nil
}

// networkPeers refuses peers that are not allowed. Pods in the cluster's own namespace, and in the namespaces to which
// the source is bound, are always allowed.
func (r *refusals) networkPeers(p Policy, spec v1alpha1.EtcdClusterSpec) {
	if spec.NetworkPolicy == nil {
		return
	}
	for i, peer := range spec.NetworkPolicy.Clients {
		r.networkPeer(p, fmt.Sprintf("spec.networkPolicy.clients[%d]", i), peer)
	}
	for i, peer := range spec.NetworkPolicy.Metrics {
		r.networkPeer(p, fmt.Sprintf("spec.networkPolicy.metrics[%d]", i), peer)
	}
}

func (r *refusals) networkPeer(p Policy, path string, peer v1alpha1.NetworkPeer) {
	a := p.NetworkPeers
	if peer.CIDR != "" && !a.allows(func(pattern string) bool { return contains(pattern, peer.CIDR) }) {
		r.refuse(path+".cidr", quoted(peer.CIDR), NetworkPeers, a)
	}
	if len(peer.Namespaces) == 0 {
		return
	}
	if own := string(peer.Namespaces[labelNamespace]); p.bound() && slices.Contains(p.Namespaces, own) {
		return
	}
	var asked []string
	for _, key := range slices.Sorted(maps.Keys(peer.Namespaces)) {
		value := string(peer.Namespaces[key])
		if a.allowsEntry(key, value) { // a namespace must have all of the labels, so one allowed label is sufficient
			return
		}
		asked = append(asked, key+"="+value)
	}
	r.refuse(path+".namespaces", quoted(strings.Join(asked, ",")), NetworkPeers, a)
}

// contains reports whether a pattern is an address range that contains the whole CIDR.
func contains(pattern, cidr string) bool {
	allowed, err := netip.ParsePrefix(pattern)
	if err != nil {
		return false
	}
	asked, err := netip.ParsePrefix(cidr)
	return err == nil && allowed.Bits() <= asked.Bits() && allowed.Contains(asked.Addr())
}
