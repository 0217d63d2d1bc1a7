package main

import (
	"slices"
	"strings"
	"testing"
)

// TestSourceNamesAreDistinct checks that sources have distinct names in status and in reports, even if they are
// similar.
func TestSourceNamesAreDistinct(t *testing.T) {
	const fleet = "https://host/fleet.git"
	for _, test := range []struct{ values, want []string }{
		{[]string{fleet}, []string{fleet}},
		{[]string{fleet + ",branch=next"}, []string{fleet}},
		{[]string{fleet + ",path=a", fleet + ",path=./b/"}, []string{fleet + ",path=a", fleet + ",path=b"}},
		{[]string{fleet + ",branch=main", fleet + ",branch=next"}, []string{fleet + ",branch=main", fleet + ",branch=next"}},
		{[]string{fleet + ",path=a", fleet + ",path=a,semver=>=1"}, []string{fleet + ",path=a", fleet + ",path=a,semver=>=1"}},
		{[]string{fleet + ",path=a", fleet + ",path=a,commit=x", fleet + ",tag=v1"}, []string{fleet + ",path=a", fleet + ",path=a,commit=x", fleet}},
	} {
		var sources []source
		for _, value := range test.values {
			s, err := newSource(budgetWithin(0).limits).with(value)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, s)
		}
		if got := namesOf(sources); !slices.Equal(got, test.want) {
			t.Errorf("%q are named %q, want %q", test.values, got, test.want)
		}
		for i, label := range labelsOf(sources) {
			if want := strings.Replace(test.want[i], ",path=b", ",path=./b/", 1); label != want {
				t.Errorf("%q: the name in reports is %q, want %q", test.values, label, want)
			}
		}
	}
}
