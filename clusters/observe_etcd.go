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

// foundingPatience is the timeout for requests to etcd before the cluster has formed. Until a member reaches the
// others, it accepts connections but does not respond.
const foundingPatience = 500 * time.Millisecond

// askEtcd asks the reachable members.
func (c *cluster) askEtcd(ctx context.Context) {
	c.askSource(ctx)
	pods := c.asked()
	if len(pods) == 0 {
		c.state.Membership = decide.Membership{Why: "no member pod is running"}
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
			fmt.Errorf("no response within %s", foundingPatience))
		defer cancel()
	}
	in := c.etcd(pods, tls)
	in.CompareHealthy = c.state.Formed() && c.state.ComparisonDue() && len(c.state.Record.Guests) == 0 &&
		c.live.mayCompare(c.target.Key())
	answer := c.observeEtcd(ctx, in)
	c.state.Membership = answer.Membership
	if answer.Membership.Compared() && !c.state.InDoubt() {
		c.live.noteComparison(c.target.Key())
	}
	if !answer.Membership.Known {
		c.state.Membership.Forbidden = c.rightMissing()
	}
	for i := range c.state.Replicas {
		r := &c.state.Replicas[i]
		r.ClusterID = answer.ClusterIDs[c.state.ReplicaName(r.Ordinal)]
	}
}

// comparisonPause is the minimum time between two comparisons of a cluster's data by one process, unless members differ.
const comparisonPause = 30 * time.Minute

func (l *Live) mayCompare(key inventory.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, compared := l.compared[key]
	return !compared || time.Since(at) >= comparisonPause
}

func (l *Live) noteComparison(key inventory.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.compared[key] = time.Now()
}

// ask asks etcd in the given pods for its membership.
func (c *cluster) ask(ctx context.Context, pods []etcd.Pod, tls *etcd.TLS) etcd.Answer {
	return c.observeEtcd(ctx, c.etcd(pods, tls))
}

func (c *cluster) observeEtcd(ctx context.Context, in etcd.Cluster) etcd.Answer {
	answer := c.live.etcd.Observe(ctx, in)
	answer.Membership = c.withoutEvidence(answer.Membership)
	return answer
}

// askAgain asks etcd for its current membership just before an action relies on it.
func (c *cluster) askAgain(ctx context.Context) etcd.Answer {
	return c.ask(ctx, c.asked(), c.clientTLS())
}

// askPatiently is like askAgain, but for an action that relies on a member not responding. It gives the full timeout
// even to a member that has already timed out.
func (c *cluster) askPatiently(ctx context.Context) etcd.Answer {
	in := c.etcd(c.asked(), c.clientTLS())
	in.Patient = true
	return c.observeEtcd(ctx, in)
}

// etcd returns the description of the etcd cluster in the given pods.
func (c *cluster) etcd(pods []etcd.Pod, tls *etcd.TLS) etcd.Cluster {
	from := 0
	if c.state.Record.Uncompared {
		from = c.state.Declared.Replicas
	}
	var voters []string
	for _, m := range c.state.RecordedVoters() {
		voters = append(voters, c.state.ReplicaName(m.Ordinal))
	}
	in := etcd.Cluster{
		Voters: voters, Confirmed: c.state.ConfirmedMembers(),
		CompareFrom: from,
		Namespace:   c.target.Cluster.Namespace, Name: c.target.Cluster.Name,
		Pods: pods, TLS: tls, Dial: c.dialer(),
		CompareData: c.state.InDoubt() ||
			slices.ContainsFunc(c.state.Replicas, func(r decide.Replica) bool { return r.PodStoppedByCheck }),
	}
	if adopts := c.state.Declared.Adoption.ClusterID; adopts != 0 || len(c.state.Record.Guests) > 0 {
		in.Guests, in.Foreign, in.Adopted = c.state.RecordedGuests(), c.isForeign, adopts
		in.Known = c.state.Record.Guests
		for _, m := range c.state.Record.Members {
			in.Replicas = append(in.Replicas, m.ID)
		}
	}
	return in
}

// reachable lists the pods whose etcd can be asked, which are all running pods. It marks a pod as gone if the removal
// of its member is recorded.
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

// clientTLS returns Quorate's TLS client configuration, or nil if the cluster runs without TLS or the Secret is
// missing. Until Quorate's own Secret exists, the applications' Secret is used. Until a cluster with TLS has taken over
// the CA of the cluster to adopt, a certificate issued from that CA is used.
func (c *cluster) clientTLS() *etcd.TLS {
	if own := c.adopted.Own; !own.IsZero() {
		return &etcd.TLS{CA: c.adopted.CA.Certificate, Cert: own.Certificate, Key: own.Key, Now: c.clock}
	}
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

// clock returns the current time for checking certificates: the API server's time or, if that is unknown, this
// machine's time.
func (c *cluster) clock() time.Time {
	if now, err := c.kube().Now(); err == nil {
		return now
	}
	return time.Now()
}
