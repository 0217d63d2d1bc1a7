package adoption

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/internal/etcdversion"
	"quorate.dev/quorate/reconcile/decide"
)

// Plan contains the user's choices for an adoption.
type Plan struct {
	// Name is the name of the new cluster.
	Name string
	// CASecretName is the name of the Secret with the source's CA, or "" without TLS.
	CASecretName string
}

// Draft returns a declaration that adopts the source, which has reported the given membership. dropped lists, in
// alphabetical order, the options of etcd that affect clients or data and are not carried over.
func (s Source) Draft(plan Plan, reported decide.Membership) (declaration map[string]any, dropped []string) {
	spec := s.spec(plan, reported.ClusterID)
	spec["replicas"] = int64(max(s.Members, len(reported.Members)))
	spec["version"] = runningVersion(reported)
	if !s.Storage.IsZero() {
		storage := map[string]any{"size": s.Storage.String()}
		if s.StorageClass != nil {
			storage["storageClassName"] = *s.StorageClass
		}
		spec["storage"] = storage
	}
	settings, dropped := s.settings()
	declare := func(settings []setting) map[string]any {
		spec := maps.Clone(spec)
		if etcd := etcdSpec(settings); len(etcd) > 0 {
			spec["etcd"] = etcd
		}
		return s.declaration(plan, spec)
	}
	switch {
	case check(declare(settings)) == nil:
		return declare(settings), dropped
	case check(declare(nil)) != nil: // for example, because of the version; the caller reports it
		return declare(nil), dropped
	}
	var kept []setting
	for _, one := range settings {
		if check(declare(append(slices.Clip(kept), one))) == nil {
			kept = append(kept, one)
		} else {
			dropped = append(dropped, one.option)
		}
	}
	slices.Sort(dropped)
	return declare(kept), dropped
}

// query returns a declaration with which the source can be queried, while its cluster ID and version are unknown.
func (s Source) query(plan Plan) map[string]any {
	spec := s.spec(plan, 1)
	spec["replicas"], spec["version"] = int64(1), decide.RestrictsPeerNames.String()
	return s.declaration(plan, spec)
}

// spec returns the fields that determine how the source is reached.
func (s Source) spec(plan Plan, id decide.ID) map[string]any {
	if plan.CASecretName != "" {
		return map[string]any{"adopt": map[string]any{"clusterID": id.String(), "endpoints": list(s.endpoints("https")),
			"caSecretName": plan.CASecretName}}
	}
	return map[string]any{"adopt": map[string]any{"clusterID": id.String(), "endpoints": list(s.endpoints("http"))},
		"tls": map[string]any{"mode": string(v1alpha1.TLSDisabled)}}
}

func (s Source) declaration(plan Plan, spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.Kind,
		"metadata": map[string]any{"name": plan.Name, "namespace": s.Namespace}, "spec": spec}
}

// runningVersion returns the version of the first responding member that reports a valid version, or "".
func runningVersion(reported decide.Membership) string {
	for _, m := range reported.Members {
		if v, err := etcdversion.ParseRunning(m.Version); m.Answers && err == nil {
			return v.String()
		}
	}
	return ""
}

func list(texts []string) []any {
	list := make([]any, len(texts))
	for i, text := range texts {
		list[i] = text
	}
	return list
}

// setting is a field of spec.etcd, or of spec.etcd.options if further is set.
type setting struct {
	option  string // etcd's name
	field   string
	value   any
	further bool
}

// etcdSpec returns spec.etcd with the given settings.
func etcdSpec(settings []setting) map[string]any {
	etcd, options := map[string]any{}, map[string]any{}
	for _, one := range settings {
		if one.further {
			options[one.field] = one.value
		} else {
			etcd[one.field] = one.value
		}
	}
	if len(options) > 0 {
		etcd["options"] = options
	}
	return etcd
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
				settings = append(settings, setting{option: name, field: own.field, value: own.value(number)})
			}
		case name == "auto-compaction-retention":
			compaction, err := s.compaction(value)
			switch {
			case err != nil:
				dropped = append(dropped, name)
			case compaction != nil:
				settings = append(settings, setting{option: name, field: "autoCompaction", value: compaction})
			}
		case accepted:
			settings = append(settings, setting{option: name, field: further, value: value, further: true})
		case slices.Contains(notCarried, name) || strings.HasPrefix(name, "experimental-"):
			dropped = append(dropped, name)
		}
	}
	if quota := s.Options[quotaOption]; !s.Elsewhere && (quota == "" || quota == "0") {
		// The default of a declaration depends on the volume, and could be less than the source's quota.
		settings = append(settings, setting{option: quotaOption, field: "quota", value: asSize(defaultQuota)})
	}
	return settings, dropped
}

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

