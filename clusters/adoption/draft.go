package adoption

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// Plan is what the user chooses for an adoption.
type Plan struct {
	// Name is the name of the new cluster.
	Name string
	// CASecretName is the name of the Secret with the source's CA, or "" without TLS.
	CASecretName string
}

// Draft returns a declaration that adopts the source. reported is the source's membership as reported by etcd, which
// may still be unknown: the declaration then contains the cluster ID 1, and can only be used to query etcd.
func (s Source) Draft(plan Plan, reported decide.Membership) map[string]any {
	id, version, members := decide.ID(1), s.Version, s.Members
	if reported.Known {
		id, members = reported.ClusterID, max(members, len(reported.Members))
		version = runningVersion(reported, version)
	}
	scheme := "http"
	if plan.CASecretName != "" {
		scheme = "https"
	}
	adopt := map[string]any{"clusterID": id.String(), "endpoints": anys(s.endpoints(scheme))}
	spec := map[string]any{"replicas": int64(members), "version": version, "adopt": adopt}
	if plan.CASecretName != "" {
		adopt["caSecretName"] = plan.CASecretName
	} else {
		spec["tls"] = map[string]any{"mode": string(v1alpha1.TLSDisabled)}
	}
	if !s.Storage.IsZero() {
		storage := map[string]any{"size": s.Storage.String()}
		if s.StorageClass != nil {
			storage["storageClassName"] = *s.StorageClass
		}
		spec["storage"] = storage
	}
	if etcd, _ := s.etcdOptions(); len(etcd) > 0 {
		spec["etcd"] = etcd
	}
	return map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.Kind,
		"metadata": map[string]any{"name": plan.Name, "namespace": s.Namespace}, "spec": spec}
}

// runningVersion returns the version that the members run, or otherwise if none of them answers.
func runningVersion(reported decide.Membership, otherwise string) string {
	for _, m := range reported.Members {
		if m.Answers && m.Version != "" {
			return m.Version
		}
	}
	return otherwise
}

func anys(texts []string) []any {
	list := make([]any, len(texts))
	for i, text := range texts {
		list[i] = text
	}
	return list
}

// etcdOptions converts etcd's options to spec.etcd. dropped lists the options that affect clients or data and are not
// carried over, in order.
func (s Source) etcdOptions() (spec map[string]any, dropped []string) {
	spec = map[string]any{}
	options := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Options)) {
		value := s.Options[name]
		number, err := strconv.ParseInt(value, 10, 64)
		isNumber := err == nil && number > 0
		switch {
		case name == "auto-compaction-mode":
		case name == "quota-backend-bytes" && isNumber:
			spec["quota"] = resource.NewQuantity(number, resource.BinarySI).String()
		case name == "max-request-bytes" && isNumber:
			spec["maxRequestBytes"] = resource.NewQuantity(number, resource.BinarySI).String()
		case name == "snapshot-count" && isNumber:
			spec["snapshotCount"] = number
		case name == "heartbeat-interval" && isNumber:
			spec["heartbeatInterval"] = fmt.Sprintf("%dms", number)
		case name == "election-timeout" && isNumber:
			spec["electionTimeout"] = fmt.Sprintf("%dms", number)
		case name == "auto-compaction-retention":
			if compaction := s.compaction(value); compaction != nil {
				spec["autoCompaction"] = compaction
			} else if value != "0" {
				dropped = append(dropped, name)
			}
		case objects.IsOption(name):
			options[name] = value
		case slices.Contains(notCarried, name):
			dropped = append(dropped, name)
		}
	}
	if len(options) > 0 {
		spec["options"] = options
	}
	return spec, dropped
}

