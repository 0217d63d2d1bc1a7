package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quorate.dev/quorate/reconcile/steps"
)

// stepMetrics are the metrics that are updated during passes.
type stepMetrics struct {
	phases    map[string]prometheus.Observer
	duration  *prometheus.HistogramVec
	requests  *prometheus.CounterVec
	conflicts prometheus.Counter
}

func newStepMetrics() stepMetrics {
	m := stepMetrics{
		phases: map[string]prometheus.Observer{},
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "quorate_phase_duration_seconds",
			Help: "Duration of phases: fetch (reading one source), list (listing the existing clusters) and, for " +
				"each cluster, observe, decide, act and report.",
			Buckets: []float64{.001, .0025, .01, .025, .1, .25, 1, 2.5, 10, 25, 100}}, []string{"phase"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "quorate_api_requests_total",
			Help: "Requests to the API server, by verb and response class: 1xx to 5xx, or none. Each retry counts. " +
				"A connection to a pod has the verb connect, and the class none if it was refused."},
			[]string{"verb", "code"}),
		conflicts: prometheus.NewCounter(prometheus.CounterOpts{Name: "quorate_lease_conflicts_total",
			Help: "Actions that were abandoned because another process had taken the cluster's lease. If another " +
				"process already held the lease, the rule LockedElsewhere applies instead."}),
	}
	for _, phase := range steps.Phases() {
		m.phases[phase] = m.duration.WithLabelValues(phase)
	}
	return m
}

func (m stepMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.duration, m.requests, m.conflicts}
}

// Phase implements steps.Hook. It ignores unknown phases.
func (m *Metrics) Phase(name string, took time.Duration) {
	if phase, known := m.steps.phases[name]; known {
		phase.Observe(took.Seconds())
	}
}

// LeaseConflict implements steps.Hook.
func (m *Metrics) LeaseConflict() { m.steps.conflicts.Inc() }

// Request counts a request to the API server by its verb (there are only a few verbs) and its response status, which is
// 0 if there was no response.
func (m *Metrics) Request(verb string, status int) {
	class := "none"
	if status >= 100 && status < 600 {
		class = strconv.Itoa(status/100) + "xx"
	}
	m.steps.requests.WithLabelValues(verb, class).Inc()
}
