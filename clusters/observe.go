package clusters

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/quorate/clusters/inventory"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/status"
	"quorate.dev/quorate/clusters/targets"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/panics"
)

// cluster is one observed cluster. It implements reconcile.Cluster.
type cluster struct {
	live   *Live
	target targets.Target
	names  objects.Names
	// listed is what was listed of it, and own what there is once it is looked at; only the custom resource before.
	listed *inventory.Listed
	own    *inventory.Cluster
	// once: it is looked at once.
	once  sync.Once
	state decide.State
	err   error
	// nodes lists the nodes, once in a pass.
	nodes func() ([]corev1.Node, error)
	// buildable is the declaration as objects can be built from it now.
	buildable *v1alpha1.EtcdCluster
	// certificates that the objects are to hold: those that are there, and new ones for what is
	// missing or worn out.
	certificates objects.Certificates
	// drifted are the objects, as kind/name, that are missing or not as they should be.
	drifted map[string]bool
	// rewritten are the fields that admission sets to other values than were applied, in this pass or before.
	rewritten []decide.RewrittenField
	// tenure is the hold on the lease while an action is carried out.
	tenure *tenure
	// unseen says why it is not known what is there of it; nil if it is.
	unseen error
	// hidden says why its Secrets could not be listed, and ownHidden why that of passes could not
	// be read either; nil if they could.
	hidden, ownHidden error
	// hiddenBackups says why CronJobs and Jobs could not be listed; nil if they were.
	hiddenBackups error
	// forbidden is what the error says with which the API server refuses to let anybody here reach
	// the pods, if it does.
	forbidden atomic.Value
}

// Identity implements reconcile.Cluster.
func (c *cluster) Identity() (namespace, name string) {
	return c.target.Cluster.Namespace, c.target.Cluster.Name
}

// State implements reconcile.Cluster.
func (c *cluster) State(ctx context.Context) (decide.State, error) {
	c.once.Do(func() {
		// Half a state must not be taken for one by who asks again.
		if err := panics.Catch(func() error { c.observe(ctx); return nil }); err != nil {
			c.err = fmt.Errorf("observe %s: %w", c.target.Key(), err)
		}
	})
	return c.state, c.err
}

// Unwell implements reconcile.Cluster.
func (c *cluster) Unwell() bool {
	return c.own.Custom == nil || !meta.IsStatusConditionTrue(c.own.Custom.Status.Conditions, v1alpha1.ConditionReady)
}

// DeclaredBy implements reconcile.Cluster.
func (c *cluster) DeclaredBy() string {
	if c.own.Custom == nil {
		return ""
	}
	return c.own.Custom.Status.DeclaredSource
}

// Warnings implements reconcile.Cluster.
func (c *cluster) Warnings() []string { return c.target.Warnings }

// Custom implements reconcile.Cluster.
func (c *cluster) Custom() *v1alpha1.EtcdCluster { return c.own.Custom }

// Leave implements reconcile.Cluster.
func (c *cluster) Leave(soon bool) {
	c.state, c.err, c.own = decide.State{}, errors.New("it was looked at before"), nil
	c.listed = nil
	c.buildable, c.certificates, c.drifted = nil, objects.Certificates{}, nil
	if !soon {
		c.live.etcd.CloseCluster(c.target.Cluster.Namespace, c.target.Cluster.Name)
	}
}

// newCluster is a cluster that has been listed and not yet looked at.
func (l *Live) newCluster(t targets.Target, listed *inventory.Listed, nodes func() ([]corev1.Node, error)) *cluster {
	return &cluster{live: l, target: t, names: objects.NamesOf(t.Cluster.Name), listed: listed,
		own: &inventory.Cluster{Custom: listed.Custom}, nodes: nodes, drifted: map[string]bool{}}
}

