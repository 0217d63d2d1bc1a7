package report

import (
	"fmt"
	"io"
	"strings"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// opinion is the result of a rule for a cluster.
type opinion struct {
	Rule string `json:"rule"`
	// About is the condition under which the rule applies.
	About string `json:"about"`
	// Decides is set for the first rule that applies.
	Decides bool `json:"decides"`
	// Says is the rule's decision, or null if the rule does not apply.
	Says *decision `json:"says"`
}

// opinions returns the results of all rules, in evaluation order. It ignores the lease, which is not a property of the
// cluster.
func opinions(s decide.State) []opinion {
	about := map[string]string{}
	for _, rule := range decide.Rules() {
		about[rule.Name] = rule.About
	}
	var list []opinion
	decided := false
	for _, o := range decide.Opinions(s) {
		said := opinion{Rule: o.Rule, About: about[o.Rule], Decides: o.Speaks && !decided}
		if o.Speaks {
			said.Says, decided = newDecision(o.Decision), true
		}
		list = append(list, said)
	}
	if decided {
		return list
	}
	return append(list, opinion{Rule: decide.Converged, About: about[decide.Converged], Decides: true,
		Says: newDecision(decide.Decide(s))})
}

// Explain renders the result of every rule as text: why the decision was made, and why other rules did not decide.
func Explain(w io.Writer, c Cluster, style Style) error {
	b := &strings.Builder{}
	writeCluster(b, c, style)
	if c.Error != "" {
		_, err := io.WriteString(w, b.String())
		return err
	}
	b.WriteString("\n")
	style.line(b, 0, "", "The rules, in evaluation order: > decides, + would decide next, "+
		"- does not apply (with its description):", nil)
	for _, o := range opinions(c.State) {
		mark, text, paint := "-", o.About, plain
		if o.Says != nil {
			mark, text = "+", o.Says.text()
		}
		if o.Decides {
			mark, paint = ">", style.ofVerdict(o.Says.Verdict)
		}
		style.line(b, 2, mark+" "+o.Rule, text, paint)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// text returns the decision on one line.
func (d decision) text() string {
	what := string(d.Verdict)
	if d.Action != nil {
		what += " " + d.Action.Fields.String()
	}
	return printable.Line(what + ": " + d.Message)
}

// Opinions renders the result of every rule as JSON: {namespace, name, decision, error, rules: [{rule, about, decides,
// says}]}. rules is null if the cluster could not be observed.
func Opinions(w io.Writer, c Cluster) error {
	explained := struct {
		Namespace string    `json:"namespace"`
		Name      string    `json:"name"`
		Decision  *decision `json:"decision,omitempty"`
		Error     string    `json:"error,omitempty"`
		Rules     []opinion `json:"rules"`
	}{Namespace: c.Namespace, Name: c.Name, Decision: newDecision(c.Decision), Error: c.Error}
	if c.Error == "" {
		explained.Rules = opinions(c.State)
	}
	if err := Encode(w, explained); err != nil {
		return fmt.Errorf("write the rules' results for %s: %w", c.Key(), err)
	}
	return nil
}
