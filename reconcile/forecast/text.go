package forecast

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// Text renders a forecast as text. The first line shows the number of actions, the end and the risks. The other lines
// show each action with the worst state of etcd until the next action. Each line begins with indent. The text is empty
// if the forecast has no actions.
func (r Forecast) Text(indent string) string {
	if len(r.Steps) == 0 {
		return ""
	}
	b := &strings.Builder{}
	fmt.Fprintf(b, "%sroad: %s, then %s; %s\n", indent, decide.Count(len(r.Steps), "action"), r.Ending(), r.risks())
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	discards := ""
	for i, step := range r.Steps {
		if step.Discards == discards { // already shown at StartRecovery
			step.Discards = ""
		}
		discards = cmp.Or(step.Discards, discards)
		fmt.Fprintf(t, "%s%3d\t%s\t%s\n", indent, i+1, printable.Line(step.What),
			printable.Line(strings.Join(step.effects(), "; ")))
	}
	t.Flush() // writing to a strings.Builder cannot fail
	return b.String()
}

// Ending describes the end of the forecast: its verdict and rule, done, or an unknown outcome. It includes the reason
// for a Block, without the instructions.
func (r Forecast) Ending() string {
	switch {
	case r.Open:
		return "an unknown outcome"
	case r.End.Verdict == decide.Done:
		return "done"
	case r.End.Verdict == decide.Block:
		reason, _, _ := strings.Cut(r.End.Message, ". ")
		return fmt.Sprintf("%s %s (%s)", r.End.Verdict, r.End.Rule, printable.Line(reason))
	}
	return fmt.Sprintf("%s %s", r.End.Verdict, r.End.Rule)
}

func (r Forecast) risks() string {
	var words []string
	for _, risk := range r.Risks() {
		words = append(words, risk.String())
	}
	if len(words) == 0 {
		return Safe.String()
	}
	return strings.Join(words, ", ")
}

// effects returns the worst state of etcd, and the changes to pods and volumes.
func (step Step) effects() []string {
	effects := []string{step.Lowest.String()}
	for _, e := range []struct {
		verb  string
		names []string
	}{
		{"starts", step.Starts}, {"restarts", step.Restarts}, {"stops", step.Stops},
		{"creates " + volumes(step.Creates), step.Creates}, {"deletes " + volumes(step.Deletes), step.Deletes},
	} {
		if len(e.names) > 0 {
			effects = append(effects, e.verb+" "+decide.Enumerate(e.names))
		}
	}
	if step.Discards != "" {
		effects = append(effects, step.Discards, "keeps the volumes")
	}
	return effects
}

func volumes(names []string) string {
	if len(names) == 1 {
		return "the volume of"
	}
	return "the volumes of"
}
