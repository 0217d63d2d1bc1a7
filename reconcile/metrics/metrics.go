// Package metrics exports Prometheus metrics about the last pass and about the last observed state of the clusters.
//
// Each cluster and source has few series, because messages are never used as labels.
package metrics

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"quorate.dev/quorate/reconcile/report"
)

// Metrics collects metrics from reports and from the phases of passes. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	run      runMetrics
	steps    stepMetrics

	mu sync.Mutex
	// clusters holds the samples of each cluster, by namespace/name.
	clusters map[string]samples
	// fetched holds the time of the last attempt to read each source.
	fetched map[string]time.Time
}

// New returns metrics that contain no reports yet.
func New() *Metrics { return Of("") }

// Of is like New, but for one of several Kubernetes clusters. Unless its name is empty, it is a label of every metric,
// so that the metrics of all Kubernetes clusters can be gathered together.
func Of(kubernetes string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), run: newRunMetrics(), steps: newStepMetrics(),
		clusters: map[string]samples{}, fetched: map[string]time.Time{}}
	to := prometheus.Registerer(m.registry)
	if kubernetes != "" {
		to = prometheus.WrapRegistererWith(prometheus.Labels{"kubernetes": valid(kubernetes)}, to)
	}
	to.MustRegister(m.run.all()...)
	to.MustRegister(m.steps.all()...)
	to.MustRegister(m)
	return m
}

// Gatherer returns a gatherer for Quorate's own metrics only.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// atOnce is the maximum number of simultaneous responses. Each response uses 10 KiB of memory per cluster until it has
// been read.
const atOnce = 3

// Handler serves the metrics of Quorate and of its process, for use in a long-running process. It responds with 503 if
// too many requests are being served.
func (m *Metrics) Handler() http.Handler {
	process := prometheus.NewRegistry()
	process.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(prometheus.Gatherers{m.registry, process},
		promhttp.HandlerOpts{MaxRequestsInFlight: atOnce})
}

// Observe processes the report of a pass that has just ended and took the given time. If took is zero, the report
// covers clusters that finished after the pass. In that case, the report of the pass itself has already been processed.
//
// Clusters that are neither in the report nor in its Others no longer exist. If the pass could not observe anything or
// could not list a namespace, the affected clusters may still exist, and are kept as unobserved.
func (m *Metrics) Observe(rep report.Report, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if took > 0 {
		m.run.observe(rep, took, time.Now())
		m.observeFetches(rep.Fetches)
		m.forget(rep)
	}
	for _, c := range rep.Clusters {
		if seen(c) {
			m.run.decisions.WithLabelValues(c.Decision.Rule, string(c.Decision.Verdict)).Inc()
		}
		m.clusters[c.Key()] = samplesOf(c)
	}
}

// forget removes the clusters that no longer exist, and marks clusters that may still exist as unobserved.
func (m *Metrics) forget(rep report.Report) {
	known := map[string]bool{}
	for _, c := range rep.Clusters {
		known[c.Key()] = true
	}
	for _, key := range rep.Others {
		known[key] = true
	}
	nothingSeen := rep.Error != "" && len(known) == 0
	for key, cluster := range m.clusters {
		switch {
		case known[key]:
		case nothingSeen || rep.MayOmit(cluster.namespace):
			m.clusters[key] = cluster.unseen()
		default:
			delete(m.clusters, key)
		}
	}
}

// observeFetches processes the results of reading sources, counting each result once.
func (m *Metrics) observeFetches(fetches []report.Fetch) {
	for _, f := range fetches {
		source := valid(f.Source)
		again := m.fetched[source].Equal(f.At) && !f.At.IsZero()
		m.fetched[source] = f.At
		m.run.fetched(source, f, again)
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(descs chan<- *prometheus.Desc) {
	for _, f := range families {
		descs <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(metrics chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, cluster := range m.clusters {
		for _, s := range cluster.list {
			metrics <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, s.value,
				slices.Concat([]string{cluster.namespace, cluster.name}, s.labels)...)
		}
	}
}
