package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quorate.dev/quorate/internal/etcdversion"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// family is a gauge about clusters. It has at most one series per cluster, unless it has additional labels.
type family struct {
	desc *prometheus.Desc
	// of adds the values for an observed cluster. If it is nil, samplesOf adds them.
	of func(c report.Cluster, add func(value float64, labels ...string))
}

// samples are the series of one cluster.
type samples struct {
	namespace, name string
	list            []sample
}

// sample is one series. labels holds the values of the labels that follow namespace and name.
type sample struct {
	desc   *prometheus.Desc
	value  float64
	labels []string
}

func gauge(
	name, help string, labels []string, of func(c report.Cluster, add func(value float64, labels ...string)),
) family {
	return family{prometheus.NewDesc("quorate_cluster_"+name, help, append([]string{"namespace", "name"}, labels...),
		nil), of}
}

// single returns a gauge with at most one value per cluster.
func single(name, help string, of func(report.Cluster) (value float64, is bool)) family {
	return gauge(name, help, nil, func(c report.Cluster, add func(float64, ...string)) {
		if value, is := of(c); is {
			add(value)
		}
	})
}

// when returns a gauge for a time. The gauge is absent if the time is unknown.
func when(name, help string, of func(decide.State) time.Time) family {
	return single(name+"_timestamp_seconds", help, func(c report.Cluster) (float64, bool) {
		at := of(c.State)
		return seconds(at), !at.IsZero()
	})
}

// whether returns a gauge with the value 0 or 1. The gauge is absent if the value is unknown.
func whether(name, help string, of func(report.Cluster) (is, known bool)) family {
	return single(name, help, func(c report.Cluster) (float64, bool) {
		is, known := of(c)
		return truth(is), known
	})
}

var (
	observed = gauge("observed", "Whether the last pass that processed the cluster could observe it. "+
		"If not, only this metric and quorate_cluster_failed are present.", nil, nil)
	failed = gauge("failed", "Whether the last pass failed to observe, act on or report the cluster.", nil, nil)
)

// families contains all cluster gauges.
var families = append([]family{observed, failed}, append(append(health, sizes...), backups...)...)

var health = []family{
	when("last_observed", "When the cluster was last observed.", func(s decide.State) time.Time { return s.Now }),
	gauge("info", "1, with the oldest etcd version that a member runs, and the declared version and lifecycle.",
		[]string{"version", "declared_version", "lifecycle"}, addInfo),
	gauge("decision", "1, with the rule of the last decision and its verdict: Act, Wait, Block or Done.",
		[]string{"rule", "verdict"}, func(c report.Cluster, add func(float64, ...string)) {
			add(1, c.Decision.Rule, string(c.Decision.Verdict))
		}),
	whether("ready", "Whether every declared member is a healthy voter, as in the condition Ready. "+
		"Absent while etcd returns no member list.",
		func(c report.Cluster) (bool, bool) { return c.Ready(healthyVoters(c.State), false) }),
	single("members_declared", "Number of declared members.",
		func(c report.Cluster) (float64, bool) { return float64(c.State.Declared.Replicas), true }),
	gauge("members", "Members that etcd lists, by role (Leader, Voter, Learner) and health (Healthy, Unhealthy, "+
		"Unreachable). Combinations without a member are absent; all are absent while etcd returns no member list.",
		[]string{"role", "health"}, addMembers),
	gauge("member_versions", "Members that respond, by etcd version. The version is other if neither git nor a pod "+
		"names it. Absent while no member responds.",
		[]string{"version"}, addVersions),
	gauge("alarms", "Alarms that members have raised: NOSPACE, CORRUPT or other. "+
		"Absent while etcd returns no member list.",
		[]string{"alarm"}, addAlarms),
	when("certificate_expiry", "When the first of the cluster's certificates expires. Passes renew all of them "+
		"except the CA certificate.", func(s decide.State) time.Time {
		for _, c := range s.CertificatesInOrder() {
			return c.NotAfter
		}
		return time.Time{}
	}),
	whether("certificates_urgent", "Whether certificates need manual action now, as in the condition "+
		"CertificatesValid.", func(c report.Cluster) (bool, bool) {
		return c.State.CertificatesUrgent() && !c.Renews(), len(c.State.Certificates) > 0
	}),
}

var sizes = []family{
	single("db_size_bytes", "Size of the largest member database.",
		largest(func(m decide.Member) int64 { return m.DBSize })),
	single("db_in_use_bytes", "Largest number of bytes in use in a member database.",
		largest(func(m decide.Member) int64 { return m.DBSizeInUse })),
	single("db_quota_bytes", "Declared database size at which etcd refuses writes.",
		func(c report.Cluster) (float64, bool) {
			return float64(c.State.Declared.Quota), c.State.Declared.Quota > 0
		}),
}

