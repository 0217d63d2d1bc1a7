package markdown

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/report"
)

// entry is a cluster in the table.
type entry struct {
	report.Cluster
	message string
}

// entriesOf returns the clusters to list, most severe first. A cluster that has converged or was only validated is
// omitted, unless it was changed or has an error or a warning. If two revisions are compared, all clusters in the
// report differ, and all are listed.
func entriesOf(r report.Report) []entry {
	var list []entry
	messages := r.Messages()
	for i, c := range r.Clusters {
		quiet := c.Decision.Rule == "" || c.Decision.Verdict == decide.Done
		changed := c.Outcome != nil && c.Outcome.Changed
		if quiet && !changed && c.Error == "" && len(c.Warnings) == 0 && r.Compared == nil {
			continue
		}
		list = append(list, entry{c, messages[i]})
	}
	slices.SortStableFunc(list, func(a, b entry) int { return cmp.Compare(b.weight(), a.weight()) })
	return list
}

// weight returns the severity of an entry.
func (e entry) weight() int {
	worst := 0
	if e.Road != nil {
		for _, risk := range e.Road.Risks() {
			worst = slices.Index(forecast.Risks(), risk)
		}
	}
	switch {
	case e.Error != "":
		return 300
	case e.Decision.Verdict == decide.Block:
		return 200
	case e.Pending():
		return 100 + worst
	}
	return worst
}

// verdict returns the state of an entry in one or two words, and the worst risk of its forecast.
func (e entry) verdict() string {
	switch {
	case e.Error != "":
		return "**error**"
	case e.Decision.Rule == "":
		return "valid"
	case e.Decision.Verdict == decide.Block:
		return "**Block**"
	}
	verdict := string(e.Decision.Verdict)
	if e.Road == nil || len(e.Road.Steps) == 0 && len(e.Road.Risks()) == 0 {
		return verdict
	}
	risks := e.Road.Risks()
	if len(risks) == 0 {
		return verdict + ", " + forecast.Safe.String()
	}
	return verdict + ", **" + risks[len(risks)-1].String() + "**"
}

// next returns the next action or, if there is no action, the rule that decided.
func (e entry) next() string {
	switch {
	case e.Road != nil && len(e.Road.Steps) > 0 && e.Decision.Verdict == decide.Act:
		return cell(e.Road.Steps[0].What, 200)
	case e.Decision.Action != nil:
		return cell(e.Decision.Action.String(), 200)
	case e.Decision.Rule != "":
		return cell(e.Decision.Rule, 200)
	}
	return "-"
}

func (e entry) steps() string {
	if e.Road == nil || len(e.Road.Steps) == 0 {
		return "-"
	}
	if e.Road.Open {
		return fmt.Sprintf("%d or more", len(e.Road.Steps))
	}
	return fmt.Sprint(len(e.Road.Steps))
}

// rows adds the table, and returns the entries in it.
func (p *page) rows(entries []entry) []entry {
	if len(entries) == 0 {
		return nil
	}
	var table strings.Builder
	table.WriteString("| cluster | verdict | next | steps |\n|---|---|---|---|\n")
	room, shown := p.left, 0
	for _, e := range entries {
		row := fmt.Sprintf("| %s | %s | %s | %s |\n", cell(e.Title(), 330), e.verdict(), e.next(), e.steps())
		if table.Len()+len(row)+1 > room {
			break
		}
		table.WriteString(row)
		shown++
	}
	p.add(table.String())
	if shown < len(entries) {
		p.note("Omitted for lack of space: %s of lower priority.",
			decide.Count(len(entries)-shown, "other cluster"))
	}
	return entries[:shown]
}

// longest is the maximum length of a reason. shortest is the maximum length if there is little room.
const (
	longest  = 4000
	shortest = 300
	// firstSteps is the number of steps of a forecast that are shown if there is not enough room for all steps.
	firstSteps = 5
)

// givenUp is the number of consecutive entries without room for a folded section after which the remaining entries are
// not tried.
const givenUp = 100

