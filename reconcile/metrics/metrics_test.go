package metrics_test

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/metrics"
	"quorate.dev/quorate/reconcile/report"
)

//go:generate go test . -run TestMetricsPage -rewrite

var rewrite = flag.Bool("rewrite", false, "rewrite docs/reference/metrics.md")

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// full returns a cluster with a value for every metric.
func full(name string) report.Cluster {
	s := decide.State{Name: name, Now: noon}
	s.Declared = decide.Declared{Replicas: 3, Version: "3.6.16", Lifecycle: decide.Running, Quota: 8 << 30, BacksUp: true, BackupTo: "s3://b", VerifiesBackups: true}
	s.Record = decide.Record{Token: "t", ClusterID: 0xc1}
	s.Membership = decide.Membership{Known: true, ClusterID: 0xc1}
	for i := range 3 {
		s.Record.Members = append(s.Record.Members, decide.RecordedMember{Ordinal: i, Mode: decide.Sealed})
		s.Membership.Members = append(s.Membership.Members, decide.Member{Name: s.ReplicaName(i), Answers: true, Leader: i == 0,
			Version: "3.6.16", DBSize: int64(i+1) << 20, DBSizeInUse: int64(i+1) << 19})
	}
	s.Certificates = []decide.Certificate{{Secret: "s", Key: "k", NotBefore: noon.Add(-time.Hour), NotAfter: noon.Add(99 * time.Hour)}}
	s.Backups.Last = &decide.Backup{Job: "j", Slot: noon.Add(-time.Hour), StartedAt: noon.Add(-59 * time.Minute), FinishedAt: noon, ClusterID: 0xc1, Bytes: 7, Verified: true}
	s.Backups.Drill = &decide.Drill{FinishedAt: noon.Add(-time.Minute), Seconds: 42}
	return report.Cluster{Namespace: "shop", Name: name, State: s,
		Decision: decide.Decision{Rule: decide.Converged, Verdict: decide.Done, Message: "as declared"}}
}

func pass(clusters ...report.Cluster) report.Report {
	return report.Report{Clusters: clusters, Fetches: []report.Fetch{{Source: "https://git.example.com/fleet.git", Revision: "main@sha1:607ee63", At: noon}}}
}

// gathered returns, as sorted text, the series whose names begin with quorate_ followed by one of the prefixes.
func gathered(t *testing.T, m *metrics.Metrics, prefixes ...string) string {
	t.Helper()
	return gatheredFrom(t, m.Gatherer(), prefixes...)
}

func gatheredFrom(t *testing.T, from prometheus.Gatherer, prefixes ...string) string {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range families {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(f.GetName(), "quorate_"+p) }) {
			continue
		}
		for _, s := range f.GetMetric() {
			line, value := strings.TrimPrefix(f.GetName(), "quorate_"), s.GetGauge().GetValue()+s.GetCounter().GetValue()
			for _, l := range s.GetLabel() {
				line += " " + l.GetValue()
			}
			lines = append(lines, fmt.Sprintf("%s %.0f", line, value))
		}
	}
	return strings.Join(lines, "\n")
}

