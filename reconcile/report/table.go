package report

import (
	"io"
	"slices"
	"strings"

	"quorate.dev/quorate/internal/printable"
)

// longestCell is the maximum length of untrusted text in a cell, in bytes, except in the last column.
const longestCell = 64

// column is a column of the fleet table.
type column struct {
	title string
	cell  func(Cluster) string
	// ages is set if the content changes as time passes.
	ages bool
}

// fleetColumns are the columns of the table, in order.
var fleetColumns = []column{
	{"NAMESPACE/NAME", func(c Cluster) string { return printable.Short(c.Key(), 4*longestCell) }, false},
	{stateColumn, Cluster.verdictLabel, false},
	{"SINCE", func(c Cluster) string { return age(c.State.Now, c.since()) }, true},
	{"MEMBERS", Cluster.members, false},
	{"VERSION", Cluster.versions, false},
	{"SIZE", Cluster.sizes, false},
	{"BACKUP", Cluster.backup, true},
	{"REVISION", func(c Cluster) string { return c.revision() + c.revisionAge() }, true},
	{"MESSAGE", Cluster.remark, false},
}

// kubernetesColumn is the first column if there are several Kubernetes clusters.
var kubernetesColumn = column{"KUBERNETES",
	func(c Cluster) string { return printable.Short(printable.Line(c.Kubernetes), 4*longestCell) }, false}

// columnsFor returns the columns of a table for these clusters.
func columnsFor(clusters []Cluster) []column {
	if slices.ContainsFunc(clusters, func(c Cluster) bool { return c.Kubernetes != "" }) {
		return append([]column{kubernetesColumn}, fleetColumns...)
	}
	return fleetColumns
}

// expendable lists the columns that are omitted on a narrow terminal, in this order. Names are never cut, because users
// copy them.
var expendable = []string{"REVISION", "VERSION", "BACKUP", "SIZE", "MESSAGE", "SINCE", "MEMBERS"}

const (
	// gap is the space between two columns.
	gap = 2
	// leastMessage is the width to which messages are cut before columns are omitted.
	leastMessage = 24
	// stateColumn is the title of the colored column.
	stateColumn = "STATE"
)

// Table renders a fleet as text: one line per cluster. Columns that do not fit on the terminal are omitted, and
// long messages are truncated.
func Table(w io.Writer, r Report, style Style) error {
	if len(r.Clusters) == 0 {
		_, err := io.WriteString(w, "no clusters\n")
		return err
	}
	t := newTable(r.Clusters, style)
	var b strings.Builder
	for i := range t.lines {
		t.write(&b, i)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// table is the visible part of a fleet.
type table struct {
	clusters []Cluster
	style    Style
	// lines contains the cells of the visible columns, by line; the first line contains the titles.
	lines  [][]string
	titles []string
	widths []int
}

func newTable(clusters []Cluster, style Style) table {
	t := table{clusters: clusters, style: style, lines: make([][]string, len(clusters)+1)}
	for _, column := range columnsFor(clusters) {
		t.titles = append(t.titles, column.title)
		t.lines[0] = append(t.lines[0], column.title)
		widest := 0
		for i, c := range clusters {
			cell := column.cell(c)
			t.lines[i+1] = append(t.lines[i+1], cell)
			widest = max(widest, columns(cell))
		}
		if widest > 0 {
			widest = max(widest, columns(column.title))
		}
		t.widths = append(t.widths, widest)
	}
	t.fit()
	return t
}

// fit removes the message column if it is empty, and columns that do not fit on the terminal.
func (t *table) fit() {
	if t.widths[len(t.widths)-1] == 0 {
		t.leaveOut(len(t.titles) - 1)
	}
	if t.style.Width == 0 {
		return
	}
	for _, title := range expendable {
		if i := slices.Index(t.titles, title); i >= 0 && t.least() > t.style.Width {
			t.leaveOut(i)
		}
	}
	last := len(t.titles) - 1
	if t.titles[last] == "MESSAGE" {
		t.widths[last] = min(t.widths[last], t.style.Width-t.total(last)-gap*last)
	}
}

// least returns the minimum width of the table with the current columns.
func (t *table) least() int {
	last := len(t.titles) - 1
	end := t.widths[last]
	if t.titles[last] == "MESSAGE" {
		end = min(end, leastMessage)
	}
	return t.total(last) + end + gap*last
}

// total returns the width of the first n columns.
func (t *table) total(n int) int {
	sum := 0
	for _, width := range t.widths[:n] {
		sum += width
	}
	return sum
}

func (t *table) leaveOut(i int) {
	t.titles, t.widths = slices.Delete(t.titles, i, i+1), slices.Delete(t.widths, i, i+1)
	for l := range t.lines {
		t.lines[l] = slices.Delete(t.lines[l], i, i+1)
	}
}

// write writes one line. Cluster i is on line i+1.
func (t *table) write(b *strings.Builder, line int) {
	padding := 0
	for i, cell := range t.lines[line] {
		cell = cutTo(cell, t.widths[i])
		if cell != "" {
			b.WriteString(strings.Repeat(" ", padding))
			padding = 0
		}
		padding += max(t.widths[i]-columns(cell), 0) + gap
		if line > 0 && t.titles[i] == stateColumn {
			cell = t.clusters[line-1].paint(t.style)(cell)
		}
		b.WriteString(cell)
	}
	b.WriteString("\n")
}

// paint returns the function that colors the cluster's state.
func (c Cluster) paint(s Style) func(string) string {
	if c.VerdictName() == VerdictUnknown {
		return s.Bad
	}
	return s.ofVerdict(c.Decision.Verdict)
}

// cutTo cuts a text to a terminal width, and marks the cut.
func cutTo(text string, width int) string {
	if columns(text) <= width {
		return text
	}
	end := 0
	for i, r := range text {
		if columns(text[:i])+columns(string(r)) > width-1 {
			break
		}
		end = i + len(string(r))
	}
	return strings.TrimRight(text[:end], " ") + "…"
}
