package adoption

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
)

// setting is a field of a declaration's spec.
type setting struct {
	name  string // as it is named in the source
	path  []string
	value any
	entry bool // value is added to the list at path
	ofPod bool // it configures the source's pods, not etcd
}

// addTo adds the setting to a declaration's spec.
func (one setting) addTo(spec map[string]any) {
	value := one.value
	if one.entry {
		list, _, _ := unstructured.NestedSlice(spec, one.path...)
		value = append(list, value)
	}
	_ = unstructured.SetNestedField(spec, value, one.path...) // cannot fail: all parent fields are objects
}

// numericOptions lists the numeric etcd options that have their own field in spec.etcd.
var numericOptions = map[string]struct {
	field string
	value func(number int64) any
}{
	quotaOption:          {"quota", asSize},
	"max-request-bytes":  {"maxRequestBytes", asSize},
	"snapshot-count":     {"snapshotCount", func(number int64) any { return number }},
	"heartbeat-interval": {"heartbeatInterval", asMilliseconds},
	"election-timeout":   {"electionTimeout", asMilliseconds},
}

func asSize(number int64) any { return resource.NewQuantity(number, resource.BinarySI).String() }

func asMilliseconds(number int64) any { return fmt.Sprintf("%dms", number) }

// quotaOption is the option for the maximum database size. defaultQuota is its default in etcd.
const (
	quotaOption  = "quota-backend-bytes"
	defaultQuota = 2 << 30
)

// settings converts etcd's options. dropped lists the options that affect clients or data and cannot be converted.
func (s Source) settings() (settings []setting, dropped []string) {
	add := func(name string, value any, path ...string) {
		settings = append(settings, setting{name: name, path: append([]string{"etcd"}, path...), value: value})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Options)) {
		value := s.Options[name]
		own, hasField := numericOptions[name]
		current, accepted := objects.OptionNamed(name)
		switch {
		case hasField:
			number, err := strconv.ParseInt(cmp.Or(value, "0"), 10, 64)
			switch {
			case err != nil || number < 0:
				dropped = append(dropped, name)
			case number > 0: // otherwise, etcd uses its default
				add(name, own.value(number), own.field)
			}
		case name == "auto-compaction-retention":
			compaction, err := s.compaction(value)
			switch {
			case err != nil:
				dropped = append(dropped, name)
			case compaction != nil:
				add(name, compaction, "autoCompaction")
			}
		case accepted:
			add(name, value, "options", current)
		case slices.Contains(notCarried, current) || strings.HasPrefix(name, "experimental-"):
			dropped = append(dropped, name)
		}
	}
	if quota := s.Options[quotaOption]; !s.Elsewhere && (quota == "" || quota == "0") {
		// A declaration's default quota depends on the volume, and could be less than the source's quota.
		add(quotaOption, asSize(defaultQuota), "quota")
	}
	return settings, dropped
}

// podSettings converts the fields of the pods' specification that determine where pods run and what they use. dropped
// lists fields with the same purpose that are not carried over, such as affinity to other pods, which depends on the
// source's labels.
func (s Source) podSettings() (settings []setting, dropped []string) {
	add := func(name string, value any, path ...string) {
		settings = append(settings, setting{name: name, path: append([]string{"pod"}, path...), value: value,
			ofPod: true})
	}
	carried := asObject(&corev1.ResourceRequirements{Requests: s.Resources.Requests, Limits: s.Resources.Limits})
	for _, kind := range slices.Sorted(maps.Keys(carried)) {
		amounts, _ := carried[kind].(map[string]any)
		for _, resource := range slices.Sorted(maps.Keys(amounts)) {
			add("resources."+kind+"."+resource, amounts[resource], "resources", kind, resource)
		}
	}
	affinity := s.Pod.Affinity
	if affinity == nil {
		affinity = &corev1.Affinity{}
	}
	if affinity.NodeAffinity != nil {
		add("affinity.nodeAffinity", asObject(affinity.NodeAffinity), "affinity", "nodeAffinity")
	}
	if len(s.Pod.NodeSelector) > 0 {
		add("nodeSelector", asObject(&corev1.PodSpec{NodeSelector: s.Pod.NodeSelector})["nodeSelector"], "nodeSelector")
	}
	if s.Pod.PriorityClassName != "" {
		add("priorityClassName", s.Pod.PriorityClassName, "priorityClassName")
	}
	for _, t := range s.Pod.Tolerations {
		if !isDefaultToleration(t) {
			settings = append(settings, setting{name: "tolerations", path: []string{"pod", "tolerations"},
				value: asObject(&t), ofPod: true, entry: true})
		}
	}
	for name, set := range map[string]bool{
		"affinity.podAffinity":      affinity.PodAffinity != nil,
		"affinity.podAntiAffinity":  affinity.PodAntiAffinity != nil,
		"topologySpreadConstraints": len(s.Pod.TopologySpreadConstraints) > 0,
		"schedulerName":             s.Pod.SchedulerName != "" && s.Pod.SchedulerName != corev1.DefaultSchedulerName,
		"runtimeClassName":          s.Pod.RuntimeClassName != nil,
		"hostNetwork":               s.Pod.HostNetwork,
	} {
		if set {
			dropped = append(dropped, name)
		}
	}
	return settings, dropped
}

