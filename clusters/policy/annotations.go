package policy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// weakening lists prefixes of annotations with which Kubernetes or a container runtime can weaken a pod's isolation:
// profiles, sysctls, devices, user namespaces, and sandbox options.
var weakening = []string{
	"container.apparmor.security.beta.kubernetes.io/",
	"seccomp.security.alpha.kubernetes.io/", "container.seccomp.security.alpha.kubernetes.io/",
	"security.alpha.kubernetes.io/",
	"io.kubernetes.cri-o.", "seccomp-profile.kubernetes.cri-o.io", "io.containerd.", "io.katacontainers.",
	"dev.gvisor.", "run.oci.", "org.systemd.property.", "cdi.k8s.io/",
}

// weakeningDomains lists suffixes of the domains of such annotations. CRI-O's annotations for a whole pod consist of a
// domain without a name.
var weakeningDomains = []string{"nri.io/", "nri.containerd.io/", "crio.io/"}

// weakens reports whether an annotation can weaken the isolation of a pod. The runtime's default profile, and profiles
// that the administrator has loaded on the nodes, do not weaken it.
func weakens(key, value string) bool {
	domain, _ := cutDomain(key)
	known := slices.ContainsFunc(weakening, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) ||
		slices.ContainsFunc(weakeningDomains, func(suffix string) bool {
			return strings.HasSuffix(cmp.Or(domain, key+"/"), suffix)
		})
	profile := strings.HasPrefix(key, "container.") || strings.HasPrefix(key, "seccomp.")
	confined := value == "runtime/default" || value == "docker/default" || strings.HasPrefix(value, "localhost/")
	return known && !(profile && confined)
}

// annotations refuses annotations that no pattern allows. An annotation that weakens the pod must be named by a
// pattern: neither ** nor an unlimited policy allows it.
func (r *refusals) annotations(p Policy, spec v1alpha1.EtcdClusterSpec) {
	for _, key := range slices.Sorted(maps.Keys(spec.Pod.Annotations)) {
		value := string(spec.Pod.Annotations[key])
		if !weakens(key, value) {
			r.entry("spec.pod.annotations", key, value, Annotations, p.Annotations)
			continue
		}
		names := func(pattern string) bool {
			e := entryOf(pattern)
			return weakens(e.key, "") && e.of(key, value)
		}
		if !slices.ContainsFunc(p.Annotations.Patterns, names) {
			message := "spec.pod.annotations: " + quoted(key+"="+value) + " weakens the pod's confinement, and no " +
				Annotations.Flag() + " pattern names this annotation"
			*r = append(*r, Refusal{"spec.pod.annotations[" + key + "]", message})
		}
	}
}
