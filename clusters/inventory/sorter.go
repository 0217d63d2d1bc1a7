package inventory

import (
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/kube"
	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
)

// Sorter sorts listed objects by cluster. It implements kube.Taker.
type Sorter struct {
	// opens reports whether a cluster may be opened.
	opens func(Key) bool

	mu     sync.Mutex
	listed ByCluster
}

// NewSorter returns a Sorter. For clusters that opens excludes, the Sorter keeps only the data that is needed for all
// clusters.
func NewSorter(opens func(Key) bool) *Sorter { return &Sorter{opens: opens, listed: ByCluster{}} }

// AnyCluster is passed to NewSorter as opens to include every cluster.
func AnyCluster(Key) bool { return true }

// Listed returns the listed objects by cluster. Call it only after listing is complete.
func (s *Sorter) Listed() ByCluster { return s.listed }

// TakeCustom implements kube.Taker.
func (s *Sorter) TakeCustom(custom *v1alpha1.EtcdCluster, unreadable error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.listed.At(custom.Namespace, custom.Name)
	l.Custom, l.Unreadable = custom, unreadable
}

// Take implements kube.Taker. It adds an object to the cluster that the object's label names.
func (s *Sorter) Take(object kube.Object) error {
	k := Key{object.GetNamespace(), objects.ClusterOf(object.GetLabels())}
	p, opens := packed{}, s.opens(k)
	if opens {
		var err error
		if p, err = pack(object); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.listed.At(k.Namespace, k.Name)
	l.note(k.Name, object)
	if opens {
		l.contents.objects = append(l.contents.objects, p)
	} else {
		l.contents.gone = true
	}
	return nil
}

// note records the data needed for all clusters.
func (l *Listed) note(cluster string, object metav1.Object) {
	switch o := object.(type) {
	case *coordinationv1.Lease:
	case *corev1.Pod:
		if isMember(o) {
			l.Pods++
		}
	case *corev1.PersistentVolumeClaim:
		l.Claims++
	case *batchv1.Job:
		if objects.WorksOnVolume(o.Labels) {
			l.Applied++
		}
	case *corev1.ConfigMap:
		l.Applied++
		if o.Name == objects.NamesOf(cluster).ConfigMap {
			l.HasConfigMap, l.Record = true, o.Data[objects.RecordKey]
		}
	default:
		l.Applied++
	}
}

func isMember(pod *corev1.Pod) bool {
	return !objects.IsBackup(pod.Labels) && !objects.WorksOnVolume(pod.Labels)
}
