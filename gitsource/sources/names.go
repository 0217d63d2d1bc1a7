package sources

import (
	"cmp"
	"errors"
	"fmt"
)

// names returns the name of each source as used in cluster statuses.
func names(list []Source) []string { return distinct(list, Source.identity) }

// Labels returns the name of each source as used in reports. It is based on how the user specified the source.
func Labels(list []Source) []string { return distinct(list, Source.String) }

// distinct returns a name for each source. If several sources have the same name, it adds the selected branch or tag
// and, if necessary, the default namespace.
func distinct(list []Source, name func(Source) string) []string {
	all := make([]string, len(list))
	for i, s := range list {
		all[i] = name(s)
	}
	for _, more := range []func(Source) string{Source.selected, Source.inNamespace} {
		count := map[string]int{}
		for _, name := range all {
			count[name]++
		}
		for i, s := range list {
			if count[all[i]] > 1 {
				all[i] += more(s)
			}
		}
	}
	return all
}

// inNamespace returns the default namespace as a setting, or "" if it is not set.
func (s Source) inNamespace() string {
	if s.Namespace == "" {
		return ""
	}
	return ",default-namespace=" + s.Namespace
}

// CheckDistinct returns an error if a source is specified twice and would declare the same clusters. The error matches
// gitsource.ErrOptions.
func CheckDistinct(list []Source) error {
	var problems []error
	count := map[string]int{}
	for i, name := range names(list) {
		s := list[i]
		if count[name]++; count[name] == 2 {
			problems = append(problems,
				settingError{fmt.Errorf("%s: specified twice, so each of its clusters would be declared twice: "+
					"remove one, or give each its own path, branch or default namespace",
					cmp.Or(s.Where, "--source "+s.String()))})
		}
	}
	return errors.Join(problems...)
}

// Namespaces lists the namespaces in which the sources may declare clusters. It returns nil if any source may use all
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
