package objects

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworkingv1 "k8s.io/client-go/applyconfigurations/networking/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// OwnLabels returns the labels by which network policies recognize passes that run in Kubernetes. deploy/base sets
// these labels on its namespace and pods; without them, a policy would block Quorate.
func OwnLabels() map[string]string { return map[string]string{"app.kubernetes.io/name": "quorate"} }

// networkPolicy returns the NetworkPolicy that admits members to the peer port, the declared peers to the client and
// metrics ports, and Quorate and the cluster's backup pods to the client port. It does not restrict egress, because
// members use DNS, which may run anywhere. Kubernetes always admits the kubelet of the pod's node, so probes and
// port-forwards do not require a rule.
func networkPolicy(c *v1alpha1.EtcdCluster) *applynetworkingv1.NetworkPolicyApplyConfiguration {
	declared := c.Spec.NetworkPolicy
	members := applynetworkingv1.NetworkPolicyPeer().
		WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(Selector(c.Name)))
	quorate := applynetworkingv1.NetworkPolicyPeer().
		WithNamespaceSelector(applymetav1.LabelSelector().WithMatchLabels(OwnLabels())).
		WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(OwnLabels()))
	clients := []*applynetworkingv1.NetworkPolicyPeerApplyConfiguration{quorate}
	if c.Spec.Backup != nil {
		clients = append(clients, applynetworkingv1.NetworkPolicyPeer().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(BackupSelector(c.Name))))
	}
	rules := []*applynetworkingv1.NetworkPolicyIngressRuleApplyConfiguration{
		ingress(PeerPort, members),
		ingress(ClientPort, append(clients, networkPeers(declared.Clients)...)...),
	}
	// A rule without peers would admit all traffic.
	if len(declared.Metrics) > 0 {
		rules = append(rules, ingress(MetricsPort, networkPeers(declared.Metrics)...))
	}
	return applynetworkingv1.NetworkPolicy(NamesOf(c.Name).NetworkPolicy, c.Namespace).
		WithLabels(Labels(c.Name)).
		WithOwnerReferences(owner(c)).
		WithSpec(applynetworkingv1.NetworkPolicySpec().
			WithPodSelector(applymetav1.LabelSelector().WithMatchLabels(Selector(c.Name))).
			WithPolicyTypes(networkingv1.PolicyTypeIngress).
			WithIngress(rules...))
}

func ingress(
	port int32, from ...*applynetworkingv1.NetworkPolicyPeerApplyConfiguration,
) *applynetworkingv1.NetworkPolicyIngressRuleApplyConfiguration {
	return applynetworkingv1.NetworkPolicyIngressRule().
		WithPorts(applynetworkingv1.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).
			WithPort(intstr.FromInt32(port))).
		WithFrom(from...)
}

func networkPeers(declared []v1alpha1.NetworkPeer) []*applynetworkingv1.NetworkPolicyPeerApplyConfiguration {
	var peers []*applynetworkingv1.NetworkPolicyPeerApplyConfiguration
	for _, d := range declared {
		peer := applynetworkingv1.NetworkPolicyPeer()
		if len(d.Pods) > 0 {
			peer.WithPodSelector(selecting(d.Pods))
		}
		if len(d.Namespaces) > 0 {
			peer.WithNamespaceSelector(selecting(d.Namespaces))
		}
		if d.CIDR != "" {
			peer.WithIPBlock(applynetworkingv1.IPBlock().WithCIDR(d.CIDR))
		}
		peers = append(peers, peer)
	}
	return peers
}

func selecting(labels map[string]v1alpha1.PodLabelValue) *applymetav1.LabelSelectorApplyConfiguration {
	return applymetav1.LabelSelector().WithMatchLabels(plain(labels))
}

// plain returns a copy of the map whose values have type string.
func plain[V ~string](entries map[string]V) map[string]string {
	list := map[string]string{}
	for key, value := range entries {
		list[key] = string(value)
	}
	return list
}

// checkNetworkPolicy returns the values that Kubernetes would reject in a NetworkPolicy although the EtcdCluster
// definition allows them.
func checkNetworkPolicy(declared *v1alpha1.NetworkPolicySpec) []string {
	if declared == nil {
		return nil
	}
	return append(checkPeers("clients", declared.Clients), checkPeers("metrics", declared.Metrics)...)
}

func checkPeers(list string, declared []v1alpha1.NetworkPeer) (problems []string) {
	for i, d := range declared {
		at := field.NewPath("spec", "networkPolicy", list).Index(i)
		for _, err := range append(metavalidation.ValidateLabels(plain(d.Pods), at.Child("pods")),
			metavalidation.ValidateLabels(plain(d.Namespaces), at.Child("namespaces"))...) {
			problems = append(problems, err.Error())
		}
		if d.CIDR == "" {
			continue
		}
		switch prefix, err := netip.ParsePrefix(d.CIDR); {
		case err != nil:
			problems = append(problems, fmt.Sprintf("%s: must be an address range such as 192.0.2.0/24, not %q",
				at.Child("cidr"), d.CIDR))
		case prefix != prefix.Masked():
			problems = append(problems, fmt.Sprintf("%s: %q has bits set beyond the prefix length: write %s",
				at.Child("cidr"), d.CIDR, prefix.Masked()))
		}
	}
	return problems
}