// Problems returns the problems, visible in the StatefulSet, that prevent the adoption of the source or make it unsafe.
func (s Source) Problems(plan Plan) []string {
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if s.Service == "" {
		add("the StatefulSet does not set serviceName, so its pods do not have DNS names. Copy the cluster with " +
			"spec.restore.from.etcd instead")
	}
	if s.Members == 0 {
		add("the StatefulSet is scaled to 0. Scale it up, or copy its volumes with spec.restore.from.claims")
	}
	if s.Members > decide.MaxGuests {
		add("the StatefulSet has %d replicas, and at most %d members can be adopted. Copy the cluster with "+
			"spec.restore.from.etcd instead", s.Members, decide.MaxGuests)
	}
	if plan.Name == s.Name {
		add("objects named %s already belong to the source. Choose a different name for the new cluster", s.Name)
	}
	switch {
	case s.isOn("auto-tls") && s.Options["cert-file"] == "", s.isOn("peer-auto-tls") && s.Options["peer-cert-file"] == "":
		add("its members create their own certificates (auto-tls, peer-auto-tls), which other members cannot verify. " +
			"Copy the cluster with spec.restore.from.etcd instead")
	case s.TLS == WithTLS && plan.CASecretName == "":
		add("its members use TLS. Create a Secret from the certificate and private key of their CA (kubectl create " +
			"secret tls), and set --ca-secret to its name. If the private key is lost, copy the cluster with " +
			"spec.restore.from.etcd instead")
	case s.TLS == WithoutTLS && plan.CASecretName != "":
		add("its members do not use TLS. Omit --ca-secret")
	}
	for _, name := range []string{"peer-cert-allowed-cn", "peer-cert-allowed-hostname"} {
		if s.Options[name] != "" {
			add("its members set %s and would reject the replicas' certificates. Remove this option from their "+
				"configuration", name)
		}
	}
	verifies := s.isOn("peer-client-cert-auth") || s.Options["peer-trusted-ca-file"] != ""
	if s.Options["peer-cert-file"] != "" && !verifies && !s.Elsewhere {
		add("peer-client-cert-auth is off, so anyone who can reach the peer port can become a member. Turn it on")
	}
	return problems
}

// isOn reports whether a boolean option of etcd is on, or cannot be read.
func (s Source) isOn(name string) bool {
	value, set := s.Options[name]
	on, err := strconv.ParseBool(value)
	return set && (on || err != nil)
}

// Steps returns the steps that the user must take before pushing the declaration, in order. dropped lists the options
// that are not carried over.
func (s Source) Steps(plan Plan, dropped []string) []string {
	steps := []string{s.Tool.Stop + " Until the last guest (member of the source) has left, no other tool may add or " +
		"remove members.", "Take a backup."}
	if s.Storage.IsZero() {
		steps = append(steps, "No data volume of the members was found. If they do not have volumes of their own, a "+
			"member loses its data if its pod is deleted: do not drain nodes while guests remain.")
	}
	if s.Deletes {
		steps = append(steps, "The StatefulSet deletes volumes when it is scaled down or deleted. To keep them, set "+
			"whenScaled and whenDeleted in persistentVolumeClaimRetentionPolicy to Retain.")
	}
	if s.Elsewhere {
		steps = append(steps, "Other objects or files set etcd's options. Compare them with the declaration, in "+
			"particular the quota, compaction, and TLS on the peer port.")
	}
	if len(dropped) > 0 {
		steps = append(steps, "These options are not carried over, because a declaration does not accept them or "+
			"their values: "+decide.Enumerate(dropped)+". Check that clients do not need them.")
	}
	if plan.CASecretName != "" && !s.isOn("client-cert-auth") && s.Options["trusted-ca-file"] == "" && !s.Elsewhere {
		steps = append(steps, "The source accepts clients without certificates, but replicas do not. Give each client a "+
			"certificate from the CA.")
	}
	if s.Service != "" {
		steps = append(steps, fmt.Sprintf("Allow the endpoints: add %s-*.%s.%s.svc:%d to "+
			"sourceDefaults.policy.adoptions in the configuration file.", s.Name, s.Service, s.Namespace, s.ClientPort))
	}
	return steps
}

// StepsOfRelease returns the steps that the user must take to release each guest.
func (s Source) StepsOfRelease() []string {
	if !s.Tool.Rejoins {
		return nil
	}
	return []string{"Scale the StatefulSet down by one: a removed member would rejoin while its pod runs.",
		"Release the guest whose pod has stopped."}
}
