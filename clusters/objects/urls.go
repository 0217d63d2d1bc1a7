package objects

import (
	"fmt"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// Host returns the DNS name of the member with the given ordinal. The name ends in svc and omits the Kubernetes cluster
// domain, which every pod's search path adds (hard case H8).
func Host(c *v1alpha1.EtcdCluster, ordinal int) string {
	return PodName(c.Name, ordinal) + "." + serviceHost(c, NamesOf(c.Name).Service)
}

// PeerURL returns the URL at which other members reach the member with the given ordinal.
func PeerURL(c *v1alpha1.EtcdCluster, ordinal int) string {
	return fmt.Sprintf("%s://%s:%d", scheme(c), Host(c, ordinal), PeerPort)
}

// ClientURL returns the URL at which clients reach the member with the given ordinal.
func ClientURL(c *v1alpha1.EtcdCluster, ordinal int) string {
	return fmt.Sprintf("%s://%s:%d", scheme(c), Host(c, ordinal), ClientPort)
}

// Endpoints returns the client URLs of the recorded members, by ascending ordinal.
func Endpoints(c *v1alpha1.EtcdCluster, r decide.Record) []string {
	var urls []string
	for _, m := range r.Members {
		urls = append(urls, ClientURL(c, m.Ordinal))
	}
	return urls
}

func serviceHost(c *v1alpha1.EtcdCluster, service string) string {
	return fmt.Sprintf("%s.%s.svc", service, c.Namespace)
}

func scheme(c *v1alpha1.EtcdCluster) string {
	if secure(c) {
		return "https"
	}
	return "http"
}