// asObject converts a value of a Kubernetes type to a map of its fields. Fields that are not set are omitted.
func asObject(value any) map[string]any {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(value)
	if err != nil {
		return nil // cannot happen: the value was decoded from JSON
	}
	return fields
}

// isDefaultToleration reports whether t is a toleration that Kubernetes adds to every pod.
func isDefaultToleration(t corev1.Toleration) bool {
	return (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable) &&
		t.Operator == corev1.TolerationOpExists && t.Effect == corev1.TaintEffectNoExecute &&
		t.TolerationSeconds != nil && *t.TolerationSeconds == defaultTolerationSeconds
}

// defaultTolerationSeconds is the value that the admission plugin DefaultTolerationSeconds sets.
const defaultTolerationSeconds = 300

// compaction converts --auto-compaction-retention to spec.etcd.autoCompaction. It returns nil if compaction is off, and
// an error if the mode is unknown. In periodic mode, a number without a unit is in hours.
func (s Source) compaction(retention string) (map[string]any, error) {
	number, err := strconv.ParseInt(retention, 10, 64)
	isNumber := err == nil
	if d, err := time.ParseDuration(retention); isNumber && number <= 0 || err == nil && d == 0 {
		return nil, nil
	}
	mode := v1alpha1.CompactionPeriodic
	switch text := s.Options["auto-compaction-mode"]; text {
	case "", "periodic":
		if isNumber {
			retention += "h"
		}
	case "revision":
		mode = v1alpha1.CompactionRevision
	default:
		return nil, fmt.Errorf("unknown mode %q", text)
	}
	return map[string]any{"mode": string(mode), "retention": retention}, nil
}

// notCarried lists options that a declaration cannot set, but that affect clients or data, or that something else may
// depend on.
var notCarried = strings.Fields(`auth-token auth-token-ttl backend-bbolt-freelist-type bcrypt-cost
	bootstrap-defrag-threshold-megabytes cipher-suites client-cert-allowed-hostname client-crl-file
	compact-hash-check-enabled compact-hash-check-time cors distributed-tracing-address distributed-tracing-instance-id
	distributed-tracing-sampling-rate distributed-tracing-service-name downgrade-check-time enable-grpc-gateway
	enable-lease-checkpoint enable-lease-checkpoint-persist enable-pprof enable-v2 enable-v2v3 feature-gates
	host-whitelist initial-corrupt-check initial-election-tick-advance listen-client-http-urls listen-metrics-urls
	max-learners memory-mlock peer-crl-file peer-skip-client-san-verification pre-vote raft-read-timeout
	raft-write-timeout self-signed-cert-validity socket-reuse-address socket-reuse-port stop-grpc-service-on-defrag
	strict-reconfig-check tls-max-version txn-mode-write-with-shared-buffer unsafe-no-fsync wal-dir`)

// ofMember lists options that are different for each member, that refer to files in the member's container, or that
// determine how the member joins or logs. Replicas have their own values.
var ofMember = strings.Fields(`advertise-client-urls auto-tls cert-file client-cert-auth client-cert-file
	client-key-file config-file data-dir discovery discovery-cacert discovery-cert discovery-dial-timeout
	discovery-endpoints discovery-fallback discovery-insecure-skip-tls-verify discovery-insecure-transport
	discovery-keepalive-time discovery-keepalive-timeout discovery-key discovery-password discovery-proxy
	discovery-request-timeout discovery-srv discovery-srv-name discovery-token discovery-user
	enable-log-rotation force-new-cluster initial-advertise-peer-urls initial-cluster initial-cluster-state
	initial-cluster-token key-file listen-client-urls listen-peer-urls log-format log-outputs
	log-rotation-config-json logger name peer-auto-tls peer-cert-allowed-cn peer-cert-allowed-hostname
	peer-cert-file peer-client-cert-auth peer-client-cert-file peer-client-key-file peer-key-file
	peer-trusted-ca-file proxy proxy-dial-timeout proxy-failure-wait proxy-read-timeout proxy-refresh-interval
	proxy-write-timeout trusted-ca-file v2-deprecation`)

// quota returns the source's quota, or etcd's default if the quota is not set or not valid.
func (s Source) quota() int64 {
	number, err := strconv.ParseInt(s.Options[quotaOption], 10, 64)
	if err != nil || number <= 0 {
		return defaultQuota
	}
	return number
}