func requireSame(t *testing.T, got, want string) {
	t.Helper()
	if want = strings.ReplaceAll(strings.TrimSpace(want), "\t", ""); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestClusterMetrics(t *testing.T) {
	m := metrics.New()
	m.Observe(pass(full("a")), time.Second)
	// Labels are sorted by name, so the first label in a line may not be the namespace.
	requireSame(t, gathered(t, m, "cluster_"), `
	cluster_alarms CORRUPT a shop 0
	cluster_alarms NOSPACE a shop 0
	cluster_backup_failed a shop 0
	cluster_backup_last_success_timestamp_seconds a shop 1793530860
	cluster_backup_last_verified_timestamp_seconds a shop 1793530860
	cluster_backup_size_bytes a shop 7
	cluster_backup_stale a shop 0
	cluster_backup_unverified a shop 0
	cluster_certificate_expiry_timestamp_seconds a shop 1793890800
	cluster_certificates_urgent a shop 0
	cluster_db_in_use_bytes a shop 1572864
	cluster_db_quota_bytes a shop 8589934592
	cluster_db_size_bytes a shop 3145728
	cluster_decision a shop Converged Done 1
	cluster_drill_duration_seconds a shop 42
	cluster_drill_failed a shop 0
	cluster_drill_last_success_timestamp_seconds a shop 1793534340
	cluster_failed a shop 0
	cluster_info 3.6.16 Running a shop 3.6.16 1
	cluster_last_observed_timestamp_seconds a shop 1793534400
	cluster_member_versions a shop 3.6.16 3
	cluster_members Healthy a shop Leader 1
	cluster_members Healthy a shop Voter 2
	cluster_members_declared a shop 3
	cluster_observed a shop 1
	cluster_ready a shop 1`)
}

// TestGuestsAreNotReplicas checks that a cluster is ready if all its replicas are, whether or not it has guests.
func TestGuestsAreNotReplicas(t *testing.T) {
	for _, answers := range []bool{true, false} {
		c := full("a")
		c.State.Record.Guests = []decide.ID{0x11}
		c.State.Membership.Members = append(slices.Clone(c.State.Membership.Members),
			decide.Member{ID: 0x11, Name: "a-0", Started: true, Answers: answers, Version: "3.6.16"})
		m := metrics.New()
		m.Observe(pass(c), time.Second)
		requireSame(t, gathered(t, m, "cluster_ready"), "cluster_ready a shop 1")
	}
}

// TestKubernetesClustersAreLabeled checks that a label distinguishes the metrics of several Kubernetes clusters.
func TestKubernetesClustersAreLabeled(t *testing.T) {
	var all prometheus.Gatherers
	for _, name := range []string{"eu", "us"} {
		m := metrics.Of(name)
		m.Observe(pass(full("a")), time.Second)
		m.Request("list", http.StatusOK)
		all = append(all, m.Gatherer())
	}
	requireSame(t, gatheredFrom(t, all, "cluster_ready", "passes_total", "api_requests"), `
	api_requests_total 2xx eu list 1
	api_requests_total 2xx us list 1
	cluster_ready eu a shop 1
	cluster_ready us a shop 1
	passes_total eu blocked 0
	passes_total eu error 0
	passes_total eu invalid 0
	passes_total eu locked 0
	passes_total eu ok 1
	passes_total us blocked 0
	passes_total us error 0
	passes_total us invalid 0
	passes_total us locked 0
	passes_total us ok 1`)
}

// TestProblemsAreVisibleInMetrics checks that the metrics of a cluster show its problems.
func TestProblemsAreVisibleInMetrics(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*report.Cluster)
		want   string // a line
	}{
		"blocked": {func(c *report.Cluster) { c.Decision = decide.Decision{Rule: "QuorumLost", Verdict: decide.Block} }, "cluster_decision a shop QuorumLost Block 1"},
		"half upgraded": {func(c *report.Cluster) {
			c.State.Membership.Members[1].Version, c.State.Declared.Version = "3.7.3", "3.7.3"
		}, "cluster_member_versions a shop 3.7.3 1"},
		"what pods are made from": {func(c *report.Cluster) {
			c.State.Membership.Members[1].Version, c.State.Replicas = "3.7.3", []decide.Replica{{Ordinal: 1, PodVersion: "3.7.3"}}
		}, "cluster_member_versions a shop 3.7.3 1"},
		"of nobody":   {func(c *report.Cluster) { c.State.Membership.Members[1].Version = "3.6.0-rc.xyz" }, "cluster_member_versions a shop other 1"},
		"no versions": {func(c *report.Cluster) { c.State.Membership.Members[1].Version = "v\xff" }, "cluster_member_versions a shop 3.6.16 2"},
		"not ready":   {func(c *report.Cluster) { c.State.Membership.Members[1].Answers = false }, "cluster_ready a shop 0"},
		"unreachable": {func(c *report.Cluster) { c.State.Membership.Members[1].Answers = false }, "cluster_members Unreachable a shop Voter 1"},
		"stopped":     {func(c *report.Cluster) { c.State.Declared.Lifecycle = decide.Stopped }, "cluster_ready a shop 0"},
		"not founded": {func(c *report.Cluster) {
			c.State.Record.ClusterID = 0
			for i := range c.State.Record.Members {
				c.State.Record.Members[i].Mode = decide.Founding
			}
		}, "cluster_ready a shop 0"},
		"an alarm": {func(c *report.Cluster) {
			c.State.Membership.Members[0].Alarms = []decide.AlarmKind{decide.AlarmNoSpace}
		}, "cluster_alarms NOSPACE a shop 1"},
		"a strange alarm": {func(c *report.Cluster) { c.State.Membership.Members[0].Alarms = []decide.AlarmKind{"X", "Y"} }, "cluster_alarms other a shop 2"},
		"urgent":          {func(c *report.Cluster) { c.State.Certificates[0].NotAfter = noon }, "cluster_certificates_urgent a shop 1"},
		"stale":           {func(c *report.Cluster) { c.State.Backups.Overdue = true }, "cluster_backup_stale a shop 1"},
		"unverified":      {func(c *report.Cluster) { c.State.Backups.Last.Verified = false }, "cluster_backup_unverified a shop 1"},
		"backup failed": {func(c *report.Cluster) {
			c.State.Backups.Jobs = []decide.BackupJob{{Name: "k", Phase: decide.JobFailed, CreatedAt: noon}}
		}, "cluster_backup_failed a shop 1"},
		"drill failed":     {func(c *report.Cluster) { c.State.Backups.DrillFailed = &decide.DrillFailure{Job: "d"} }, "cluster_drill_failed a shop 1"},
		"acting failed":    {func(c *report.Cluster) { c.Error = "act: no" }, "cluster_failed a shop 1"},
		"text of somebody": {func(c *report.Cluster) { c.State.Declared.Version = "3\xff" }, "cluster_info 3\uFFFD Running a shop other 1"},
	} {
		c := full("a")
		test.change(&c)
		m := metrics.New()
		m.Observe(pass(c), time.Second)
		if got := gathered(t, m, "cluster_"); !slices.Contains(strings.Split(got, "\n"), test.want) {
			t.Errorf("%s: no %q in\n%s", name, test.want, got)
		}
	}
}