var backups = []family{
	when("backup_last_success", "When the newest stored backup began.", func(s decide.State) time.Time {
		if s.Backups.Last == nil {
			return time.Time{}
		}
		return s.Backups.Last.StartedAt
	}),
	when("backup_last_verified", "When the newest backup began, if it was read back; otherwise absent.",
		func(s decide.State) time.Time {
			if s.Backups.Last == nil || !s.Backups.Last.Verified {
				return time.Time{}
			}
			return s.Backups.Last.StartedAt
		}),
	single("backup_size_bytes", "Size of the newest backup's snapshot.", func(c report.Cluster) (float64, bool) {
		if c.State.Backups.Last == nil {
			return 0, false
		}
		return float64(c.State.Backups.Last.Bytes), true
	}),
	whether("backup_failed", "Whether a backup has failed and no successful backup has begun since.",
		func(c report.Cluster) (bool, bool) {
			b := c.State.Backups
			return b.NewestFailure() != nil, b.Hidden == "" && (c.State.Declared.BacksUp || len(b.Jobs) > 0)
		}),
	whether("backup_stale", "Whether a backup is overdue, as in the condition BackupStale. "+
		"Absent if no backups are declared.",
		func(c report.Cluster) (bool, bool) { return c.State.BackupStale() }),
	whether("backup_unverified", "Whether the newest backup was not read back, as in the condition "+
		"BackupUnverified. Absent if verification is not declared.",
		func(c report.Cluster) (bool, bool) { return c.State.BackupUnverified() }),
	when("drill_last_success", "When the last successful restore drill ended.", func(s decide.State) time.Time {
		if s.Backups.Drill == nil {
			return time.Time{}
		}
		return s.Backups.Drill.FinishedAt
	}),
	single("drill_duration_seconds", "Duration of the last successful restore drill.",
		func(c report.Cluster) (float64, bool) {
			if c.State.Backups.Drill == nil {
				return 0, false
			}
			return float64(c.State.Backups.Drill.Seconds), true
		}),
	whether("drill_failed", "Whether the newest restore drill failed. Absent before the first drill has ended.",
		func(c report.Cluster) (bool, bool) {
			b := c.State.Backups
			return b.DrillFailed != nil, b.Drill != nil || b.DrillFailed != nil
		}),
}

// seen reports whether a cluster was observed.
func seen(c report.Cluster) bool { return c.Decision.Rule != "" }

// samplesOf returns the series of a cluster. If the cluster could not be observed, its earlier values are dropped.
func samplesOf(c report.Cluster) samples {
	s := samples{namespace: valid(c.Namespace), name: valid(c.Name)}
	s.list = []sample{{observed.desc, truth(seen(c)), nil}, {failed.desc, truth(c.Error != ""), nil}}
	if !seen(c) {
		return s
	}
	for _, f := range families {
		if f.of == nil {
			continue
		}
		f.of(c, func(value float64, labels ...string) {
			for i := range labels {
				labels[i] = valid(labels[i])
			}
			s.list = append(s.list, sample{f.desc, value, labels})
		})
	}
	return s
}

// unseen returns the series of a cluster that may exist but could not be observed.
func (s samples) unseen() samples {
	s.list = []sample{{observed.desc, 0, nil}, {failed.desc, 1, nil}}
	return s
}

func addInfo(c report.Cluster, add func(float64, ...string)) {
	version := ""
	if running := c.State.Running(); len(running) > 0 {
		version = known(c.State)(running[0])
	}
	add(1, version, c.State.Declared.Version, string(c.State.Declared.Lifecycle))
}

func addMembers(c report.Cluster, add func(float64, ...string)) {
	if !c.State.Membership.Known {
		return
	}
	count := map[[2]string]int{}
	for _, m := range c.State.Membership.Members {
		count[[2]string{report.Role(m), report.Health(m)}]++
	}
	for key, n := range count {
		add(float64(n), key[0], key[1])
	}
}

func addVersions(c report.Cluster, add func(float64, ...string)) {
	count, name := map[string]int{}, known(c.State)
	for _, version := range c.State.Running() {
		count[name(version)]++
	}
	for version, n := range count {
		add(float64(n), version)
	}
}

// known returns a function that returns the name of a version, or "other" if the version is neither declared nor run by
// a pod. This limits the number of series if a member keeps reporting different versions.
func known(s decide.State) func(etcdversion.Version) string {
	names := map[string]bool{}
	add := func(text string) {
		if version, err := etcdversion.ParseRunning(text); err == nil {
			names[version.String()] = true
		}
	}
	add(s.Declared.Version)
	for _, r := range s.Replicas {
		add(r.PodVersion)
	}
	return func(version etcdversion.Version) string {
		if !names[version.String()] {
			return "other"
		}
		return version.String()
	}
}

func addAlarms(c report.Cluster, add func(float64, ...string)) {
	if !c.State.Membership.Known {
		return
	}
	count := map[decide.AlarmKind]int{decide.AlarmNoSpace: 0, decide.AlarmCorrupt: 0}
	for _, m := range c.State.Membership.Members {
		for _, kind := range m.Alarms {
			if _, known := count[kind]; !known {
				kind = "other"
			}
			count[kind]++
		}
	}
	for kind, n := range count {
		add(float64(n), string(kind))
	}
}

// healthyVoters returns the number of healthy replicas that vote.
func healthyVoters(s decide.State) int {
	n := 0
	for _, m := range s.Membership.Members {
		if !s.Record.Hosts(m.ID) && !m.Learner && report.Health(m) == "Healthy" {
			n++
		}
	}
	return n
}

// largest returns the largest value among the responding members, or false if no member responds.
func largest(of func(decide.Member) int64) func(report.Cluster) (float64, bool) {
	return func(c report.Cluster) (float64, bool) {
		most, is := int64(0), false
		for _, m := range c.State.Membership.Members {
			if m.Answers {
				most, is = max(most, of(m)), true
			}
		}
		return float64(most), is
	}
}
