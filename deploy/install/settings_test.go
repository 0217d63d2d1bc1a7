package install

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"quorate.dev/quorate/deploy"
	"quorate.dev/quorate/gitsource/sources"
)

// TestLostSettingOfOneOfSeveralPathsIsReported checks that each source of a repository is compared with its own earlier
// settings, so that the loss of a policy is reported even if another source of the repository keeps it.
func TestLostSettingOfOneOfSeveralPathsIsReported(t *testing.T) {
	const bound = ", allowNamespaces: [a]"
	for what, c := range map[string]struct {
		after string
		lost  int
	}{
		"both keep it":            {source("a", bound) + source("b", bound), 0},
		"one loses it":            {source("a", bound) + source("b", ""), 1},
		"the other order":         {source("b", bound) + source("a", bound), 0},
		"one loses it, reordered": {source("b", "") + source("a", bound), 1},
		"one is removed":          {source("b", bound), 0},
		"one moves and loses it":  {source("a", bound) + source("d", "") + source("c", ""), 1},
		"a source without stays":  {source("a", bound) + source("b", bound) + source("c", ""), 0},
		"another source had none": {source("b", ""), 1},
	} {
		before := configMap(source("c", "") + source("a", bound) + source("b", bound))
		if lost := lostSettings(before, configMap(c.after)); len(lost) != c.lost {
			t.Errorf("%s: %q", what, lost)
		}
	}
}

// TestLostSettingOfOneOfSimilarSourcesIsReported checks that each of two sources that differ in only one setting is
// compared with its own earlier settings, regardless of their order.
func TestLostSettingOfOneOfSimilarSourcesIsReported(t *testing.T) {
	const location, bound = "https://git.example.com/fleet.git", ", allowNamespaces: [shop]"
	check := func(name, before, after string) {
		if lost := lostSettings(configMap(before), configMap(after)); !slices.Equal(lost, []string{"allowNamespaces of " + location}) {
			t.Errorf("%s: %q", name, lost)
		}
	}
	for _, setting := range append([]string{"path", "defaultNamespace"}, sources.Selecting...) {
		of := func(value, settings string) string {
			return "- {location: " + location + settings + ", " + setting + ": " + value + "}\n"
		}
		check(setting, of("a", "")+of("b", bound), of("b", "")+of("a", bound))
	}
	check("new default", source("a", "")+source("b", bound), source("b", "")+source("a", bound)+"sourceDefaults: {path: c}\n")
}

// TestEmptyListIsAccepted checks that an empty list in an installed configuration file does not count as a setting.
func TestEmptyListIsAccepted(t *testing.T) {
	before := configMap("- {location: https://git.example.com/fleet.git, branch: []}\n")
	if lost := lostSettings(before, before); len(lost) > 0 {
		t.Errorf("%q", lost)
	}
}

// TestLostBranchAndPathAreReported checks that a source that loses its branch or path is reported, because it then
// reads a different branch or more files than before.
func TestLostBranchAndPathAreReported(t *testing.T) {
	const url = "https://git.example.com/fleet.git"
	before := configMap("- {location: " + url + ", branch: prod, path: clusters}\n")
	for after, want := range map[string][]string{
		"- {location: " + url + "}\n":                            {"branch of " + url, "path of " + url},
		"- {location: " + url + ", path: clusters}\n":            {"branch of " + url},
		"- {location: " + url + ", branch: main, path: other}\n": nil,
		"- {location: https://git.example.com/other.git}\n":      nil,
	} {
		if lost := lostSettings(before, configMap(after)); !slices.Equal(lost, want) {
			t.Errorf("%s: %q, want %q", after, lost, want)
		}
	}
}

func source(path, settings string) string {
	return "- {location: https://git.example.com/fleet.git, path: " + path + settings + "}\n"
}

func configMap(list string) []*unstructured.Unstructured {
	return []*unstructured.Unstructured{{Object: map[string]any{"kind": "ConfigMap", "data": map[string]any{
		deploy.ConfigFile: "apiVersion: config.quorate.dev/v1alpha1\nkind: Configuration\nsources:\n" + list}}}}
}
