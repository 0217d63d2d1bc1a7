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
	"quorate.dev/quorate/internal/panics"
	"quorate.dev/quorate/reconcile/decide"
)

// cluster is one observed cluster. It implements reconcile.Cluster.
type cluster struct {
	live   *Live
	target targets.Target
	names  objects.Names
	// listed is the packed listing. own is the unpacked listing after the cluster has been observed. Until then, own
	// contains only the custom resource.
	listed *inventory.Listed
	own    *inventory.Cluster
	// once ensures that the cluster is observed only once.
	once  sync.Once
	state decide.State
	err   error
	// nodes lists the nodes, once per pass.
	nodes func() ([]corev1.Node, error)
	// buildable is the declaration in the form from which objects can currently be built.
	buildable *v1alpha1.EtcdCluster
	// certificates are the certificates for the objects: existing certificates, and new ones that replace missing or
	// worn certificates.
	certificates objects.Certificates
	// drifted contains the objects, as kind/name, that are missing or differ from the desired state.
	drifted map[string]bool
	// rewritten are the fields whose applied values were changed by admission, in this pass or an earlier one.
	rewritten []decide.RewrittenField
	// lease is held while an action is carried out.
	lease *leaseHold
	// unseen is the reason why the live state is unknown, or nil.
	unseen error
	// hidden is the error if the Secrets could not be listed. ownHidden is the error if Quorate's own Secret could not
	// be read by name either.
	hidden, ownHidden error
	// lacksCA is whether the CA of the cluster to adopt must be taken over. If it can be, adopted holds certificates
	// issued from it. Otherwise, caRefused is the reason.
	lacksCA   bool
	adopted   objects.Certificates
	caRefused string
	// hiddenBackups is the error if CronJobs and Jobs could not be listed.
	hiddenBackups error
	// forbidden holds the API server's error if it denies access to the pods.
	forbidden atomic.Value
}

// Identity implements reconcile.Cluster.
func (c *cluster) Identity() (namespace, name string) {
	return c.target.Cluster.Namespace, c.target.Cluster.Name
}

// State implements reconcile.Cluster.
func (c *cluster) State(ctx context.Context) (decide.State, error) {
	c.once.Do(func() {
		// Later calls must not return a partial state.
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
	c.state, c.err, c.own = decide.State{}, errors.New("the cluster has already been processed"), nil
	c.listed = nil
	c.buildable, c.certificates, c.drifted = nil, objects.Certificates{}, nil
	c.adopted = objects.Certificates{}
	if !soon {
		c.live.etcd.CloseCluster(c.target.Cluster.Namespace, c.target.Cluster.Name)
	}
}

// newCluster returns a cluster that has been listed but not observed yet.
func (l *Live) newCluster(t targets.Target, listed *inventory.Listed, nodes func() ([]corev1.Node, error)) *cluster {
	return &cluster{live: l, target: t, names: objects.NamesOf(t.Cluster.Name), listed: listed,
		own: &inventory.Cluster{Custom: listed.Custom}, nodes: nodes, drifted: map[string]bool{}}
}

// open unpacks the listing, unless the live state is unknown.
func (c *cluster) open() error {
	if c.unseen != nil {
		return c.unseen
	}
	own, err := c.listed.Open()
	if err != nil {
		return err
	}
	c.own = own
	// Do not change anything else in the target, because a pass may concurrently read the identity of a cluster for
	// which it no longer waits.
	c.target.Cluster.Spec.Etcd.Quota = c.target.WithQuota(own).Cluster.Spec.Etcd.Quota
	return nil
}

// declared returns the declaration for the rules. If this run cannot carry out a requested recovery, the declaration
// includes the reason.
func (c *cluster) declared() decide.Declared {
	d := c.target.Declared()
	options := c.live.options
	switch {
	case d.Recovery.ClusterID == 0:
	case !options.AllowRecovery:
		d.Recovery.Refused = "this run does not set " + targets.FlagAllowRecovery + ". Set it once you are " +
			"sure that data held only by other members is lost"
	case options.BackupImage == "":
		d.Recovery.Refused = "this run does not set " + targets.FlagBackupImage + ", the Quorate image for the " +
			"recovery pod"
	}
	return d
}

// observe gathers the state of one cluster from the listing and from etcd.
func (c *cluster) observe(ctx context.Context) {
	digest := c.target.Digest(c.live.options.BackupImage) // before open fills in the quota
	opened := c.open()
	own, t := c.own, c.target
	// Compute ages from the API server's clock, because it set the timestamps, and the nodes' clocks are synchronized
	// with it. This machine's clock may be wrong.
	now, clockless := c.kube().Now()
	c.state = decide.State{
		Name:         t.Cluster.Name,
		Namespace:    t.Cluster.Namespace,
		Now:          now.UTC().Truncate(time.Second),
		Declared:     c.declared(),
		Replicas:     c.replicas(),
		LockHolder:   c.live.lockHolder(own.Lease, now),
		WindowClosed: objects.WindowClosed(&t.Cluster, now),
	}
	c.state.Declared.Digest = digest
	if own.Custom != nil {
		c.state.ReportedClusterID, c.state.ReportedVersion = inventory.ReportedClusterID(own.Custom),
			own.Custom.Status.Version
		c.state.ReportedVoidRecovery = own.Custom.Status.VoidRecovery
		c.state.Waited = status.Waited(own.Custom, c.state.Now)
		c.state.Repeated = status.Repeated(own.Custom)
		c.state.DefragmentationRequest = status.DefragmentationRequest(own.Custom)
		c.state.Comparison = status.Comparison(own.Custom, c.state.Now)
		c.state.LastSeen = status.LastSeen(own.Custom, c.state.Declared.Recovery.ClusterID)
	}
	err := errors.Join(c.listed.Unreadable, opened, clockless)
	if err == nil {
		err = c.gather(ctx)
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx) // unanswered requests leave the state unknown
	}
	if err != nil {
		c.err = fmt.Errorf("observe %s: %w", t.Key(), c.live.advised(t.Cluster.Namespace, err))
	}
}

// gather completes the state. Each step relies on the results of the previous steps.
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
		c.state.Comparison = decide.Comparison{} // of the superseded cluster
	}
	if err := c.findRestore(ctx); err != nil {
		return err
	}
	if err := c.findRecovery(ctx); err != nil { // must come after findRestore
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
	if err := c.takeOverCA(ctx); err != nil {
		return err
	}
	c.askEtcd(ctx)
	status.RecallSilence(c.own.Custom, c.state.Membership.Members, c.state.Now)
	status.RecallDefragmentation(c.own.Custom, c.state.Membership.Members)
	return c.compare(ctx)
}

