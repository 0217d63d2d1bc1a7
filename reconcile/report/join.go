package report

import (
	"slices"
	"strings"
)

// Part is the report about one of several Kubernetes clusters.
type Part struct {
	// Kubernetes is the name of the Kubernetes cluster; empty if it is the only one.
	Kubernetes string
	Report     Report
}

// Join combines the reports for several Kubernetes clusters, in the given order. Statements that all reports share,
// such as problems with a common source, are included once. Other statements are prefixed with the Kubernetes cluster
// that they apply to, as is the error of a single named Kubernetes cluster. The report about a single unnamed
// Kubernetes cluster is returned unchanged.
func Join(parts []Part) Report {
	if len(parts) == 1 && parts[0].Kubernetes == "" {
		return parts[0].Report
	}
	named := func(text, of string) string { return of + ": " + text }
	joined := Report{
		Sources: union(parts, func(r Report) []Source { return r.Sources }, nil),
		Problems: union(parts, problemsAlone, func(p Problem, of string) Problem {
			p.Kubernetes = of
			return p
		}),
		Warnings: union(parts, func(r Report) []string { return r.Warnings }, named),
		Planned:  true,
	}
	revisions := func(r Report) []string { return strings.Fields(r.Revision) }
	joined.Revision = strings.Join(union(parts, revisions, nil), " ")
	joined.Signer = strings.Join(union(parts, func(r Report) []string { return given(r.Signer) }, nil), ", ")
	joined.Error = strings.Join(union(parts, func(r Report) []string { return given(r.Error) }, named), "; ")
	if len(parts) == 1 && joined.Error != "" { // a single report cannot differ from others
		joined.Error = named(joined.Error, parts[0].Kubernetes)
	}
	for _, part := range parts {
		for _, c := range part.Report.Clusters {
			c.Kubernetes = part.Kubernetes
			joined.Clusters = append(joined.Clusters, c)
		}
		for _, removal := range part.Report.Removals {
			removal.Kubernetes = part.Kubernetes
			joined.Removals = append(joined.Removals, removal)
		}
		joined.Unobserved = joined.Unobserved || part.Report.Unobserved
		joined.Planned = joined.Planned && part.Report.Planned
	}
	return joined
}

// given returns a text as a list, which is empty if the text is empty.
func given(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// problemsAlone returns the problems with Foreign cleared, because only passes use it.
func problemsAlone(r Report) []Problem {
	list := slices.Clone(r.Problems)
	for i := range list {
		list[i].Foreign = false
	}
	return list
}

// union returns the elements of all parts without duplicates. If say is set, it marks elements that are missing from
// some parts with their Kubernetes cluster.
func union[T comparable](parts []Part, of func(Report) []T, say func(thing T, kubernetes string) T) []T {
	had := map[T]map[string]bool{}
	for _, part := range parts {
		for _, thing := range of(part.Report) {
			if had[thing] == nil {
				had[thing] = map[string]bool{}
			}
			had[thing][part.Kubernetes] = true
		}
	}
	var list []T
	said := map[T]bool{}
	for _, part := range parts {
		for _, thing := range of(part.Report) {
			if say != nil && len(had[thing]) < len(parts) {
				thing = say(thing, part.Kubernetes)
			}
			if !said[thing] {
				said[thing] = true
				list = append(list, thing)
			}
		}
	}
	return list
}

// Title returns namespace/name, prefixed with the Kubernetes cluster if there are several.
func (c Cluster) Title() string { return titleIn(c.Kubernetes, c.Key()) }

// Title returns the title of the cluster that the problem is about, if any.
func (p Problem) Title() string { return titleIn(p.Kubernetes, p.Cluster) }

// titleIn returns the title of a cluster, or "" if cluster is empty.
func titleIn(kubernetes, cluster string) string {
	if kubernetes == "" || cluster == "" {
		return cluster
	}
	return kubernetes + " " + cluster
}
