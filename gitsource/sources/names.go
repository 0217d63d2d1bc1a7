package sources

import (
	"errors"
	"fmt"
)

// names returns the name of each source in status.
func names(list []Source) []string { return distinct(list, Source.identity) }

// Labels returns the name of each source in reports, as the user has specified the sources.
func Labels(list []Source) []string { return distinct(list, Source.String) }

// distinct names each source. If several sources have the same name, the selected branch or tag is added.
func distinct(list []Source, name func(Source) string) []string {
	count := map[string]int{}
	for _, s := range list {
		count[name(s)]++
	}
	all := make([]string, len(list))
	for i, s := range list {
		if all[i] = name(s); count[all[i]] > 1 {
			all[i] += s.selected()
		}
	}
	return all
}

// CheckDistinct rejects a source that is specified twice and would declare the same clusters. The error matches
// gitsource.ErrOptions.
func CheckDistinct(list []Source) error {
	var problems []error
	count := map[string]int{}
	for i, name := range names(list) {
		s := list[i]
		// If several sources share a name, distinct has already added what each of them selects.
		same := name + "\n" + s.Namespace
		if count[same]++; count[same] == 2 {
			problems = append(problems,
				settingError{fmt.Errorf("--source %s: specified twice, so that each of its clusters would be "+
					"declared twice: remove one, or give each its own path=, branch= or default-namespace=", s)})
		}
	}
	return errors.Join(problems...)
}

// Namespaces lists the namespaces in which the sources may declare clusters, or returns nil if a source may use all
// namespaces.
func Namespaces(list []Source) []string {
	var all []string
	for _, s := range list {
		if len(s.AllowNamespaces) == 0 {
			return nil
		}
		all = append(all, s.AllowNamespaces...)
	}
	return all
}
