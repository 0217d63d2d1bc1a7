package sources

import (
	"slices"
	"strings"
	"testing"

	"quorate.dev/quorate/gitsource/refs"
)

// TestSourceNamesAreDistinct checks that sources have distinct names in status and in reports, even if they are
// similar.
func TestSourceNamesAreDistinct(t *testing.T) {
	const fleet = "https://host/fleet.git"
	source := func(path string, selector refs.Selector) Source {
		return Source{Location: fleet, Path: path, Selector: selector}
	}
	in := func(s Source, namespace string) Source {
		s.Namespace = namespace
		return s
	}
	head, main, next := refs.Selector{}, refs.Selector{Branch: "main"}, refs.Selector{Branch: "next"}
	for _, test := range []struct {
		list []Source
		want []string
	}{
		{[]Source{source("", head)}, []string{fleet}},
		{[]Source{source("", next)}, []string{fleet}},
		{[]Source{source("a", head), source("./b/", head)}, []string{fleet + ",path=a", fleet + ",path=b"}},
		{[]Source{source("", main), source("", next)}, []string{fleet + ",branch=main", fleet + ",branch=next"}},
		{[]Source{source("a", head), source("a", refs.Selector{SemVer: ">=1"})}, []string{fleet + ",path=a", fleet + ",path=a,semver=>=1"}},
		{[]Source{source("a", head), source("a", refs.Selector{Commit: "x"}), source("", refs.Selector{Tag: "v1"})},
			[]string{fleet + ",path=a", fleet + ",path=a,commit=x", fleet}},
		{[]Source{in(source("", head), "a"), in(source("", head), "b")}, []string{fleet + ",default-namespace=a", fleet + ",default-namespace=b"}},
		{[]Source{in(source("", main), "a"), in(source("", next), "b")}, []string{fleet + ",branch=main", fleet + ",branch=next"}},
	} {
		if got := names(test.list); !slices.Equal(got, test.want) {
			t.Errorf("%v are named %q, want %q", test.list, got, test.want)
		}
		for i, label := range Labels(test.list) {
			if want := strings.Replace(test.want[i], ",path=b", ",path=./b/", 1); label != want {
				t.Errorf("%v: the name in reports is %q, want %q", test.list, label, want)
			}
		}
	}
}
