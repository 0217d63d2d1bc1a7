package adoption

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"quorate.dev/quorate/reconcile/decide"
)

// DescribePods returns the etcd cluster that a custom resource runs in pods without a StatefulSet. Pods that have ended
// are ignored. The first pod by name determines etcd's options. claims are the claims in the namespace. It returns an
// error if the first pod does not run etcd.
func DescribePods(custom *CustomResource, pods []corev1.Pod, claims []corev1.PersistentVolumeClaim) (Source, error) {
	s := Source{Namespace: custom.Namespace, Kind: custom.Kind.Name, Name: custom.Name, Owner: custom.Kind.APIVersion(),
		Tool: custom.Kind.Tool, Custom: custom}
	pods = slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	})
	s.Members = len(pods)
	if len(pods) == 0 {
		return s, nil
	}
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	spec := pods[0].Spec
	container, err := s.readPod(spec)
	if err != nil {
		return Source{}, err
	}
	s.readOptions(container)
	s.Storage, s.StorageClass = s.volumeOf(container, func(volume string) *corev1.PersistentVolumeClaimSpec {
		for _, v := range spec.Volumes {
			if v.Name == volume && v.PersistentVolumeClaim != nil {
				return claimSpec(claims, v.PersistentVolumeClaim.ClaimName)
			}
		}
		return nil
	})
	s.readHosts(pods)
	return s, nil
}

// claimSpec returns the specification of a claim, or nil.
func claimSpec(claims []corev1.PersistentVolumeClaim, name string) *corev1.PersistentVolumeClaimSpec {
	for i := range claims {
		if claims[i].Name == name {
			return &claims[i].Spec
		}
	}
	return nil
}

// readHosts sets the pods' DNS names, unless a pod does not have one.
func (s *Source) readHosts(pods []corev1.Pod) {
	var hosts []string
	patterns := map[string]bool{}
	for _, pod := range pods {
		hostname, service := pod.Spec.Hostname, pod.Spec.Subdomain
		if len(validation.IsDNS1123Label(hostname)) > 0 || len(validation.IsDNS1123Label(service)) > 0 {
			return
		}
		prefix := ""
		if strings.HasPrefix(hostname, s.Name+"-") {
			prefix = s.Name + "-"
		}
		patterns[s.host(prefix+"*", service)] = true
		if len(hosts) <= decide.MaxGuests {
			hosts = append(hosts, s.host(hostname, service))
		}
	}
	s.Hosts, s.Patterns = hosts, slices.Sorted(maps.Keys(patterns))
}
