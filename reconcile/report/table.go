package report

import (
	"io"
	"slices"
	"strings"

	"quorate.dev/quorate/visible"
)

// longestCell is how many bytes a cell of others' text has at most, but for the last one of a line.
const longestCell = 64

// column of the table of a fleet.
type column struct {
	title string
	cell  func(Cluster) string
	// ages: what it says changes by itself, as time goes by.
	ages bool
}

// columns of the table, in their order.
var fleetColumns = []column{
	{"NAMESPACE/NAME", func(c Cluster) string { return visible.Short(c.Key(), 4*longestCell) }, false},
	{stateColumn, Cluster.standing, false},
	{"SINCE", func(c Cluster) string { return age(c.State.Now, c.since()) }, true},
	{"MEMBERS", Cluster.members, false},
	{"VERSION", Cluster.versions, false},
	{"SIZE", Cluster.sizes, false},
	{"BACKUP", Cluster.backup, true},
	{"REVISION", func(c Cluster) string { return c.revision() + c.revisionAge() }, true},
	{"MESSAGE", Cluster.remark, false},
}

// kubernetesColumn is the first one where there are several Kubernetes clusters.
var kubernetesColumn = column{"KUBERNETES",
	func(c Cluster) string { return visible.Short(visible.Line(c.Kubernetes), 4*longestCell) }, false}

// columnsFor are those of the table of these clusters.
func columnsFor(clusters []Cluster) []column {
	if slices.ContainsFunc(clusters, func(c Cluster) bool { return c.Kubernetes != "" }) {
		return append([]column{kubernetesColumn}, fleetColumns...)
	}
	return fleetColumns
}

// expendable are the columns that a narrow terminal goes without, the first of them first. Names are to be copied, so
// they stay whole, however long.
var expendable = []string{"REVISION", "VERSION", "BACKUP", "SIZE", "MESSAGE", "SINCE", "MEMBERS"}

const (
	// gap between two columns.
	gap = 2
	// leastMessage is how wide the message is at least, if it is as long, before other columns go.
	leastMessage = 24
	// stateColumn is the title of the one that is painted.
	stateColumn = "STATE"
)

// Table renders a fleet for people: a line per cluster. What does not fit the terminal is left out: whole columns,
// and the end of messages.
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

// table is what is shown of a fleet.
type table struct {
	clusters []Cluster
	style    Style
	// lines have a cell per column that is shown; the first has the titles.
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

// fit leaves out what is empty, and what the terminal has no room for.
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

// least is how wide the table is at least as long as no column is left out.
func (t *table) least() int {
	last := len(t.titles) - 1
	end := t.widths[last]
	if t.titles[last] == "MESSAGE" {
		end = min(end, leastMessage)
	}
	return t.total(last) + end + gap*last
}

// total is how wide the first n columns are.
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

// write writes one line; that of cluster i is i+1.
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

// paint paints what the cluster stands at.
func (c Cluster) paint(s Style) func(string) string {
	if c.VerdictName() == VerdictUnknown {
		return s.Bad
	}
	return s.ofVerdict(c.Decision.Verdict)
}

// cutTo cuts a text that a terminal shows wider than that, and shows that it is cut.
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
