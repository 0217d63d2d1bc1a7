package decidetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// Table prints the state, with a line for each deviation from a healthy state.
func Table(s decide.State) string {
	var out strings.Builder
	line := func(name, format string, args ...any) {
		text := strings.NewReplacer("\n", " ", "\r", " ").Replace(fmt.Sprintf(format, args...))
		fmt.Fprintf(&out, "%-9s %s\n", name, strings.TrimSpace(text))
	}
	declaredLines(s.Declared, line)
	line("record", "token=%s cluster=%s%s", orNone(s.Record.Token), idOrNone(s.Record.ClusterID),
		describeRemoved(s, s.Record))
	if s.WindowClosed {
		line("", "the maintenance window is closed")
	}
	if s.FoundingID != 0 {
		line("", "bootstraps cluster %s", s.FoundingID)
	}
	templateLine(s, line)
	if a := s.CA; a.Secret != "" || s.Record.CA != "" {
		line("ca", "record=%s secret=%s mounted=%s proven=%s", orNone(s.Record.CA), orNone(a.Secret),
			orNone(strings.Join(a.Mounted, ",")), orNone(a.Proven))
	}
	for _, c := range s.WornCertificates() {
		line("", "%s: %s", c, c.Validity(s.Now))
	}
	line("status", "cluster=%s", idOrNone(s.ReportedClusterID))
	backupLines(s, line)
	restoreLine(s, line)
	recoveryLines(s, line)
	line("etcd", "cluster=%s %s", idOrNone(s.Membership.ClusterID), describeKnown(s.Membership))
	for _, alarm := range s.Membership.StaleAlarms {
		line("", "%s of removed member %s", alarm.Kind, alarm.ID)
	}
	for _, n := range ordinals(s) {
		line(s.ReplicaName(n), "%s", row(s, n))
	}
	for _, m := range s.MembersInOrder() {
		if _, ours := s.OrdinalOf(m); !ours {
			line("member", "%s %s", m.Name, describeMember(m))
		}
	}
	for _, what := range troubles(s) {
		line("", "%s", what)
	}
	return out.String()
}

func declaredLines(d decide.Declared, line func(name, format string, args ...any)) {
	line("declared", "%d x %s %s %s", d.Replicas, d.Version, d.SpecHash, d.Lifecycle)
	if d.Quota > 0 {
		line("", "quota=%d", d.Quota>>20)
	}
	if d.RecoversSpace {
		line("", "on-no-space=Recover")
	}
	if order := d.Defragmentation; order != (decide.Defragmentation{}) {
		line("", "defragmentation %d%% and %dMi windowed=%t request=%s", order.MinFreePercent, order.MinFree>>20,
			order.Windowed, orNone(order.Request))
	}
	if d.Suspended {
		line("", "suspended")
	}
	if from := d.Restore.From; from != "" {
		line("", "restored from %s", from)
	}
}

// troubles returns the problems of the declaration and the objects.
func troubles(s decide.State) []string {
	list := slices.Concat(s.Declared.Problems, s.Backups.Drift, s.Objects.Foreign, s.Objects.Relabelled,
		s.Objects.Terminating, s.Objects.Irreplaceable, s.Objects.Drift)
	for _, f := range s.Objects.Rewritten {
		list = append(list, "rewritten "+f.String())
	}
	for _, r := range s.Repeated {
		if r.Times > 1 {
			list = append(list, fmt.Sprintf("%s %d times in a row: %s", r.Rule, r.Times, r.What))
		}
	}
	return slices.DeleteFunc(list, func(what string) bool { return what == "" })
}

// describeKnown returns whether the member list is known, and the target of a downgrade.
func describeKnown(m decide.Membership) string {
	known := "known"
	switch {
	case m.Disputed:
		known = "disputed " + m.Why
	case m.Unrecorded:
		known = "unrecorded " + m.Why
	case m.Unconfirmed:
		known = "unconfirmed " + m.Why
	case !m.Known:
		known = "unknown " + m.Why
	}
	if m.Downgrade != "" {
		known += " downgrade=" + m.Downgrade
	}
	return known
}

