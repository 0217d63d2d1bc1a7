// Package inventory sorts what was listed by the cluster it belongs to.
package inventory

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// Key names a cluster.
type Key struct{ Namespace, Name string }

// String is namespace/name.
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// ParseKey is the key of namespace/name.
func ParseKey(cluster string) Key {
	namespace, name, _ := strings.Cut(cluster, "/")
	return Key{namespace, name}
}

// KeyOf is the key of the cluster that a custom resource is about.
func KeyOf(custom *v1alpha1.EtcdCluster) Key { return Key{custom.Namespace, custom.Name} }

// Cluster is what is there of one cluster.
type Cluster struct {
	Custom *v1alpha1.EtcdCluster
	// Unreadable says why the custom resource could not be read; nil if it was. Custom holds little
	// more than its metadata then.
	Unreadable error
	Lease      *coordinationv1.Lease
	Objects    map[string]metav1.Object // by kind/name; the kinds that are applied
	Pods       []*corev1.Pod            // of members
	Claims     []*corev1.PersistentVolumeClaim
	// BackupJobs and BackupPods are what backs up, or has.
	BackupJobs []*batchv1.Job
	BackupPods []*corev1.Pod
	// VolumePods are those that work on the volume of a member, or have, to restore or to recover it.
	VolumePods []*corev1.Pod
}

// Clone is a copy to which more can be put: whoever looks at one cluster finds more of it, while others go by what
// was listed. The objects are the same, and nobody changes them.
func (c *Cluster) Clone() *Cluster {
	clone := *c
	clone.Objects = maps.Clone(c.Objects)
	clone.Pods, clone.Claims = slices.Clip(c.Pods), slices.Clip(c.Claims)
	return &clone
}

// Readable reports whether the custom resource, if there is one, could be read.
func (c *Cluster) Readable() bool { return c.Unreadable == nil }

// ByCluster is what is there, by cluster.
type ByCluster map[Key]*Cluster

// Of returns what is there of a cluster, which may be nothing.
func (i ByCluster) Of(k Key) *Cluster {
	if p := i[k]; p != nil {
		return p
	}
	return &Cluster{Objects: map[string]metav1.Object{}}
}

// At returns what is there of a cluster, for more to be put there.
func (i ByCluster) At(namespace, cluster string) *Cluster {
	k := Key{namespace, cluster}
	if i[k] == nil {
		i[k] = &Cluster{Objects: map[string]metav1.Object{}}
	}
	return i[k]
}

// Managed selects the clusters whose custom resource was applied by Quorate.
func (i ByCluster) Managed() ByCluster {
	selected := ByCluster{}
	for k, p := range i {
		if p.Custom != nil && p.Custom.Labels[objects.LabelManagedBy] == objects.ManagedBy {
			selected[k] = p
		}
	}
	return selected
}

// Put files an object under the cluster that its label names.
func (i ByCluster) Put(kind string, o metav1.Object) {
	i.At(o.GetNamespace(), objects.ClusterOf(o.GetLabels())).Objects[kind+"/"+o.GetName()] = o
}

