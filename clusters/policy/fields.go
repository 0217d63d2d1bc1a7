package policy

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// decision is the policy for some of the fields of a spec.
type decision struct {
	// check adds the refusals for these fields. If it is nil, any valid value is allowed.
	check func(*refusals, Policy, v1alpha1.EtcdClusterSpec)
	// at lists parent paths, and fields lists the paths below each of them, both separated by spaces.
	at, fields string
}

// decisions covers every field of a spec, in the order in which refusals are reported. A bound source may not set a
// field that is not covered, so a new field is refused until a decision is added for it.
var decisions = []decision{
	{nil, "", `replicas version replaceAfter suspend lifecycle image.digests image.pullSecrets[].name`},
	{nil, "tls", `mode serviceNames`}, // the Services are in the cluster's namespace
	{nil, "storage", `size storageClassName retention`},
	{nil, "etcd", `quota autoCompaction.mode autoCompaction.retention snapshotCount heartbeatInterval electionTimeout
		maxRequestBytes onNoSpace corruptionCheck options`},
	{nil, "etcd.defragmentation", `minFreePercent minFree window.schedule window.timeZone window.duration`},
	{nil, "pod.resources", `limits requests`}, // left to ResourceQuotas
	{(*refusals).image, "image", `repository`},
	{(*refusals).priorityClass, "pod", `priorityClassName`},
	{(*refusals).annotations, "pod", `annotations`},
	{(*refusals).labels, "pod", `labels`},
	{(*refusals).tolerations, "pod.tolerations[]", `key operator value effect tolerationSeconds`},
	{(*refusals).nodeSelector, "pod", `nodeSelector`},
	{(*refusals).topology, "pod.topologySpreadConstraints[] " + nearPods, `topologyKey`},
	{nil, "pod.topologySpreadConstraints[]", `maxSkew whenUnsatisfiable labelSelector minDomains nodeAffinityPolicy
		nodeTaintsPolicy matchLabelKeys`},
	{(*refusals).nodeAffinity, nodeTerms, `matchExpressions[].key matchExpressions[].operator matchExpressions[].values
		matchFields[].key matchFields[].operator matchFields[].values`},
	{(*refusals).podAffinity, nearPods + " " + farFromPods, `namespaces namespaceSelector`},
	// These select only pods of the source itself.
	{nil, nearPods + " " + farFromPods, `labelSelector matchLabelKeys mismatchLabelKeys`},
	{nil, farFromPods, `topologyKey`},
	{nil, "pod.affinity.nodeAffinity pod.affinity.podAffinity pod.affinity.podAntiAffinity",
		preferredDuring + "[].weight"},
	{(*refusals).networkPeers, "networkPolicy.clients[] networkPolicy.metrics[]", `namespaces cidr`},
	{nil, "networkPolicy.clients[] networkPolicy.metrics[]", `pods`}, // selects only pods in the cluster's namespace
	{(*refusals).schedules, "backup", `schedule drill.schedule`},
	{nil, "backup", `timeZone suspend recipients identitySecretName verify retention.last retention.hourly
		retention.daily retention.weekly retention.minAge before deadline`},
	{nil, "restore", `cluster backup identitySecretName revisionBump deadline`},
	{nil, "recovery", `clusterID member lost oldVolumes revisionBump deadline backup.name backup.identitySecretName`},
	{(*refusals).destinations, destinationsAt, `s3.bucket s3.prefix s3.region s3.endpoint gcs.bucket gcs.prefix
		gcs.endpoint azure.container azure.prefix azure.account azure.endpoint volume.claimName`},
	{(*refusals).serviceAccounts, destinationsAt, `serviceAccountName`},
	{(*refusals).kmsKeys, destinationsAt, `s3.kmsKey`},
	{(*refusals).lockTimes, destinationsAt, `s3.lockFor`},
	{nil, destinationsAt, `secretName s3.pathStyle s3.caSecretName`},
	{(*refusals).etcdEndpoints, "restore.from.etcd", `endpoints`},
	{nil, "restore.from.etcd", `clusterID secretName acceptLag`}, // the Secret is in the cluster's namespace
	{(*refusals).adoptedEndpoints, "adopt", `endpoints`},
	{nil, "adopt", `clusterID caSecretName release abandon`},
	{(*refusals).claims, "restore.from.claims", `names`},
	// The user has no capabilities, and reads only the allowed claims.
	{nil, "restore.from.claims", `clusterID path runAsUser acceptLag`},
}