// templateLine prints the template of new pods, if it differs from the declaration or the StatefulSet is scaled to 0.
func templateLine(s decide.State, line func(name, format string, args ...any)) {
	o := s.Objects
	if o.RunsVersion != "" && (o.RunsVersion != s.Declared.Version || o.RunsHash != s.Declared.SpecHash ||
		o.RunsReplicas == 0) {
		line("runs", "%d x %s %s", o.RunsReplicas, o.RunsVersion, o.RunsHash)
	}
}

// backupLines prints the observed state of backups, if backups are declared or exist.
func backupLines(s decide.State, line func(name, format string, args ...any)) {
	if b := s.Declared; b.BacksUp || b.BacksUpBeforeUpgrade || b.BacksUpBeforeDeletion || s.Backups.Last != nil {
		last := "none"
		if l := s.Backups.Last; l != nil {
			last = fmt.Sprintf("%s of cluster %s", s.Now.Sub(l.StartedAt), idOrNone(l.ClusterID))
		}
		line("backups", "generation=%d last=%s %s", s.Generation, last, s.Backups.Hidden)
	}
	if b := s.Backups.BeforeDeletion; b != nil {
		line("", "generation %d: final backup %s ago, cluster %s", b.Generation, s.Now.Sub(b.StartedAt),
			idOrNone(b.ClusterID))
	}
	if c := s.Comparison; c != (decide.Comparison{}) {
		differs := ago(s, "differs since ", c.DiffersSince)
		line("compared", "%s %s", ago(s, "", c.At), strings.TrimSpace(differs+" "+c.Failure))
	}
	for _, j := range s.Backups.Jobs {
		line("", "%s %s since %s %s", j.Name, j.Phase, s.Now.Sub(j.CreatedAt), j.Message)
	}
}

// ago returns words followed by the time from at to the observation, or "" if at is zero.
func ago(s decide.State, words string, at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return words + s.Now.Sub(at).String()
}

// restoreLine prints the observed state of a restore, if any.
func restoreLine(s decide.State, line func(name, format string, args ...any)) {
	seen := s.Restore
	switch j := seen.Job; {
	case j != nil && j.Terminating:
		line("restore", "%s: %s into %s, terminating", j.From, j.Phase, j.VolumeUID)
	case j != nil:
		line("restore", "%s: %s into %s %s%s", j.From, j.Phase, j.VolumeUID, j.Message, j.Restored)
	case s.Record.Restored != decide.RestoredData{}:
		line("restore", "not confirmed yet: cluster %s, member %s, revision %d", s.Record.Restored.ClusterID,
			s.Record.Restored.MemberID, s.Record.Restored.Revision)
	case seen.Hidden+seen.Foreign != "" || len(seen.Stopping) > 0:
		line("restore", "%s%s%s", seen.Hidden, seen.Foreign, strings.Join(seen.Stopping, ", "))
	}
}

// recoveryLines prints the requested, the recorded and the observed recovery.
func recoveryLines(s decide.State, line func(name, format string, args ...any)) {
	if o := s.Declared.Recovery; o.ClusterID != 0 {
		from := s.ReplicaName(o.Ordinal)
		if o.Backup != "" {
			from = o.Backup + " into " + from
		}
		line("recovery", "of cluster %s from %s, lost=%s, old volumes %s", o.ClusterID, from,
			orNone(o.Lost.String()), o.OldVolumes)
	}
	if b := s.Record.Recovery; b.ClusterID != 0 {
		line("", "in progress for cluster %s on %s of %s", b.ClusterID, b.VolumeUID, s.ReplicaName(b.Ordinal))
	}
	if void := s.Record.VoidRecovery; void != "" {
		line("", "void: %s", void)
	}
	if void := s.ReportedVoidRecovery; void != "" && void != s.Record.VoidRecovery {
		line("", "void in the status: %s", void)
	}
	seen := s.Recovery
	if j := seen.Job; j != nil {
		line("", "Job for cluster %s: %s on %s of %s, into %s %s", j.ClusterID, j.Phase, j.VolumeUID,
			s.ReplicaName(j.Ordinal), idOrNone(j.Into), j.Message)
	}
	if seen.Hidden+seen.Foreign != "" || len(seen.Stopping) > 0 {
		line("", "%s%s%s", seen.Hidden, seen.Foreign, strings.Join(seen.Stopping, ", "))
	}
}

