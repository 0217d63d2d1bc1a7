package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"quorate.dev/quorate/internal/printable"
)

// Following tracks a fleet across repeated observations. The zero value has not tracked any observation yet.
type Following struct {
	// before is the text last shown for each cluster, without ages.
	before map[string]string
}

// Changes writes the table lines that have changed since the last call. It reports clusters that no longer exist,
// unless some clusters could not be observed: missing clusters may then still exist. A change that affects only ages
// does not count.
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
		fmt.Fprintf(&b, "%s  gone\n", printable.Line(key))
	}
	f.before = now
	_, err := io.WriteString(w, b.String())
	return err
}

// steady returns the table cells of a cluster, with times instead of ages.
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
