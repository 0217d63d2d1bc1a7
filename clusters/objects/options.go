package objects

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/etcdversion"
)

// A valueKind determines how the value of an option is written to etcd's configuration file.
type valueKind int

const (
	number   valueKind = iota // an unsigned number
	duration                  // written in nanoseconds, because the file is decoded as JSON into a time.Duration
	word                      // one of a fixed set of words
	boolean
)

// option is an etcd option that spec.etcd.options accepts, under its command-line name in etcd 3.6. etcd ignores
// unknown keys in its configuration file, so a test checks each option against the JSON tags of embed.Config in etcd's
// source, for 3.5.3 and later (testdata/objects/etcd-keys.txt).
type option struct {
	kind  valueKind
	words []string
	// since is the first etcdversion.Version whose configuration file accepts the option, or zero if all do.
	since etcdversion.Version
	// key35 is the key in the file of etcd 3.5, if it is different.
	key35 string
}

var options = map[string]option{
	"backend-batch-interval": {kind: duration},
	"backend-batch-limit":    {kind: number},
	"compaction-batch-limit": {kind: number, key35: "experimental-compaction-batch-limit"},
	"compaction-sleep-interval": {kind: duration, since: etcdversion.Must("3.5.16"),
		key35: "experimental-compaction-sleep-interval"},
	"corrupt-check-time":         {kind: duration, key35: "experimental-corrupt-check-time"},
	"enable-distributed-tracing": {kind: boolean, key35: "experimental-enable-distributed-tracing"},
	"grpc-keepalive-interval":    {kind: duration},
	"grpc-keepalive-min-time":    {kind: duration},
	"grpc-keepalive-timeout":     {kind: duration},
	"log-level":                  {kind: word, words: []string{"debug", "info", "warn", "error", "panic", "fatal"}},
	"max-concurrent-streams":     {kind: number, since: etcdversion.Must("3.5.5")},
	"max-snapshots":              {kind: number},
	"max-txn-ops":                {kind: number},
	"max-wals":                   {kind: number},
	"metrics":                    {kind: word, words: []string{"basic", "extensive"}},
	"snapshot-catchup-entries": {kind: number, since: etcdversion.Must("3.5.14"),
		key35: "experimental-snapshot-catch-up-entries"},
	"tls-min-version": {kind: word, words: []string{"TLS1.2", "TLS1.3"},
		since: etcdversion.Must("3.5.8")},
	"warning-apply-duration":         {kind: duration, key35: "experimental-warning-apply-duration"},
	"warning-unary-request-duration": {kind: duration, since: etcdversion.Must("3.6.0")},
	"watch-progress-notify-interval": {kind: duration, key35: "experimental-watch-progress-notify-interval"},
}

// OptionNamed returns the name under which spec.etcd.options accepts an etcd option, given its command-line name in
// etcd 3.5 or later.
func OptionNamed(name string) (current string, accepted bool) {
	name = strings.TrimPrefix(name, "experimental-")
	_, accepted = options[name]
	return name, accepted
}

// CheckOptions returns the problems with etcd's options for the declared version and with the declared NetworkPolicy,
// or nil if there are none.
func CheckOptions(spec v1alpha1.EtcdClusterSpec) []string {
	_, problems := etcdOptions(spec)
	return append(problems, checkNetworkPolicy(spec.NetworkPolicy)...)
}

// etcdOptions returns the keys of etcd's configuration file that spec.etcd sets, and any problems.
func etcdOptions(spec v1alpha1.EtcdClusterSpec) (map[string]any, []string) {
	v, err := declaredVersion(spec.Version)
	if err != nil {
		return nil, []string{err.Error()}
	}
	file := configFile{version: v, keys: map[string]any{}}
	file.checkDataAtStart()
	spec.Etcd.Quota = quotaOf(spec)
	problems := file.setNamed(spec.Etcd)
	for _, name := range slices.Sorted(maps.Keys(spec.Etcd.Options)) {
		if problem := file.setOption(name, string(spec.Etcd.Options[name])); problem != "" {
			problems = append(problems, problem)
		}
	}
	return file.keys, problems
}

// configFile collects the keys of a configuration file for one version.
type configFile struct {
	version etcdversion.Version
	keys    map[string]any
}

// checkDataAtStart makes a member compare its data with that of the other members before it serves requests. In etcd
// 3.6 and later, this is a feature gate.
func (f configFile) checkDataAtStart() {
	if f.version.Minor >= 6 {
		f.keys["feature-gates"] = "InitialCorruptCheck=true"
		return
	}
	f.keys["experimental-initial-corrupt-check"] = true
}

// setNamed sets the options that have their own fields.
func (f configFile) setNamed(o v1alpha1.EtcdOptions) []string {
	var problems []string
	f.keys["quota-backend-bytes"] = o.Quota.Value()
	f.keys["max-request-bytes"] = o.MaxRequestBytes.Value()
	if o.SnapshotCount != nil {
		f.keys["snapshot-count"] = *o.SnapshotCount
	}
	if o.AutoCompaction != nil {
		f.keys["auto-compaction-mode"] = strings.ToLower(string(o.AutoCompaction.Mode))
		f.keys["auto-compaction-retention"] = o.AutoCompaction.Retention
	}
	for _, of := range []struct {
		field, key string
		value      v1alpha1.Duration
	}{{"electionTimeout", "election-timeout", o.ElectionTimeout},
		{"heartbeatInterval", "heartbeat-interval", o.HeartbeatInterval}} {
		length, err := time.ParseDuration(string(of.value))
		if err != nil {
			problems = append(problems, fmt.Sprintf("spec.etcd.%s: %v", of.field, err))
		}
		f.keys[of.key] = length.Milliseconds()
	}
	return problems
}

// setOption sets an option of spec.etcd.options and returns any problem.
func (f configFile) setOption(name, value string) string {
	o, known := options[name]
	if !known {
		return fmt.Sprintf("spec.etcd.options.%s is not supported; supported options are %s", name,
			strings.Join(slices.Sorted(maps.Keys(options)), ", "))
	}
	if !f.version.AtLeast(o.since) {
		return fmt.Sprintf("spec.etcd.options.%s: the configuration file of etcd %s does not support this option; "+
			"use etcd %s or newer, or remove the option", name, f.version, o.since)
	}
	parsed, err := o.parse(value)
	if err != nil {
		return fmt.Sprintf("spec.etcd.options.%s: %v", name, err)
	}
	if f.version.Minor < 6 && o.key35 != "" {
		name = o.key35
	}
	f.keys[name] = parsed
	return ""
}

func (o option) parse(value string) (any, error) {
	switch o.kind {
	case duration:
		length, err := time.ParseDuration(value)
		if err != nil || length <= 0 {
			return nil, fmt.Errorf("must be a duration such as 100ms, 5s or 1h, not %q", value)
		}
		return length.Nanoseconds(), nil
	case boolean:
		if value != "true" && value != "false" {
			return nil, fmt.Errorf("must be true or false, not %q", value)
		}
		return value == "true", nil
	case word:
		if !slices.Contains(o.words, value) {
			return nil, fmt.Errorf("must be one of %s, not %q", strings.Join(o.words, ", "), value)
		}
		return value, nil
	default:
		n, err := strconv.ParseUint(value, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("must be a whole number from 0 to %d, not %q", uint32(math.MaxUint32), value)
		}
		return int64(n), nil
	}
}
