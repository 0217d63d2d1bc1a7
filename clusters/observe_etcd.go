package clusters

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/podstate"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// foundingPatience bounds asking etcd before the cluster has formed: a member takes connections
// before it has found the others, and answers none of them until then.
const foundingPatience = 500 * time.Millisecond

// askEtcd asks the members that can be reached.
func (c *cluster) askEtcd(ctx context.Context) {
	pods := c.reachable()
	if len(pods) == 0 {
		c.state.Membership = decide.Membership{Why: "no member's pod runs"}
		return
	}
	tls := c.clientTLS()
	if tls == nil && c.target.Cluster.Spec.TLS.Mode == v1alpha1.TLSManaged {
		c.state.Membership = decide.Membership{Why: c.whyNoClient()}
		return
	}
	if !c.state.Formed() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, foundingPatience,
			fmt.Errorf("no answer within %s", foundingPatience))
		defer cancel()
	}
	answer := c.ask(ctx, pods, tls)
	c.state.Membership = answer.Membership
	if !answer.Membership.Known {
		c.state.Membership.Forbidden = c.rightMissing()
	}
	for i := range c.state.Replicas {
		r := &c.state.Replicas[i]
		r.ClusterID = answer.ClusterIDs[c.state.ReplicaName(r.Ordinal)]
	}
}

// ask asks etcd in those pods for its membership.
func (c *cluster) ask(ctx context.Context, pods []etcd.Pod, tls *etcd.TLS) etcd.Answer {
	return c.live.etcd.Observe(ctx, c.etcd(pods, tls))
}

// askAgain asks etcd for its membership of this moment, for an action that relies on it.
func (c *cluster) askAgain(ctx context.Context) etcd.Answer {
	return c.ask(ctx, c.reachable(), c.clientTLS())
}

// askPatiently is the same for an action that goes by the silence of a member: that a moment ago it did not answer in
// all its time is no reason to give it less now.
func (c *cluster) askPatiently(ctx context.Context) etcd.Answer {
	in := c.etcd(c.reachable(), c.clientTLS())
	in.Patient = true
	return c.live.etcd.Observe(ctx, in)
}

// etcd says how to reach etcd in those pods.
func (c *cluster) etcd(pods []etcd.Pod, tls *etcd.TLS) etcd.Cluster {
	from := 0
	if c.state.Record.Uncompared {
		from = c.state.Declared.Replicas
	}
	return etcd.Cluster{
		CompareFrom: from,
		Namespace:   c.target.Cluster.Namespace, Name: c.target.Cluster.Name,
		Pods: pods, TLS: tls, Dial: c.dialer(),
		CompareData: slices.ContainsFunc(c.state.Replicas, func(r decide.Replica) bool { return r.PodStoppedByCheck }),
	}
}

// reachable lists the pods whose etcd is worth asking: all that run. Which of them hold members
// that are gone is what the record says.
func (c *cluster) reachable() []etcd.Pod {
	var pods []etcd.Pod
	for _, pod := range c.own.Pods {
		ordinal, ours := c.state.Ordinal(pod.Name)
		if !ours || pod.Status.PodIP == "" || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		phase, _ := podstate.Phase(pod)
		gone := slices.ContainsFunc(c.state.Record.Removed,
			func(m decide.RemovedMember) bool { return m.Ordinal == ordinal })
		pods = append(pods, etcd.Pod{Name: pod.Name, UID: string(pod.UID), IP: pod.Status.PodIP,
			Unready: phase != decide.PodReady, Gone: gone})
	}
	return pods
}

// clientTLS is what a client needs; nil where the cluster runs in the clear, or its Secret is gone.
// As long as there is none of Quorate's own, as before it had one, that of applications does.
func (c *cluster) clientTLS() *etcd.TLS {
	secret := inventory.Get[*corev1.Secret](c.own, "Secret", c.names.OwnSecret)
	if secret == nil {
		secret = inventory.Get[*corev1.Secret](c.own, "Secret", c.names.ClientSecret)
	}
	if secret == nil {
		return nil
	}
	return &etcd.TLS{
		CA:   secret.Data[corev1.ServiceAccountRootCAKey],
		Cert: secret.Data[corev1.TLSCertKey],
		Key:  secret.Data[corev1.TLSPrivateKeyKey],
		Now:  c.clock,
	}
}

// clock tells the time by which certificates are valid or not: the API server's, or this machine's while that
// is not known.
func (c *cluster) clock() time.Time {
	if now, err := c.kube().Now(); err == nil {
		return now
	}
	return time.Now()
}
