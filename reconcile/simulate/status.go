package simulate

import (
	"maps"
	"slices"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// status is the status of the custom resource, as written by passes.
type status struct {
	clusterID decide.ID
	version   string                  // the oldest version that a member ran
	silent    map[decide.ID]time.Time // when each unresponsive member stopped responding
	stranded  map[int]time.Time       // when each unreachable volume became unreachable, by ordinal
	waited    []decide.Waited         // never changed, only replaced
	repeated  []decide.Repeated       // never changed, only replaced
	rewritten []string                // objects with rewritten fields, sorted
	backup    *decide.Backup          // the newest backup
	// lastBackup is the backup that the deletion relies on.
	lastBackup *decide.Backup
	// request is the newest request to defragment all members, and defragmented is when each member was defragmented.
	request      decide.DefragmentationRequest
	defragmented map[decide.ID]decide.LastDefragmentation // never changed, only replaced
	comparison   decide.Comparison
	// void is the Word of a recovery request that was void.
	void string
}

// report writes the observations of a pass to the status of the custom resource. It returns true if the status changed.
func (w *World) report(s decide.State, d decide.Decision, changed bool) bool {
	if !w.exists(w.customResource()) {
		return false
	}
	w.noteMissed(s)
	next := w.status.after(s)
	next.stranded = strandedSince(s)
	next.waited = decide.Waits(s, d, changed)
	next.repeated = decide.Repeats(s, d, changed)
	next.rewritten = w.rewrittenObjects()
	next.backup, next.lastBackup = s.Backups.Last, s.BackupBeforeDeletion()
	next.void = s.VoidRecoveryToReport()
	next.reportDefragmentation(s, d, changed)
	next.comparison = s.ComparisonToReport()
	w.judgeVoid(s)
	isNews := !next.equal(w.status)
	w.status = next
	w.annotateClaims(s)
	return isNews
}

// noteMissed notes, for the safety check, the members that a pass did not see respond although etcd returned a member
// list.
func (w *World) noteMissed(s decide.State) {
	r := w.rafts[s.Membership.ClusterID]
	if r == nil {
		return
	}
	for _, seen := range s.Membership.Members {
		switch m := r.byID(seen.ID); {
		case m == nil:
		case seen.Answers || !s.Membership.Known:
			m.missedSince = time.Time{}
		case m.missedSince.IsZero():
			m.missedSince = w.now
		}
	}
}

// annotateClaims annotates the claims with the last use of their volumes by etcd, as far as the pass has observed it.
func (w *World) annotateClaims(s decide.State) {
	s.LockHolder = "" // the pass that holds the lease also annotates the claims
	for _, r := range s.OutdatedUses() {
		if v := w.volumes[r.Ordinal]; v.uid == r.VolumeUID && !w.stuck.annotations {
			w.changeVolume(r.Ordinal, func(v *volume) { v.lastUse = r.LastUse })
		}
	}
}

// equal compares everything except repeated actions, because a pass that acts also changes something else.
func (t status) equal(other status) bool {
	return t.clusterID == other.clusterID && t.version == other.version && maps.Equal(t.silent, other.silent) &&
		maps.Equal(t.stranded, other.stranded) && slices.Equal(t.waited, other.waited) &&
		slices.Equal(t.rewritten, other.rewritten) && t.void == other.void && t.backup == other.backup &&
		sameBackup(t.lastBackup, other.lastBackup) && t.request == other.request &&
		maps.Equal(t.defragmented, other.defragmented) && t.comparison == other.comparison
}

func sameBackup(a, b *decide.Backup) bool { return a == b || a != nil && b != nil && *a == *b }

// after returns the status after a pass that has observed s.
func (t status) after(s decide.State) status {
	agreed := s.Membership.Known && s.Membership.ClusterID == s.Record.ClusterID
	if s.Record.ClusterID != 0 && (s.ReportedClusterID == 0 || agreed) {
		t.clusterID = s.Record.ClusterID
	}
	if !s.Membership.Known {
		return t
	}
	silent, oldest := map[decide.ID]time.Time{}, ""
	for _, m := range s.Membership.Members {
		since, known := t.silent[m.ID]
		switch {
		case m.Answers && (oldest == "" || minorOf(m.Version) < minorOf(oldest)):
			oldest = m.Version
		case !m.Answers && known:
			silent[m.ID] = since
		case !m.Answers:
			silent[m.ID] = s.Now
		}
	}
	t.silent = silent
	if oldest != "" {
		t.version = oldest
	}
	return t
}

// strandedSince returns the time when passes first observed that a volume was unreachable, by the ordinals of
// unreachable volumes.
func strandedSince(s decide.State) map[int]time.Time {
	stranded := map[int]time.Time{}
	for _, r := range s.Replicas {
		switch {
		case r.Stranded != "" && r.StrandedSince.IsZero():
			stranded[r.Ordinal] = s.Now
		case r.Stranded != "":
			stranded[r.Ordinal] = r.StrandedSince
		}
	}
	return stranded
}
