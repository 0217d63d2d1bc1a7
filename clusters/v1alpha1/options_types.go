package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// EtcdOptions configures etcd. Options for which there is no field are set in options.
//
// +kubebuilder:validation:XValidation:rule="!has(self.electionTimeout) || !has(self.heartbeatInterval) || !self.electionTimeout.matches('^([0-9]{1,5}(ms|s|m|h))+$') || !self.heartbeatInterval.matches('^([0-9]{1,5}(ms|s|m|h))+$') || duration(self.electionTimeout) >= duration(self.heartbeatInterval) + duration(self.heartbeatInterval) + duration(self.heartbeatInterval) + duration(self.heartbeatInterval) + duration(self.heartbeatInterval)",message="electionTimeout must be at least five times heartbeatInterval; otherwise etcd does not start",fieldPath=".electionTimeout"
type EtcdOptions struct {
	// quota is the maximum size of the backend database (quota-backend-bytes). A write that exceeds it raises the
	// NOSPACE alarm and makes the cluster read-only. Defaults to half of the size with which the members' volumes were
	// created, in whole mebibytes, up to 2Gi. If an earlier definition has set 2Gi in the custom resource, that value
	// is kept.
	// +optional
	// +kubebuilder:validation:XValidation:rule="string(self).size() <= 36 && !string(self).matches('[eE].{4}')",message="a quantity may have at most 36 characters and an exponent of at most two digits"
	// +kubebuilder:validation:XValidation:rule="string(self).size() > 36 || string(self).matches('[eE].{4}') || !isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('100Mi')) >= 0",message="a quota under 100Mi would fill up immediately; is a unit missing, as in 2Gi?"
	// +kubebuilder:validation:XValidation:rule="string(self).size() > 36 || string(self).matches('[eE].{4}') || !isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('100Gi')) <= 0",message="a quota over 100Gi is more than etcd can handle"
	Quota resource.Quantity `json:"quota,omitzero"`

	// autoCompaction specifies how the key history is compacted automatically. If unset, it is not compacted
	// automatically.
	// +optional
	AutoCompaction *AutoCompaction `json:"autoCompaction,omitempty"`

	// snapshotCount is the number of applied entries after which etcd writes a Raft snapshot (snapshot-count). Defaults
	// to the default of the etcd version.
	// +optional
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=10000000
	SnapshotCount *int64 `json:"snapshotCount,omitempty"`

	// heartbeatInterval is the interval between heartbeats of the Raft leader, in whole milliseconds
	// (heartbeat-interval). Defaults to 100ms.
	// +optional
	// +kubebuilder:default="100ms"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(ms|s|m|h))+$') && duration(self) >= duration('10ms') && duration(self) <= duration('5s')",message="heartbeatInterval must be a duration between 10ms and 5s, such as 100ms"
	HeartbeatInterval Duration `json:"heartbeatInterval,omitempty"`

	// electionTimeout is how long a follower waits for the leader before it starts an election, in whole milliseconds
	// (election-timeout). It must be at least five times heartbeatInterval. Defaults to 1000ms.
	// +optional
	// +kubebuilder:default="1000ms"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(ms|s|m|h))+$') && duration(self) >= duration('50ms') && duration(self) <= duration('50s')",message="electionTimeout must be a duration between 50ms and 50s, such as 1s; otherwise etcd does not start"
	ElectionTimeout Duration `json:"electionTimeout,omitempty"`

	// maxRequestBytes is the maximum size of a request (max-request-bytes). Defaults to 1536Ki.
	// +optional
	// +kubebuilder:default="1536Ki"
	// +kubebuilder:validation:XValidation:rule="string(self).size() <= 36 && !string(self).matches('[eE].{4}')",message="a quantity may have at most 36 characters and an exponent of at most two digits"
	// +kubebuilder:validation:XValidation:rule="string(self).size() > 36 || string(self).matches('[eE].{4}') || !isQuantity(string(self)) || (quantity(string(self)).compareTo(quantity('1Ki')) >= 0 && quantity(string(self)).compareTo(quantity('10Mi')) <= 0)",message="maxRequestBytes must be between 1Ki and 10Mi"
	MaxRequestBytes resource.Quantity `json:"maxRequestBytes,omitzero"`

	// defragmentation specifies when members return unused space in their databases to the file system. If unset,
	// members are defragmented only on request, with the annotation etcd.quorate.dev/defragment. Changes do not restart
	// members.
	// +optional
	Defragmentation *Defragmentation `json:"defragmentation,omitempty"`

	// onNoSpace specifies what passes do while etcd rejects writes because a database has reached its quota (NOSPACE
	// alarm). Report only reports it. Recover also defragments, one at a time and regardless of the maintenance window,
	// every member whose database uses at least 80 % of the quota, and disarms the alarm once no database does. Passes
	// never delete or compact data: declare autoCompaction. Defaults to Report. Changes do not restart members.
	// +optional
	OnNoSpace NoSpacePolicy `json:"onNoSpace,omitempty"`

	// corruptionCheck is the maximum time between two comparisons of the members' data, between 1h and 8760h. 0s
	// disables the comparison. A member does not apply writes while it hashes its data, so the members are compared
	// only while all of them are healthy. If a strict minority of the voters holds different data, its members are
	// replaced one at a time and, if backups are declared, only after a backup. Defaults to 24h. Changes do not restart
	// members.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(ms|s|m|h))+$') && (duration(self) == duration('0s') || duration(self) >= duration('1h') && duration(self) <= duration('8760h'))",message="corruptionCheck must be a duration between 1h and 8760h, such as 24h, or 0s to disable it"
	CorruptionCheck *Duration `json:"corruptionCheck,omitempty"`

	// options sets further etcd options, by their command-line names in etcd 3.6. Only options that are safe to set on
	// a cluster run by Quorate are accepted.
	// +optional
	// +kubebuilder:validation:MaxProperties=24
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['backend-batch-interval', 'backend-batch-limit', 'compaction-batch-limit', 'compaction-sleep-interval', 'corrupt-check-time', 'enable-distributed-tracing', 'grpc-keepalive-interval', 'grpc-keepalive-min-time', 'grpc-keepalive-timeout', 'log-level', 'max-concurrent-streams', 'max-snapshots', 'max-txn-ops', 'max-wals', 'metrics', 'snapshot-catchup-entries', 'tls-min-version', 'warning-apply-duration', 'warning-unary-request-duration', 'watch-progress-notify-interval'])",message="unknown or unsafe option; use the named fields of spec.etcd if one exists. See docs/reference/api.md for supported options"
	// +kubebuilder:validation:XValidation:rule="['backend-batch-limit', 'compaction-batch-limit', 'max-concurrent-streams', 'max-txn-ops', 'snapshot-catchup-entries'].all(k, !(k in self) || self[k].matches('^[1-9][0-9]{0,8}$'))",message="backend-batch-limit, compaction-batch-limit, max-concurrent-streams, max-txn-ops and snapshot-catchup-entries must be whole numbers of at least 1"
	// +kubebuilder:validation:XValidation:rule="['max-snapshots', 'max-wals'].all(k, !(k in self) || self[k].matches('^[0-9]{1,9}$'))",message="max-snapshots and max-wals must be whole numbers; 0 means no limit"
	// +kubebuilder:validation:XValidation:rule="['backend-batch-interval', 'compaction-sleep-interval', 'corrupt-check-time', 'grpc-keepalive-interval', 'grpc-keepalive-min-time', 'grpc-keepalive-timeout', 'warning-apply-duration', 'warning-unary-request-duration', 'watch-progress-notify-interval'].all(k, !(k in self) || self[k].matches('^([0-9]{1,5}(ms|s|m|h))+$'))",message="intervals, times, timeouts and durations must be written as 100ms, 90s, 5m or 1h30m"
	// +kubebuilder:validation:XValidation:rule="!('enable-distributed-tracing' in self) || self['enable-distributed-tracing'] in ['true', 'false']",message="enable-distributed-tracing must be 'true' or 'false'"
	// +kubebuilder:validation:XValidation:rule="!('log-level' in self) || self['log-level'] in ['debug', 'info', 'warn', 'error', 'panic', 'fatal']",message="log-level must be debug, info, warn, error, panic or fatal"
	// +kubebuilder:validation:XValidation:rule="!('metrics' in self) || self['metrics'] in ['basic', 'extensive']",message="metrics must be basic or extensive"
	// +kubebuilder:validation:XValidation:rule="!('tls-min-version' in self) || self['tls-min-version'] in ['TLS1.2', 'TLS1.3']",message="tls-min-version must be TLS1.2 or TLS1.3"
	Options map[string]OptionValue `json:"options,omitempty"`
}