// details adds a folded section for each entry. If there is not enough room, the section contains shorter reasons and
// only the first steps of the forecast, or is omitted.
func (p *page) details(entries []entry) {
	shortened, without, inARow := 0, 0, 0
	for _, e := range entries {
		if inARow == givenUp {
			without++
			continue
		}
		inARow++
		switch {
		case p.add(e.fold(longest, len(e.allSteps()))):
			inARow = 0
		case p.add(e.fold(shortest, firstSteps)):
			shortened, inARow = shortened+1, 0
		default:
			without++
		}
	}
	if shortened > 0 {
		p.note("Omitted for lack of space: some reasons and steps of %s.", decide.Count(shortened, "cluster"))
	}
	if without > 0 {
		p.note("Omitted for lack of space: reasons and steps of %s.", decide.Count(without, "cluster"))
	}
}

func (e entry) allSteps() []forecast.Step {
	if e.Road == nil {
		return nil
	}
	return e.Road.Steps
}

// fold returns the details of an entry as a folded section. The lengths of texts and the number of steps of its
// forecast are limited.
func (e entry) fold(words, steps int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<details><summary>%s</summary>\n\n", inHTML(e.Title(), 330))
	line := func(label, said string) {
		if said != "" {
			fmt.Fprintf(&b, "* %s%s\n", label, text(said, words))
		}
	}
	line("error: ", e.Error)
	if e.Decision.Rule != "" {
		line(text(e.Decision.Rule, 100)+": ", e.message)
	}
	if e.Outcome != nil {
		line("", e.Outcome.Detail)
	}
	for _, change := range e.Lines() {
		line("", change)
	}
	if r := e.Road; r != nil && len(r.Steps) > 0 {
		line("", fmt.Sprintf("road: %s, then %s; %s", decide.Count(len(r.Steps), "action"), r.Ending(), risksOf(r)))
	}
	for i, warning := range e.Warnings {
		if i == 10 && len(e.Warnings) > 11 {
			fmt.Fprintf(&b, "* %s\n", more(len(e.Warnings)-i, "other warning"))
			break
		}
		line("warning: ", warning)
	}
	if all := e.allSteps(); len(all) > 0 {
		writeSteps(&b, all, steps)
	}
	b.WriteString("\n</details>\n")
	return b.String()
}

func risksOf(r *forecast.Forecast) string {
	var names []string
	for _, risk := range r.Risks() {
		names = append(names, risk.String())
	}
	if len(names) == 0 {
		return forecast.Safe.String()
	}
	return strings.Join(names, ", ")
}

// writeSteps writes a table of at most the given number of steps, with the worst state of etcd until the next step and
// the affected pods and volumes.
func writeSteps(b *strings.Builder, steps []forecast.Step, most int) {
	b.WriteString("\n| | action | voters | responding | required | may fail | pods | volumes |\n")
	b.WriteString("|---:|---|---|---:|---:|---|---|---|\n")
	for i, step := range steps {
		if i == most {
			fmt.Fprintf(b, "| … | %s | | | | | | |\n", more(len(steps)-most, "other step"))
			break
		}
		at := step.Lowest
		fmt.Fprintf(b, "| %d | %s | %s | %d | %d | %s | %s | %s |\n", i+1, cell(step.What, 300), voters(at),
			at.Answering, at.Needed(), mayFail(at),
			effects(effect{"starts", step.Starts}, effect{"restarts", step.Restarts}, effect{"stops", step.Stops}),
			effects(effect{"creates", step.Creates}, effect{"**deletes**", step.Deletes}))
	}
}

func voters(at forecast.Quorum) string {
	switch {
	case at.Voters == 0:
		return at.String()
	case at.Learners > 0:
		return fmt.Sprintf("%d, and %s", at.Voters, decide.Count(at.Learners, "learner"))
	}
	return fmt.Sprint(at.Voters)
}

// mayFail returns the number of voters that may fail.
func mayFail(at forecast.Quorum) string {
	switch {
	case at.Voters == 0:
		return "-"
	case at.Spare() < 0:
		return "**no quorum**"
	case at.Spare() == 0:
		return "**none**"
	}
	return fmt.Sprint(at.Spare())
}

// effect describes the effect on the pods or volumes with these names.
type effect struct {
	verb  string
	names []string
}

func effects(all ...effect) string {
	var list []string
	for _, e := range all {
		if len(e.names) > 0 {
			list = append(list, e.verb+" "+cell(decide.Enumerate(e.names), 300))
		}
	}
	return strings.Join(list, "; ")
}
