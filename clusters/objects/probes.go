package objects

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"quorate.dev/quorate/etcdversion"
)

// withLivez is the first etcdversion.Version that serves /livez and /readyz.
var withLivez = etcdversion.Must("3.5.11")

// livePath asks whether this member answers from its own data, whatever the rest of the cluster
// does and whatever alarm is raised: restarting it would help against neither.
func livePath(v etcdversion.Version) string {
	if v.AtLeast(withLivez) {
		return "/livez"
	}
	return "/health?serializable=true&exclude=NOSPACE&exclude=CORRUPT"
}

// readyPath asks whether clients are well served by this member. It can be without space: reads and
// deletes go on.
func readyPath(v etcdversion.Version) string {
	if v.AtLeast(withLivez) {
		return "/readyz"
	}
	return "/health?exclude=NOSPACE"
}

// startupProbe gives a member half an hour to load its database, compare it with the others' and
// answer.
func startupProbe(v etcdversion.Version) *applycorev1.ProbeApplyConfiguration {
	return probe(livePath(v)).WithPeriodSeconds(1).WithTimeoutSeconds(5).WithFailureThreshold(1800)
}

// livenessProbe gives up after five minutes: a member that defragments a large database does not
// answer meanwhile.
func livenessProbe(v etcdversion.Version) *applycorev1.ProbeApplyConfiguration {
	return probe(livePath(v)).WithPeriodSeconds(15).WithTimeoutSeconds(15).WithFailureThreshold(20)
}

// readinessProbe looks every second, and forgives the length of an election.
func readinessProbe(v etcdversion.Version) *applycorev1.ProbeApplyConfiguration {
	return probe(readyPath(v)).WithPeriodSeconds(1).WithTimeoutSeconds(5).WithFailureThreshold(5)
}

func probe(path string) *applycorev1.ProbeApplyConfiguration {
	return applycorev1.Probe().WithHTTPGet(applycorev1.HTTPGetAction().
		WithPath(path).
		WithPort(intstr.FromInt32(MetricsPort)).
		WithScheme(corev1.URISchemeHTTP))
}
