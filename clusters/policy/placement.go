package policy

import (
	"fmt"
	"slices"
	"strings"

	"quorate.dev/quorate/clusters/v1alpha1"
)

// toleration is a pattern KEY, KEY=VALUE, KEY:EFFECT or KEY=VALUE:EFFECT, in the syntax of taints.
type toleration struct {
	entry
	effect string
	// every specifies that every effect is tolerated.
	every bool
}

var effects = []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}

func tolerationOf(pattern string) toleration {
	i := strings.LastIndexByte(pattern, ':')
	if i < 0 {
		return toleration{entry: entryOf(pattern), every: true}
	}
	return toleration{entry: entryOf(pattern[:i]), effect: pattern[i+1:]}
}

func (t toleration) check() error {
	if !t.every && !slices.Contains(effects, t.effect) {
		return fmt.Errorf("the effect of a taint must be one of %s", strings.Join(effects, ", "))
	}
	return t.entry.checkLabel()
}

// allows reports whether the pattern covers all taints that asked tolerates. Without a key, a toleration covers all
// taints. Without an effect, it covers all effects. With the operator Exists, it covers all values.
func (t toleration) allows(asked v1alpha1.Toleration) bool {
	if !t.every && t.effect != asked.Effect {
		return false
	}
	switch asked.Operator {
	case "", "Equal":
		return t.of(asked.Key, asked.Value)
	case "Exists":
		return t.anyOf(asked.Key)
	}
	return false
}

func (r *refusals) tolerations(p Policy, spec v1alpha1.EtcdClusterSpec) {
	for i, asked := range spec.Pod.Tolerations {
		if !p.Tolerations.allows(func(pattern string) bool { return tolerationOf(pattern).allows(asked) }) {
			r.refuse(fmt.Sprintf("spec.pod.tolerations[%d]", i), describe(asked), Tolerations, p.Tolerations)
		}
	}
}

// describe returns a description of the taints that t tolerates.
func describe(t v1alpha1.Toleration) string {
	words := "tolerating every taint"
	switch {
	case t.Key != "" && t.Operator == "Exists":
		words = "tolerating " + quoted(t.Key) + " with any value"
	case t.Key != "":
		words = "tolerating " + quoted(t.Key+"="+t.Value)
	}
	if t.Effect != "" {
		return words + " with " + quoted(t.Effect)
	}
	return words
}

// nodeAffinity refuses affinities that select nodes by labels that nodeSelector may not use.
func (r *refusals) nodeAffinity(p Policy, spec v1alpha1.EtcdClusterSpec) {
	const path = "spec.pod.affinity.nodeAffinity"
	if spec.Pod.Affinity == nil || spec.Pod.Affinity.NodeAffinity == nil {
		return
	}
	affinity := spec.Pod.Affinity.NodeAffinity
	if affinity.Required != nil {
		for i, term := range affinity.Required.NodeSelectorTerms {
			r.nodeTerm(fmt.Sprintf("%s.%s.nodeSelectorTerms[%d]", path, requiredDuring, i), p.NodeSelectors, term)
		}
	}
	for i, preferred := range affinity.Preferred {
		r.nodeTerm(fmt.Sprintf("%s.%s[%d].preference", path, preferredDuring, i), p.NodeSelectors,
			preferred.Preference)
	}
}

func (r *refusals) nodeTerm(path string, a Allowed, term v1alpha1.NodeSelectorTerm) {
	for i, asked := range term.MatchExpressions {
		if !a.allowsNodes(asked) {
			what := fmt.Sprintf("%s %s %s", quoted(asked.Key), quoted(asked.Operator),
				quoted(strings.Join(asked.Values, ", ")))
			r.refuse(fmt.Sprintf("%s.matchExpressions[%d]", path, i), what, NodeSelectors, a)
		}
	}
	for i, asked := range term.MatchFields {
		if !a.allows(func(string) bool { return false }) {
			r.refuse(fmt.Sprintf("%s.matchFields[%d]", path, i), "selecting nodes by "+quoted(asked.Key),
				NodeSelectors, a)
		}
	}
}

// allowsNodes reports whether a requirement for nodes is allowed. A requirement that does not list values counts as a
// requirement for all values.
func (a Allowed) allowsNodes(asked v1alpha1.NodeSelectorRequirement) bool {
	if asked.Operator != "In" || len(asked.Values) == 0 {
		return a.allowsKey(asked.Key)
	}
	return !slices.ContainsFunc(asked.Values, func(value string) bool { return !a.allowsEntry(asked.Key, value) })
}

// places are labels that all nodes have, so spreading pods over them does not select nodes.
var places = []string{"kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"}

// topology refuses topology keys that only some nodes have. Pods that must be spread over such a key, or be placed near
// other pods by such a key, run only on nodes that have it.
func (r *refusals) topology(p Policy, spec v1alpha1.EtcdClusterSpec) {
	for i, spread := range spec.Pod.TopologySpreadConstraints {
		r.topologyKey(fmt.Sprintf("spec.pod.topologySpreadConstraints[%d]", i), p.NodeSelectors, spread.TopologyKey)
	}
	if spec.Pod.Affinity == nil {
		return
	}
	podTerms("spec.pod.affinity.podAffinity", spec.Pod.Affinity.PodAffinity,
		func(path string, term v1alpha1.PodAffinityTerm) {
			r.topologyKey(path, p.NodeSelectors, term.TopologyKey)
		})
}

func (r *refusals) topologyKey(path string, a Allowed, key string) {
	if !slices.Contains(places, key) && !a.allowsKey(key) {
		r.refuse(path+".topologyKey", "selecting nodes that have "+quoted(key), NodeSelectors, a)
	}
}

// podAffinity refuses affinities to pods in other tenants' namespaces. Anti-affinity to such pods would also keep them
// away from this cluster's nodes, or even from whole zones.
func (r *refusals) podAffinity(p Policy, spec v1alpha1.EtcdClusterSpec) {
	if spec.Pod.Affinity == nil || !p.bound() {
		return
	}
	check := func(path string, term v1alpha1.PodAffinityTerm) { r.podTerm(path, p.Namespaces, term) }
	podTerms("spec.pod.affinity.podAffinity", spec.Pod.Affinity.PodAffinity, check)
	podTerms("spec.pod.affinity.podAntiAffinity", spec.Pod.Affinity.PodAntiAffinity, check)
}

// podTerms calls check for each term, with its path.
func podTerms(path string, affinity *v1alpha1.PodAffinity, check func(path string, term v1alpha1.PodAffinityTerm)) {
	if affinity == nil {
		return
	}
	for i, term := range affinity.Required {
		check(fmt.Sprintf("%s.%s[%d]", path, requiredDuring, i), term)
	}
	for i, preferred := range affinity.Preferred {
		check(fmt.Sprintf("%s.%s[%d].podAffinityTerm", path, preferredDuring, i), preferred.PodAffinityTerm)
	}
}

func (r *refusals) podTerm(path string, namespaces []string, term v1alpha1.PodAffinityTerm) {
	own := strings.Join(namespaces, ", ")
	for i, namespace := range term.Namespaces {
		if !slices.Contains(namespaces, namespace) {
			r.add(fmt.Sprintf("%s.namespaces[%d]", path, i),
				"namespace %s belongs to another source; this source may name only namespaces %s",
				quoted(namespace), own)
		}
	}
	if term.NamespaceSelector != nil {
		r.add(path+".namespaceSelector",
			"a selector can also match other sources' namespaces; this source may name only %s, in the field "+
				"namespaces", own)
	}
}
