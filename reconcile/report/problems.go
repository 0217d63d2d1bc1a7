package report

import (
	"slices"
	"strings"
)

// problemsListed are the problems of the sources, as they read.
func (r Report) problemsListed() map[string]bool {
	listed := map[string]bool{}
	for _, p := range r.Problems {
		p.Kubernetes = "" // a cluster knows of one alone
		listed[p.String()] = true
	}
	return listed
}

// Messages are what a report for people says of each cluster, in their order. What keeps a declaration from being
// acted on is left out where the report has it among its problems.
func (r Report) Messages() []string {
	listed := r.problemsListed()
	var list []string
	for _, c := range r.Clusters {
		list = append(list, messageOf(c, listed))
	}
	return list
}

// messageOf is what a report for people says of a cluster. What keeps its declaration from being
// acted on is left out where the report has it among the problems of the sources: each stands there
// once, on a line of its own.
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
		rest = append(rest, "see the problem below; what runs is kept as it is")
	default:
		rest = append(rest, "see the problems below; what runs is kept as it is")
	}
	return strings.Join(rest, "; ")
}
