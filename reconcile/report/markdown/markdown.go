// Package markdown renders a report as a comment in a pull request, within the bound that a forge has for one. Whatever
// others have written is text in it: no markup, no mention and no reference.
package markdown

import (
	"fmt"
	"slices"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
	"quorate.dev/quorate/reconcile/road"
)

// Most is how many bytes a comment has at most, unless something else is asked for: what GitHub takes as a comment, in
// characters. GitLab takes a million.
const Most = 65536

// least is the smallest bound that there is: room for what is said of what has no room.
const least = 4096

// Options of a comment.
type Options struct {
	// Command that made the report, such as plan: its comment is found by that.
	Command string
	// Most is how many bytes there may be; Most of this package if it is 0.
	Most int
}

// Marker is the first line of a comment. It is not shown; by it a pipeline finds the comment that it wrote before.
func Marker(command string) string { return mark + " quorate " + command + " -->" }

// Comment renders the report: a line that says the worst, a table with a row for each cluster that is not as declared,
// and for each of them a part that is folded, with the reasons and the road. Where there is no room for all of it,
// roads and reasons are left out before clusters, those of the worst last, and the comment says what is missing.
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

// reserved is room for what a comment ends with, and for each note on what is missing.
const reserved = 2048

// page is a comment that is being written.
type page struct {
	// parts are separated by a blank line: each begins and ends whatever it has of tables and folds.
	parts []string
	// left are the bytes that there is room for.
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

// begin says which report it is, and the worst of it.
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

// headline is what the report has come to, and the worst risk of all roads.
func headline(r report.Report) string {
	var words []string
	switch r.Result() {
	case report.Failed:
		words = append(words, "error")
	case report.Invalid:
		words = append(words, "not valid")
	case report.Blocked:
		words = append(words, "a person is needed")
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

// atBest is what a report has come to in which nothing is wrong, and that has no risk.
func atBest(r report.Report) string {
	if r.Compared != nil && len(r.Clusters)+len(r.Compared.Unknown) == 0 {
		return "nothing changes"
	}
	decided, pending := false, false
	for _, c := range r.Clusters {
		if c.Road != nil && len(c.Road.Steps) > 0 {
			return road.Safe.String()
		}
		decided, pending = decided || c.Decision.Rule != "", pending || c.Pending()
	}
	switch {
	case pending:
		return "something is left to do"
	case decided:
		return "as declared"
	case len(r.Clusters) == 0:
		return "no clusters"
	}
	return "valid"
}

// revisionsOf says what was read.
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

// lists are what is not said of one cluster alone, in half of the room at most.
func (p *page) lists(r report.Report) []string {
	room := p.left / 2
	half := &page{left: room}
	half.list("Problems", problemsOf(r), room/2)
	half.list("Removals that are held", removalsOf(r), room/4)
	half.list("Warnings", r.Warnings, room/4)
	p.left -= room - half.left
	return half.parts
}

// list adds a heading and an item for each text, as many as there is room for.
func (p *page) list(title string, items []string, room int) {
	if len(items) == 0 {
		return
	}
	var part strings.Builder
	fmt.Fprintf(&part, "**%s**\n\n", title)
	shown := 0
	for _, item := range items {
		line := "* " + text(item, 1500) + "\n"
		if part.Len()+len(line)+100 > room { // and room for what is missing
			break
		}
		part.WriteString(line)
		shown++
	}
	if shown < len(items) {
		fmt.Fprintf(&part, "* %s for which there is no room here\n", more(len(items)-shown, "other line"))
	}
	if !p.add(part.String()) {
		p.note("**%s:** %s for which there is no room here", title, decide.Count(len(items), "line"))
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
		list = append(list, removal.String()+"; if they are meant to go: "+report.Confirm(removal.Revision))
	}
	return list
}

// end says what is not in the table, what roads take for granted, and counts.
func (p *page) end(r report.Report, entries []entry) {
	if r.Compared != nil {
		p.note("Nothing was observed: clusters are taken to be as declared there; %s.", report.AssumedWell)
	}
	if slices.ContainsFunc(entries, func(e entry) bool { return e.Road != nil && len(e.Road.Steps) > 0 }) {
		p.note("Roads take for granted that %s.", road.Assumed)
	}
	if digest := r.Digest(); digest != "" {
		p.note("Plan `%s`", digest)
	}
	p.note("%s", report.Summary(r))
}