// open unpacks what was listed, unless that is not what there is.
func (c *cluster) open() error {
	if c.unseen != nil {
		return c.unseen
	}
	own, err := c.listed.Open()
	if err != nil {
		return err
	}
	c.own = own
	// All else of the target stays: a pass asks the clusters that it does not wait for who they are.
	c.target.Cluster.Spec.Etcd.Quota = c.target.WithQuota(own).Cluster.Spec.Etcd.Quota
	return nil
}

// declared is what git asks for, and what this run cannot do of it.
func (c *cluster) declared() decide.Declared {
	d := c.target.Declared()
	options := c.live.options
	switch {
	case d.Recovery.ClusterID == 0:
	case !options.AllowRecovery:
		d.Recovery.Refused = "this run is without " + targets.FlagAllowRecovery + "; give it to one once you are " +
			"sure that what only others had is lost"
	case options.BackupImage == "":
		d.Recovery.Refused = "this run has no " + targets.FlagBackupImage + ", the image of Quorate that the pod " +
			"runs which recovers"
	}
	return d
}

// observe gathers the state of one cluster from what was listed and from what etcd says.
func (c *cluster) observe(ctx context.Context) {
	digest := c.target.Digest(c.live.options.BackupImage) // before open fills in the quota
	opened := c.open()
	own, t := c.own, c.target
	// Ages are told by the clock that has stamped what they are of: the API server's, which nodes keep to, too. This
	// machine's may be wrong.
	now, clockless := c.kube().Now()
	c.state = decide.State{
		Name:       t.Cluster.Name,
		Now:        now.UTC().Truncate(time.Second),
		Declared:   c.declared(),
		Replicas:   c.replicas(),
		LockHolder: c.live.lockHolder(own.Lease, now),
	}
	c.state.Declared.Digest = digest
	if own.Custom != nil {
		c.state.ReportedClusterID, c.state.ReportedVersion = inventory.ReportedClusterID(own.Custom),
			own.Custom.Status.Version
		c.state.ReportedVoidRecovery = own.Custom.Status.VoidRecovery
		c.state.Waited = status.Waited(own.Custom, c.state.Now)
		c.state.Repeated = status.Repeated(own.Custom)
		c.state.LastSeen = status.LastSeen(own.Custom, c.state.Declared.Recovery.ClusterID)
	}
	err := errors.Join(c.listed.Unreadable, opened, clockless)
	if err == nil {
		err = c.gather(ctx)
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx) // what was not heard in time is not known
	}
	if err != nil {
		c.err = fmt.Errorf("observe %s: %w", t.Key(), c.live.advised(t.Cluster.Namespace, err))
	}
}

// gather completes the state, each step with what the steps before have found.
func (c *cluster) gather(ctx context.Context) error {
	if err := c.findObjects(ctx); err != nil {
		return err
	}
	if err := c.findOwnSecret(ctx); err != nil {
		return err
	}
	c.state.Objects.Terminating, c.state.Objects.Remaining = c.terminating(), c.remaining()
	c.readRecord()
	c.readTemplate()
	c.state.FoundingID = objects.FoundingID(c.buildable, c.state.Record)
	c.checkRecovery()
	c.findBackups()
	if c.state.Record.Supersedes(c.state.ReportedClusterID) {
		c.state.ReportedClusterID = 0
	}
	if err := c.findRecovery(ctx); err != nil {
		return err
	}
	if err := c.findRestore(ctx); err != nil {
		return err
	}
	if err := c.findSlots(ctx); err != nil {
		return err
	}
	if err := c.findLease(ctx); err != nil {
		return err
	}
	if err := c.findUnbound(ctx); err != nil {
		return err
	}
	if err := c.findReplaced(ctx); err != nil {
		return err
	}
	c.findStranded(ctx)
	c.findRefused(ctx)
	c.askEtcd(ctx)
	status.RecallSilence(c.own.Custom, c.state.Membership.Members, c.state.Now)
	return c.compare(ctx)
}

