// Package alerts tests the rules of deploy/monitoring with Prometheus' own parser and engine. It is a separate module,
// so that Quorate does not depend on Prometheus.
package alerts

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"go.yaml.in/yaml/v3"
)

const (
	monitoring = "../../deploy/monitoring/"
	// length is the simulated time, and step is the evaluation interval.
	length, step = 3 * time.Hour, time.Minute
)

// well contains the series of a healthy fleet of one cluster, with one value per minute.
var well = map[string]string{
	`quorate_last_pass_timestamp_seconds{}`:                                                       `0+60x180`,
	`quorate_last_pass_outcome{outcome="error"}`:                                                  `0x180`,
	`quorate_last_pass_outcome{outcome="invalid"}`:                                                `0x180`,
	`quorate_last_pass_outcome{outcome="ok"}`:                                                     `1x180`,
	`quorate_source_ready{source="fleet.git"}`:                                                    `1x180`,
	`quorate_removals_held_clusters{}`:                                                            `0x180`,
	`quorate_cluster_observed{namespace="shop",name="a"}`:                                         `1x180`,
	`quorate_cluster_failed{namespace="shop",name="a"}`:                                           `0x180`,
	`quorate_cluster_last_observed_timestamp_seconds{namespace="shop",name="a"}`:                  `0+60x180`,
	`quorate_cluster_info{namespace="shop",name="a",lifecycle="Running"}`:                         `1x180`,
	`quorate_cluster_ready{namespace="shop",name="a"}`:                                            `1x180`,
	`quorate_cluster_decision{namespace="shop",name="a",rule="Converged",verdict="Done"}`:         `1x180`,
	`quorate_cluster_alarms{namespace="shop",name="a",alarm="NOSPACE"}`:                           `0x180`,
	`quorate_cluster_db_size_bytes{namespace="shop",name="a"}`:                                    `79x180`,
	`quorate_cluster_db_quota_bytes{namespace="shop",name="a"}`:                                   `100x180`,
	`quorate_cluster_certificates_urgent{namespace="shop",name="a"}`:                              `0x180`,
	`quorate_cluster_certificate_expiry_timestamp_seconds{namespace="shop",name="a"}`:             `700000x180`,
	`quorate_cluster_backup_stale{namespace="shop",name="a"}`:                                     `0x180`,
	`quorate_cluster_backup_unverified{namespace="shop",name="a"}`:                                `0x180`,
	`quorate_cluster_backup_failed{namespace="shop",name="a"}`:                                    `0x180`,
	`quorate_cluster_drill_failed{namespace="shop",name="a"}`:                                     `0x180`,
	`quorate_cluster_drill_last_success_timestamp_seconds{namespace="shop",name="a"}`:             `0x180`,
	`etcd_server_has_leader{namespace="shop",name="a",pod="a-0"}`:                                 `1x180`,
	`etcd_server_leader_changes_seen_total{namespace="shop",name="a",pod="a-0"}`:                  `1x180`,
	`etcd_disk_wal_fsync_duration_seconds_bucket{namespace="shop",name="a",pod="a-0",le="0.016"}`: `0+100x180`,
	`etcd_disk_wal_fsync_duration_seconds_bucket{namespace="shop",name="a",pod="a-0",le="1.024"}`: `0+100x180`,
	`etcd_disk_wal_fsync_duration_seconds_bucket{namespace="shop",name="a",pod="a-0",le="+Inf"}`:  `0+100x180`,
	`up{namespace="shop",name="a",pod="a-0",container="etcd",endpoint="metrics"}`:                 `1x180`,
}

