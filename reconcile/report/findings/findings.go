// Package findings has what is wrong in a report one by one, with file and line where these are known, and renders it
// in the formats that CI systems read.
package findings

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/road"
	"quorate.dev/quorate/visible"
)

// Level is how much a finding matters.
type Level string

// The levels.
const (
	Error   Level = "error"
	Warning Level = "warning"
)

// The rules of what no rule of a decision has found.
const (
	// Unread: something could not be read, observed, done or reported.
	Unread = "Error"
	// Problem of a declaration.
	Problem = "Problem"
	// Removal that nobody has confirmed.
	Removal = "Removal"
	// Risk of a road that --fail-on names.
	Risk = "Risk"
	// Advice: no error, but worth a word.
	Advice = "Warning"
)

// Finding is one thing that is wrong, or worth a word.
type Finding struct {
	Level Level
	// Rule that found it: that of a decision, or one of this package.
	Rule string
	// Cluster as namespace/name, where it is about one; before that the Kubernetes cluster, where there are several.
	Cluster string
	// File in the checkout, with slashes, and Line; empty and 0 if they are not known.
	File string
	Line int
	// Message on one line.
	Message string
}

// Options say what is looked for, and where files are.
type Options struct {
	// FailOn are the risks of roads that are errors. What is unknown may be any of them.
	FailOn []road.Risk
	// Root is the path of a source in the checkout; known is false where it has none there. The source is empty where
	// there is only one. If there is no such function, files are where the report says.
	Root func(source string) (path string, known bool)
}

// Of are the findings in a report, the most severe first.
func Of(r report.Report, o Options) []Finding {
	var list []Finding
	add := func(f Finding, at report.Problem) {
		f.File, f.Line = o.place(at)
		f.Cluster, f.Message = visible.Line(f.Cluster), visible.Line(f.Message)
		list = append(list, f)
	}
	if r.Error != "" {
		add(Finding{Level: Error, Rule: Unread, Message: r.Error}, report.Problem{})
	}
	for _, p := range r.Problems {
		add(Finding{Level: Error, Rule: Problem, Cluster: p.Title(), Message: o.words(p)}, p)
	}
	for _, removal := range r.Removals {
		add(Finding{Level: Error, Rule: Removal, Message: removal.String()}, report.Problem{})
	}
	messages := r.Messages()
	for i, c := range r.Clusters {
		for _, f := range ofCluster(c, messages[i], o.FailOn) {
			f.Cluster = c.Title()
			add(f, c.Where)
		}
	}
	if r.Compared != nil && len(o.FailOn) > 0 {
		for _, cluster := range r.Compared.Unknown {
			add(Finding{Level: Error, Rule: Risk, Cluster: cluster, Message: "it is not known what " +
				r.Compared.Against + " declares, so what is declared now leads where it cannot be foretold"},
				report.Problem{})
		}
	}
	for _, warning := range r.Warnings {
		add(Finding{Level: Warning, Rule: Advice, Message: warning}, report.Problem{})
	}
	slices.SortStableFunc(list, func(a, b Finding) int { return cmp.Compare(a.Level, b.Level) })
	return list
}

// ofCluster are those that are about one cluster.
func ofCluster(c report.Cluster, message string, failOn []road.Risk) []Finding {
	var list []Finding
	add := func(level Level, rule, message string) {
		list = append(list, Finding{Level: level, Rule: rule, Message: message})
	}
	if c.Error != "" {
		add(Error, Unread, c.Error)
	}
	if c.Decision.Verdict == decide.Block {
		add(Error, c.Decision.Rule, message)
	}
	if c.Road != nil {
		for _, risk := range c.Road.Risks() {
			if slices.Contains(failOn, risk) || len(failOn) > 0 && risk == road.Unknown {
				add(Error, Risk, fmt.Sprintf("what is declared %s: %s, then %s", asks(risk),
					decide.Count(len(c.Road.Steps), "action"), c.Road.Ending()))
			}
		}
	}
	for _, warning := range c.Warnings {
		add(Warning, Advice, warning)
	}
	return list
}

// asks is a risk as what a declaration does.
func asks(risk road.Risk) string {
	switch risk {
	case road.Unknown:
		return "leads where it cannot be foretold"
	case road.IsBlocked:
		return "needs a person"
	case road.Safe, road.RestartsMembers, road.LosesTolerance, road.LosesQuorum, road.DeletesData:
	}
	return risk.String()
}

// words are what a problem says beside file and line, or with these where they are not in the checkout.
func (o Options) words(p report.Problem) string {
	if file, _ := o.place(p); file == "" {
		return p.String()
	}
	p.Source, p.File, p.Line = "", "", 0
	return p.String()
}

// place is a file of a source in the checkout, and the line; empty if it is not there.
func (o Options) place(at report.Problem) (file string, line int) {
	root, known := "", true
	if o.Root != nil {
		root, known = o.Root(at.Source)
	}
	if at.File == "" || !known {
		return "", 0
	}
	file = path.Join(root, at.File)
	if file == ".." || strings.HasPrefix(file, "../") || path.IsAbs(file) || !visible.IsPath(file) ||
		visible.Line(file) != file {
		return "", 0
	}
	return file, at.Line
}
