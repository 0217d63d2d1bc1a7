package report

import (
	"slices"
	"strings"
)

// problemsListed returns the texts of the problems that the report lists.
func (r Report) problemsListed() map[string]bool {
	listed := map[string]bool{}
	for _, p := range r.Problems {
		p.Kubernetes = "" // a cluster is in a single Kubernetes cluster
		listed[p.String()] = true
	}
	return listed
}

// Messages returns the message for each cluster, in order. Problems with a declaration are omitted if the report lists
// them.
func (r Report) Messages() []string {
	listed := r.problemsListed()
	var list []string
	for _, c := range r.Clusters {
		list = append(list, messageOf(c, listed))
	}
	return list
}

// messageOf returns the message for a cluster. Problems with its declaration are omitted if the report lists them,
// because each problem then has its own line.
func messageOf(c Cluster, listed map[string]bool) string {
	problems := c.State.Declared.Problems
	sorted := slices.Sorted(slices.Values(problems))
	if len(problems) == 0 || c.Decision.Message != strings.Join(sorted, "; ") {
		return c.Decision.Message
	}
	rest := slices.DeleteFunc(sorted, func(problem string) bool { return listed[problem] })
	switch len(problems) - len(rest) {
	case 0:
	case 1:
		rest = append(rest, "see the problem below; the running cluster is left unchanged")
	default:
		rest = append(rest, "see the problems below; the running cluster is left unchanged")
	}
	return strings.Join(rest, "; ")
}