// Sort sorts what was listed by the cluster it belongs to.
func Sort(listed *kube.Inventory) ByCluster {
	i := ByCluster{}
	for n := range listed.Clusters {
		c := &listed.Clusters[n]
		p := i.At(c.Namespace, c.Name)
		p.Custom, p.Unreadable = c, listed.Unreadable[c.Namespace+"/"+c.Name]
	}
	for n := range listed.Leases {
		o := &listed.Leases[n]
		i.At(o.Namespace, objects.ClusterOf(o.Labels)).Lease = o
	}
	putAll(i, "ConfigMap", listed.ConfigMaps, func(o *corev1.ConfigMap) metav1.Object { return o })
	putAll(i, "Secret", listed.Secrets, func(o *corev1.Secret) metav1.Object { return o })
	putAll(i, "Service", listed.Services, func(o *corev1.Service) metav1.Object { return o })
	putAll(i, "PodDisruptionBudget", listed.Budgets, func(o *policyv1.PodDisruptionBudget) metav1.Object { return o })
	putAll(i, "NetworkPolicy", listed.Policies, func(o *networkingv1.NetworkPolicy) metav1.Object { return o })
	putAll(i, "CronJob", listed.CronJobs, func(o *batchv1.CronJob) metav1.Object { return o })
	putAll(i, "StatefulSet", listed.StatefulSets, func(o *appsv1.StatefulSet) metav1.Object { return o })
	for n := range listed.Pods {
		o := &listed.Pods[n]
		p := i.At(o.Namespace, objects.ClusterOf(o.Labels))
		switch {
		case objects.IsBackup(o.Labels):
			p.BackupPods = append(p.BackupPods, o)
		case objects.WorksOnVolume(o.Labels):
			p.VolumePods = append(p.VolumePods, o)
		default:
			p.Pods = append(p.Pods, o)
		}
	}
	for n := range listed.Jobs {
		o := &listed.Jobs[n]
		p := i.At(o.Namespace, objects.ClusterOf(o.Labels))
		if objects.WorksOnVolume(o.Labels) {
			i.Put("Job", o)
		} else {
			p.BackupJobs = append(p.BackupJobs, o)
		}
	}
	for n := range listed.Claims {
		o := &listed.Claims[n]
		p := i.At(o.Namespace, objects.ClusterOf(o.Labels))
		p.Claims = append(p.Claims, o)
	}
	return i
}

func putAll[T any](i ByCluster, kind string, items []T, object func(*T) metav1.Object) {
	for n := range items {
		i.Put(kind, object(&items[n]))
	}
}

// Get returns the object of that kind and name, nil if there is none.
func Get[T metav1.Object](c *Cluster, kind, name string) (object T) {
	object, _ = c.Objects[kind+"/"+name].(T)
	return object
}

// Secrets returns the data of the cluster's Secrets by name.
func (c *Cluster) Secrets() map[string]map[string][]byte {
	data := map[string]map[string][]byte{}
	for _, o := range c.Objects {
		if secret, ok := o.(*corev1.Secret); ok {
			data[secret.Name] = secret.Data
		}
	}
	return data
}

// Pod returns the pod of that name, nil if there is none.
func (c *Cluster) Pod(name string) *corev1.Pod {
	for _, pod := range c.Pods {
		if pod.Name == name {
			return pod
		}
	}
	return nil
}

// Claim returns the volume claim of that name, nil if there is none.
func (c *Cluster) Claim(name string) *corev1.PersistentVolumeClaim {
	for _, claim := range c.Claims {
		if claim.Name == name {
			return claim
		}
	}
	return nil
}

// Record reads what earlier passes wrote down; the zero value if nothing was.
func (c *Cluster) Record(names objects.Names) (decide.Record, error) {
	configMap := Get[*corev1.ConfigMap](c, "ConfigMap", names.ConfigMap)
	if configMap == nil {
		return decide.Record{}, nil
	}
	text, found := configMap.Data[objects.RecordKey]
	if !found {
		return decide.Record{}, nil
	}
	return objects.DecodeRecord(text)
}

// ClusterID is what the status or the record says; zero if neither does.
func (c *Cluster) ClusterID() decide.ID {
	if id := ReportedClusterID(c.Custom); id != 0 {
		return id
	}
	record, err := c.Record(objects.NamesOf(c.Custom.Name))
	if err != nil {
		return 0 // it is reported with the cluster itself
	}
	return record.ClusterID
}

// Empty reports whether there is neither a custom resource nor a record nor a volume of a cluster
// of that name.
func (c *Cluster) Empty(name string) bool {
	return c.Custom == nil && len(c.Claims) == 0 &&
		Get[*corev1.ConfigMap](c, "ConfigMap", objects.NamesOf(name).ConfigMap) == nil
}

// ReportedClusterID is the ID in the status of a custom resource; zero if there is none.
func ReportedClusterID(custom *v1alpha1.EtcdCluster) decide.ID {
	id, err := strconv.ParseUint(custom.Status.ClusterID, 16, 64)
	if err != nil {
		return 0
	}
	return decide.ID(id)
}