// TestUnknownValuesAreAbsent checks that metrics of unknown members, backups, certificates and quotas are absent.
func TestUnknownValuesAreAbsent(t *testing.T) {
	c := full("a")
	c.State.Backups = decide.Backups{Hidden: "forbidden"}
	c.State.Certificates, c.State.Declared.Quota = nil, 0
	c.State.Membership = decide.Membership{Why: "no answer"}
	c.Decision = decide.Decision{Rule: "MembershipUnknown", Verdict: decide.Wait}
	m := metrics.New()
	m.Observe(pass(c), time.Second)
	requireSame(t, gathered(t, m, "cluster_"), `
	cluster_decision a shop MembershipUnknown Wait 1
	cluster_failed a shop 0
	cluster_info 3.6.16 Running a shop  1
	cluster_last_observed_timestamp_seconds a shop 1793534400
	cluster_members_declared a shop 3
	cluster_observed a shop 1`)
}

// TestMetricsOfRemovedClusterDisappear checks that the metrics of a cluster that no longer exists are removed. The
// metrics of a cluster that a pass did not cover are kept. If a cluster could not be observed, its earlier values are
// removed.
func TestMetricsOfRemovedClusterDisappear(t *testing.T) {
	m := metrics.New()
	here := func() string { return gathered(t, m, "cluster_observed", "cluster_ready") }
	m.Observe(pass(full("a"), full("b"), full("c")), time.Second)
	unseen := report.Cluster{Namespace: "shop", Name: "a", Error: "observe: no"}
	rep := pass(unseen)
	rep.Others = []string{"shop/b"}
	m.Observe(rep, time.Second)
	requireSame(t, here(), "cluster_observed a shop 0\ncluster_observed b shop 1\ncluster_ready b shop 1")
	m.Observe(pass(full("c")), 0) // c took longer than the pass; its report omits the other clusters
	requireSame(t, here(), "cluster_observed a shop 0\ncluster_observed b shop 1\ncluster_observed c shop 1\ncluster_ready b shop 1\ncluster_ready c shop 1")
	m.Observe(report.Report{Error: "no API server", Unobserved: true}, time.Second)
	requireSame(t, here(), "cluster_observed a shop 0\ncluster_observed b shop 0\ncluster_observed c shop 0")
	m.Observe(pass(full("b")), time.Second)
	requireSame(t, here(), "cluster_observed b shop 1\ncluster_ready b shop 1")
	bank := full("z")
	bank.Namespace = "bank"
	m.Observe(pass(full("b"), bank), time.Second)
	rep = pass(bank) // for example because the right to list the namespace was revoked
	rep.Error, rep.UnlistedIn = "list namespace shop: forbidden", []string{"shop"}
	m.Observe(rep, time.Second)
	requireSame(t, here(), "cluster_observed b shop 0\ncluster_observed z bank 1\ncluster_ready z bank 1")
	rep = pass(full("b")) // z was deleted while a different namespace cannot be listed
	rep.Error, rep.Unobserved, rep.UnlistedIn = "list namespace lab: too many requests", true, []string{"lab"}
	m.Observe(rep, time.Second)
	requireSame(t, here(), "cluster_observed b shop 1\ncluster_ready b shop 1")
	m.Observe(pass(bank), time.Second)
	requireSame(t, here(), "cluster_observed z bank 1\ncluster_ready z bank 1")
}