// compaction converts --auto-compaction-retention, or returns nil. A number in periodic mode means hours.
func (s Source) compaction(retention string) map[string]any {
	number, err := strconv.ParseInt(retention, 10, 64)
	periodic := s.Options["auto-compaction-mode"] != "revision"
	switch {
	case err == nil && number <= 0:
		return nil
	case !periodic && err != nil:
		return nil
	case !periodic:
		return map[string]any{"mode": string(v1alpha1.CompactionRevision), "retention": retention}
	case err == nil:
		retention += "h"
	}
	return map[string]any{"mode": string(v1alpha1.CompactionPeriodic), "retention": retention}
}

// notCarried lists options that affect clients or data, and that a declaration cannot set. Quorate sets all options
// that are not listed here.
var notCarried = strings.Fields(`auth-token auth-token-ttl bcrypt-cost cipher-suites client-cert-allowed-hostname
	client-crl-file cors enable-grpc-gateway host-whitelist peer-crl-file tls-max-version`)

// Problems returns the reasons why the source cannot be adopted that its StatefulSet shows.
func (s Source) Problems(plan Plan) []string {
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	set := func(name string) bool { value := s.Options[name]; return value != "" && value != "false" }
	if s.Service == "" {
		add("the StatefulSet has no serviceName, so its pods have no names in DNS: copy the cluster with " +
			"spec.restore.from.etcd instead")
	}
	if s.Members == 0 {
		add("the StatefulSet is scaled to 0: start it, or copy its volumes with spec.restore.from.claims")
	}
	if s.Members > mostEndpoints {
		add("the StatefulSet has %d replicas, and a declaration can name at most %d endpoints", s.Members, mostEndpoints)
	}
	if plan.Name == s.Name {
		add("choose a name for the new cluster other than %s: objects with this name belong to the source", s.Name)
	}
	switch {
	case set("auto-tls") || set("peer-auto-tls"):
		add("its members create their own certificates (auto-tls, peer-auto-tls), which no other member can verify: " +
			"copy the cluster with spec.restore.from.etcd instead")
	case s.TLS == WithTLS && plan.CASecretName == "":
		add("its members use TLS: create a Secret from their CA's certificate and private key with kubectl create " +
			"secret tls, and name it with --ca-secret. If the private key is lost, copy the cluster with " +
			"spec.restore.from.etcd instead")
	case s.TLS == WithoutTLS && plan.CASecretName != "":
		add("its members do not use TLS: omit --ca-secret")
	}
	for _, name := range []string{"peer-cert-allowed-cn", "peer-cert-allowed-hostname"} {
		if set(name) {
			add("remove %s from its members' configuration: it rejects the certificates of replicas", name)
		}
	}
	if s.TLS == WithTLS && set("peer-cert-file") && !set("peer-client-cert-auth") {
		add("turn on peer-client-cert-auth: without it, anyone who reaches the peer port can become a member")
	}
	return problems
}

// Steps returns what the user must do before pushing the declaration and while guests remain, in order.
func (s Source) Steps() []string {
	steps := []string{s.Tool.Stop + " Until the last guest has left, no other tool may add or remove members."}
	steps = append(steps, "Take a backup.")
	if s.Storage.IsZero() {
		steps = append(steps, "The members have no volumes of their own: a member loses its data with its pod. Do not "+
			"drain nodes.")
	}
	if s.Deletes {
		steps = append(steps, "The StatefulSet deletes volumes when it is scaled down or deleted: set "+
			"persistentVolumeClaimRetentionPolicy to Retain if you want to keep them.")
	}
	if _, dropped := s.etcdOptions(); len(dropped) > 0 {
		steps = append(steps, "These options are not carried over: "+decide.Enumerate(dropped)+". They cannot "+
			"be declared: check that clients do not need them.")
	}
	steps = append(steps, "Allow the endpoints in sourceDefaults.policy.adoptions of the configuration file: "+
		fmt.Sprintf("%s-*.%s.%s.svc:%d.", s.Name, s.Service, s.Namespace, s.ClientPort))
	if s.Tool.Rejoins {
		steps = append(steps, "A removed member joins again until its pod is stopped: to release a guest, first scale the "+
			"StatefulSet down by one, then release the guest that stopped.")
	}
	return steps
}
