package objects

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// memberService returns the headless Service that gives each member its DNS name. It also publishes members that are
// not ready, because members must find each other to become ready (hard case H9).
func memberService(c *v1alpha1.EtcdCluster) *applycorev1.ServiceApplyConfiguration {
	return service(c, NamesOf(c.Name).Service, applycorev1.ServiceSpec().
		WithType(corev1.ServiceTypeClusterIP).
		WithClusterIP(corev1.ClusterIPNone).
		WithPublishNotReadyAddresses(true).
		WithSelector(Selector(c.Name)).
		WithPorts(servicePort("peer", PeerPort), servicePort("client", ClientPort),
			servicePort("metrics", MetricsPort)))
}

// clientService returns the Service that routes clients to ready members. The Service stays closed while members may
// still bootstrap the cluster, or until they have been proved to run with the restored data. Once open, it is never
// closed again.
func clientService(in Input) *applycorev1.ServiceApplyConfiguration {
	c := in.Cluster
	spec := applycorev1.ServiceSpec().
		WithType(corev1.ServiceTypeClusterIP).
		WithPorts(servicePort("client", ClientPort))
	if in.Leads || !in.Record.Closed() {
		spec.WithSelector(Selector(c.Name))
	}
	return service(c, NamesOf(c.Name).ClientService, spec)
}

func service(
	c *v1alpha1.EtcdCluster, name string, spec *applycorev1.ServiceSpecApplyConfiguration,
) *applycorev1.ServiceApplyConfiguration {
	return applycorev1.Service(name, c.Namespace).
		WithLabels(Labels(c.Name)).
		WithOwnerReferences(owner(c)).
		WithSpec(spec)
}

func servicePort(name string, port int32) *applycorev1.ServicePortApplyConfiguration {
	return applycorev1.ServicePort().
		WithName(name).
		WithProtocol(corev1.ProtocolTCP).
		WithPort(port).
		WithTargetPort(intstr.FromInt32(port))
}