const (
	requiredDuring  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferredDuring = "preferredDuringSchedulingIgnoredDuringExecution"

	nodeTerms = "pod.affinity.nodeAffinity." + requiredDuring + ".nodeSelectorTerms[] " +
		"pod.affinity.nodeAffinity." + preferredDuring + "[].preference"
	nearPods = "pod.affinity.podAffinity." + requiredDuring + "[] " +
		"pod.affinity.podAffinity." + preferredDuring + "[].podAffinityTerm"
	farFromPods = "pod.affinity.podAntiAffinity." + requiredDuring + "[] " +
		"pod.affinity.podAntiAffinity." + preferredDuring + "[].podAffinityTerm"
	destinationsAt = "backup.to restore.from recovery.backup.from"
)

// paths returns the paths of the fields that the decision covers.
func (d decision) paths() []string {
	places, paths := strings.Fields(d.at), []string(nil)
	if len(places) == 0 {
		return strings.Fields(d.fields)
	}
	for _, place := range places {
		for _, field := range strings.Fields(d.fields) {
			paths = append(paths, place+"."+field)
		}
	}
	return paths
}

// undecided returns the fields without a decision.
var undecided = sync.OnceValue(func() []string { return uncovered(decisions) })

func uncovered(decisions []decision) []string {
	var covered []string
	for _, d := range decisions {
		covered = append(covered, d.paths()...)
	}
	return slices.DeleteFunc(fieldsOf(reflect.TypeFor[v1alpha1.EtcdClusterSpec](), ""),
		func(path string) bool { return slices.Contains(covered, path) })
}

// fieldsOf returns the paths of the leaf fields of a type. Types of other packages are leaves.
func fieldsOf(t reflect.Type, path string) (paths []string) {
	if t.Kind() == reflect.Pointer {
		return fieldsOf(t.Elem(), path)
	}
	element := t
	if t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		element = t.Elem()
	}
	own := reflect.TypeFor[v1alpha1.EtcdClusterSpec]().PkgPath()
	switch {
	case element.Kind() != reflect.Struct || element.PkgPath() != own:
		return []string{path}
	case element != t:
		return fieldsOf(element, path+"[]")
	}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		at := path
		if name != "" { // otherwise, the fields are inline
			at = strings.TrimPrefix(path+"."+name, ".")
		}
		paths = append(paths, fieldsOf(t.Field(i).Type, at)...)
	}
	return paths
}

// refuseFields refuses each of the fields that the spec sets.
func (r *refusals) refuseFields(paths []string, spec v1alpha1.EtcdClusterSpec) {
	if len(paths) == 0 {
		return
	}
	var fields map[string]any
	text, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	for _, path := range paths {
		if err != nil || isSet(fields, strings.Split(path, ".")) {
			r.add("spec."+path, "a source that is restricted to namespaces may not set this field")
		}
	}
}

// isSet reports whether a path has a value.
func isSet(value any, path []string) bool {
	if len(path) == 0 {
		return value != nil && value != "" // required strings are encoded even if empty
	}
	fields, _ := value.(map[string]any)
	name, several := strings.CutSuffix(path[0], "[]")
	next := fields[name]
	if !several {
		return isSet(next, path[1:])
	}
	elements, _ := next.([]any)
	if entries, is := next.(map[string]any); is {
		elements = slices.Collect(maps.Values(entries))
	}
	return slices.ContainsFunc(elements, func(element any) bool { return isSet(element, path[1:]) })
}
