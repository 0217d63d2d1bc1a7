package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"quorate.dev/quorate/internal/printable"
	"quorate.dev/quorate/reconcile/decide"
)

// Detail renders everything that is known about one cluster as text.
func Detail(w io.Writer, c Cluster, style Style) error {
	b := &strings.Builder{}
	writeCluster(b, c, style)
	writeOrigin(b, c.State)
	writeDeclared(b, c, style)
	if since := c.since(); !since.IsZero() {
		fmt.Fprintf(b, "    in this state for %s\n", age(c.State.Now, since))
	}
	writeBackup(b, c.State)
	if failed := c.State.Backups.NewestFailure(); failed != nil {
		style.line(b, 4, "", "a later backup failed: Job "+failed.Name, nil)
	}
	writeTree(b, c.State, style)
	writeConditions(b, c, style)
	writeCertificates(b, c.State)
	writeEvents(b, c, style)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeDeclared writes the source and revision that declared the cluster, and the revision's age.
func writeDeclared(b *strings.Builder, c Cluster, style Style) {
	revision, source := c.status().DeclaredRevision, c.status().DeclaredSource
	if revision == "" {
		return
	}
	text := "declared by " + revision + c.revisionAge()
	if source != "" {
		text += " of " + source
	}
	style.line(b, 4, "", text, nil)
}

// branch is a node in a tree, with its leaves.
type branch struct {
	text   string
	leaves []string
}

// branchesOf returns the members, each with its pod and volume, and then the pods and volumes without a member.
func branchesOf(s decide.State) []branch {
	var branches []branch
	seen := map[int]bool{}
	for _, m := range s.MembersInOrder() {
		one := branch{text: describeMember(m, s.Declared.Quota)}
		if ordinal, ours := s.OrdinalOf(m); ours && !seen[ordinal] {
			seen[ordinal] = true
			one.leaves = leavesOf(s.Replica(ordinal))
		}
		if s.Record.Hosts(m.ID) {
			one.leaves = []string{"guest: a member of the adopted cluster"}
		}
		branches = append(branches, one)
	}
	var others []int
	for _, r := range s.Replicas {
		if !seen[r.Ordinal] {
			others = append(others, r.Ordinal)
		}
	}
	slices.Sort(others)
	without := "no member"
	if !s.Membership.Known {
		without = "member unknown"
	}
	for _, ordinal := range others {
		branches = append(branches, branch{s.ReplicaName(ordinal) + "  " + without, leavesOf(s.Replica(ordinal))})
	}
	return branches
}

// writeTree writes the members with their pods and volumes.
func writeTree(b *strings.Builder, s decide.State, style Style) {
	branches := branchesOf(s)
	if len(branches) == 0 {
		return
	}
	title := "members"
	if !s.Membership.Known {
		title += ", as far as known"
		if s.Membership.Why != "" {
			title += ": " + s.Membership.Why
		}
	}
	style.line(b, 4, "", title, nil)
	for i, one := range branches {
		fork, trunk := "├─ ", "│  "
		if i == len(branches)-1 {
			fork, trunk = "└─ ", "   "
		}
		fmt.Fprintf(b, "    %s%s\n", fork, style.Wrap(one.text, 4+len("├─ "), continued))
		for l, leaf := range one.leaves {
			twig := "├─ "
			if l == len(one.leaves)-1 {
				twig = "└─ "
			}
			fmt.Fprintf(b, "    %s%s%s\n", trunk, twig, style.Wrap(leaf, 10, 10))
		}
	}
}

func describeMember(m decide.Member, quota int64) string {
	text := fmt.Sprintf("%s  %s  %s  %s  %s", dash(m.Name), Role(m), Health(m), dash(m.Version),
		ofQuota(m.DBSize, quota))
	if m.DBSizeInUse > 0 {
		text += fmt.Sprintf(" (%s in use)", human(m.DBSizeInUse))
	}
	text += "  ID " + m.ID.String()
	for _, why := range []string{strings.Join(m.AlarmNames(), ","), m.Why, m.Disagrees} {
		if why != "" {
			text += "  " + why
		}
	}
	return text
}

// leavesOf returns the pod and the volume of a replica.
func leavesOf(r decide.Replica) []string {
	pod := "pod " + string(r.Pod)
	for _, more := range []string{r.PodMessage, r.PodRefused} {
		if more != "" {
			pod += ": " + more
		}
	}
	volume := "volume missing"
	if r.VolumeUID != "" {
		volume = "volume " + r.VolumeUID
	}
	if r.VolumeTerminating {
		volume += ", being deleted"
	}
	if r.LostCluster != 0 {
		volume += ", kept from the lost cluster " + r.LostCluster.String()
	}
	if r.Stranded != "" {
		volume += ", stranded: " + r.Stranded
	}
	return []string{pod, volume}
}

// writeConditions writes the conditions of the custom resource, as written by the last pass.
func writeConditions(b *strings.Builder, c Cluster, style Style) {
	conditions := c.status().Conditions
	if len(conditions) == 0 {
		return
	}
	b.WriteString("    conditions, as of the last pass\n")
	for _, condition := range conditions {
		head := fmt.Sprintf("%s=%s for %s, %s", condition.Type, condition.Status,
			age(c.State.Now, condition.LastTransitionTime.Time), condition.Reason)
		if condition.Message != "" {
			head += ": " + condition.Message
		}
		style.line(b, 6, "", head, nil)
	}
}

// writeCertificates writes the validity of certificates, in order of expiry.
func writeCertificates(b *strings.Builder, s decide.State) {
	if len(s.Certificates) == 0 {
		return
	}
	b.WriteString("    certificates\n")
	for _, certificate := range s.CertificatesInOrder() {
		fmt.Fprintf(b, "      %s: %s, until %s\n", printable.Line(certificate.String()), certificate.Validity(s.Now),
			certificate.NotAfter.UTC().Format(time.RFC3339))
	}
}

// longestNote is the maximum number of bytes shown of an event's reason, and of its note.
const longestNote = 300

// writeEvents writes the recent events of the cluster.
func writeEvents(b *strings.Builder, c Cluster, style Style) {
	if c.NoEvents != "" {
		style.line(b, 4, "", "cannot show events: "+c.NoEvents, nil)
	}
	if len(c.Events) == 0 {
		return
	}
	b.WriteString("    events\n")
	for _, e := range c.Events {
		kind := ""
		if e.Warning {
			kind = "Warning  "
		}
		line := fmt.Sprintf("%s ago  %s%s  %s: %s", age(c.State.Now, e.At), kind, printable.Line(e.Object),
			printable.Short(e.Reason, longestNote), printable.Short(e.Note, longestNote))
		if e.Count > 1 {
			line += fmt.Sprintf("  (%d times)", e.Count)
		}
		style.line(b, 6, "", line, nil)
	}
}