func TestPassAndSourceMetrics(t *testing.T) {
	m := metrics.New()
	m.Observe(pass(full("a")), time.Second)
	m.Observe(pass(full("a")), time.Second) // the same read of a source counts only once
	blocked := pass(full("a"))
	blocked.Clusters[0].Decision = decide.Decision{Rule: "QuorumLost", Verdict: decide.Block}
	blocked.Removals = []report.Removal{{Clusters: []string{"shop/x", "shop/y"}}}
	blocked.Fetches[0].Revision, blocked.Fetches[0].At = "main@sha1:aff73df", noon.Add(time.Minute)
	m.Observe(blocked, time.Second)
	failed := pass()
	failed.Error, failed.Fetches[0].Failed, failed.Fetches[0].At = "no", true, noon.Add(2*time.Minute)
	failed.Problems = []report.Problem{{Message: "wrong"}}
	m.Observe(failed, time.Second)
	const fleet = " https://git.example.com/fleet.git "
	requireSame(t, gathered(t, m, "passes", "decisions", "source", "decl", "removals", "last_pass_outcome"), `
	decisions_total Converged Done 2
	decisions_total QuorumLost Block 1
	declaration_problems 1
	last_pass_outcome blocked 0
	last_pass_outcome error 1
	last_pass_outcome invalid 0
	last_pass_outcome locked 0
	last_pass_outcome ok 0
	passes_total blocked 1
	passes_total error 1
	passes_total invalid 0
	passes_total locked 0
	passes_total ok 2
	removals_held_clusters 0
	source_fetches_total error`+fleet+`1
	source_fetches_total ok`+fleet+`2
	source_info main@sha1:aff73df`+fleet+`1
	source_last_success_timestamp_seconds`+fleet+`1793534460
	source_ready`+fleet+`0`)
}

// TestHeldRemovalsStayWhileUnobserved checks that the number of held removals is kept if a pass could not observe
// anything.
func TestHeldRemovalsStayWhileUnobserved(t *testing.T) {
	m := metrics.New()
	held := pass(full("a"))
	held.Removals = []report.Removal{{Clusters: []string{"shop/x", "shop/y"}}}
	for _, rep := range []report.Report{held, {Error: "no API server", Unobserved: true}} {
		m.Observe(rep, time.Second)
		requireSame(t, gathered(t, m, "removals"), "removals_held_clusters 2")
	}
	m.Observe(pass(full("a")), time.Second)
	requireSame(t, gathered(t, m, "removals"), "removals_held_clusters 0")
}

