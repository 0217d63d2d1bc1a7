package objects

import (
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// AdoptedCA returns the name of the Secret with the CA of the cluster to adopt, or "".
func AdoptedCA(c *v1alpha1.EtcdCluster) string {
	if c.Spec.Adopt == nil {
		return ""
	}
	return c.Spec.Adopt.CASecretName
}

// AdoptionOf returns the running etcd cluster that a declaration adopts, or zero.
func AdoptionOf(c *v1alpha1.EtcdCluster) decide.AdoptionOrder {
	adopt := c.Spec.Adopt
	order := decide.AdoptionOrder{PeerURL: PeerURL(c, 0)}
	if adopt == nil || order.ClusterID.UnmarshalText([]byte(adopt.ClusterID)) != nil || order.ClusterID == 0 {
		return decide.AdoptionOrder{PeerURL: order.PeerURL} // checked when the declaration is read
	}
	for _, url := range adopt.Endpoints {
		order.Endpoints = append(order.Endpoints, string(url))
	}
	for _, text := range adopt.Release {
		var id decide.ID
		if id.UnmarshalText([]byte(text)) == nil {
			order.Release = append(order.Release, id)
		}
	}
	order.Abandon = adopt.Abandon
	return order
}
