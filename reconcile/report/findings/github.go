package findings

import (
	"fmt"
	"io"
	"strings"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// notice is the level of informational messages.
const notice Level = "notice"

// mostAnnotations is the maximum number of annotations of each level that GitHub shows for a step.
const mostAnnotations = 10

// GitHub writes the findings in a report as workflow commands, which GitHub Actions shows at the lines of files. If
// there are more findings of a level than GitHub shows, the last annotation of that level counts the other findings.
// The plan's digest is written as a notice. If nothing was observed, so are the assumptions.
func GitHub(w io.Writer, r report.Report, findings []Finding) error {
	var b strings.Builder
	if digest := r.Digest(); digest != "" {
		writeCommand(&b, Finding{Level: notice, Rule: "Plan", Message: digest})
	}
	if r.Compared != nil {
		for _, assumed := range r.Assumed() {
			writeCommand(&b, Finding{Level: notice, Rule: "Assumed", Message: assumed})
		}
	}
	for _, level := range []Level{Error, Warning} {
		of := ofLevel(findings, level)
		for i, f := range of {
			if rest := len(of) - i; i == mostAnnotations-1 && rest > 1 {
				f = Finding{Level: level, Message: fmt.Sprintf("and %s: see the report",
					decide.Count(rest, "other "+string(level)))}
				writeCommand(&b, f)
				break
			}
			writeCommand(&b, f)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func ofLevel(findings []Finding, level Level) []Finding {
	var list []Finding
	for _, f := range findings {
		if f.Level == level {
			list = append(list, f)
		}
	}
	return list
}

func writeCommand(b *strings.Builder, f Finding) {
	var properties []string
	if f.File != "" {
		properties = append(properties, "file="+escaped(f.File))
		if f.Line > 0 {
			properties = append(properties, fmt.Sprintf("line=%d", f.Line))
		}
	}
	if title := f.title(); title != "" {
		properties = append(properties, "title="+escaped(title))
	}
	fmt.Fprintf(b, "::%s", f.Level)
	if len(properties) > 0 {
		fmt.Fprintf(b, " %s", strings.Join(properties, ","))
	}
	fmt.Fprintf(b, "::%s\n", data(f.Message))
}

// title returns the cluster that a finding is about, if any, and the rule.
func (f Finding) title() string { return strings.TrimSpace(f.Cluster + " " + f.Rule) }

var (
	dataEscapes     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	propertyEscapes = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// data escapes a text for the message of a command, and escaped escapes a text for the value of a property. GitHub then
// reads the original text.
func data(text string) string { return dataEscapes.Replace(printable.Line(text)) }

func escaped(text string) string { return propertyEscapes.Replace(printable.Line(text)) }
