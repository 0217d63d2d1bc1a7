package report

import (
	"slices"
	"strings"
)

// Part is what a pass has to say of one of several Kubernetes clusters.
type Part struct {
	// Kubernetes is the name of the Kubernetes cluster; empty where it is the only one.
	Kubernetes string
	Report     Report
}

// Join makes one report of those of several Kubernetes clusters, in their order. What all of them say, as about a
// source that they share, it says once; of what only some do, it says of which, and of the error of one that has a
// name and is the only one, too. The one of the only Kubernetes cluster without a name it leaves as it is.
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
	if len(parts) == 1 && joined.Error != "" { // nobody else has it, or has not
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

// given is a text as a list, which is empty if the text is.
func given(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// problemsAlone are the problems without what only passes look at.
func problemsAlone(r Report) []Problem {
	list := slices.Clone(r.Problems)
	for i := range list {
		list[i].Foreign = false
	}
	return list
}

// union is what the parts have, each thing once. What only some of them have is said to be of each of those, if there
// is a way to say so.
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

// Title tells a cluster from others: namespace/name, after the Kubernetes cluster where there are several.
func (c Cluster) Title() string { return titleIn(c.Kubernetes, c.Key()) }

// Title is which cluster the problem is about, if any, as the title of that.
func (p Problem) Title() string { return titleIn(p.Kubernetes, p.Cluster) }

// titleIn is the title of a cluster; empty if there is none.
func titleIn(kubernetes, cluster string) string {
	if kubernetes == "" || cluster == "" {
		return cluster
	}
	return kubernetes + " " + cluster
}
