package clusters

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/reconcile/decide"
)

// askSource asks the cluster to adopt for its members while nothing is recorded and no replica exists. If it can be
// adopted, askSource also asks for the members' hashes.
func (c *cluster) askSource(ctx context.Context) {
	order := c.state.Declared.Adoption
	if !c.state.BeginsAdoption() || order.Abandon ||
		c.state.Declared.Lifecycle != decide.Running {
		return
	}
	if c.state.Source = c.askEndpoints(ctx, false); c.state.MayAdopt() {
		c.state.Source = c.askEndpoints(ctx, true)
	}
}

// askEndpoints asks all endpoints of the cluster to adopt, if requested also for hashes. They must belong to one
// cluster.
func (c *cluster) askEndpoints(ctx context.Context, hashes bool) decide.Membership {
	endpoints := c.endpoints()
	if len(endpoints) == 0 {
		return decide.Membership{}
	}
	in := c.etcd(endpoints, nil)
	in.CompareData, in.Adopted = hashes, 0
	answer := c.live.etcd.Observe(ctx, in)
	var ids []string
	for _, id := range answer.ClusterIDs {
		ids = append(ids, id.String())
	}
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) > 1 {
		return decide.Membership{Why: "the endpoints in spec.adopt belong to several clusters: " +
			decide.Enumerate(ids)}
	}
	return answer.Membership
}

// recorded reports whether a record with members or guests exists.
func (c *cluster) recorded() bool {
	return len(c.state.Record.Members) > 0 || len(c.state.Record.Guests) > 0
}

// hasReplicas reports whether a slot has a pod or a volume.
func (c *cluster) hasReplicas() bool {
	return slices.ContainsFunc(c.state.Replicas, func(r decide.Replica) bool {
		return r.VolumeUID != "" || r.Pod != decide.PodAbsent
	})
}

// asked lists what to ask about the members: the running pods and, while the members may include guests, the endpoints
// of the adopted cluster.
func (c *cluster) asked() []etcd.Pod {
	if !c.mayHaveGuests() {
		return c.reachable()
	}
	return append(c.reachable(), c.endpoints()...)
}

// mayHaveGuests reports whether the members of the cluster to adopt may be members of this cluster. If the record or a
// part of it is lost, they may.
func (c *cluster) mayHaveGuests() bool {
	r, adopts := c.state.Record, c.state.Declared.Adoption.ClusterID
	switch known := cmp.Or(r.ClusterID, c.state.ReportedClusterID); {
	case adopts == 0 || known != 0 && known != adopts:
		return false
	case r.Adopted != 0:
		return len(r.Guests) > 0
	case r.MayFound() || r.Restoring():
		return false
	}
	return c.recorded() || c.hasReplicas()
}

// withoutEvidence returns the membership as unknown if only the declaration shows that this cluster adopted the one
// that returned it: the record does not, and etcd does not list a replica. It may list the members of a cluster that
// never had anything to do with this one.
func (c *cluster) withoutEvidence(m decide.Membership) decide.Membership {
	isOurs := func(m decide.Member) bool { return !c.isForeign(m) }
	if len(c.state.Record.Guests) > 0 || !c.mayHaveGuests() || lists(m, isOurs) || len(m.Members) == 0 {
		return m
	}
	return decide.Membership{Why: fmt.Sprintf("cluster %s does not list a replica", m.ClusterID)}
}

// endpoints lists the declared endpoints of the cluster to adopt.
func (c *cluster) endpoints() []etcd.Pod {
	var list []etcd.Pod
	for _, url := range c.state.Declared.Adoption.Endpoints {
		_, address, _ := strings.Cut(url, "://")
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			continue // the declaration is invalid, so nothing is changed
		}
		list = append(list, etcd.Pod{Name: address, UID: address, Host: host, Endpoint: true})
	}
	return list
}

// isForeign reports whether a member is not a replica.
func (c *cluster) isForeign(m decide.Member) bool {
	_, ours := c.state.OrdinalOf(m)
	return !ours
}

// dialEndpoint connects to an endpoint of the adopted cluster, on the declared port. Outside the Kubernetes cluster, it
// reaches the pods in the cluster's namespace through the API server.
func (c *cluster) dialEndpoint(ctx context.Context, address string) (net.Conn, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("port %q: %w", text, err)
	}
	namespace := c.target.Cluster.Namespace
	if pod := podAt(host, namespace); pod != "" && c.live.options.PortForward {
		conn, err := c.kube().PortForward(ctx, namespace, pod, int(port))
		c.noteRefusal(err)
		return conn, err
	}
	dialer := net.Dialer{}
	if net.ParseIP(host) == nil {
		dialer.Control = refuseLocal
	}
	return dialer.DialContext(ctx, "tcp", address)
}

// podAt returns the name of the pod with the given DNS name, POD.SERVICE.NAMESPACE.svc, or "" if the host is not a pod
// in the namespace.
func podAt(host, namespace string) string {
	labels := strings.Split(strings.TrimSuffix(host, ".cluster.local"), ".")
	if len(labels) != 4 || labels[0] == "" || labels[2] != namespace || labels[3] != "svc" {
		return ""
	}
	return labels[0]
}

// refuseLocal rejects a connection to this machine or its link. The policy allows names, and whoever controls a name in
// DNS could make it lead there. An address that the declaration states itself is not a name.
func refuseLocal(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	host, _, _ = strings.Cut(host, "%")
	ip := net.ParseIP(host)
	if ip == nil || ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast() {
		return fmt.Errorf("its name resolves to %s, which is local to this machine; declare the address if it is "+
			"correct", host)
	}
	return nil
}