// cases lists problems that start after one hour. want contains the expected alerts, if any, each with the minute in
// which it starts firing.
var cases = []struct {
	name   string
	series map[string]string // replaces series of the healthy fleet
	want   []string
}{
	{"all is well", nil, nil},
	{"no run ends", map[string]string{`quorate_last_pass_timestamp_seconds{}`: `0+60x60 3600x120`}, []string{"QuorateNotRunning 81"}},
	{"a run is late", map[string]string{`quorate_last_pass_timestamp_seconds{}`: `0+60x60 3600x14 4500+60x105`}, nil},
	{"no run has ever told of it", map[string]string{`quorate_last_pass_timestamp_seconds{}`: ``}, []string{"QuorateNotRunning 5"}},
	{"runs fail", map[string]string{`quorate_last_pass_outcome{outcome="error"}`: `0x60 1x120`}, []string{"QuoratePassFailing 76 outcome=error"}},
	{"runs fail now and then", map[string]string{`quorate_last_pass_outcome{outcome="error"}`: `0x60 1x9 0x2 1x9 0x100`}, nil},
	{"git is away", map[string]string{`quorate_source_ready{source="fleet.git"}`: `1x60 0x120`}, []string{"SourceFailing 91 source=fleet.git"}},
	{"git drops clusters", map[string]string{`quorate_removals_held_clusters{}`: `0x60 7x120`}, []string{"RemovalHeld 66"}},
	{"a cluster is out of sight", map[string]string{
		`quorate_cluster_observed{namespace="shop",name="a"}`: `1x60 0x120`, `quorate_cluster_ready{namespace="shop",name="a"}`: `1x60`,
		`quorate_cluster_failed{namespace="shop",name="a"}`: `0x60 1x120`,
	}, []string{"EtcdClusterNotObserved 76 shop/a"}},
	{"a step for one cluster fails each time, while a loop looks at others", map[string]string{`quorate_cluster_failed{namespace="shop",name="a"}`: `0x60 1x120`},
		[]string{"EtcdClusterFailing 76 shop/a"}},
	{"a step fails now and then", map[string]string{`quorate_cluster_failed{namespace="shop",name="a"}`: `0x60 1x9 0x2 1x9 0x100`}, nil},
	{"one shard of several runs no more", map[string]string{`quorate_cluster_last_observed_timestamp_seconds{namespace="shop",name="a"}`: `0+60x60 3600x120`},
		[]string{"EtcdClusterNotObserved 136 shop/a"}},
	{"another shard took it over", map[string]string{`quorate_cluster_last_observed_timestamp_seconds{namespace="shop",name="a",job="quorate-3"}`: `0x180`}, nil},
	{"a member is away", map[string]string{`quorate_cluster_ready{namespace="shop",name="a"}`: `1x60 0x120`}, []string{"EtcdClusterNotReady 71 shop/a"}},
	{"members are rolled", map[string]string{`quorate_cluster_ready{namespace="shop",name="a"}`: `1x60 0x5 1x5 0x5 1x110`}, nil},
	{"one of two runs sees it ready", map[string]string{`quorate_cluster_ready{namespace="shop",name="a",pod="old"}`: `0x180`}, nil},
	{"git stops it", map[string]string{
		`quorate_cluster_ready{namespace="shop",name="a"}`:                    `1x60 0x120`,
		`quorate_cluster_info{namespace="shop",name="a",lifecycle="Running"}`: `1x60`,
		`quorate_cluster_info{namespace="shop",name="a",lifecycle="Stopped"}`: `_x60 1x120`,
	}, nil},
	{"the majority is lost", map[string]string{`quorate_cluster_decision{namespace="shop",name="a",rule="QuorumLost",verdict="Block"}`: `_x60 1x120`},
		[]string{"EtcdClusterBlocked 65 shop/a rule=QuorumLost"}},
	{"space runs out", map[string]string{`quorate_cluster_alarms{namespace="shop",name="a",alarm="NOSPACE"}`: `0x60 1x120`}, []string{"EtcdAlarmRaised 61 alarm=NOSPACE shop/a"}},
	{"the database grows", map[string]string{`quorate_cluster_db_size_bytes{namespace="shop",name="a"}`: `79x60 81x120`}, []string{"DatabaseNearQuota 71 shop/a"}},
	{"the database is almost full", map[string]string{`quorate_cluster_db_size_bytes{namespace="shop",name="a"}`: `79x60 96x120`},
		[]string{"DatabaseAlmostFull 63 shop/a", "DatabaseNearQuota 71 shop/a"}},
	{"a certificate is not renewed", map[string]string{`quorate_cluster_certificate_expiry_timestamp_seconds{namespace="shop",name="a"}`: `700000x60 600000x120`},
		[]string{"CertificateExpiring 121 shop/a"}},
	{"a certificate of a day is not renewed", map[string]string{`quorate_cluster_certificates_urgent{namespace="shop",name="a"}`: `0x60 1x120`}, []string{"CertificateExpiring 121 shop/a"}},
	{"a backup is overdue", map[string]string{`quorate_cluster_backup_stale{namespace="shop",name="a"}`: `0x60 1x120`}, []string{"BackupStale 66 shop/a"}},
	{"a backup is not read back", map[string]string{`quorate_cluster_backup_unverified{namespace="shop",name="a"}`: `0x60 1x120`}, []string{"BackupUnverified 121 shop/a"}},
	{"a backup fails", map[string]string{`quorate_cluster_backup_failed{namespace="shop",name="a"}`: `0x60 1x120`}, []string{"BackupFailing 91 shop/a"}},
	{"a drill fails", map[string]string{`quorate_cluster_drill_failed{namespace="shop",name="a"}`: `0x60 1x120`}, []string{"DrillFailed 66 shop/a"}},
	{"drills stay away", map[string]string{`quorate_cluster_drill_last_success_timestamp_seconds{namespace="shop",name="a"}`: `-3020400x180`}, []string{"DrillFailed 66 shop/a"}},
	{"a member knows no leader", map[string]string{`etcd_server_has_leader{namespace="shop",name="a",pod="a-0"}`: `1x60 0x120`}, []string{"EtcdNoLeader 62 shop/a pod=a-0"}},
	{"an etcd that is not ours knows no leader", map[string]string{`etcd_server_has_leader{namespace="kube-system",pod="etcd-node"}`: `0x180`}, nil},
	{"the leader changes each minute", map[string]string{`etcd_server_leader_changes_seen_total{namespace="shop",name="a",pod="a-0"}`: `1x60 1+1x120`}, []string{"EtcdTooManyLeaderChanges 64 shop/a"}},
	{"the leader changes once", map[string]string{`etcd_server_leader_changes_seen_total{namespace="shop",name="a",pod="a-0"}`: `1x60 2x120`}, nil},
	{"a disk is slow", map[string]string{
		`etcd_disk_wal_fsync_duration_seconds_bucket{namespace="shop",name="a",pod="a-0",le="0.016"}`: `0+100x60 6000x120`,
	}, []string{"EtcdSlowDisk 71 shop/a pod=a-0"}},
	{"in one of two Kubernetes clusters a member is away, and in the other a cluster of that name is well", map[string]string{
		`quorate_cluster_ready{kubernetes="eu",namespace="shop",name="a"}`:                    `1x60 0x120`,
		`quorate_cluster_info{kubernetes="eu",namespace="shop",name="a",lifecycle="Running"}`: `1x180`,
		`quorate_cluster_ready{kubernetes="us",namespace="shop",name="a"}`:                    `1x180`,
		`quorate_cluster_info{kubernetes="us",namespace="shop",name="a",lifecycle="Running"}`: `1x180`,
	}, []string{"EtcdClusterNotReady 71 shop/a kubernetes=eu"}},
	{"a database grows in one of two Kubernetes clusters, and has another quota in the other", map[string]string{
		`quorate_cluster_db_size_bytes{kubernetes="eu",namespace="shop",name="a"}`:  `79x60 81x120`,
		`quorate_cluster_db_quota_bytes{kubernetes="eu",namespace="shop",name="a"}`: `100x180`,
		`quorate_cluster_db_size_bytes{kubernetes="us",namespace="shop",name="a"}`:  `79x180`,
		`quorate_cluster_db_quota_bytes{kubernetes="us",namespace="shop",name="a"}`: `200x180`,
	}, []string{"DatabaseNearQuota 71 shop/a kubernetes=eu"}},
	{"one of two Kubernetes clusters is passed over no more", map[string]string{
		`quorate_last_pass_timestamp_seconds{kubernetes="eu"}`: `0+60x60 3600x120`,
		`quorate_last_pass_timestamp_seconds{kubernetes="us"}`: `0+60x180`,
		`quorate_last_pass_timestamp_seconds{}`:                ``,
	}, []string{"QuorateNotRunning 81 kubernetes=eu"}},
	{"a cluster was looked at long ago in a Kubernetes cluster that is passed over no more", map[string]string{
		`quorate_cluster_last_observed_timestamp_seconds{kubernetes="eu",namespace="shop",name="a"}`: `0+60x60 3600x120`,
		`quorate_cluster_last_observed_timestamp_seconds{kubernetes="us",namespace="shop",name="a"}`: `0+60x60 3600x120`,
		`quorate_last_pass_timestamp_seconds{kubernetes="eu"}`:                                       `0+60x60 3600x120`,
		`quorate_last_pass_timestamp_seconds{kubernetes="us"}`:                                       `0+60x180`,
	}, []string{"EtcdClusterNotObserved 136 shop/a kubernetes=us", "QuorateNotRunning 81 kubernetes=eu"}},
	{"a member is not scraped", map[string]string{`up{namespace="shop",name="a",pod="a-0",container="etcd",endpoint="metrics"}`: `1x60 0x120`}, []string{"EtcdMemberNotScraped 71 shop/a pod=a-0"}},
}

