package clusters

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/clusters/etcd"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// cluster is one observed cluster. It implements reconcile.Cluster.
type cluster struct {
	live   *Live
	target target
	names  objects.Names
	own    *possessions
	state  decide.State
	err    error
	// nodes lists the nodes, once in a pass.
	nodes func() ([]corev1.Node, error)
	// buildable is the declaration as objects can be built from it now.
	buildable *v1alpha1.EtcdCluster
	// certificates that the objects are to hold: those that are there, and new ones for what is missing or worn out.
	certificates objects.Certificates
	// drifted are the objects, as kind/name, that are missing or not as they should be.
	drifted map[string]bool
}

// Identity implements reconcile.Cluster.
func (c *cluster) Identity() (namespace, name string) {
	return c.target.cluster.Namespace, c.target.cluster.Name
}

// State implements reconcile.Cluster.
func (c *cluster) State() (decide.State, error) { return c.state, c.err }

// Warnings implements reconcile.Cluster.
func (c *cluster) Warnings() []string { return c.target.warnings }

// observe gathers the state of one cluster from what was listed and from what etcd says.
func (l *Live) observe(ctx context.Context, t target, own *possessions, nodes func() ([]corev1.Node, error)) *cluster {
	c := &cluster{live: l, target: t, names: objects.NamesOf(t.cluster.Name), own: own, nodes: nodes, drifted: map[string]bool{}}
	c.state = decide.State{
		Name:       t.cluster.Name,
		Now:        time.Now().UTC().Truncate(time.Second),
		Declared:   declared(t),
		Replicas:   c.replicas(),
		LockHolder: l.lockHolder(own.lease, time.Now()),
	}
	if own.custom != nil {
		c.state.ReportedClusterID, c.state.ReportedVersion = reportedClusterID(own.custom), own.custom.Status.Version
	}
	if c.err = c.gather(ctx); c.err != nil {
		c.err = fmt.Errorf("observe %s: %w", t.key(), c.err)
	}
	return c
}

// gather completes the state, each step with what the steps before have found.
func (c *cluster) gather(ctx context.Context) error {
	if err := c.findObjects(ctx); err != nil {
		return err
	}
	c.state.Objects.Terminating, c.state.Objects.Remaining = c.terminating(), c.remaining()
	c.readRecord()
	c.readTemplate()
	if err := c.findClaims(ctx); err != nil {
		return err
	}
	if err := c.findUnbound(ctx); err != nil {
		return err
	}
	c.findStranded(ctx)
	c.askEtcd(ctx)
	c.recallSilence()
	return c.compare()
}

func declared(t target) decide.Declared {
	spec := t.cluster.Spec
	d := decide.Declared{
		Version:   spec.Version,
		Suspended: spec.Suspend,
		Lifecycle: string(spec.Lifecycle),
		SpecHash:  objects.SpecHash(spec),
		Storage:   storageInWords(spec.Storage),
		Retention: string(spec.Storage.Retention),
		Orphaned:  t.orphaned, RenamedFrom: t.renamedFrom,
		Problems: t.problems,
	}
	if spec.ReplaceAfter != nil {
		// It is checked wherever a declaration comes in; what is none replaces nothing.
		d.ReplaceAfter, _ = time.ParseDuration(string(*spec.ReplaceAfter))
	}
	if spec.Replicas != nil {
		d.Replicas = int(*spec.Replicas)
	}
	return d
}

func reportedClusterID(custom *v1alpha1.EtcdCluster) decide.ID {
	id, err := strconv.ParseUint(custom.Status.ClusterID, 16, 64)
	if err != nil {
		return 0
	}
	return decide.ID(id)
}

// readRecord reads what earlier passes wrote down. A record that cannot be read must not be taken for none.
func (c *cluster) readRecord() {
	record, err := c.own.record(c.names)
	if err != nil {
		c.state.Objects.Foreign = append(c.state.Objects.Foreign,
			fmt.Sprintf("ConfigMap %s: its %s cannot be read (%v); delete the key to have it made anew from etcd and the volumes", c.names.ConfigMap, objects.RecordKey, err))
		return
	}
	c.state.Record = record
}

// readTemplate reads what new pods and volumes are made from. The template of the volumes cannot be changed, so the objects are
// built with the one that is there.
func (c *cluster) readTemplate() {
	c.buildable = c.target.cluster.DeepCopy()
	if c.buildable.UID == "" {
		c.buildable.UID = "none" // good for comparing; what is applied bears that of the custom resource applied before
	}
	set := get[*appsv1.StatefulSet](c.own, "StatefulSet", c.names.StatefulSet)
	if set == nil {
		return
	}
	made := objects.ReadMetadata(set.Spec.Template.Annotations)
	c.state.Objects.RunsVersion, c.state.Objects.RunsHash = made.Version, made.SpecHash
	if n := set.Spec.Replicas; n != nil { // the API server fills it in
		c.state.Objects.RunsReplicas = int(*n)
	}
	if len(set.Spec.VolumeClaimTemplates) == 0 {
		return
	}
	volume := set.Spec.VolumeClaimTemplates[0].Spec
	storage := &c.buildable.Spec.Storage
	storage.Size, storage.StorageClassName = volume.Resources.Requests[corev1.ResourceStorage], volume.StorageClassName
	c.state.Objects.RunsStorage = storageInWords(*storage)
}

