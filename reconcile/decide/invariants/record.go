package invariants

import (
	"fmt"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

func recordOnlyTightens(s decide.State, d decide.Decision) string {
	switch a := d.Action.(type) {
	case decide.Bootstrap:
		return loosened(s, decide.RequiredRecord(s, "fresh"), true)
	case decide.ApplyObjects:
		return loosened(s, decide.RequiredRecord(s, "fresh"), false)
	case decide.StartRollout:
		return loosened(s, decide.RequiredRecord(s, "fresh"), false)
	case decide.Seal:
		return loosened(s, decide.SealedRecord(s, a, "fresh"), false)
	case decide.FinishRestore:
		return loosened(s, decide.RestoredRecord(s, a), false)
	}
	return ""
}

// loosened returns which facts a record revokes, compared with the record in s, or adds without evidence.
func loosened(s decide.State, after decide.Record, founds bool) string {
	if what := loosenedFact(s, after); what != "" {
		return what
	}
	for _, m := range s.Record.Members {
		if what := loosens(s, m, after); what != "" {
			return fmt.Sprintf("%s: %s", podName(s, m.Ordinal), what)
		}
	}
	for _, m := range after.Members {
		if what := outOfNothing(s, m, founds); what != "" {
			return fmt.Sprintf("%s becomes %s %s", podName(s, m.Ordinal), m.Mode, what)
		}
	}
	for _, gone := range after.Removed {
		if m, listed := memberAt(s, gone.Ordinal); listed && s.Membership.Known &&
			(m.Started || !keepsVolume(replicaAt(s, gone.Ordinal), gone.VolumeUID)) {
			return fmt.Sprintf("%s is recorded as removed, but etcd lists it", podName(s, gone.Ordinal))
		}
	}
	return ""
}

// loosenedFact returns which facts about the cluster a record revokes.
func loosenedFact(s decide.State, after decide.Record) string {
	before := s.Record
	switch {
	case after.Token == "" || len(after.Members)+len(after.Guests) == 0:
		return "the record is empty"
	case before.Token != "" && after.Token != before.Token:
		return "changes the token"
	case before.ClusterID != 0 && after.ClusterID != before.ClusterID:
		return "changes the cluster ID"
	case before.JoinedTogether && !after.JoinedTogether:
		return "forgets that two members joined together"
	case len(before.Members) > 0 && before.Uncompared && !after.Uncompared && !asked(s):
		return "marks data as compared although it was not compared"
	}
	if what := mistakenCA(s, after.CA); what != "" {
		return what
	}
	return droppedGuest(s, after)
}

// asked reports whether all members are voters, there are at least as many as declared, and each has returned its hash
// or a reason.
func asked(s decide.State) bool {
	for _, m := range s.Membership.Members {
		if m.Learner || !m.Answers || m.Hash.Revision == 0 && m.HashWhy == "" {
			return false
		}
	}
	return s.Membership.Known && len(s.Membership.Members)-guests(s) >= s.Declared.Replicas
}

// keepsVolume reports whether the volume with the given UID is in the slot and will be kept.
func keepsVolume(r decide.Replica, uid string) bool {
	goes := r.VolumeTerminating && (r.Pod == decide.PodAbsent || r.Pod == decide.PodTerminating)
	return uid != "" && r.VolumeUID == uid && !goes
}

// restoringAgain returns the evidence against a restore in progress, or "". The cluster has no record, so the restore
// is inferred from an existing Job.
func restoringAgain(s decide.State) string {
	switch beside := besideSeed(s); {
	case cluster(s) != 0 || len(s.Membership.Members) > 0:
		return "although the cluster has formed"
	case s.Restore.Job.Phase == decide.JobSucceeded:
		return "although the restore has succeeded"
	case beside != "":
		return "although there is " + beside
	}
	return ""
}

// provesNoMember reports whether a record was written from the volumes alone: its members are sealed, and their IDs and
// volumes are unknown.
func provesNoMember(r decide.Record) bool {
	for _, m := range r.Members {
		if m.Mode != decide.Sealed || m.ID != 0 || m.VolumeUID != "" {
			return false
		}
	}
	return len(r.Members) > 0
}

// outOfNothing returns the evidence that is missing for a new entry, or "".
func outOfNothing(s decide.State, m decide.RecordedMember, founds bool) string {
	_, before := recordedAt(s.Record, m.Ordinal)
	member, listed := memberAt(s, m.Ordinal)
	r := replicaAt(s, m.Ordinal)
	// The record was reset to its state before the cluster formed and does not contain members added later, or it was
	// lost and was recreated without members that a pass did not observe.
	reset := s.Record.ClusterID == 0 && s.ReportedClusterID != 0 || provesNoMember(s.Record)
	incomplete := reset && !s.Membership.Known && (r.VolumeUID != "" || r.Pod != decide.PodAbsent)
	switch {
	case before || incomplete && m.Mode == decide.Sealed:
		return ""
	case len(s.Record.Members) > 0 && (m.Mode == decide.Founding || !listed || !s.Membership.Known):
		return "without evidence"
	case len(s.Record.Members) > 0 && (m.Mode == decide.Sealed) != member.Started:
		return "although its started state is " + fmt.Sprint(member.Started)
	case len(s.Record.Members) == 0 && m.Mode == decide.Restoring && s.Restore.Job != nil:
		return restoringAgain(s)
	case len(s.Record.Members) == 0 && founds != (m.Mode == decide.Founding || m.Mode == decide.Restoring):
		return "without evidence"
	case m.Mode == decide.Joining && (!s.Membership.Known || member.Started):
		return "although it is not joining"
	}
	return ""
}

// keptOfLost reports whether a member's claim is marked as belonging to a lost cluster, the record keeps its volume for
// that cluster, and etcd does not list the member. A recorded volume counts only if the record belongs to the lost
// cluster.
func keptOfLost(s decide.State, before decide.RecordedMember, after decide.Record) bool {
	r := replicaAt(s, before.Ordinal)
	_, listed := memberAt(s, before.Ordinal)
	onRecord := before.VolumeUID != "" && before.VolumeUID == r.VolumeUID
	marked := r.LostCluster != 0 &&
		(!onRecord || r.LostCluster == s.Record.ClusterID && r.LostCluster != s.ReportedClusterID)
	return marked && !(listed && s.Membership.Known) && keepsSlot(after, r)
}

// formedBefore reports whether the record is still the bootstrap record although a formed cluster has used a claim, a
// claim is marked as belonging to a lost cluster, or a recovery Job has worked on a claim. Such a record counts as
// lost.
func formedBefore(s decide.State) bool {
	for _, m := range s.Record.Members {
		if m.Mode != decide.Founding {
			return false
		}
	}
	job := s.Recovery.Job
	unknown := s.Record.ClusterID == 0 && s.ReportedClusterID == 0
	return unknown && slices.ContainsFunc(s.Replicas, func(r decide.Replica) bool {
		worked := job != nil && r.VolumeUID != "" && job.VolumeUID == r.VolumeUID
		return r.LastUse.ClusterID != 0 || r.LostCluster != 0 || worked
	})
}

// loosens returns which facts about a member a record revokes, compared with the record in s.
func loosens(s decide.State, before decide.RecordedMember, after decide.Record) string {
	m, found := recordedAt(after, before.Ordinal)
	member, listed := memberAt(s, before.Ordinal)
	rolledBack := s.Record.ClusterID == 0 && (s.ReportedClusterID != 0 || formedBefore(s))
	switch {
	case !found && formedBefore(s):
		return ""
	case !found && s.Membership.Known && !listed && after.ClusterID == s.Membership.ClusterID && forgets(s, before) &&
		!keptOfLost(s, before, after):
		return "is removed from the record, but a majority of the recorded voters does not confirm the member list"
	case !found && s.Membership.Known && !listed && after.ClusterID == s.Membership.ClusterID:
		return ""
	case !found && keptOfLost(s, before, after):
		return ""
	case !found:
		return "is removed from the record"
	case before.Mode == decide.Sealed && m.Mode != decide.Sealed:
		return "is unsealed"
	case before.Mode == decide.Restoring && m.Mode != decide.Restoring && m.Mode != decide.Sealed:
		return "may start without the restored data"
	case before.Mode == decide.Restoring && m.VolumeUID != "" && m.VolumeUID == replicaAt(s, m.Ordinal).VolumeUID:
		return "" // another invariant checks that it is restored
	case before.Mode != decide.Sealed && m.Mode == decide.Sealed && !(s.Membership.Known && member.Started) &&
		!rolledBack:
		return "is sealed before it has started"
	}
	return ""
}