// rules returns the rules in the PrometheusRule, as parsed by Prometheus.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	text, err := os.ReadFile(monitoring + "prometheusrule.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var object struct{ Spec yaml.Node }
	if err := yaml.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	spec, err := yaml.Marshal(&object.Spec)
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(spec, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var list []rulefmt.Rule
	for _, g := range groups.Groups {
		list = append(list, g.Rules...)
	}
	return list
}

// TestAlerts checks that each alert fires at the right time with the right labels, and does not fire otherwise.
func TestAlerts(t *testing.T) {
	all, raised := rules(t), map[string]bool{}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			series := maps.Clone(well)
			maps.Copy(series, c.series)
			got := alerts(t, all, series)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			for _, alert := range got {
				name, _, _ := strings.Cut(alert, " ")
				raised[name] = true
			}
		})
	}
	for _, r := range all {
		if r.Alert != "" && !raised[r.Alert] {
			t.Errorf("no case raises %s", r.Alert)
		}
	}
}

// alerts returns a sorted list of the alerts caused by series, each with the minute in which it starts firing.
func alerts(t *testing.T, all []rulefmt.Rule, series map[string]string) []string {
	t.Helper()
	storage := promqltest.LoadedStorage(t, loading(series))
	defer storage.Close()
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 1e6)
	var list []string
	for _, r := range all {
		if r.Alert == "" {
			continue
		}
		query, err := engine.NewRangeQuery(t.Context(), storage, nil, recorded(all, r.Expr), time.Unix(0, 0), time.Unix(0, 0).Add(length), step)
		if err != nil {
			t.Fatalf("%s: %v", r.Alert, err)
		}
		matrix, err := query.Exec(t.Context()).Matrix()
		if err != nil {
			t.Fatalf("%s: %v", r.Alert, err)
		}
		for _, s := range matrix {
			if since, is := firing(s, time.Duration(r.For)); is {
				list = append(list, strings.TrimSpace(fmt.Sprintf("%s %d %s", r.Alert, since, labelsOf(s))))
			}
		}
		query.Close()
	}
	slices.Sort(list)
	return list
}

