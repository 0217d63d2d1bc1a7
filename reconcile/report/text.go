package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
)

// Text renders the report as text: a block per cluster, then the problems with the sources, then a summary line.
func Text(w io.Writer, r Report, style Style) error {
	b := &strings.Builder{}
	writeRevisions(b, r)
	if r.Compared != nil {
		style.line(b, 0, "", "against "+r.Compared.Against, nil)
	}
	messages := r.Messages()
	for i, c := range r.Clusters {
		c.Decision.Message = messages[i]
		writeCluster(b, c, style)
	}
	for _, warning := range r.Warnings {
		style.line(b, 0, "warning", warning, style.Busy)
	}
	for _, assumed := range r.Assumed() {
		style.line(b, 0, "", assumed, nil)
	}
	if digest := r.Digest(); digest != "" {
		fmt.Fprintf(b, "plan %s\n", digest)
	}
	writeRemovals(b, r.Removals, style)
	for _, p := range r.Problems {
		style.line(b, 0, "problem", p.String(), style.Bad)
	}
	if r.Error != "" {
		style.line(b, 0, "error", r.Error, style.Bad)
	}
	fmt.Fprintln(b, Summary(r))
	_, err := io.WriteString(w, b.String())
	return err
}

// Style adapts text to a terminal. The zero value leaves it unchanged.
type Style struct {
	// Colour enables colors.
	Colour bool
	// Width is the width of the terminal, in columns.
	Width int
}

func (s Style) paint(code, text string) string {
	if !s.Colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Good colors text green.
func (s Style) Good(text string) string { return s.paint("32", text) }

// Busy colors text yellow.
func (s Style) Busy(text string) string { return s.paint("33", text) }

// Bad colors text red.
func (s Style) Bad(text string) string { return s.paint("31", text) }

// Verdict returns a colored verdict, padded to five characters.
func (s Style) Verdict(v decide.Verdict) string { return s.ofVerdict(v)(fmt.Sprintf("%-5s", v)) }

// ofVerdict returns the function that colors text by verdict.
func (s Style) ofVerdict(v decide.Verdict) func(string) string {
	switch v {
	case decide.Done:
		return s.Good
	case decide.Block:
		return s.Bad
	case decide.Act, decide.Wait:
		return s.Busy
	}
	return plain
}

func plain(text string) string { return text }

func writeCluster(b *strings.Builder, c Cluster, style Style) {
	if c.Decision.Rule != "" {
		fmt.Fprintf(b, "%s  %s  %s", printable.Line(c.Title()), style.Verdict(c.Decision.Verdict), c.Decision.Rule)
		if c.Decision.Action != nil {
			fmt.Fprintf(b, "  %s", printable.Line(c.Decision.Action.String()))
		}
		b.WriteString("\n")
		style.line(b, 4, "", c.Decision.Message, nil)
	} else {
		fmt.Fprintf(b, "%s\n", printable.Line(c.Title()))
	}
	if c.Outcome != nil && c.Outcome.Detail != "" {
		style.line(b, 4, "", c.Outcome.Detail, nil)
	}
	for _, change := range c.Lines() {
		style.line(b, 4, "", change, nil)
	}
	if c.Road != nil {
		for line := range strings.Lines(c.Road.Text("    ")) {
			b.WriteString(style.Wrap(strings.TrimSuffix(line, "\n"), 0, continued) + "\n")
		}
	}
	for _, warning := range c.Warnings {
		style.line(b, 4, "warning", warning, style.Busy)
	}
	if c.Error != "" {
		style.line(b, 4, "error", c.Error, style.Bad)
	}
}

// Assumed returns the assumptions of the report, as one sentence each: about unobserved clusters, and about forecasts.
func (r Report) Assumed() []string {
	var list []string
	if r.Compared != nil {
		list = append(list, r.Compared.Sentence())
	}
	if slices.ContainsFunc(r.Clusters, func(c Cluster) bool { return c.Road != nil && len(c.Road.Steps) > 0 }) {
		list = append(list, "roads assume that "+forecast.Assumed)
	}
	return list
}

// Summary returns the counts and the worst risk on one line.
func Summary(r Report) string {
	counts := map[decide.Verdict]int{}
	failed := 0
	for _, c := range r.Clusters {
		if c.Error != "" {
			failed++
			continue
		}
		counts[c.Decision.Verdict]++
	}
	parts := []string{decide.Count(len(r.Clusters), "cluster")}
	acting := "acted on"
	if r.Planned {
		acting = "to act on"
	}
	for _, part := range []struct {
		n    int
		word string
	}{{counts[decide.Done], "done"}, {counts[decide.Act], acting}, {counts[decide.Wait], "waiting"},
		{counts[decide.Block], "blocked"},
		{failed, "failed"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.word))
		}
	}
	held := 0
	for _, removal := range r.Removals {
		held += len(removal.Clusters)
	}
	if held > 0 {
		parts = append(parts, decide.Count(held, "removal")+" held")
	}
	if r.Compared != nil {
		parts = append(parts, r.Compared.Counts())
	}
	if n := len(r.Problems); n > 0 {
		parts = append(parts, decide.Count(n, "problem")+" in the source")
	}
	unknown := func(risk forecast.Risk) bool { return risk == forecast.Unknown }
	if risks := slices.DeleteFunc(r.Risks(), unknown); len(risks) > 0 {
		parts = append(parts, "at worst "+risks[len(risks)-1].String())
	}
	return strings.Join(parts, ", ")
}
