package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quorate.dev/quorate/reconcile/report"
)

// runMetrics are the metrics of passes and sources.
type runMetrics struct {
	passes     *prometheus.CounterVec
	duration   prometheus.Histogram
	lastPass   prometheus.Gauge
	lastResult *prometheus.GaugeVec
	decisions  *prometheus.CounterVec
	problems   prometheus.Gauge
	held       prometheus.Gauge

	sourceReady   *prometheus.GaugeVec
	sourceFetches *prometheus.CounterVec
	sourceFetched *prometheus.GaugeVec
	sourceInfo    *prometheus.GaugeVec
	sourceCommit  *prometheus.GaugeVec
}

func newRunMetrics() runMetrics {
	gauge := func(name, help string) prometheus.GaugeOpts { return prometheus.GaugeOpts{Name: name, Help: help} }
	counter := func(name, help string) prometheus.CounterOpts { return prometheus.CounterOpts{Name: name, Help: help} }
	m := runMetrics{
		passes: prometheus.NewCounterVec(counter("quorate_passes_total",
			"Passes that have ended, by outcome: ok, error, invalid, blocked or locked, as in the exit codes."),
			[]string{"outcome"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "quorate_pass_duration_seconds",
			Help: "Duration of passes.", Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 25, 50, 100, 250}}),
		lastPass: prometheus.NewGauge(gauge("quorate_last_pass_timestamp_seconds", "When the last pass ended.")),
		lastResult: prometheus.NewGaugeVec(gauge("quorate_last_pass_outcome",
			"1 for the outcome of the last pass, and 0 for the other outcomes."), []string{"outcome"}),
		decisions: prometheus.NewCounterVec(counter("quorate_decisions_total",
			"Decisions about clusters, by rule and verdict."), []string{"rule", "verdict"}),
		problems: prometheus.NewGauge(gauge("quorate_declaration_problems",
			"Problems in the declarations that the last pass read.")),
		held: prometheus.NewGauge(gauge("quorate_removals_held_clusters",
			"Clusters that git no longer declares and that are kept until their removal is confirmed.")),
		sourceReady: prometheus.NewGaugeVec(gauge("quorate_source_ready",
			"Whether the last read of the source succeeded and was accepted."), []string{"source"}),
		sourceFetches: prometheus.NewCounterVec(counter("quorate_source_fetches_total",
			"Passes with a new attempt to read the source, by outcome: ok or error."),
			[]string{"source", "outcome"}),
		sourceFetched: prometheus.NewGaugeVec(gauge("quorate_source_last_success_timestamp_seconds",
			"When the source was last read successfully."), []string{"source"}),
		sourceInfo: prometheus.NewGaugeVec(gauge("quorate_source_info",
			"1, with the last revision read from the source."), []string{"source", "revision"}),
		sourceCommit: prometheus.NewGaugeVec(gauge("quorate_source_commit_timestamp_seconds",
			"Commit time of the last commit read from the source, as recorded in the commit. Absent if there is "+
				"no commit, as for a directory."), []string{"source"}),
	}
	for _, result := range report.Results() {
		m.passes.WithLabelValues(string(result))
	}
	return m
}

func (m runMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.passes, m.duration, m.lastPass, m.lastResult, m.decisions, m.problems, m.held,
		m.sourceReady, m.sourceFetches, m.sourceFetched, m.sourceInfo, m.sourceCommit}
}

func (m runMetrics) observe(rep report.Report, took time.Duration, now time.Time) {
	m.passes.WithLabelValues(string(rep.Result())).Inc()
	m.duration.Observe(took.Seconds())
	m.lastPass.Set(seconds(now))
	for _, result := range report.Results() {
		m.lastResult.WithLabelValues(string(result)).Set(truth(result == rep.Result()))
	}
	m.problems.Set(float64(len(rep.Problems)))
	if rep.Unobserved {
		return // the number of held removals is unknown: keep the previous number
	}
	held := 0
	for _, removal := range rep.Removals {
		held += len(removal.Clusters)
	}
	m.held.Set(float64(held))
}

// fetched processes the result of reading a source. again reports whether the result has already been processed.
func (m runMetrics) fetched(source string, f report.Fetch, again bool) {
	m.sourceReady.WithLabelValues(source).Set(truth(!f.Failed))
	outcome := "ok"
	if f.Failed {
		outcome = "error"
	}
	if !again {
		m.sourceFetches.WithLabelValues(source, outcome).Inc()
	}
	if f.Failed {
		return
	}
	m.sourceFetched.WithLabelValues(source).Set(seconds(f.At))
	m.sourceInfo.DeletePartialMatch(prometheus.Labels{"source": source})
	m.sourceInfo.WithLabelValues(source, valid(f.Revision)).Set(1)
	if f.Committed.IsZero() {
		m.sourceCommit.DeleteLabelValues(source)
	} else {
		m.sourceCommit.WithLabelValues(source).Set(float64(f.Committed.Unix()))
	}
}

// valid returns text as a valid label value.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
