package objects

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"quorate.dev/quorate/internal/etcdversion"
)

// withLivez is the first etcdversion.Version that serves /livez and /readyz.
var withLivez = etcdversion.Must("3.5.11")

// livePath returns the path that checks that the member responds from its own data. It ignores other members and
// alarms, because a restart would not fix problems with them.
func livePath(v etcdversion.Version) string {
	if v.AtLeast(withLivez) {
		return "/livez"
	}
	return "/health?serializable=true&exclude=NOSPACE&exclude=CORRUPT"
}

// readyPath returns the path that checks that the member can serve clients. It ignores lack of space, because reads and
// deletes still work.
func readyPath(v etcdversion.Version) string {
	if v.AtLeast(withLivez) {
		return "/readyz"
	}
	return "/health?exclude=NOSPACE"
}

// startupProbe returns a probe that gives a member half an hour to load its database, compare it with the other
// members' databases, and respond.
func startupProbe(v etcdversion.Version) *applycorev1.ProbeApplyConfiguration {
	return probe(livePath(v)).WithPeriodSeconds(1).WithTimeoutSeconds(5).WithFailureThreshold(1800)
}

// livenessProbe returns a probe that fails only after five minutes, because a member does not respond while it
// defragments a large database.
func livenessProbe(v etcdversion.Version) *applycorev1.ProbeApplyConfiguration {
	return probe(livePath(v)).WithPeriodSeconds(15).WithTimeoutSeconds(15).WithFailureThreshold(20)
}

// readinessProbe returns a probe that checks every second and tolerates an election.
func readinessProbe(v etcdversion.Version) *applycorev1.ProbeApplyConfiguration {
	return probe(readyPath(v)).WithPeriodSeconds(1).WithTimeoutSeconds(5).WithFailureThreshold(5)
}

func probe(path string) *applycorev1.ProbeApplyConfiguration {
	return applycorev1.Probe().WithHTTPGet(applycorev1.HTTPGetAction().
		WithPath(path).
		WithPort(intstr.FromInt32(MetricsPort)).
		WithScheme(corev1.URISchemeHTTP))
}
