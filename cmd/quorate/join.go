package main

import (
	"errors"
	"fmt"
	"time"

	"quorate.dev/quorate/gitsource"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/visible"
)

// join puts together what several sources declare. A cluster that two of them declare is in it
// twice: which of them counts depends on what is there.
func join(all []fetched) reconcile.Desired {
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
			desired.Warnings = append(desired.Warnings, s.label+" declares no cluster")
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

// place is a source as of the revision that was read, or as one that could not be read.
func (s fetched) place() reconcile.Place {
	p := reconcile.Place{Name: s.name, Label: s.label, Unread: s.err,
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
		if p.Signed = s.source.verifyKeys != ""; s.descent != nil {
			p.Follows = s.descent.follows
		}
	}
	return p
}

// revision is what was read, as status and reports write it: whoever names a branch has a say in
// it.
func (s fetched) revision() string { return visible.Line(s.desired.Revision.String()) }

func problemsOf(desired gitsource.Desired, name, label string) []report.Problem {
	var problems []report.Problem
	for _, p := range desired.Problems {
		problems = append(problems, report.Problem{Source: label, File: p.File, Line: p.Line, Cluster: p.Cluster,
			Message: p.Message, Place: name})
	}
	return problems
}

// namesOf names each source in status.
func namesOf(sources []source) []string { return toldApart(sources, source.identity) }

// labelsOf are what reports call the sources: as they were given.
func labelsOf(sources []source) []string { return toldApart(sources, source.String) }

// toldApart calls each source by a name. Where two are in one place, and are two branches or tags
// of it, that is part of their names.
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

// checkTwice refuses a source that declares the same clusters as another one, since it is the same.
func checkTwice(sources []source) error {
	var problems []error
	given := map[string]int{}
	for i, name := range namesOf(sources) {
		s := sources[i]
		// Of a name that several have, toldApart has made one with what each of them reads.
		same := name + "\n" + s.namespace
		if given[same]++; given[same] == 2 {
			problems = append(problems,
				usageError{fmt.Errorf("--source %s: it is given twice, and would declare each of its clusters twice: "+
					"leave one of them out, or give each a path=, branch= or default-namespace= of its own", s)})
		}
	}
	return errors.Join(problems...)
}
