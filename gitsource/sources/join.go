package sources

import (
	"slices"
	"time"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// join combines the declarations of several sources. If two sources declare the same cluster, both declarations are
// included: the live state determines which one takes effect.
func join(all []result) reconcile.Desired {
	var desired reconcile.Desired
	for _, s := range all {
		label := ""
		if len(all) > 1 {
			label = s.label
		}
		desired.Sources = append(desired.Sources, s.place())
		if s.err != nil {
			continue
		}
		if len(s.desired.Clusters)+len(s.desired.Problems) == 0 {
			desired.Warnings = append(desired.Warnings, s.label+" does not declare any clusters")
		}
		desired.Problems = append(desired.Problems, problemsOf(s.desired, s.name, label)...)
		for _, d := range s.desired.Clusters {
			desired.Clusters = append(desired.Clusters, reconcile.Declaration{
				Cluster: d.Cluster, Applied: d.Applied, Source: s.name, Revision: s.revision(),
				Where:  report.Problem{Source: label, File: d.File, Line: d.Line},
				LineOf: d.LineOf, Warnings: slices.Clip(d.Warnings), // passes share the array
			})
		}
	}
	return desired
}

// place returns the source with the revision that was read, or with the error from reading it.
func (s result) place() reconcile.SourceState {
	p := reconcile.SourceState{Name: s.name, Label: s.label, Unread: s.err,
		Namespaces: reconcile.Namespaces(s.source.AllowNamespaces)}
	if s.at != nil {
		p.At = s.at.time
	}
	p.Refuses = s.source.Policy.Within(s.source.AllowNamespaces).Problems
	if s.err == nil {
		p.Revision, p.Signer = s.revision(), s.desired.Revision.Signer
		if at := s.desired.Revision.Committed; at != 0 {
			p.Committed = time.Unix(at, 0)
		}
		if p.Signed = s.source.VerifyKeys != ""; s.ancestry != nil {
			p.Follows = s.ancestry.descendsFrom
		}
	}
	return p
}

// revision returns the revision for statuses and reports. The revision is escaped because it contains a branch name,
// which is untrusted.
func (s result) revision() string { return printable.Line(s.desired.Revision.String()) }

func problemsOf(desired gitsource.Desired, name, label string) []report.Problem {
	var problems []report.Problem
	for _, p := range desired.Problems {
		problems = append(problems, report.Problem{Source: label, File: p.File, Line: p.Line, Cluster: p.Cluster,
			Message: p.Message, Place: name})
	}
	return problems
}
