package policy

import (
	"regexp"
	"strings"
	"testing"

	"quorate.dev/quorate/clusters/schema"
	"quorate.dev/quorate/clusters/v1alpha1"
)

// limited returns a policy that limits one kind to a setting. An empty setting allows nothing.
func limited(t *testing.T, kind Kind, setting string) Policy {
	t.Helper()
	var p Policy
	allowed, err := Allowed{}.Setting(kind, setting)
	if err != nil {
		t.Fatalf("%s=%s: %v", kind, setting, err)
	}
	*p.Of(kind) = allowed
	return p
}

func TestImages(t *testing.T) {
	for _, test := range []struct{ patterns, allowed, refused string }{
		{"", "", "gcr.io/etcd-development/etcd etcd"},
		{"**", "gcr.io/etcd-development/etcd etcd evil.example:5000/a/b", ""},
		{"registry.example.com/team/etcd", "registry.example.com/team/etcd",
			"registry.example.com/team/etcd2 registry.example.com/team registry.example.com/team/etcd/etcd registry.example.com:443/team/etcd registry.example.com.evil.io/team/etcd " +
				"evil.io/registry.example.com/team/etcd example.com/team/etcd team/etcd REGISTRY.example.com/team/etcd registry.example.com/Team/etcd registry.example.com//team/etcd"},
		{"registry.example.com/team/*", "registry.example.com/team/etcd registry.example.com/team/a_b.c-d",
			"registry.example.com/team/a/b registry.example.com/team/ registry.example.com/team registry.example.com/teams/etcd registry.example.com/team/.. " +
				"registry.example.com/team/etcd@sha256:0 registry.example.com/team/etcd:v1 registry.example.com/team/\u0435tcd"},
		{"registry.example.com/team/**", "registry.example.com/team/etcd registry.example.com/team/a/b/c", "registry.example.com/team registry.example.com/team/../x registry.example.com/x/team/etcd"},
		{"registry.example.com/**", "registry.example.com/etcd registry.example.com/a/b", "registry.example.com registry.example.comx/etcd"},
		{"registry.example.com/team-*/etcd", "registry.example.com/team-a/etcd registry.example.com/team-/etcd", "registry.example.com/team-a/x/etcd registry.example.com/team/etcd"},
		{"registry.example.com:5000/etcd", "registry.example.com:5000/etcd", "registry.example.com/etcd registry.example.com:50001/etcd registry.example.com:5001/etcd"},
		{"localhost/etcd", "localhost/etcd", "localhost.localdomain/etcd etcd"},
		{"docker.io/library/etcd", "etcd library/etcd docker.io/etcd docker.io/library/etcd index.docker.io/library/etcd", "bitnami/etcd docker.io/bitnami/etcd registry-1.docker.io/library/etcd"},
		{"docker.io/bitnami/*", "bitnami/etcd docker.io/bitnami/etcd", "etcd bitnami/etcd/x"},
		{"docker.io/**", "etcd bitnami/etcd", "gcr.io/etcd"},
		{"gcr.io/etcd-development/etcd;quay.io/coreos/etcd", "quay.io/coreos/etcd gcr.io/etcd-development/etcd", "quay.io/etcd-development/etcd"},
	} {
		p := limited(t, Images, test.patterns)
		for repository := range strings.FieldsSeq(test.allowed) {
			if got := p.Problems(v1alpha1.EtcdClusterSpec{Image: v1alpha1.ImageSpec{Repository: repository}}); len(got) > 0 {
				t.Errorf("%q: %v", test.patterns, got)
			}
		}
		for repository := range strings.FieldsSeq(test.refused) {
			if got := p.Problems(v1alpha1.EtcdClusterSpec{Image: v1alpha1.ImageSpec{Repository: repository}}); len(got) != 1 {
				t.Errorf("%q allows %q", test.patterns, repository)
			}
		}
		if got := p.Problems(v1alpha1.EtcdClusterSpec{}); len(got) != 1 && test.patterns != Everything {
			t.Errorf("%q allows an image without a repository", test.patterns)
		}
	}
}

