package inventory

import (
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// Cluster holds the objects of a cluster that is being processed. The caller may add objects.
type Cluster struct {
	Custom  *v1alpha1.EtcdCluster
	Lease   *coordinationv1.Lease
	Objects map[string]metav1.Object // applied objects, by kind/name
	Pods    []*corev1.Pod            // of members
	Claims  []*corev1.PersistentVolumeClaim
	// BackupJobs and BackupPods are the Jobs and pods that back up the cluster, including those that have finished.
	BackupJobs []*batchv1.Job
	BackupPods []*corev1.Pod
	// VolumePods are the pods that restore or recover a member's volume, including those that have finished.
	VolumePods []*corev1.Pod
}

// add adds an object to the field for its kind.
func (c *Cluster) add(object kube.Object) {
	switch o := object.(type) {
	case *coordinationv1.Lease:
		c.Lease = o
	case *corev1.Pod:
		switch {
		case isMember(o):
			c.Pods = append(c.Pods, o)
		case objects.IsBackup(o.Labels):
			c.BackupPods = append(c.BackupPods, o)
		default:
			c.VolumePods = append(c.VolumePods, o)
		}
	case *corev1.PersistentVolumeClaim:
		c.Claims = append(c.Claims, o)
	case *batchv1.Job:
		if objects.WorksOnVolume(o.Labels) {
			c.Objects["Job/"+o.Name] = o
		} else {
			c.BackupJobs = append(c.BackupJobs, o)
		}
	default:
		c.Objects[kindOf(o)+"/"+o.GetName()] = o
	}
}

// Get returns the object with the given kind and name, or nil.
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

// Pod returns the named pod, or nil.
func (c *Cluster) Pod(name string) *corev1.Pod {
	for _, pod := range c.Pods {
		if pod.Name == name {
			return pod
		}
	}
	return nil
}

// Claim returns the named volume claim, or nil.
func (c *Cluster) Claim(name string) *corev1.PersistentVolumeClaim {
	for _, claim := range c.Claims {
		if claim.Name == name {
			return claim
		}
	}
	return nil
}

// Record returns the record written by earlier passes, or zero if it does not exist yet.
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
