package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// Members renders the running clusters as text: a block per cluster with a line per member.
func Members(w io.Writer, r Report, style Style) error {
	b := &strings.Builder{}
	for _, c := range r.Clusters {
		writeCluster(b, c, style)
		writeOrigin(b, c.State)
		if revision := c.revision(); revision != nothing {
			fmt.Fprintf(b, "    declared by %s%s\n", revision, c.revisionAge())
		}
		writeBackup(b, c.State)
		writeMembers(b, c.State)
	}
	if len(r.Clusters) == 0 {
		fmt.Fprintln(b, "no clusters")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeOrigin writes the cluster ID, and the origin of the cluster's data.
func writeOrigin(b *strings.Builder, s decide.State) {
	if id := s.Membership.ClusterID; id != 0 {
		fmt.Fprintf(b, "    cluster ID %s\n", id)
	}
	if from := s.MadeFrom(); from != "" {
		fmt.Fprintf(b, "    created from %s\n", printable.Line(from))
	}
}

// writeBackup writes the newest backup, if backups are declared or known.
func writeBackup(b *strings.Builder, s decide.State) {
	switch last := s.Backups.Last; {
	case last != nil:
		checked := "not read back"
		if last.Verified {
			checked = "verified"
		}
		fmt.Fprintf(b, "    last backup %s, revision %d, %s, in %s\n", last.Slot.UTC().Format(time.RFC3339),
			last.Revision, checked, dash(printable.Line(last.To)))
	case s.Declared.BacksUp:
		fmt.Fprintln(b, "    no backup yet")
	}
	if delayed := s.Backups.Delayed(); delayed != nil {
		fmt.Fprintf(b, "    backup Job %s has not succeeded yet: %s\n", printable.Line(delayed.Name),
			printable.Line(delayed.Message))
	}
	if d := s.Backups.Drill; d != nil {
		fmt.Fprintf(b, "    last drill at %s: backup %s restored in %ds\n", d.FinishedAt.UTC().Format(time.RFC3339),
			d.Slot.UTC().Format(time.RFC3339), d.Seconds)
	}
}

func writeMembers(b *strings.Builder, s decide.State) {
	if len(s.Membership.Members) == 0 {
		return
	}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "    MEMBER\tID\tROLE\tHEALTH\tVERSION\tREVISION\tDB SIZE\tIN USE\tALARMS\tPOD")
	for _, m := range s.MembersInOrder() {
		pod := "-"
		if s.Record.Hosts(m.ID) {
			pod = "guest"
		} else if ordinal, ours := s.Ordinal(m.Name); ours {
			pod = string(s.Replica(ordinal).Pod)
		}
		fmt.Fprintf(t, "    %s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", dash(printable.Line(m.Name)), m.ID, Role(m),
			Health(m), dash(printable.Line(m.Version)),
			m.Revision, size(m.DBSize), size(m.DBSizeInUse),
			dash(printable.Line(strings.Join(m.AlarmNames(), ","))), pod)
	}
	t.Flush() // writing to a strings.Builder cannot fail
}

// Role returns the role of a member: Learner, Leader or Voter.
func Role(m decide.Member) string {
	switch {
	case m.Learner:
		return "Learner"
	case m.Leader:
		return "Leader"
	}
	return "Voter"
}

// Health returns the health of a member: Unreachable, Unhealthy or Healthy.
func Health(m decide.Member) string {
	switch {
	case !m.Answers:
		return "Unreachable"
	case len(m.Alarms) > 0 || m.Disagrees != "":
		return "Unhealthy"
	}
	return "Healthy"
}

// size formats bytes as a Kubernetes quantity, in the largest unit that gives a whole number.
func size(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
