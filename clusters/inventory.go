package clusters

import (
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
)

// clusterObjects is what is there of one cluster.
type clusterObjects struct {
	custom *v1alpha1.EtcdCluster
	// unreadable says why the custom resource could not be read; nil if it was. custom holds little
	// more than its metadata then.
	unreadable error
	lease      *coordinationv1.Lease
	objects    map[string]metav1.Object // by kind/name; the kinds that are applied
	pods       []*corev1.Pod
	claims     []*corev1.PersistentVolumeClaim
}

// readable reports whether the custom resource, if there is one, could be read.
func (p *clusterObjects) readable() bool { return p.unreadable == nil }

// inventory is what is there, by cluster.
type inventory map[key]*clusterObjects

func (i inventory) of(k key) *clusterObjects {
	if p := i[k]; p != nil {
		return p
	}
	return &clusterObjects{objects: map[string]metav1.Object{}}
}

func (i inventory) at(namespace, cluster string) *clusterObjects {
	k := key{namespace, cluster}
	if i[k] == nil {
		i[k] = &clusterObjects{objects: map[string]metav1.Object{}}
	}
	return i[k]
}

const managedLabel, managedValue = "app.kubernetes.io/managed-by", "quorate"

// managed selects the clusters whose custom resource was applied by Quorate.
func (i inventory) managed() inventory {
	selected := inventory{}
	for k, p := range i {
		if p.custom != nil && p.custom.Labels[managedLabel] == managedValue {
			selected[k] = p
		}
	}
	return selected
}

// before is what is on record of a cluster, as namespace/name.
func (i inventory) before(cluster string) reconcile.Before {
	p := i[keyNamed(cluster)]
	if p == nil || p.custom == nil {
		return reconcile.Before{}
	}
	return reconcile.Before{Source: p.custom.Status.DeclaredSource, Held: orphanOf(p.custom).held}
}

// put files an object under the cluster that its label names.
func (i inventory) put(kind string, o metav1.Object) {
	i.at(o.GetNamespace(), objects.ClusterOf(o.GetLabels())).objects[kind+"/"+o.GetName()] = o
}

// byCluster sorts what was listed by the cluster it belongs to.
func byCluster(listed *kube.Inventory) inventory {
	i := inventory{}
	for n := range listed.Clusters {
		c := &listed.Clusters[n]
		p := i.at(c.Namespace, c.Name)
		p.custom, p.unreadable = c, listed.Unreadable[c.Namespace+"/"+c.Name]
	}
	for n := range listed.Leases {
		o := &listed.Leases[n]
		i.at(o.Namespace, objects.ClusterOf(o.Labels)).lease = o
	}
	putAll(i, "ConfigMap", listed.ConfigMaps, func(o *corev1.ConfigMap) metav1.Object { return o })
	putAll(i, "Secret", listed.Secrets, func(o *corev1.Secret) metav1.Object { return o })
	putAll(i, "Service", listed.Services, func(o *corev1.Service) metav1.Object { return o })
	putAll(i, "PodDisruptionBudget", listed.Budgets, func(o *policyv1.PodDisruptionBudget) metav1.Object { return o })
	putAll(i, "NetworkPolicy", listed.Policies, func(o *networkingv1.NetworkPolicy) metav1.Object { return o })
	putAll(i, "StatefulSet", listed.StatefulSets, func(o *appsv1.StatefulSet) metav1.Object { return o })
	for n := range listed.Pods {
		o := &listed.Pods[n]
		p := i.at(o.Namespace, objects.ClusterOf(o.Labels))
		p.pods = append(p.pods, o)
	}
	for n := range listed.Claims {
		o := &listed.Claims[n]
		p := i.at(o.Namespace, objects.ClusterOf(o.Labels))
		p.claims = append(p.claims, o)
	}
	return i
}

func putAll[T any](i inventory, kind string, items []T, object func(*T) metav1.Object) {
	for n := range items {
		i.put(kind, object(&items[n]))
	}
}

// get returns the object of that kind and name, nil if there is none.
func get[T metav1.Object](p *clusterObjects, kind, name string) (object T) {
	object, _ = p.objects[kind+"/"+name].(T)
	return object
}

// secrets returns the data of the cluster's Secrets by name.
func (p *clusterObjects) secrets() map[string]map[string][]byte {
	data := map[string]map[string][]byte{}
	for _, o := range p.objects {
		if secret, ok := o.(*corev1.Secret); ok {
			data[secret.Name] = secret.Data
		}
	}
	return data
}

// pod returns the pod of that name, nil if there is none.
func (p *clusterObjects) pod(name string) *corev1.Pod {
	for _, pod := range p.pods {
		if pod.Name == name {
			return pod
		}
	}
	return nil
}

// claim returns the volume claim of that name, nil if there is none.
func (p *clusterObjects) claim(name string) *corev1.PersistentVolumeClaim {
	for _, claim := range p.claims {
		if claim.Name == name {
			return claim
		}
	}
	return nil
}

// record reads what earlier passes wrote down; the zero value if nothing was.
func (p *clusterObjects) record(names objects.Names) (decide.Record, error) {
	configMap := get[*corev1.ConfigMap](p, "ConfigMap", names.ConfigMap)
	if configMap == nil {
		return decide.Record{}, nil
	}
	text, found := configMap.Data[objects.RecordKey]
	if !found {
		return decide.Record{}, nil
	}
	return objects.DecodeRecord(text)
}

// disbelieve forgets who is said to have declared a cluster if that is a source of this run that
// may declare none there: whoever may write to a namespace writes what its custom resources say,
// and is not to speak for the sources of others.
func (i inventory) disbelieve(desired reconcile.Desired) {
	for k, own := range i {
		if own.custom != nil && !believable(own.custom.Status.DeclaredSource, k.namespace, desired) {
			status := &own.custom.Status
			status.DeclaredSource, status.DeclaredRevision, status.SourceRevision = "", "", ""
		}
	}
}

// believable reports whether a source may have declared what is in a namespace, as far as this run
// knows it: by its name, or else by its location.
func believable(source, namespace string, desired reconcile.Desired) bool {
	if place, known := desired.Place(source); known {
		return place.Namespaces.Allow(namespace)
	}
	known := false
	for _, place := range desired.Sources {
		if source != "" && reconcile.SameLocation(place.Name, source) {
			if place.Namespaces.Allow(namespace) {
				return true
			}
			known = true
		}
	}
	return !known
}
