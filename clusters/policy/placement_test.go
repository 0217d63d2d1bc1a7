package policy

import (
	"testing"

	"quorate.dev/quorate/clusters/v1alpha1"
)

func TestTolerations(t *testing.T) {
	dedicated := v1alpha1.Toleration{Key: "dedicated", Value: "etcd", Effect: "NoSchedule"}
	seconds := int64(1 << 40)
	for _, test := range []struct {
		patterns string
		asked    v1alpha1.Toleration
		want     string
	}{
		{"", dedicated, "refused"},
		{"dedicated", dedicated, "allowed"},
		{"dedicated=etcd", dedicated, "allowed"},
		{"dedicated=etcd:NoSchedule", dedicated, "allowed"},
		{"dedicated:NoSchedule", dedicated, "allowed"},
		{"dedicated=etcd:NoExecute", dedicated, "refused"},
		{"dedicated=shop:NoSchedule", dedicated, "refused"},
		{"dedicated=:NoSchedule", dedicated, "refused"},
		// Without a value for a field, a toleration covers all values of that field.
		{"*", v1alpha1.Toleration{Operator: "Exists"}, "refused"},
		{"*;*:NoSchedule", v1alpha1.Toleration{Operator: "Exists", Effect: "NoSchedule"}, "refused"},
		{"*", v1alpha1.Toleration{Operator: "Equal"}, "refused"},
		{"**", v1alpha1.Toleration{Operator: "Exists"}, "allowed"},
		{"dedicated=etcd", v1alpha1.Toleration{Key: "dedicated", Operator: "Exists"}, "refused"},
		{"dedicated=e*", v1alpha1.Toleration{Key: "dedicated", Operator: "Exists"}, "refused"},
		{"dedicated=*", v1alpha1.Toleration{Key: "dedicated", Operator: "Exists"}, "allowed"},
		{"dedicated", v1alpha1.Toleration{Key: "dedicated", Operator: "Exists"}, "allowed"},
		{"dedicated:NoSchedule", v1alpha1.Toleration{Key: "dedicated", Operator: "Exists"}, "refused"},
		{"dedicated=etcd:NoSchedule", v1alpha1.Toleration{Key: "dedicated", Value: "etcd"}, "refused"},
		{"dedicated=etcd:NoSchedule", v1alpha1.Toleration{Key: "dedicated", Value: "etcd", Operator: "Exists", Effect: "NoSchedule"}, "refused"},
		{"dedicated=*", v1alpha1.Toleration{Key: "dedicated", Operator: "Gt", Value: "0"}, "refused"},
		{"dedicated:NoExecute", v1alpha1.Toleration{Key: "dedicated", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: &seconds}, "allowed"},
		{"*", v1alpha1.Toleration{Key: "node-role.kubernetes.io/control-plane", Operator: "Exists"}, "refused"},
		{"node-role.kubernetes.io/*", v1alpha1.Toleration{Key: "node-role.kubernetes.io/control-plane", Operator: "Exists"}, "allowed"},
	} {
		spec := v1alpha1.EtcdClusterSpec{Pod: v1alpha1.PodSpec{Tolerations: []v1alpha1.Toleration{test.asked}}}
		if got := limited(t, Tolerations, test.patterns).Problems(spec); (test.want == "allowed") != (len(got) == 0) {
			t.Errorf("%q of %+v: %v, want it %s", test.patterns, test.asked, got, test.want)
		}
	}
}

// TestNodeAffinity checks that node affinity is subject to the same rules as node selectors.
func TestNodeAffinity(t *testing.T) {
	of := func(key, operator string, values ...string) v1alpha1.NodeSelectorTerm {
		return v1alpha1.NodeSelectorTerm{MatchExpressions: []v1alpha1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	for _, test := range []struct {
		patterns string
		term     v1alpha1.NodeSelectorTerm
		want     string
	}{
		{"pool=a", of("pool", "In", "a"), "allowed"},
		{"pool=a", of("pool", "In", "a", "b"), "refused"},
		{"pool=a;pool=b", of("pool", "In", "a", "b"), "allowed"},
		{"pool=a", of("pool", "In"), "refused"},
		{"pool=a", of("pool", "NotIn", "a"), "refused"},
		{"pool=a", of("pool", "Exists"), "refused"},
		{"pool=a", of("pool", "DoesNotExist"), "refused"},
		{"pool=1", of("pool", "Gt", "1"), "refused"},
		{"pool", of("pool", "DoesNotExist"), "allowed"},
		{"pool=*", of("pool", "NotIn", "a"), "allowed"},
		{"pool", of("pools", "Exists"), "refused"},
		{"*", v1alpha1.NodeSelectorTerm{MatchFields: of("metadata.name", "In", "victim").MatchExpressions}, "refused"},
		{"metadata.name", v1alpha1.NodeSelectorTerm{MatchFields: of("metadata.name", "In", "victim").MatchExpressions}, "refused"},
		{"**", v1alpha1.NodeSelectorTerm{MatchFields: of("metadata.name", "In", "victim").MatchExpressions}, "allowed"},
		{"", v1alpha1.NodeSelectorTerm{}, "allowed"},
	} {
		required := v1alpha1.NodeAffinity{Required: &v1alpha1.NodeSelector{NodeSelectorTerms: []v1alpha1.NodeSelectorTerm{{}, test.term}}}
		preferred := v1alpha1.NodeAffinity{Preferred: []v1alpha1.PreferredSchedulingTerm{{Weight: 1, Preference: test.term}}}
		for _, affinity := range []v1alpha1.NodeAffinity{required, preferred} {
			spec := v1alpha1.EtcdClusterSpec{Pod: v1alpha1.PodSpec{Affinity: &v1alpha1.Affinity{NodeAffinity: &affinity}}}
			if got := limited(t, NodeSelectors, test.patterns).Problems(spec); (test.want == "allowed") != (len(got) == 0) {
				t.Errorf("%q of %+v: %v, want it %s", test.patterns, test.term, got, test.want)
			}
		}
	}
}
