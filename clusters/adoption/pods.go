package adoption

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"quorate.dev/quorate/reconcile/decide"
)

// DescribePods returns the etcd cluster that a custom resource runs in pods without a StatefulSet. Pods that have
// ended, that are being deleted, or that the operator did not create for members are ignored. The first pod by name
// determines the settings, except for the quota and the volume: the largest are used. claims are the volume claims in
// the namespace. DescribePods returns an error if a pod does not run etcd.
func DescribePods(custom *CustomResource, pods []corev1.Pod, claims []corev1.PersistentVolumeClaim) (Source, error) {
	s := Source{Namespace: custom.Namespace, Kind: custom.Kind.Name, Name: custom.Name, Owner: custom.Kind.APIVersion(),
		Tool: custom.Kind.Tool, Custom: custom}
	pods = slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return !custom.runs(pod) })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	empty := s
	for i, pod := range pods {
		one := empty
		if err := one.readMember(pod.Spec, claims); err != nil {
			return Source{}, fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		if i == 0 {
			s = one
		} else {
			s.compare(one)
		}
	}
	s.Members = len(pods)
	s.readHosts(pods)
	return s, nil
}

// runs reports whether a pod runs a member. The pod's controller must be of the kind that the operator creates for
// members. A pod that has ended or is being deleted does not count.
func (c *CustomResource) runs(pod corev1.Pod) bool {
	owner := metav1.GetControllerOf(&pod)
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if owner == nil || owner.Kind != c.Kind.PodController || ended || pod.DeletionTimestamp != nil {
		return false
	}
	return owner.UID == c.UID || owner.Kind != c.Kind.Name && strings.HasPrefix(owner.Name, c.Name+"-")
}

// readMember sets the fields that are read from a single pod.
func (s *Source) readMember(spec corev1.PodSpec, claims []corev1.PersistentVolumeClaim) error {
	container, err := s.readPod(spec)
	if err != nil {
		return err
	}
	s.readOptions(container)
	s.readVolume(container, func(volume string) *corev1.PersistentVolumeClaimSpec {
		for _, v := range spec.Volumes {
			if v.Name == volume && v.PersistentVolumeClaim != nil {
				return claimSpec(claims, v.PersistentVolumeClaim.ClaimName)
			}
		}
		return nil
	})
	return nil
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

// compare adds the settings that differ in another pod to Differences, and keeps the larger quota and volume.
func (s *Source) compare(other Source) {
	one, two := s.comparable(), other.comparable()
	for name := range merged(one, two) {
		if one[name] != two[name] && !slices.Contains(s.Differences, name) {
			s.Differences = append(s.Differences, name)
		}
	}
	slices.Sort(s.Differences)
	s.Mixed = s.Mixed || s.TLS != other.TLS || s.ClientPort != other.ClientPort ||
		slices.ContainsFunc(security, func(name string) bool { return s.Options[name] != other.Options[name] })
	if s.quota() < other.quota() {
		s.Options[quotaOption] = strconv.FormatInt(other.quota(), 10)
	}
	if s.Storage.Cmp(other.Storage) < 0 {
		s.Storage, s.StorageClass = other.Storage, other.StorageClass
	}
	s.Ephemeral = s.Ephemeral || other.Ephemeral
	s.Elsewhere = s.Elsewhere || other.Elsewhere
}

// security lists the options that must be the same in all pods, because Problems and Steps check only one value.
var security = strings.Fields(`auto-tls cert-file client-cert-auth force-new-cluster peer-auto-tls peer-cert-allowed-cn
	peer-cert-allowed-hostname peer-cert-file peer-client-cert-auth peer-trusted-ca-file trusted-ca-file`)

// comparable returns the values of the settings by name.
func (s *Source) comparable() map[string]string {
	values := map[string]string{}
	settings, options := s.settings()
	ofPod, fields := s.podSettings()
	for _, one := range append(settings, ofPod...) {
		values[one.name] += fmt.Sprint(one.value) // there may be several tolerations
	}
	for _, name := range options {
		values[name] = s.Options[name]
	}
	for _, name := range fields {
		values[name] = "set"
	}
	return values
}

// readHosts sets Hosts and Patterns if every pod has a DNS name.
func (s *Source) readHosts(pods []corev1.Pod) {
	var hosts []string
	patterns := map[string]bool{}
	for _, pod := range pods {
		hostname, service := pod.Spec.Hostname, pod.Spec.Subdomain
		if hostname != pod.Name || len(validation.IsDNS1123Label(hostname)) > 0 ||
			len(validation.IsDNS1123Label(service)) > 0 {
			return
		}
		pattern := hostname
		if strings.HasPrefix(hostname, s.Name+"-") {
			pattern = s.Name + "-*"
		}
		patterns[s.host(pattern, service)] = true
		if len(hosts) <= decide.MaxGuests {
			hosts = append(hosts, s.host(hostname, service))
		}
	}
	s.Hosts, s.Patterns = hosts, slices.Sorted(maps.Keys(patterns))
}