// loading returns the commands that load series into Prometheus.
func loading(series map[string]string) string {
	load := &strings.Builder{}
	fmt.Fprintln(load, "load 1m")
	for _, name := range slices.Sorted(maps.Keys(series)) {
		if series[name] != "" {
			fmt.Fprintf(load, "  %s %s\n", name, series[name])
		}
	}
	return load.String()
}

// recorded returns expr with the names of recording rules replaced by their expressions.
func recorded(all []rulefmt.Rule, expr string) string {
	for _, r := range all {
		if r.Record != "" {
			expr = strings.ReplaceAll(expr, r.Record, "("+r.Expr+")")
		}
	}
	return expr
}

// firing returns the first minute at which a series has existed without a gap for the given duration.
func firing(s promql.Series, after time.Duration) (minute int64, is bool) {
	var since, last int64 = -1, -1
	for _, p := range s.Floats {
		if at := p.T / step.Milliseconds(); last < 0 || at != last+1 {
			since, last = at, at
		} else {
			last = at
		}
		if last-since >= int64(after/step) {
			return last, true
		}
	}
	return 0, false
}

// labelsOf returns the labels of an alert, with namespace/name combined.
func labelsOf(s promql.Series) string {
	labels := s.Metric.Map()
	var list []string
	if labels["namespace"] != "" {
		list = append(list, labels["namespace"]+"/"+labels["name"])
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if name == "alarm" {
			list = append([]string{name + "=" + labels[name]}, list...)
		} else if name != "namespace" && name != "name" {
			list = append(list, name+"="+labels[name])
		}
	}
	return strings.Join(list, " ")
}

var (
	documented = regexp.MustCompile("(?m)^\\| `(quorate_[a-z_]+)`")
	heading    = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// known returns all metrics that exist: Quorate's metrics, etcd's metrics, and Prometheus' own metric.
func known(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]bool{"up": true}
	for _, m := range documented.FindAllStringSubmatch(string(page), -1) {
		of[m[1]] = true
	}
	etcd, err := os.ReadFile("testdata/etcd-metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(etcd)) {
		of[name] = true
	}
	if len(of) < 100 {
		t.Fatalf("only %d metrics are known", len(of))
	}
	return of
}

// unknown returns the metrics in expr that are not known.
func unknown(t *testing.T, known map[string]bool, expr string) []string {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	var list []string
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, is := node.(*parser.VectorSelector); is && !known[selector.Name] && !known[strings.TrimSuffix(selector.Name, "_bucket")] {
			list = append(list, selector.Name)
		}
		return nil
	})
	return list
}

// TestRulesNameMetricsThatThereAre checks that alerting and recording rules use only metrics that exist, and that each
// alert has a description and a runbook link.
func TestRulesNameMetricsThatThereAre(t *testing.T) {
	runbook, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	anchors := map[string]bool{"{{ $labels.rule | toLower }}": true}
	for _, h := range heading.FindAllStringSubmatch(string(runbook), -1) {
		anchors[strings.ReplaceAll(strings.ToLower(h[1]), " ", "-")] = true
	}
	there, all := known(t), rules(t)
	for _, r := range all {
		if names := unknown(t, there, recorded(all, r.Expr)); len(names) > 0 {
			t.Errorf("%s%s: there is no metric %q", r.Alert, r.Record, names)
		}
		if r.Alert == "" {
			continue
		}
		_, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "docs/operations.md#")
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || !anchors[anchor] || r.Labels["severity"] == "" {
			t.Errorf("%s: %q, %q", r.Alert, r.Annotations, r.Labels)
		}
	}
}
