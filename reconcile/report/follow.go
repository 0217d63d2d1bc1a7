package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"quorate.dev/quorate/visible"
)

// Following is a fleet that is looked at again and again. The zero value has not been looked at.
type Following struct {
	// before is what was last shown of each cluster, the time that has gone by left aside.
	before map[string]string
}

// Changes writes the lines of the table that say something else than the last time, and of clusters that are gone that
// they are, unless some could not be observed: those that are not there may be among them. That time goes by is no
// change.
func (f *Following) Changes(w io.Writer, r Report) error {
	first := f.before == nil
	now := map[string]string{}
	t := newTable(r.Clusters, Style{})
	var b strings.Builder
	if first && len(r.Clusters) == 0 {
		b.WriteString("no clusters\n")
	} else if first {
		t.write(&b, 0)
	}
	for i, c := range r.Clusters {
		key := c.Title()
		now[key] = c.steady()
		if before, known := f.before[key]; !known || before != now[key] {
			t.write(&b, i+1)
		}
	}
	var gone []string
	for key := range f.before {
		switch _, known := now[key]; {
		case known:
		case r.Unobserved:
			now[key] = f.before[key]
		default:
			gone = append(gone, key)
		}
	}
	slices.Sort(gone)
	for _, key := range gone {
		fmt.Fprintf(&b, "%s  gone\n", visible.Line(key))
	}
	f.before = now
	_, err := io.WriteString(w, b.String())
	return err
}

// steady is what the table says of a cluster, with moments instead of ages.
func (c Cluster) steady() string {
	var cells []string
	for _, column := range fleetColumns {
		if !column.ages {
			cells = append(cells, column.cell(c))
		}
	}
	cells = append(cells, c.since().UTC().String(), c.revision())
	if last := c.State.Backups.Last; last != nil {
		cells = append(cells, last.Slot.UTC().String())
	}
	overdue, known := c.State.BackupStale()
	return strings.Join(append(cells, fmt.Sprint(overdue && known)), "\n")
}