// TestMetricsFollowPrometheusConventions checks that names and units follow the Prometheus conventions, and that
// Handler also serves the metrics of the process.
func TestMetricsFollowPrometheusConventions(t *testing.T) {
	m := metrics.New()
	m.Observe(pass(full("a")), time.Second)
	m.Request("list", http.StatusOK)
	problems, err := testutil.GatherAndLint(m.Gatherer())
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	served := httptest.NewRecorder()
	m.Handler().ServeHTTP(served, httptest.NewRequest("GET", "/metrics", nil))
	for _, name := range []string{"quorate_cluster_ready{", "go_goroutines ", "quorate_pass_duration_seconds_bucket{"} {
		if !strings.Contains(served.Body.String(), "\n"+name) {
			t.Errorf("%s is not served", name)
		}
	}
}

// held is a response whose client does not read until the channel until is closed.
type held struct {
	*httptest.ResponseRecorder
	writing chan<- bool
	until   <-chan struct{}
}

func (h held) Write(p []byte) (int, error) {
	select {
	case h.writing <- true:
	default: // the first write has already been reported
	}
	<-h.until
	return len(p), nil
}

// TestConcurrentScrapesAreLimited checks that the number of simultaneous responses is limited, because each response
// uses memory until it has been read.
func TestConcurrentScrapesAreLimited(t *testing.T) {
	handler, until := metrics.New().Handler(), make(chan struct{})
	defer close(until)
	for n := range 100 {
		answer, answered := held{httptest.NewRecorder(), make(chan<- bool), until}, make(chan bool, 2)
		answer.writing = answered
		go func() {
			handler.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
			answered <- false
		}()
		<-answered
		if answer.Code == http.StatusServiceUnavailable {
			if n < 2 {
				t.Errorf("%d requests are answered at the same time: two Prometheus servers may ask", n)
			}
			return
		}
	}
	t.Error("any number of requests is answered at the same time")
}

const metricsPage = "../../docs/reference/metrics.md"

// TestMetricsPage checks that docs/reference/metrics.md lists the existing metrics. "go generate" rewrites the page.
func TestMetricsPage(t *testing.T) {
	m := metrics.New()
	rep := pass(full("a"))
	rep.Fetches[0].Committed = noon
	m.Observe(rep, time.Second)
	m.Request("list", http.StatusOK)
	want := listMetrics(t, m.Gatherer())
	if *rewrite {
		if err := os.WriteFile(metricsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(metricsPage); err != nil || string(got) != want {
		t.Errorf("docs/reference/metrics.md is stale (%v); run: go generate ./reconcile/metrics", err)
	}
}

func listMetrics(t *testing.T, from prometheus.Gatherer) string {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	page := &strings.Builder{}
	fmt.Fprint(page, "<!-- Generated by go generate ./reconcile/metrics. DO NOT EDIT. -->\n\n# Metrics\n\n"+
		"*Reference. `quorate run` writes these metrics to [`metrics.file` and `metrics.pushgateway`](configuration.md#metrics), and a loop serves them at `--listen`: [monitor Quorate and its clusters](../how-to/monitor.md). "+
		"Metrics that end in `_total` are counters, two are histograms, and all others are gauges. Times are in seconds since 1970. "+
		"Unknown values are absent, not 0. In a run over [several Kubernetes clusters](../how-to/many-kubernetes-clusters.md), each metric also has the label `kubernetes` with the name of the Kubernetes cluster.*\n\n| metric | labels | |\n|---|---|---|\n")
	for _, f := range families {
		var labels []string
		for _, s := range f.GetMetric() {
			for _, l := range s.GetLabel() {
				if name := "`" + l.GetName() + "`"; !slices.Contains(labels, name) {
					labels = append(labels, name)
				}
			}
		}
		help := f.GetHelp()
		if f.GetType().String() == "HISTOGRAM" {
			help += " A histogram."
		}
		fmt.Fprintf(page, "| `%s` | %s | %s |\n", f.GetName(), strings.Join(labels, ", "), help)
	}
	fmt.Fprint(page, "\nA cluster has about 30 series. Counters start from 0 in each run, so `rate()` is only useful in a loop.\n")
	return page.String()
}