// readRecord reads the record of earlier passes. A record that cannot be read must not be treated as missing.
func (c *cluster) readRecord() {
	record, err := c.own.Record(c.names)
	if err != nil {
		c.state.Objects.Foreign = append(c.state.Objects.Foreign,
			fmt.Sprintf("ConfigMap %s: cannot read %s: %v. Delete the key, and Quorate recreates "+
				"it from etcd and the volumes", c.names.ConfigMap, objects.RecordKey, err))
		return
	}
	c.state.Record = record
}

// checkRecovery rejects the requested recovery if it cannot be carried out with the etcd version that last ran.
func (c *cluster) checkRecovery() {
	order := &c.state.Declared.Recovery
	if order.ClusterID == 0 || order.Refused != "" {
		return
	}
	if _, err := objects.RecoveryVersion(&c.target.Cluster, c.state.Objects.RunsVersion); err != nil {
		order.Refused = err.Error()
	}
}

// readTemplate reads the templates of new pods and volumes. The volume template is immutable, so the objects are built
// with the existing template.
func (c *cluster) readTemplate() {
	c.buildable = c.target.Cluster.DeepCopy()
	objects.Normalize(c.buildable)
	if c.buildable.UID == "" {
		c.buildable.UID = "none" // only for comparison; applied objects have the UID of the applied custom resource
	}
	set := inventory.Get[*appsv1.StatefulSet](c.own, "StatefulSet", c.names.StatefulSet)
	if set == nil {
		return
	}
	made := objects.ReadMetadata(set.Spec.Template.Annotations)
	c.state.Objects.RunsVersion, c.state.Objects.RunsHash = made.Version, made.SpecHash
	if n := set.Spec.Replicas; n != nil { // set by the API server
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

// remaining lists the cluster's existing objects by name. It ignores other objects with the cluster's labels.
func (c *cluster) remaining() []string {
	var list []string
	for _, id := range c.identities() {
		if c.own.Objects[id.Kind+"/"+id.Name] != nil {
			list = append(list, id.String())
		}
	}
	return list
}

// terminating lists the objects that Kubernetes is deleting, or will delete because their owner is gone.
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

// ownerless reports whether an object is controlled by an owner of the given kind that no longer exists.
func ownerless(o metav1.Object, kind string, uid types.UID) bool {
	owner := metav1.GetControllerOf(o)
	return owner != nil && owner.Kind == kind && owner.UID != uid
}
