// Package findings lists the problems in a report individually, with file and line if known, and renders them in the
// formats that CI systems read.
package findings

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/report"
)

// Level is the severity of a finding.
type Level string

// The levels of findings.
const (
	Error   Level = "error"
	Warning Level = "warning"
)

// Rules for findings that do not come from the rule of a decision.
const (
	// Unread means that something could not be read, observed, done or reported.
	Unread = "Error"
	// Problem is a problem in a declaration.
	Problem = "Problem"
	// Removal is a removal that is not confirmed.
	Removal = "Removal"
	// Risk is a forecast risk that --fail-on names.
	Risk = "Risk"
	// Advice is a warning, not an error.
	Advice = "Warning"
)

// Finding is an error or a warning.
type Finding struct {
	Level Level
	// Rule is the rule of a decision, or a rule of this package.
	Rule string
	// Cluster is namespace/name if the finding is about a cluster, prefixed with the Kubernetes cluster if there are
	// several.
	Cluster string
	// File is the path in the checkout, with slashes, and Line is the line number. They are empty and 0 if they are
	// unknown.
	File string
	Line int
	// Message is a single line.
	Message string
}

// Options specify which findings are errors, and how files are found.
type Options struct {
	// FailOn lists the forecast risks that are errors. If the list is not empty, an unknown risk is an error too,
	// because it may be any of these risks.
	FailOn []forecast.Risk
	// Root returns the path of a source in the checkout, or false if the source is not in the checkout. The source is
	// empty if there is only one. If Root is nil, the paths in the report are used.
	Root func(source string) (path string, known bool)
}

// Of returns the findings in a report, most severe first.
func Of(r report.Report, o Options) []Finding {
	var list []Finding
	add := func(f Finding, at report.Problem) {
		f.File, f.Line = o.place(at)
		f.Cluster, f.Message = printable.Line(f.Cluster), printable.Line(f.Message)
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
			add(Finding{Level: Error, Rule: Risk, Cluster: cluster, Message: "the declarations at " +
				r.Compared.Against + " are unknown, so the outcome of the current declaration cannot be predicted"},
				report.Problem{})
		}
	}
	for _, warning := range r.Warnings {
		add(Finding{Level: Warning, Rule: Advice, Message: warning}, report.Problem{})
	}
	slices.SortStableFunc(list, func(a, b Finding) int { return cmp.Compare(a.Level, b.Level) })
	return list
}

// ofCluster returns the findings about one cluster.
func ofCluster(c report.Cluster, message string, failOn []forecast.Risk) []Finding {
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
			if slices.Contains(failOn, risk) || len(failOn) > 0 && risk == forecast.Unknown {
				add(Error, Risk, fmt.Sprintf("the declaration %s: %s, then %s", asks(risk),
					decide.Count(len(c.Road.Steps), "action"), c.Road.Ending()))
			}
		}
	}
	for _, warning := range c.Warnings {
		add(Warning, Advice, warning)
	}
	return list
}

// asks describes a risk as an effect of the declaration.
func asks(risk forecast.Risk) string {
	switch risk {
	case forecast.Unknown:
		return "has an unpredictable outcome"
	case forecast.IsBlocked:
		return "requires manual action"
	case forecast.Safe, forecast.RestartsMembers, forecast.LosesTolerance, forecast.LosesQuorum, forecast.DeletesData:
	}
	return risk.String()
}

// words returns the text of a problem, without file and line if the file is in the checkout.
func (o Options) words(p report.Problem) string {
	if file, _ := o.place(p); file == "" {
		return p.String()
	}
	p.Source, p.File, p.Line = "", "", 0
	return p.String()
}

// place returns the file of a problem as a path in the checkout, and the line. It returns "" if the file is not in the
// checkout.
func (o Options) place(at report.Problem) (file string, line int) {
	root, known := "", true
	if o.Root != nil {
		root, known = o.Root(at.Source)
	}
	if at.File == "" || !known {
		return "", 0
	}
	file = path.Join(root, at.File)
	if file == ".." || strings.HasPrefix(file, "../") || path.IsAbs(file) || !printable.IsPath(file) ||
		printable.Line(file) != file {
		return "", 0
	}
	return file, at.Line
}
