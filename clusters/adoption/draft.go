package adoption

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

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

// Dropped lists what is not carried over, in alphabetical order.
type Dropped struct {
	// Options are etcd options that affect clients or data, or that something else may depend on.
	Options []string
	// PodFields are fields of the pods' specification that determine where pods run and what they use.
	PodFields []string
}

// Draft returns a declaration that adopts the source, which has reported the given membership.
func (s Source) Draft(plan Plan, reported decide.Membership) (map[string]any, Dropped) {
	spec := s.spec(plan, reported.ClusterID)
	replicas := len(reported.Members)
	if s.Kind == statefulSet { // in other sources, a pod may belong to a member that has been removed
		replicas = max(replicas, s.Members)
	}
	spec["replicas"] = int64(replicas)
	spec["version"] = runningVersion(reported)
	if !s.Storage.IsZero() {
		storage := map[string]any{"size": s.Storage.String()}
		if s.StorageClass != nil {
			storage["storageClassName"] = *s.StorageClass
		}
		spec["storage"] = storage
	}
	settings, options := s.settings()
	ofPods, fields := s.podSettings()
	settings = append(settings, ofPods...)
	dropped := Dropped{Options: options, PodFields: fields}
	declare := func(settings []setting) map[string]any {
		spec := runtime.DeepCopyJSON(spec)
		for _, one := range settings {
			one.addTo(spec)
		}
		return s.declaration(plan, spec)
	}
	accepted := func(settings []setting) bool { return check(declare(settings)) == nil }
	kept, rest := settings, []setting(nil)
	if !accepted(settings) {
		kept, rest = fitting(settings, accepted)
	}
	for _, one := range rest {
		if one.ofPod {
			dropped.PodFields = append(dropped.PodFields, one.name)
		} else {
			dropped.Options = append(dropped.Options, one.name)
		}
	}
	slices.Sort(dropped.Options)
	slices.Sort(dropped.PodFields)
	dropped.PodFields = slices.Compact(dropped.PodFields)
	return declare(kept), dropped
}

// maxSettings is the maximum number of settings that are tried one by one.
const maxSettings = 200

// fitting returns the settings that are accepted together, and the rest. A setting may require another one, so the rest
// is tried again as long as any of it is accepted.
func fitting(settings []setting, accepted func([]setting) bool) (kept, rest []setting) {
	if !accepted(nil) { // for example, because of the version; the caller reports it
		return nil, nil
	}
	tried := min(len(settings), maxSettings)
	rest = slices.Clone(settings[:tried])
	for before := -1; len(rest) != before; {
		before = len(rest)
		rest = slices.DeleteFunc(rest, func(one setting) bool {
			fits := accepted(append(slices.Clip(kept), one))
			if fits {
				kept = append(kept, one)
			}
			return fits
		})
	}
	return kept, append(rest, settings[tried:]...)
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
