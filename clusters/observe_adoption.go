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

	corev1 "k8s.io/api/core/v1"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/reconcile/decide"
)

// askSource queries the member list of the cluster to adopt while nothing is recorded and no replica exists. If that
// cluster can be adopted, askSource also requests hashes of the members' data.
func (c *cluster) askSource(ctx context.Context) {
	if !c.state.BeginsAdoption() || c.state.Declared.Adoption.Abandon || c.state.Declared.Lifecycle != decide.Running {
		return
	}
	if !c.checked() {
		c.state.Source.Why = "it is queried only if git declares the cluster, and its spec is valid and allowed"
		return
	}
	if c.state.Source = c.askEndpoints(ctx, false); c.state.MayAdopt() {
		c.state.Source = c.askEndpoints(ctx, true)
	}
}

// askEndpoints returns what the endpoints of the cluster to adopt report, including hashes if requested. All endpoints
// must belong to one cluster.
func (c *cluster) askEndpoints(ctx context.Context, hashes bool) decide.Membership {
	endpoints := c.endpoints()
	if len(endpoints) == 0 || c.caRefused != "" {
		return decide.Membership{Why: c.caRefused}
	}
	in := c.etcd(endpoints, c.clientTLS())
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

// hasReplicas reports whether a slot has a pod or a volume.
func (c *cluster) hasReplicas() bool {
	return slices.ContainsFunc(c.state.Replicas, func(r decide.Replica) bool {
		return r.VolumeUID != "" || r.Pod != decide.PodAbsent
	})
}

// asked returns where to query the members: at the running pods and, while the members may include guests, at the
// endpoints of the adopted cluster.
func (c *cluster) asked() []etcd.Pod {
	if !c.mayHaveGuests() {
		return c.reachable()
	}
	return append(c.reachable(), c.endpoints()...)
}

// mayAsk reports whether an endpoint may be asked. The policy must allow it. If no policy was applied to the spec,
// because only the custom resource names the endpoint, it must be a pod in the cluster's namespace.
func (c *cluster) mayAsk(host string) bool {
	pod, _ := podAt(host, c.target.Cluster.Namespace)
	return c.checked() || pod != ""
}

// checked reports whether git declares the cluster, and its spec is valid and allowed by the policy.
func (c *cluster) checked() bool {
	return !c.target.Unchecked && c.target.Orphaned == "" && len(c.target.Problems) == 0
}

// mayHaveGuests reports whether members of the cluster to adopt may be members of this cluster, which is also possible
// if the record is lost or incomplete.
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
	return !c.state.Record.Empty() || c.hasReplicas()
}

// withoutEvidence returns m, or an unknown membership if the declaration is the only evidence that this cluster adopted
// the cluster that returned m: no guests are recorded, and m does not list a replica. It may then be the membership of
// an unrelated cluster.
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
		if err != nil || !c.mayAsk(host) {
			continue // the declaration is invalid or not allowed, so nothing is changed
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

// dialEndpoint connects to an endpoint of the adopted cluster, on the declared port. Pods in the cluster's namespace
// are found by name, and reached through the API server from outside the Kubernetes cluster.
func (c *cluster) dialEndpoint(ctx context.Context, address string) (net.Conn, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("port %q: %w", text, err)
	}
	if pod, service := podAt(host, c.target.Cluster.Namespace); pod != "" {
		return c.dialForeignPod(ctx, pod, service, int(port))
	}
	dialer := net.Dialer{}
	if net.ParseIP(host) == nil {
		dialer.Control = refuseLocal
	}
	return dialer.DialContext(ctx, "tcp", address)
}

// dialForeignPod connects to a pod of the cluster's namespace that another tool created. As in DNS, the pod must belong
// to the headless Service.
func (c *cluster) dialForeignPod(ctx context.Context, name, service string, port int) (net.Conn, error) {
	namespace := c.target.Cluster.Namespace
	object, err := c.kube().Look(ctx, "Pod", namespace, name)
	if err != nil {
		return nil, err
	}
	pod, is := object.(*corev1.Pod)
	if !is || pod.Spec.Subdomain != service || pod.Spec.Hostname != "" && pod.Spec.Hostname != name {
		return nil, fmt.Errorf("namespace %s has no pod %s of Service %s", namespace, name, service)
	}
	if c.live.options.PortForward {
		conn, err := c.kube().PortForward(ctx, namespace, name, port)
		c.noteRefusal(err)
		return conn, err
	}
	return kube.Direct(ctx, pod.Status.PodIP, port)
}

// podAt returns the pod and the Service in a DNS name, POD.SERVICE.NAMESPACE.svc, or "" if the host is not such a name
// in the namespace.
func podAt(host, namespace string) (pod, service string) {
	labels := strings.Split(strings.TrimSuffix(host, ".cluster.local"), ".")
	if len(labels) != 4 || labels[0] == "" || labels[2] != namespace || labels[3] != "svc" {
		return "", ""
	}
	return labels[0], labels[1]
}

// refuseLocal rejects connections to local and link-local addresses. The policy allows names, and anyone who controls a
// name in DNS could point it at such an address. Addresses in the declaration itself are not checked here.
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
