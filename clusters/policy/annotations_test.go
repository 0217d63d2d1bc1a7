package policy

import (
	"testing"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// TestWeakeningAnnotations checks that an annotation that weakens a pod's isolation is allowed only by a pattern that
// names it, and not by a pattern that allows everything or by default.
func TestWeakeningAnnotations(t *testing.T) {
	for _, test := range []struct{ patterns, key, value, want string }{
		{"**", "container.apparmor.security.beta.kubernetes.io/etcd", "unconfined", "refused"},
		{"**", "container.apparmor.security.beta.kubernetes.io/etcd", "", "refused"},
		{"**", "container.apparmor.security.beta.kubernetes.io/etcd", "runtime/default", "allowed"},
		{"**", "container.apparmor.security.beta.kubernetes.io/etcd", "localhost/etcd", "allowed"},
		{"", "container.apparmor.security.beta.kubernetes.io/etcd", "runtime/default", "refused"},
		{"container.apparmor.security.beta.kubernetes.io/*", "container.apparmor.security.beta.kubernetes.io/etcd", "unconfined", "allowed"},
		{"container.apparmor.security.beta.kubernetes.io/etcd=localhost/*", "container.apparmor.security.beta.kubernetes.io/etcd", "unconfined", "refused"},
		{"**", "seccomp.security.alpha.kubernetes.io/pod", "unconfined", "refused"},
		{"**", "container.seccomp.security.alpha.kubernetes.io/etcd", "unconfined", "refused"},
		{"**", "security.alpha.kubernetes.io/unsafe-sysctls", "net.core.somaxconn=1", "refused"},
		{"**", "security.alpha.kubernetes.io/sysctls", "runtime/default", "refused"},
		{"*", "io.kubernetes.cri-o.userns-mode", "auto", "refused"},
		{"io.*", "io.katacontainers.config.hypervisor.path", "/tmp/x", "refused"},
		{"io.katacontainers.*", "io.katacontainers.config.hypervisor.path", "/tmp/x", "allowed"},
		{"**", "cdi.k8s.io/device", "vendor.com/gpu=all", "refused"},
		{"**", "devices.nri.io/container.etcd", "- path: /dev/kmsg", "refused"},
		{"devices.nri.io/*", "devices.nri.io/container.etcd", "- path: /dev/kmsg", "allowed"},
		{"**", "devices.crio.io", "/dev/kmsg", "refused"},
		{"*", "userns-mode.crio.io", "auto", "refused"},
		{"devices*", "devices.crio.io", "/dev/kmsg", "refused"},
		{"devices.crio.io", "devices.crio.io", "/dev/kmsg", "allowed"},
		{"*.crio.io", "devices.crio.io", "/dev/kmsg", "allowed"},
		{"**", "seccomp-profile.crio.io/etcd", "unconfined", "refused"},
		{"**", "org.systemd.property.MemoryMax", "1", "refused"},
		{"**", "prometheus.io/scrape", "true", "allowed"},
	} {
		spec := v1alpha1.EtcdClusterSpec{Pod: v1alpha1.PodSpec{Annotations: map[string]v1alpha1.PodAnnotationValue{test.key: v1alpha1.PodAnnotationValue(test.value)}}}
		if got := limited(t, Annotations, test.patterns).Problems(spec); (test.want == "allowed") != (len(got) == 0) {
			t.Errorf("%q of %s=%s: %q, want it %s", test.patterns, test.key, test.value, got, test.want)
		}
		weakens := weakens(test.key, test.value)
		if got := (Policy{}).Problems(spec); weakens != (len(got) > 0) {
			t.Errorf("without a setting, %s=%s: %q", test.key, test.value, got)
		}
	}
}
