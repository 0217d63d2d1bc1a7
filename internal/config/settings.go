package config

// Setting is a setting in the file. The flag with the name Flag parses its value.
type Setting struct{ Name, Flag string }

// Settings lists the settings of a run, except its sources.
var Settings = []Setting{
	{"kubernetes.kubeconfig", "kubeconfig"},
	{"kubernetes.contexts", "context"},
	{"kubernetes.fleet", "fleet"},
	{"kubernetes.allowExec", "allow-exec"},
	{"kubernetes.as", "as"},
	{"kubernetes.asGroups", "as-group"},
	{"kubernetes.namespaces", "namespace"},
	{"kubernetes.shard", "shard"},
	{"kubernetes.leaseDuration", "lease-duration"},
	{"etcd.access", "etcd-access"},
	{"etcd.timeout", "etcd-timeout"},
	{"backup.image", "backup-image"},
	{"limits.deletions", "max-deletions"},
	{"limits.clusterTimeout", "cluster-timeout"},
	{"limits.sourcesAtOnce", "sources-at-once"},
	{"loop.listen", "listen"},
	{"loop.gitInterval", "git-interval"},
	{"loop.etcdInterval", "etcd-interval"},
	{"loop.resync", "resync"},
	{"notifications.webhooks", "notify"},
	{"notifications.format", "notify-format"},
	{"notifications.secretFile", "notify-secret-file"},
	{"commitStatus.host", "report-status"},
	{"commitStatus.repository", "report-status-repository"},
	{"commitStatus.tokenFile", "report-status-token-file"},
	{"commitStatus.context", "report-status-context"},
	{"metrics.file", "metrics-file"},
	{"metrics.pushgateway", "pushgateway"},
	{"metrics.pushgatewayJob", "pushgateway-job"},
	{"metrics.heartbeat", "heartbeat"},
	{"log.level", "log-level"},
	{"log.format", "log-format"},
}

// SourceSettings lists the settings in sourceDefaults, and in each entry of sources.
var SourceSettings = []Setting{
	{"branch", "branch"},
	{"tag", "tag"},
	{"semver", "semver"},
	{"ref", "ref"},
	{"commit", "commit"},
	{"path", "path"},
	{"credentials", "git-credentials"},
	{"caOnly", "ca-only"},
	{"proxy", "git-proxy"},
	{"cacheDir", "cache-dir"},
	{"timeout", "fetch-timeout"},
	{"defaultNamespace", "default-namespace"},
	{"allowNamespaces", "allow-namespace"},
	{"allowNonFastForward", "allow-non-fast-forward"},
	{"ignoreOtherKinds", "ignore-other-kinds"},
	{"verify", "verify"},
	{"verifyKeys", "verify-keys"},
	{"policy.adoptions", "allow-adoption"},
	{"policy.annotations", "allow-annotation"},
	{"policy.backupDestinations", "allow-backup-destination"},
	{"policy.backupsPerDay", "allow-backups-per-day"},
	{"policy.imageRepositories", "allow-image-repository"},
	{"policy.kmsKeys", "allow-kms-key"},
	{"policy.labels", "allow-label"},
	{"policy.lockFor", "allow-lock-for"},
	{"policy.networkPeers", "allow-network-peer"},
	{"policy.nodeSelectors", "allow-node-selector"},
	{"policy.priorityClasses", "allow-priority-class"},
	{"policy.serviceAccounts", "allow-service-account"},
	{"policy.tolerations", "allow-toleration"},
	{"limits.bytes", "max-total-bytes"},
	{"limits.objects", "max-objects"},
	{"limits.renderMemory", "max-render-memory"},
}

// TenantSettings lists the settings that only an entry of sources has.
var TenantSettings = []Setting{{"as", "as"}, {"asGroups", "as-group"}}

const (
	sources  = "sources"
	defaults = "sourceDefaults"
	location = "location"
)

// NameOf returns the name of the setting that a flag corresponds to, or "" if the flag is not a setting.
func NameOf(flag string) string {
	for _, s := range Settings {
		if s.Flag == flag {
			return s.Name
		}
	}
	if name := SourceNameOf(flag); name != "" {
		return defaults + "." + name
	}
	if flag == "source" {
		return sources
	}
	return ""
}

// SourceNameOf returns the name that the setting of a flag has in an entry of sources and in sourceDefaults, or "" if
// it is not a setting of sources.
func SourceNameOf(flag string) string {
	for _, s := range SourceSettings {
		if s.Flag == flag {
			return s.Name
		}
	}
	return ""
}

// namesOf returns the names of settings.
func namesOf(list []Setting) (names []string) {
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names
}
