// Package policy determines what a declaration may request for the pods of a cluster, and where its backups may be
// stored. It performs no I/O: it takes a declaration and returns refusals.
package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// Policy determines what declarations may request. The zero value allows everything for pods, but no backup
// destinations and no adoptions.
type Policy struct {
	Images, PriorityClasses, Annotations, Labels, Tolerations, NodeSelectors, NetworkPeers Allowed
	ServiceAccounts, KMSKeys, LockTimes, BackupsPerDay                                     Allowed
	// BackupDestinations and Adoptions, unlike the other fields, allow nothing if they are not limited, so that a
	// missing setting never lets a declaration choose where data is sent, or which other clusters are changed.
	BackupDestinations, Adoptions Allowed
	// Namespaces are the namespaces to which the source is bound, or empty.
	Namespaces []string
}

// Allowed determines which requests of one kind are allowed.
type Allowed struct {
	// Limited restricts requests to those that match a pattern. If it is false, everything is allowed.
	Limited  bool
	Patterns []string
}

// Everything is the pattern that allows all requests of a kind.
const Everything = "**"

// DefaultImage is the repository that is used if a declaration does not name one.
const DefaultImage = "gcr.io/etcd-development/etcd"

// DefaultBackupsPerDay is the maximum number of scheduled backups per day of a bound source.
const DefaultBackupsPerDay = "24"

// Within returns the policy for declarations that are bound to namespaces. Unless a setting allows more, it refuses
// everything except etcd's own image and up to DefaultBackupsPerDay backups.
func (p Policy) Within(namespaces []string) Policy {
	if len(namespaces) == 0 {
		return p
	}
	p.Namespaces = namespaces
	if !p.Images.Limited {
		p.Images = Allowed{Limited: true, Patterns: []string{DefaultImage}}
	}
	if !p.BackupsPerDay.Limited {
		p.BackupsPerDay = Allowed{Limited: true, Patterns: []string{DefaultBackupsPerDay}}
	}
	for _, kind := range Kinds {
		p.Of(kind).Limited = true
	}
	return p
}

// Of returns the field for the given kind, or nil if the kind does not exist.
func (p *Policy) Of(kind Kind) *Allowed {
	return map[Kind]*Allowed{
		Images: &p.Images, PriorityClasses: &p.PriorityClasses, Annotations: &p.Annotations, Labels: &p.Labels,
		Tolerations: &p.Tolerations, NodeSelectors: &p.NodeSelectors, NetworkPeers: &p.NetworkPeers,
		ServiceAccounts: &p.ServiceAccounts, KMSKeys: &p.KMSKeys, LockTimes: &p.LockTimes,
		BackupsPerDay: &p.BackupsPerDay, BackupDestinations: &p.BackupDestinations,
		Adoptions: &p.Adoptions,
	}[kind]
}

// Refusal is a request that is not allowed.
type Refusal struct {
	// Path is the path of the field, such as spec.pod.annotations[a/b]. It may contain untrusted keys.
	Path string
	// Message names the field, the rejected value, and the setting that would allow it.
	Message string
}

// Refusals returns all refusals for a spec, in the order of the decisions.
func (p Policy) Refusals(spec v1alpha1.EtcdClusterSpec) []Refusal {
	r := refusals{}
	for _, d := range decisions {
		if d.check != nil {
			d.check(&r, p, spec)
		}
	}
	if p.bound() {
		r.refuseFields(undecided(), spec)
	}
	return r
}

// bound reports whether the policy is for a source that is bound to namespaces.
func (p Policy) bound() bool { return len(p.Namespaces) > 0 }

// Problems returns the messages of the refusals.
func (p Policy) Problems(spec v1alpha1.EtcdClusterSpec) []string {
	var problems []string
	for _, r := range p.Refusals(spec) {
		problems = append(problems, r.Message)
	}
	return problems
}

type refusals []Refusal

func (r *refusals) add(path, format string, args ...any) {
	*r = append(*r, Refusal{path, path + ": " + fmt.Sprintf(format, args...)})
}

// refuse adds a refusal that names the request and describes what is allowed.
func (r *refusals) refuse(path, asked string, kind Kind, a Allowed) {
	r.add(path, "%s is not allowed; %s", asked, a.describe(kind))
}

func (a Allowed) describe(kind Kind) string {
	none := "none"
	if kind == BackupDestinations {
		none = fmt.Sprintf("none (--%s sets it)", kind)
	}
	return fmt.Sprintf("%s allows %s", kind.Setting(), cmp.Or(strings.Join(a.Patterns, ", "), none))
}

func (r *refusals) image(p Policy, spec v1alpha1.EtcdClusterSpec) {
	repository := spec.Image.Repository
	if !p.Images.allows(func(pattern string) bool { return matchesRepository(pattern, repository) }) {
		asked := quoted(repository)
		if repository == DefaultImage {
			asked += ", the default,"
		}
		r.refuse("spec.image.repository", asked, Images, p.Images)
	}
}

func (r *refusals) priorityClass(p Policy, spec v1alpha1.EtcdClusterSpec) {
	name, a := spec.Pod.PriorityClassName, p.PriorityClasses
	if name != "" && !a.allows(func(pattern string) bool { return matchesReserved(system, pattern, name) }) {
		r.refuse("spec.pod.priorityClassName", quoted(name), PriorityClasses, a)
	}
}

func (r *refusals) labels(p Policy, spec v1alpha1.EtcdClusterSpec) {
	for _, key := range slices.Sorted(maps.Keys(spec.Pod.Labels)) {
		r.entry("spec.pod.labels", key, string(spec.Pod.Labels[key]), Labels, p.Labels)
	}
}

func (r *refusals) nodeSelector(p Policy, spec v1alpha1.EtcdClusterSpec) {
	for _, key := range slices.Sorted(maps.Keys(spec.Pod.NodeSelector)) {
		r.entry("spec.pod.nodeSelector", key, spec.Pod.NodeSelector[key], NodeSelectors, p.NodeSelectors)
	}
}

// entry refuses a map entry unless it is allowed.
func (r *refusals) entry(field, key, value string, kind Kind, a Allowed) {
	if !a.allowsEntry(key, value) {
		message := fmt.Sprintf("%s: %s is not allowed; %s", field, quoted(key+"="+value), a.describe(kind))
		*r = append(*r, Refusal{field + "[" + key + "]", message})
	}
}

// allows reports whether a request is allowed, because everything is allowed or because a pattern matches it.
func (a Allowed) allows(matches func(pattern string) bool) bool {
	return !a.Limited || slices.ContainsFunc(a.Patterns,
		func(pattern string) bool { return pattern == Everything || matches(pattern) })
}

// allowsEntry reports whether a map entry is allowed.
func (a Allowed) allowsEntry(key, value string) bool {
	return a.allows(func(pattern string) bool { return entryOf(pattern).of(key, value) })
}

// allowsKey reports whether entries with the given key are allowed, whatever their value.
func (a Allowed) allowsKey(key string) bool {
	return a.allows(func(pattern string) bool { return entryOf(pattern).anyOf(key) })
}

// quoted returns untrusted text as shown in messages.
func quoted(text string) string {
	const most = 100
	if len(text) > most {
		return fmt.Sprintf("%+q...", strings.ToValidUTF8(text[:most], ""))
	}
	return fmt.Sprintf("%+q", text)
}
