package adoption

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
)

// setting is a field of a declaration's spec.
type setting struct {
	name  string // as it is named in the source
	path  []string
	value any
}

// fields lists the numeric options of etcd that have a field of their own in spec.etcd.
var fields = map[string]struct {
	field string
	value func(number int64) any
}{
	"quota-backend-bytes": {"quota", asSize},
	"max-request-bytes":   {"maxRequestBytes", asSize},
	"snapshot-count":      {"snapshotCount", func(number int64) any { return number }},
	"heartbeat-interval":  {"heartbeatInterval", asMilliseconds},
	"election-timeout":    {"electionTimeout", asMilliseconds},
}

func asSize(number int64) any { return resource.NewQuantity(number, resource.BinarySI).String() }

func asMilliseconds(number int64) any { return fmt.Sprintf("%dms", number) }

// quotaOption is the option for the maximum size of the database. defaultQuota is its default in etcd.
const (
	quotaOption  = "quota-backend-bytes"
	defaultQuota = 2 << 30
)

// settings converts etcd's options. dropped lists the options that affect clients or data and cannot be converted.
func (s Source) settings() (settings []setting, dropped []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Options)) {
		value := s.Options[name]
		own, hasField := fields[name]
		further, accepted := objects.OptionNamed(name)
		switch {
		case hasField:
			number, err := strconv.ParseInt(value, 10, 64)
			switch {
			case err != nil || number < 0:
				dropped = append(dropped, name)
			case number > 0: // otherwise, etcd uses its default
				settings = append(settings, setting{name, []string{"etcd", own.field}, own.value(number)})
			}
		case name == "auto-compaction-retention":
			compaction, err := s.compaction(value)
			switch {
			case err != nil:
				dropped = append(dropped, name)
			case compaction != nil:
				settings = append(settings, setting{name, []string{"etcd", "autoCompaction"}, compaction})
			}
		case accepted:
			settings = append(settings, setting{name, []string{"etcd", "options", further}, value})
		case slices.Contains(notCarried, name) || strings.HasPrefix(name, "experimental-"):
			dropped = append(dropped, name)
		}
	}
	if quota := s.Options[quotaOption]; !s.Elsewhere && (quota == "" || quota == "0") {
		// The default of a declaration depends on the volume, and could be less than the source's quota.
		settings = append(settings, setting{quotaOption, []string{"etcd", "quota"}, asSize(defaultQuota)})
	}
	return settings, dropped
}

// podSettings converts the fields of the pods' specification that determine where pods run and what they use. Rules
// about other pods are not included, because they select the source's labels.
func (s Source) podSettings() []setting {
	carried := corev1.PodSpec{NodeSelector: s.Pod.NodeSelector, PriorityClassName: s.Pod.PriorityClassName}
	if s.Pod.Affinity != nil && s.Pod.Affinity.NodeAffinity != nil {
		carried.Affinity = &corev1.Affinity{NodeAffinity: s.Pod.Affinity.NodeAffinity}
	}
	for _, t := range s.Pod.Tolerations {
		if !isDefaultToleration(t) {
			carried.Tolerations = append(carried.Tolerations, t)
		}
	}
	resources := corev1.ResourceRequirements{Requests: s.Resources.Requests, Limits: s.Resources.Limits}
	var settings []setting
	add := func(field string, value any) {
		settings = append(settings, setting{"the pods' " + field, []string{"pod", field}, value})
	}
	if fields := asObject(&resources); len(fields) > 0 {
		add("resources", fields)
	}
	fields := asObject(&carried)
	for _, name := range []string{"affinity", "nodeSelector", "priorityClassName", "tolerations"} {
		if value, set := fields[name]; set {
			add(name, value)
		}
	}
	return settings
}

// asObject converts a value of a Kubernetes type to the values of its fields. Fields that are not set are omitted.
func asObject(value any) map[string]any {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(value)
	if err != nil {
		return nil // cannot happen: the value was decoded from JSON
	}
	return fields
}

// isDefaultToleration reports whether Kubernetes adds a toleration to every pod.
func isDefaultToleration(t corev1.Toleration) bool {
	return (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable) &&
		t.Operator == corev1.TolerationOpExists && t.Effect == corev1.TaintEffectNoExecute &&
		t.TolerationSeconds != nil && *t.TolerationSeconds == defaultTolerationSeconds
}

// defaultTolerationSeconds is the value of the admission plugin DefaultTolerationSeconds.
const defaultTolerationSeconds = 300

// compaction converts --auto-compaction-retention to spec.etcd.autoCompaction. It returns nil if compaction is off, and
// an error if the mode is unknown. A number in periodic mode means hours.
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

// notCarried lists options that affect clients or data, and that a declaration cannot set.
var notCarried = strings.Fields(`auth-token auth-token-ttl bcrypt-cost cipher-suites client-cert-allowed-hostname
	client-crl-file cors enable-grpc-gateway enable-v2 feature-gates host-whitelist listen-client-http-urls
	peer-crl-file tls-max-version unsafe-no-fsync wal-dir`)