func TestPriorityClasses(t *testing.T) {
	for _, test := range []struct{ patterns, allowed, refused string }{
		{"", "", "a system-node-critical"},
		{"*", "a tenant-high x-system-a", "system-node-critical system-cluster-critical"},
		{"*-critical", "etcd-critical", "system-node-critical critical"},
		{"s*", "super", "system-node-critical"},
		{"system-cluster-critical", "system-cluster-critical", "system-node-critical"},
		{"**", "system-node-critical a", ""},
		{"tenant-*", "tenant-a tenant-", "tenant a-tenant-b TENANT-a"},
	} {
		p := limited(t, PriorityClasses, test.patterns)
		for class := range strings.FieldsSeq(test.allowed) {
			if got := p.Problems(v1alpha1.EtcdClusterSpec{Pod: v1alpha1.PodSpec{PriorityClassName: class}}); len(got) > 0 {
				t.Errorf("%q: %v", test.patterns, got)
			}
		}
		for class := range strings.FieldsSeq(test.refused) {
			if got := p.Problems(v1alpha1.EtcdClusterSpec{Pod: v1alpha1.PodSpec{PriorityClassName: class}}); len(got) != 1 {
				t.Errorf("%q allows %q", test.patterns, class)
			}
		}
		if got := p.Problems(v1alpha1.EtcdClusterSpec{}); len(got) != 0 {
			t.Errorf("no class is asked for: %v", got)
		}
	}
}

// TestTopologyKeys checks that spreading over a label that all nodes have does not count as selecting nodes, and that
// spreading over any other label does.
func TestTopologyKeys(t *testing.T) {
	for _, test := range []struct{ patterns, key, want string }{
		{"", "kubernetes.io/hostname", "allowed"},
		{"", "topology.kubernetes.io/zone", "allowed"},
		{"", "node-role.kubernetes.io/control-plane", "refused"},
		{"pool=shop", "pool", "refused"},
		{"pool", "pool", "allowed"},
		{"**", "node-role.kubernetes.io/control-plane", "allowed"},
	} {
		p := limited(t, NodeSelectors, test.patterns)
		spread := v1alpha1.PodSpec{TopologySpreadConstraints: []v1alpha1.TopologySpreadConstraint{{TopologyKey: test.key, WhenUnsatisfiable: "DoNotSchedule", MaxSkew: 100}}}
		beside := v1alpha1.PodSpec{Affinity: &v1alpha1.Affinity{PodAffinity: &v1alpha1.PodAffinity{Required: []v1alpha1.PodAffinityTerm{{TopologyKey: test.key}}}}}
		near := v1alpha1.PodSpec{Affinity: &v1alpha1.Affinity{PodAffinity: &v1alpha1.PodAffinity{Preferred: []v1alpha1.WeightedPodAffinityTerm{{PodAffinityTerm: v1alpha1.PodAffinityTerm{TopologyKey: test.key}}}}}}
		for _, pod := range []v1alpha1.PodSpec{spread, beside, near} {
			if got := p.Problems(v1alpha1.EtcdClusterSpec{Pod: pod}); (len(got) == 0) != (test.want == "allowed") {
				t.Errorf("with %q, %q must be %s: %q", test.patterns, test.key, test.want, got)
			}
		}
	}
}

// TestEntries checks that annotations, labels and node selectors are all treated as map entries, with the same
// patterns.
func TestEntries(t *testing.T) {
	for _, test := range []struct{ patterns, key, value, want string }{
		{"", "a", "", "refused"},
		{"**", "cluster-autoscaler.kubernetes.io/safe-to-evict", "false", "allowed"},
		{"*", "team", "x", "allowed"},
		{"*", "container.apparmor.security.beta.kubernetes.io/etcd", "unconfined", "refused"},
		{"*", "seccomp.security.alpha.kubernetes.io/pod", "unconfined", "refused"},
		{"*", "cluster-autoscaler.kubernetes.io/safe-to-evict", "false", "refused"},
		{"*", "k8s.v1.cni.cncf.io/networks", "admin", "refused"},
		{"prometheus.io/*", "prometheus.io/scrape", "", "allowed"},
		{"prometheus.io/*", "prometheus.io/", "", "refused"},
		{"prometheus.io/*", "prometheus.io/a/b", "", "refused"},
		{"prometheus.io/*", "sub.prometheus.io/scrape", "", "refused"},
		{"prometheus.io/*", "prometheus.io.evil.example/scrape", "", "refused"},
		{"prometheus.io/*", "Prometheus.io/scrape", "", "refused"},
		{"prometheus.io/scrape", "prometheus.io/Scrape", "", "refused"},
		{"prometheus*", "prometheus.io/scrape", "", "refused"},
		{"prometheus*", "prometheus", "", "allowed"},
		{"team", "t\u0435am", "", "refused"}, // contains a Cyrillic letter
		{"*", "t\u0435am", "", "refused"},
		{"*", "", "", "refused"},
		{"team=", "team", "", "allowed"},
		{"team=", "team", "shop", "refused"},
		{"team=shop", "team", "shop", "allowed"},
		{"team=shop", "team", "shopping", "refused"},
		{"team=shop", "team", "Shop", "refused"},
		{"team=shop", "team", "", "refused"},
		{"team=shop*", "team", "shopping", "allowed"},
		{"team=*shop", "team", "evil\nshop", "allowed"}, // * matches any characters
		{"team=*", "team", "", "allowed"},
		{"team=a=b", "team", "a=b", "allowed"},
		{"team=a*c*e", "team", "abcde", "allowed"},
		{"team=a*c*e", "team", "abde", "refused"},
		{"team=ab*b", "team", "ab", "refused"}, // the prefix and the suffix must not overlap
		{"a;b", "b", "", "allowed"},
		{"a;b", "a;b", "", "refused"},
	} {
		kinds := []Kind{Annotations, Labels, NodeSelectors}
		if test.patterns == "team=a=b" {
			kinds = kinds[:1] // patterns that no label value can match are refused
		}
		for _, kind := range kinds {
			spec := v1alpha1.EtcdClusterSpec{}
			switch kind {
			case Annotations:
				spec.Pod.Annotations = map[string]v1alpha1.PodAnnotationValue{test.key: v1alpha1.PodAnnotationValue(test.value)}
			case Labels:
				spec.Pod.Labels = map[string]v1alpha1.PodLabelValue{test.key: v1alpha1.PodLabelValue(test.value)}
			default:
				spec.Pod.NodeSelector = map[string]string{test.key: test.value}
			}
			got := limited(t, kind, test.patterns).Problems(spec)
			if (test.want == "allowed") != (len(got) == 0) {
				t.Errorf("%s=%s of %q=%q: %v, want it %s", kind, test.patterns, test.key, test.value, got, test.want)
			}
		}
	}
}