func describeRemoved(s decide.State, r decide.Record) string {
	var text strings.Builder
	for _, gone := range r.Removed {
		kept := ""
		if gone.Kept() {
			kept = " kept of " + gone.LostCluster.String()
		}
		fmt.Fprintf(&text, " removed=%s(%s%s)", s.ReplicaName(gone.Ordinal), orNone(gone.VolumeUID), kept)
	}
	return text.String()
}

// ordinals returns all ordinals mentioned in the state.
func ordinals(s decide.State) []int {
	var list []int
	for _, r := range s.Replicas {
		list = append(list, r.Ordinal)
	}
	for _, m := range s.Record.Members {
		list = append(list, m.Ordinal)
	}
	for _, m := range s.Membership.Members {
		if n, ours := s.OrdinalOf(m); ours {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// row prints the pod, the volume, the record and the member of an ordinal, in fixed columns.
func row(s decide.State, n int) string {
	r := s.Replica(n)
	volume := orNone(r.VolumeUID)
	if r.VolumeTerminating {
		volume += "(terminating)"
	}
	recorded := "no record"
	if m, found := s.Record.Member(n); found {
		recorded = describeRecorded(m)
	}
	member := "no member"
	for _, m := range s.Membership.Members {
		if ordinal, ours := s.OrdinalOf(m); ours && ordinal == n {
			member = describeMember(m)
		}
	}
	return fmt.Sprintf("pod=%-8s volume=%-6s %-15s %s %s", r.Pod, volume, recorded, member, describeMore(s, r))
}

// describeMore returns the properties of a replica that the columns do not show.
func describeMore(s decide.State, r decide.Replica) string {
	words := []string{r.PodMessage}
	if r.LostCluster != 0 {
		words = append(words, "left of "+r.LostCluster.String())
	}
	if use := r.LastUse; r.Pod == decide.PodAbsent && use.Version != "" {
		words = append(words, "used="+strings.TrimSuffix(use.Version+"/"+use.StorageVersion, "/"))
	}
	if r.Pod != decide.PodAbsent && r.PodSpecHash != "" &&
		(r.PodVersion != s.Declared.Version || r.PodSpecHash != s.Declared.SpecHash) {
		words = append(words, fmt.Sprintf("made=%s/%s", r.PodVersion, r.PodSpecHash))
	}
	if r.PodQuota > 0 {
		words = append(words, fmt.Sprintf("quota=%d", r.PodQuota>>20))
	}
	if r.PodCrashes > 0 {
		words = append(words, fmt.Sprintf("crashes=%d", r.PodCrashes))
	}
	if r.Stranded != "" {
		words = append(words, "stranded")
	}
	if r.PodStoppedByCheck {
		words = append(words, "stopped-by-check")
	}
	if r.PodUnbound {
		words = append(words, "unbound")
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

func describeRecorded(m decide.RecordedMember) string {
	if m.VolumeUID == "" && m.ID == 0 {
		return string(m.Mode)
	}
	return fmt.Sprintf("%s(%s %s)", m.Mode, idOrNone(m.ID), orNone(m.VolumeUID))
}

func describeMember(m decide.Member) string {
	words := []string{idOrNone(m.ID), "voter"}
	if m.Learner {
		words[1] = "learner"
	}
	if m.Leader {
		words = append(words, "leads")
	}
	switch {
	case !m.Started:
		words = append(words, "not started")
	case !m.Answers:
		words = append(words, "silent")
	}
	if m.Applied > 0 {
		words = append(words, fmt.Sprintf("applied=%d", m.Applied))
	}
	if m.StorageVersion != "" {
		words = append(words, "storage="+m.StorageVersion)
	}
	if m.DBSizeInUse > 0 && m.DBSizeInUse != m.DBSize {
		words = append(words, fmt.Sprintf("db=%d in-use=%d", m.DBSize>>20, m.DBSizeInUse>>20))
	}
	if m.Hash.Known() {
		words = append(words, fmt.Sprintf("%x@%d/%d", m.Hash.Sum, m.Hash.Revision, m.Hash.CompactRevision))
	}
	return strings.Join(append(words, m.AlarmNames()...), " ")
}

func idOrNone(id decide.ID) string {
	if id == 0 {
		return "none"
	}
	return id.String()
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
