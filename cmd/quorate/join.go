package main

import (
	"errors"
	"fmt"
	"time"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
)

// join combines the declarations of several sources. A cluster that two sources declare is included twice, because the
// live state determines which declaration counts.
func join(all []sourceResult) reconcile.Desired {
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
				LineOf: d.LineOf, Warnings: d.Warnings,
			})
		}
	}
	return desired
}

// place returns the source with the revision that was read, or with the error from reading it.
func (s sourceResult) place() reconcile.SourceState {
	p := reconcile.SourceState{Name: s.name, Label: s.label, Unread: s.err,
		Namespaces: reconcile.Namespaces(s.source.allowNamespaces)}
	if s.at != nil {
		p.At = s.at.time
	}
	p.Refuses = s.source.policy.Within(s.source.allowNamespaces).Problems
	if s.err == nil {
		p.Revision, p.Signer = s.revision(), s.desired.Revision.Signer
		if at := s.desired.Revision.Committed; at != 0 {
			p.Committed = time.Unix(at, 0)
		}
		if p.Signed = s.source.verifyKeys != ""; s.ancestry != nil {
			p.Follows = s.ancestry.descendsFrom
		}
	}
	return p
}

// revision returns the revision for status and reports. It escapes the revision, because the revision contains a
// branch name, which is untrusted.
func (s sourceResult) revision() string { return printable.Line(s.desired.Revision.String()) }

func problemsOf(desired gitsource.Desired, name, label string) []report.Problem {
	var problems []report.Problem
	for _, p := range desired.Problems {
		problems = append(problems, report.Problem{Source: label, File: p.File, Line: p.Line, Cluster: p.Cluster,
			Message: p.Message, Place: name})
	}
	return problems
}

// namesOf returns the name of each source, as shown in status.
func namesOf(sources []source) []string { return toldApart(sources, source.identity) }

// labelsOf returns the name of each source, as given in the flags and shown in reports.
func labelsOf(sources []source) []string { return toldApart(sources, source.String) }

// toldApart returns a name for each source. If several sources have the same name, it adds the selected branch or tag.
func toldApart(sources []source, called func(source) string) []string {
	given := map[string]int{}
	for _, s := range sources {
		given[called(s)]++
	}
	names := make([]string, len(sources))
	for i, s := range sources {
		if names[i] = called(s); given[names[i]] > 1 {
			names[i] += s.selected()
		}
	}
	return names
}

// checkTwice rejects a source that is specified twice and would declare the same clusters twice.
func checkTwice(sources []source) error {
	var problems []error
	given := map[string]int{}
	for i, name := range namesOf(sources) {
		s := sources[i]
		// If several sources share a name, toldApart has already added the revision setting of each source.
		same := name + "\n" + s.namespace
		if given[same]++; given[same] == 2 {
			problems = append(problems,
				usageError{fmt.Errorf("--source %s: specified twice, and would declare each of its clusters twice: "+
					"remove one, or give each its own path=, branch= or default-namespace=", s)})
		}
	}
	return errors.Join(problems...)
}