// TestMatches checks that, for all short patterns and texts, a star matches the same text as .* in a regular
// expression.
func TestMatches(t *testing.T) {
	words := func(letters string, most int) []string {
		list, longest := []string{""}, []string{""}
		for range most {
			var longer []string
			for _, word := range longest {
				for _, letter := range letters {
					longer = append(longer, word+string(letter))
				}
			}
			list, longest = append(list, longer...), longer
		}
		return list
	}
	for _, pattern := range words("ab*", 4) {
		expression := regexp.MustCompile("^" + strings.ReplaceAll(pattern, "*", ".*") + "$")
		for _, text := range words("ab", 5) {
			if got := matches(pattern, text); got != expression.MatchString(text) {
				t.Fatalf("%q of %q: %t", pattern, text, got)
			}
		}
	}
}

// TestMisleadingPatternsAreRefused checks that patterns that would allow more or less than they seem to are refused.
func TestMisleadingPatternsAreRefused(t *testing.T) {
	for kind, patterns := range map[Kind][]string{
		Images: {"*", "etcd", "team/etcd", "*/etcd", "*.example.com/etcd", "registry.example.com", "registry.example.com*", "registry.example.com/", "registry.example.com/a//b",
			"registry.example.com/etcd:v1", "registry.example.com/etcd@sha256:0", "registry.example.com/**/etcd", "registry.example.com/a**", "Registry.example.com/etcd",
			"registry.example.com:/etcd", "https://registry.example.com/etcd", " registry.example.com/etcd", "registry.example.com/\u0435tcd"},
		PriorityClasses: {"a b", "A", "a,b", "\u0435"},
		Annotations:     {"*/a", "*.io/a", "a/b/c", "/a", "a/", "=a", "**=a", "a**", "\u0435", "a b"},
		Labels:          {"*/*", "team=shop,team=bank", "team=shop bank", "team=-shop", "team=\u0435", "team=" + strings.Repeat("a", 64)},
		Tolerations:     {"a:", "a:noschedule", "a=b:NoSchedule:", ":NoSchedule", "*/a:NoSchedule", "a:*", "a=b,c=d:NoSchedule", "a=b c", "a=b,a=c"},
		NetworkPeers:    {"*/a", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0", "::1/8", "team=shop,team=bank", "2001:db8::/129"},
		NodeSelectors:   {"*/a", "pool=shop,pool=spot", "pool=shop, pool=spot", "pool, zone", "pool= shop", "pool=shop.", "pool=a**b/c"},
	} {
		for _, pattern := range patterns {
			if _, err := (Allowed{}).Setting(kind, pattern); err == nil {
				t.Errorf("%s=%q is accepted", kind, pattern)
			}
		}
		for _, setting := range []string{";", "a;", ";**"} {
			if _, err := (Allowed{}).Setting(kind, setting); err == nil {
				t.Errorf("%s=%q is accepted", kind, setting)
			}
		}
	}
}

// TestMatchablePatternsAreAccepted checks that a pattern that some value can match is accepted. Text that only an
// annotation may contain is accepted for annotations.
func TestMatchablePatternsAreAccepted(t *testing.T) {
	for kind, patterns := range map[Kind][]string{
		Annotations:   {"a=b,c", "a=b c", "a= ", "a=", "a=*"},
		Labels:        {"a=", "a=*", "a=**", "a=*b*c*", "a=B_c.d-e", "a=*" + strings.Repeat("a", 63)},
		Tolerations:   {"a=:NoSchedule", "a=b*:NoExecute", "a=*"},
		NodeSelectors: {"pool=shop", "pool=shop-*", "pool=*.spot", "pool="},
		NetworkPeers:  {"10.0.0.0/8", "0.0.0.0/0", "2001:db8::/64", "kubernetes.io/metadata.name=monitoring", "team", "**"},
	} {
		for _, pattern := range patterns {
			if _, err := (Allowed{}).Setting(kind, pattern); err != nil {
				t.Errorf("%s=%q: %v", kind, pattern, err)
			}
		}
	}
}

// TestWithin checks that, for a source that is bound to namespaces, requests that are not allowed are refused, and
// allowed requests remain allowed.
func TestWithin(t *testing.T) {
	asking := v1alpha1.EtcdClusterSpec{Image: v1alpha1.ImageSpec{Repository: "a/b"}, Pod: v1alpha1.PodSpec{
		PriorityClassName: "a",
		Annotations:       map[string]v1alpha1.PodAnnotationValue{"a": ""},
		Labels:            map[string]v1alpha1.PodLabelValue{"a": ""},
		Tolerations:       []v1alpha1.Toleration{{Key: "a"}},
		NodeSelector:      map[string]string{"a": ""},
		Affinity: &v1alpha1.Affinity{
			PodAffinity: &v1alpha1.PodAffinity{Preferred: []v1alpha1.WeightedPodAffinityTerm{{PodAffinityTerm: v1alpha1.PodAffinityTerm{TopologyKey: "kubernetes.io/hostname", Namespaces: []string{"prod"}}}}},
		},
	}}
	if got := (Policy{}).Within(nil).Problems(asking); len(got) > 0 {
		t.Errorf("a source that may declare clusters everywhere: %q", got)
	}
	if got := (Policy{}).Within([]string{"dev"}).Problems(asking); len(got) != 7 {
		t.Errorf("a source that is bound: %q", got)
	}
	got := limited(t, Tolerations, "a").Within([]string{"dev", "prod"}).Problems(asking)
	if len(got) != 5 || strings.Contains(strings.Join(got, ""), "toleration") {
		t.Errorf("a source that is bound to two namespaces, with a setting: %q", got)
	}
	if got := limited(t, Tolerations, "").Problems(asking); len(got) != 1 {
		t.Errorf("an empty setting: %q", got)
	}
}

// TestDefaultsAreAllowed checks that a declaration with only default values is not refused.
func TestDefaultsAreAllowed(t *testing.T) {
	object := map[string]any{"apiVersion": "etcd.quorate.dev/v1alpha1", "kind": "EtcdCluster", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"version": "3.6.5"}}
	if err := schema.Default(object); err != nil {
		t.Fatal(err)
	}
	image, _ := object["spec"].(map[string]any)["image"].(map[string]any)["repository"].(string)
	spec := v1alpha1.EtcdClusterSpec{Image: v1alpha1.ImageSpec{Repository: image}}
	if got := (Policy{}).Within([]string{"dev"}).Problems(spec); len(got) > 0 {
		t.Error(got)
	}
}

// TestMessagesAreTruncatedAndEscaped checks that requested values are truncated in messages and stripped of terminal
// control characters.
func TestMessagesAreTruncatedAndEscaped(t *testing.T) {
	spec := v1alpha1.EtcdClusterSpec{Image: v1alpha1.ImageSpec{Repository: DefaultImage}, Pod: v1alpha1.PodSpec{NodeSelector: map[string]string{"\x1b[31m\u202e" + strings.Repeat("\u0435", 5000): "x"}}}
	got := (Policy{}).Within([]string{"dev"}).Problems(spec)
	if len(got) != 1 || len(got[0]) > 1000 || strings.ContainsFunc(got[0], func(r rune) bool { return r < ' ' || r > '~' }) {
		t.Errorf("%q", got)
	}
}