// NoSpacePolicy specifies what passes do about a NOSPACE alarm.
//
// +kubebuilder:validation:Enum=Report;Recover
type NoSpacePolicy string

// The policies.
const (
	NoSpaceReport  NoSpacePolicy = "Report"
	NoSpaceRecover NoSpacePolicy = "Recover"
)

// OptionValue is the value of an etcd option, as on etcd's command line.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]+$`
type OptionValue string

// CompactionMode specifies the unit of retention.
//
// +kubebuilder:validation:Enum=Periodic;Revision
type CompactionMode string

// The compaction modes.
const (
	CompactionPeriodic CompactionMode = "Periodic"
	CompactionRevision CompactionMode = "Revision"
)

// AutoCompaction specifies how the key history is compacted.
//
// +kubebuilder:validation:XValidation:rule="self.mode == 'Periodic' ? self.retention.matches('^([0-9]{1,5}(s|m|h))+$') && duration(self.retention) >= duration('1m') : self.retention.matches('^[1-9][0-9]{0,17}$')",message="retention must be a duration of at least 1m, such as 1h, if mode is Periodic, or a number of revisions, such as 1000, if mode is Revision; otherwise etcd could misread it and never compact",fieldPath=".retention"
type AutoCompaction struct {
	// mode specifies the unit of retention: Periodic (a duration) or Revision (a number of revisions).
	// +required
	Mode CompactionMode `json:"mode"`
	// retention is the amount of history to keep: a duration such as 1h (Periodic), or a number of revisions such as
	// 1000 (Revision).
	// +required
	// +kubebuilder:validation:MaxLength=32
	Retention string `json:"retention"`
}