// storageInWords is the size and class of volumes.
func storageInWords(storage v1alpha1.StorageSpec) string {
	if storage.StorageClassName == nil {
		return storage.Size.String()
	}
	return storage.Size.String() + " of class " + *storage.StorageClassName
}

// remaining lists the objects of the cluster that are there: those that Build makes, whatever else bears the labels.
func (c *cluster) remaining() []string {
	var list []string
	for _, id := range objects.Identities(&c.target.cluster) {
		if c.own.objects[id.Kind+"/"+id.Name] != nil {
			list = append(list, id.String())
		}
	}
	return list
}

// recallSilence fills in since when silent members have been found silent. Silence while etcd gave no list, or named no leader,
// does not count: it may have been ours.
func (c *cluster) recallSilence() {
	if c.own.custom == nil || c.own.custom.Status.Leader == "" {
		return
	}
	for i := range c.state.Membership.Members {
		m := &c.state.Membership.Members[i]
		for _, before := range c.own.custom.Status.Members {
			if !m.Answers && before.ID == m.ID.String() && before.Health == v1alpha1.MemberSilent {
				m.SilentSince = before.Since.UTC()
			}
		}
	}
}

// terminating lists what Kubernetes is deleting, and what it will collect because its owner is gone.
func (c *cluster) terminating() []string {
	var list []string
	var uid types.UID
	if custom := c.own.custom; custom != nil {
		uid = custom.UID
		if custom.DeletionTimestamp != nil {
			list = append(list, "EtcdCluster "+custom.Name)
		}
	}
	for id, o := range c.own.objects {
		if o.GetDeletionTimestamp() != nil || ownerless(o, v1alpha1.Kind, uid) {
			list = append(list, id)
		}
	}
	var setUID types.UID
	if set := get[*appsv1.StatefulSet](c.own, "StatefulSet", c.names.StatefulSet); set != nil {
		setUID = set.UID
	}
	for _, pod := range c.own.pods {
		if ownerless(pod, "StatefulSet", setUID) {
			list = append(list, "Pod/"+pod.Name)
		}
	}
	return list
}

// ownerless reports whether an object is controlled by an owner of that kind that is no longer there.
func ownerless(o metav1.Object, kind string, uid types.UID) bool {
	owner := metav1.GetControllerOf(o)
	return owner != nil && owner.Kind == kind && owner.UID != uid
}

// foundingPatience bounds asking etcd before the cluster has formed: a member takes connections before it has found the
// others, and answers none of them until then.
const foundingPatience = 500 * time.Millisecond

// askEtcd asks the members that can be reached.
func (c *cluster) askEtcd(ctx context.Context) {
	pods := c.reachable()
	if len(pods) == 0 {
		c.state.Membership = decide.Membership{Why: "no member's pod runs"}
		return
	}
	tls := c.clientTLS()
	if tls == nil && c.target.cluster.Spec.TLS.Mode == v1alpha1.TLSManaged {
		c.state.Membership = decide.Membership{Why: fmt.Sprintf("Secret %s is missing, so etcd cannot be asked", c.names.ClientSecret)}
		return
	}
	if !c.state.Formed() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, foundingPatience, fmt.Errorf("no answer within %s", foundingPatience))
		defer cancel()
	}
	answer := c.ask(ctx, pods, tls)
	c.state.Membership = answer.Membership
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

// etcd says how to reach etcd in those pods.
func (c *cluster) etcd(pods []etcd.Pod, tls *etcd.TLS) etcd.Cluster {
	return etcd.Cluster{
		Namespace: c.target.cluster.Namespace, Name: c.target.cluster.Name,
		Pods: pods, TLS: tls, Dial: c.dial,
		CompareData: slices.ContainsFunc(c.state.Replicas, func(r decide.Replica) bool { return r.PodStoppedByCheck }),
	}
}

// reachable lists the pods whose etcd is worth asking: all that run but those of members that are gone.
func (c *cluster) reachable() []etcd.Pod {
	var pods []etcd.Pod
	for _, pod := range c.own.pods {
		if _, ours := c.state.Ordinal(pod.Name); !ours || pod.Status.PodIP == "" || pod.Status.Phase != corev1.PodRunning || c.leaves(pod) {
			continue
		}
		phase, _ := podPhase(pod)
		pods = append(pods, etcd.Pod{Name: pod.Name, UID: string(pod.UID), Unready: phase != decide.PodReady})
	}
	return pods
}

// leaves reports whether the member in a pod is gone: it is on record as such, or has been removed by this very process.
func (c *cluster) leaves(pod *corev1.Pod) bool {
	ordinal, _ := c.state.Ordinal(pod.Name)
	_, removed := c.live.leaving.Load(pod.UID)
	return removed || slices.ContainsFunc(c.state.Record.Removed, func(gone decide.RemovedMember) bool { return gone.Ordinal == ordinal })
}

// clientTLS is what a client needs; nil where the cluster runs in the clear, or its Secret is gone.
func (c *cluster) clientTLS() *etcd.TLS {
	secret := get[*corev1.Secret](c.own, "Secret", c.names.ClientSecret)
	if secret == nil {
		return nil
	}
	return &etcd.TLS{
		CA:   secret.Data[corev1.ServiceAccountRootCAKey],
		Cert: secret.Data[corev1.TLSCertKey],
		Key:  secret.Data[corev1.TLSPrivateKeyKey],
	}
}
