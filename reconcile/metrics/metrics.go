// Package metrics says of the last pass, and of the clusters as they were last seen, what a Prometheus can watch.
//
// It has a few series for each cluster and source, whatever happens in them: none of their messages becomes a
// label.
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

// Metrics takes in reports, and what is done until there is one. It may be used by several goroutines at once.
type Metrics struct {
	registry *prometheus.Registry
	run      runMetrics
	steps    stepMetrics

	mu sync.Mutex
	// clusters are the samples of each, by namespace/name.
	clusters map[string]samples
	// fetched is when each source was last seen to be read, or that failed.
	fetched map[string]time.Time
}

// New has taken in nothing yet.
func New() *Metrics { return Of("") }

// Of is New for one of several Kubernetes clusters: its name is a label of everything, unless it is empty. What they
// have to say can be gathered together.
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

// Gatherer gathers the metrics of Quorate alone.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// atOnce is how many are given all metrics at once. Each of them takes 10 KiB of memory per cluster until it has them.
const atOnce = 3

// Handler serves the metrics of Quorate and those of its process, for a process that stays. It answers 503 to whoever
// asks while it serves several others.
func (m *Metrics) Handler() http.Handler {
	process := prometheus.NewRegistry()
	process.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(prometheus.Gatherers{m.registry, process},
		promhttp.HandlerOpts{MaxRequestsInFlight: atOnce})
}

// Observe takes in the report of a pass that has just ended, and how long it took. If that is zero, the report is
// one of clusters that took longer than the pass, and was taken in before but for them.
//
// Clusters that the report neither tells of nor names among the others are gone. If nothing could be observed, or
// not their namespace, they may not be: they are there as ones that could not be.
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

// forget drops the clusters that a report knows nothing of.
func (m *Metrics) forget(rep report.Report) {
	known := map[string]bool{}
	for _, c := range rep.Clusters {
		known[c.Key()] = true
	}
	for _, key := range rep.Others {
		known[key] = true
	}
	nothingSeen := rep.Unobserved || rep.Error != "" && len(known) == 0
	for key, cluster := range m.clusters {
		switch {
		case known[key]:
		case nothingSeen || slices.Contains(rep.UnlistedIn, cluster.namespace):
			m.clusters[key] = cluster.unseen()
		default:
			delete(m.clusters, key)
		}
	}
}

// observeFetches takes in what has become of the sources, each time that they were read once.
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