// Defragmentation specifies when members are defragmented. A member does not serve requests while it is being
// defragmented. Therefore, members are defragmented one at a time, the leader last, after it has transferred
// leadership. All members must be healthy, and no rollout or backup may be in progress.
type Defragmentation struct {
	// minFreePercent is the minimum unused share of a member's database file, in percent. A member is defragmented if
	// its unused space reaches both minFreePercent and minFree. Defaults to 45.
	// +optional
	// +kubebuilder:default=45
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=95
	MinFreePercent int32 `json:"minFreePercent,omitempty"`
	// minFree is the minimum unused space in a member's database file. Defaults to 200Mi.
	// +optional
	// +kubebuilder:default="200Mi"
	// +kubebuilder:validation:XValidation:rule="string(self).size() <= 36 && !string(self).matches('[eE].{4}')",message="a quantity may have at most 36 characters and an exponent of at most two digits"
	// +kubebuilder:validation:XValidation:rule="string(self).size() > 36 || string(self).matches('[eE].{4}') || !isQuantity(string(self)) || (quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('100Gi')) <= 0)",message="minFree must be between 1Mi and 100Gi; is a unit missing, as in 200Mi?"
	MinFree resource.Quantity `json:"minFree,omitzero"`
	// window specifies when defragmentation may start. If unset, defragmentation may start at any time, but a cluster
	// with one member is then defragmented only on request, because this interrupts all clients.
	// +optional
	Window *MaintenanceWindow `json:"window,omitempty"`
}

// MaintenanceWindow is a recurring period.
type MaintenanceWindow struct {
	// schedule is the cron schedule on which the window opens, in the format of spec.backup.schedule, such as
	// "0 2 * * 6" or "H 2 * * *".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	Schedule string `json:"schedule"`
	// timeZone is the IANA time zone of the schedule, such as Europe/Berlin. Defaults to Etc/UTC.
	// +optional
	// +kubebuilder:default="Etc/UTC"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && self != 'Local'",message="timeZone must be an IANA time zone, such as Europe/Berlin"
	TimeZone string `json:"timeZone,omitempty"`
	// duration is how long the window stays open. A defragmentation that has started is completed even if the window
	// closes.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(ms|s|m|h))+$') && duration(self) >= duration('5m') && duration(self) <= duration('168h')",message="duration must be between 5m and 168h, such as 2h"
	Duration Duration `json:"duration"`
}
