// Package markdown renders a report as a pull request comment, within the size limit of git hosts. Untrusted text is
// shown as plain text: without markup, mentions or references.
package markdown

import (
	"fmt"
	"slices"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/forecast"
	"quorate.dev/quorate/reconcile/report"
)

// Most is the default maximum size of a comment in bytes. It is GitHub's limit, although GitHub counts characters.
// GitLab's limit is a million.
const Most = 65536

// least is the smallest limit: it leaves room for the notes on omissions.
const least = 4096

// Options configure a comment.
type Options struct {
	// Command is the command that created the report, such as plan; it identifies the comment.
	Command string
	// Most is the maximum size in bytes; 0 means the constant Most.
	Most int
}

// Marker returns the first line of a comment. It is invisible; pipelines use it to find their earlier comment.
func Marker(command string) string { return mark + " quorate " + command + " -->" }

// Comment renders the report. It shows the worst result on one line, and a table with a row for each cluster that has
// not converged. A folded section for each of these clusters contains the reasons and the forecast. If there is not
// enough room, forecasts and reasons are omitted before clusters, and the most severe clusters are omitted last. The
// comment mentions all omissions.
func Comment(r report.Report, o Options) string {
	if o.Most == 0 {
		o.Most = Most
	}
	p := &page{left: max(o.Most, least) - reserved}
	p.begin(r, o)
	entries := entriesOf(r)
	lists := p.lists(r)
	rows := p.rows(entries)
	p.parts = append(p.parts, lists...)
	p.details(rows)
	p.end(r, entries)
	return strings.Join(p.parts, "\n") + "\n"
}

// reserved is the room for the end of a comment, and for the notes on omissions.
const reserved = 2048

// page is a comment under construction.
type page struct {
	// parts are separated by blank lines. Each part contains complete tables and folded sections.
	parts []string
	// left is the number of bytes that remain for further parts.
	left int
}

// add adds a part if there is room for it.
func (p *page) add(part string) bool {
	if len(part)+1 > p.left {
		return false
	}
	p.left -= len(part) + 1
	p.parts = append(p.parts, part)
	return true
}

// note adds a part for which room is reserved.
func (p *page) note(format string, args ...any) {
	p.parts = append(p.parts, fmt.Sprintf(format+"\n", args...))
}

// begin adds the identification of the report, and its worst result.
func (p *page) begin(r report.Report, o Options) {
	p.add(Marker(o.Command))
	p.add(fmt.Sprintf("Quorate %s: %s\n---\n", text(o.Command, 50), headline(r)))
	if of := revisionsOf(r); of != "" {
		p.add(of + "\n")
	}
	if r.Compared != nil {
		p.add("Against " + code(short(r.Compared.Against, 300)) + "\n")
	}
	if r.Error != "" {
		p.add("**Error:** " + text(r.Error, 2000) + "\n")
	}
}

// headline returns the result of the report, and the worst risk of all forecasts.
func headline(r report.Report) string {
	var words []string
	switch r.Result() {
	case report.Failed:
		words = append(words, "error")
	case report.Invalid:
		words = append(words, "not valid")
	case report.Blocked:
		words = append(words, "manual action required")
	case report.Locked, report.OK:
	}
	if risks := r.Risks(); len(risks) > 0 {
		words = append(words, "at worst "+risks[len(risks)-1].String())
	}
	if len(words) == 0 {
		return atBest(r)
	}
	return strings.Join(words, ", ")
}

// atBest returns the headline of a report that has neither problems nor risks.
func atBest(r report.Report) string {
	if r.Compared != nil && len(r.Clusters)+len(r.Compared.Unknown) == 0 {
		return "nothing changes"
	}
	decided, pending := false, false
	for _, c := range r.Clusters {
		if c.Road != nil && len(c.Road.Steps) > 0 {
			return forecast.Safe.String()
		}
		decided, pending = decided || c.Decision.Rule != "", pending || c.Pending()
	}
	switch {
	case pending:
		return "not up to date"
	case decided:
		return "up to date"
	case len(r.Clusters) == 0:
		return "no clusters"
	}
	return "valid"
}

// revisionsOf returns the revisions that were read.
func revisionsOf(r report.Report) string {
	const longest, most = 300, 10
	if len(r.Sources) == 0 {
		if r.Revision == "" {
			return ""
		}
		return "Revision " + code(short(r.Revision, longest)) + signed(r.Signer)
	}
	var lines []string
	for i, s := range r.Sources {
		if i == most {
			lines = append(lines, fmt.Sprintf("* and %s more", decide.Count(len(r.Sources)-most, "source")))
			break
		}
		revision := "not read"
		if s.Revision != "" {
			revision = "revision " + code(short(s.Revision, longest))
		}
		lines = append(lines, "* "+code(short(s.Source, longest))+": "+revision+signed(s.Signer))
	}
	return strings.Join(lines, "\n")
}

func signed(by string) string {
	if by == "" {
		return ""
	}
	return ", signed by " + code(short(by, 300))
}

// lists returns the lists that are not about a single cluster, using at most half of the room.
func (p *page) lists(r report.Report) []string {
	room := p.left / 2
	half := &page{left: room}
	half.list("Problems", problemsOf(r), room/2)
	half.list("Held removals", removalsOf(r), room/4)
	half.list("Warnings", r.Warnings, room/4)
	p.left -= room - half.left
	return half.parts
}

// list adds a heading and as many items as fit in room bytes.
func (p *page) list(title string, items []string, room int) {
	if len(items) == 0 {
		return
	}
	var part strings.Builder
	fmt.Fprintf(&part, "**%s**\n\n", title)
	shown := 0
	for _, item := range items {
		line := "* " + text(item, 1500) + "\n"
		if part.Len()+len(line)+100 > room { // with room for the note on omissions
			break
		}
		part.WriteString(line)
		shown++
	}
	if shown < len(items) {
		fmt.Fprintf(&part, "* Omitted for lack of space: %s\n", decide.Count(len(items)-shown, "other line"))
	}
	if !p.add(part.String()) {
		p.note("**%s:** omitted for lack of space: %s", title, decide.Count(len(items), "line"))
	}
}

func more(n int, what string) string { return "and " + decide.Count(n, what) }

func problemsOf(r report.Report) []string {
	var list []string
	for _, problem := range r.Problems {
		list = append(list, problem.String())
	}
	return list
}

func removalsOf(r report.Report) []string {
	var list []string
	for _, removal := range r.Removals {
		list = append(list, removal.String()+"; if the removals are intended: "+report.Confirm(removal.Revision))
	}
	return list
}

// end adds the assumptions about clusters and forecasts, the digest of the plan, and the counts.
func (p *page) end(r report.Report, entries []entry) {
	if r.Compared != nil {
		p.note("No live state was observed: clusters are assumed to match that revision; %s.", report.AssumedWell)
	}
	if slices.ContainsFunc(entries, func(e entry) bool { return e.Road != nil && len(e.Road.Steps) > 0 }) {
		p.note("Roads assume that %s.", forecast.Assumed)
	}
	if digest := r.Digest(); digest != "" {
		p.note("Plan `%s`", digest)
	}
	p.note("%s", report.Summary(r))
}