// readRecord reads what earlier passes wrote down. A record that cannot be read must not be taken
// for none.
func (c *cluster) readRecord() {
	record, err := c.own.Record(c.names)
	if err != nil {
		c.state.Objects.Foreign = append(c.state.Objects.Foreign,
			fmt.Sprintf("ConfigMap %s: its %s cannot be read: %v; delete the key to have it recreated "+
				"from etcd and the volumes", c.names.ConfigMap, objects.RecordKey, err))
		return
	}
	c.state.Record = record
}

// checkRecovery says why the recovery that git orders cannot be carried out with the etcd that has run.
func (c *cluster) checkRecovery() {
	order := &c.state.Declared.Recovery
	if order.ClusterID == 0 || order.Refused != "" {
		return
	}
	if _, err := objects.RecoveryVersion(&c.target.Cluster, c.state.Objects.RunsVersion); err != nil {
		order.Refused = err.Error()
	}
}

// readTemplate reads what new pods and volumes are made from. The template of the volumes cannot be
// changed, so the objects are built with the one that is there.
func (c *cluster) readTemplate() {
	c.buildable = c.target.Cluster.DeepCopy()
	objects.Normalize(c.buildable)
	if c.buildable.UID == "" {
		c.buildable.UID = "none" // good for comparing; what is applied has that of the custom resource applied before
	}
	set := inventory.Get[*appsv1.StatefulSet](c.own, "StatefulSet", c.names.StatefulSet)
	if set == nil {
		return
	}
	made := objects.ReadMetadata(set.Spec.Template.Annotations)
	c.state.Objects.RunsVersion, c.state.Objects.RunsHash = made.Version, made.SpecHash
	if n := set.Spec.Replicas; n != nil { // the API server fills it in
		c.state.Objects.RunsReplicas = int(*n)
	}
	if c.runsDeclared() {
		c.state.Declared.SpecHash = c.state.Objects.RunsHash
	}
	if len(set.Spec.VolumeClaimTemplates) == 0 {
		return
	}
	c.state.Objects.RunsToken = objects.ReadMetadata(set.Spec.VolumeClaimTemplates[0].Annotations).Token
	volume := set.Spec.VolumeClaimTemplates[0].Spec
	storage := &c.buildable.Spec.Storage
	storage.Size, storage.StorageClassName = volume.Resources.Requests[corev1.ResourceStorage], volume.StorageClassName
	c.state.Objects.RunsStorage = targets.DescribeStorage(*storage)
}

// remaining lists the objects of the cluster that are there: those that Build makes, whatever else
// has the labels.
func (c *cluster) remaining() []string {
	var list []string
	for _, id := range c.identities() {
		if c.own.Objects[id.Kind+"/"+id.Name] != nil {
			list = append(list, id.String())
		}
	}
	return list
}

// terminating lists what Kubernetes is deleting, and what it will collect because its owner is
// gone.
func (c *cluster) terminating() []string {
	var list []string
	var uid types.UID
	if custom := c.own.Custom; custom != nil {
		uid = custom.UID
		if custom.DeletionTimestamp != nil {
			list = append(list, "EtcdCluster "+custom.Name)
		}
	}
	for id, o := range c.own.Objects {
		if o.GetDeletionTimestamp() != nil || ownerless(o, v1alpha1.Kind, uid) {
			list = append(list, id)
		}
	}
	var setUID types.UID
	if set := inventory.Get[*appsv1.StatefulSet](c.own, "StatefulSet", c.names.StatefulSet); set != nil {
		setUID = set.UID
	}
	for _, pod := range c.own.Pods {
		if ownerless(pod, "StatefulSet", setUID) {
			list = append(list, "Pod/"+pod.Name)
		}
	}
	return list
}

// ownerless reports whether an object is controlled by an owner of that kind that is no longer
// there.
func ownerless(o metav1.Object, kind string, uid types.UID) bool {
	owner := metav1.GetControllerOf(o)
	return owner != nil && owner.Kind == kind && owner.UID != uid
}
