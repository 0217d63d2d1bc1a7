package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// lost returns why a member is permanently lost, or "". A member is lost if its data is known to be wrong, if it is a
// learner on a volume that is being deleted, or if it does not respond and will not come back with its data. A member
// that is slow, restarting, evicted or out of memory is not lost (hard case H45).
func (s State) lost(m Member) string {
	ordinal, ours := s.OrdinalOf(m)
	r := s.Replica(ordinal)
	switch {
	case !ours || s.mayServeOthers(m):
		return ""
	case s.corruptMinority(m) != "":
		return s.corruptMinority(m)
	case m.Learner && m.Answers && s.volumeGoes(m):
		return "is a learner on a volume that is being deleted"
	case m.Answers:
		return ""
	case s.slotOfAnother(m, ordinal):
		return "has never started, and its slot still belongs to a removed member"
	case s.volumeLost(ordinal) && s.withoutItsData(r):
		return "lost its volume"
	case m.Started && s.volumeGoesWithPod(r) && (!hasPodThatStays(r) || s.sparedBy(m)):
		return "is on a volume that is being deleted, and its pod is not running"
	case r.Stranded != "" && !s.copyCounts(m) && s.strandedFor(r, cmp.Or(s.Declared.ReplaceAfter, strandedPatience)):
		return "is stranded (" + r.Stranded + ")"
	case !m.Started && s.sealedBlindly(ordinal) && r.Pod == PodFailing:
		return "has never started, and its record was lost"
	case m.Started && !s.copyCounts(m) && s.failsWithoutData(r):
		return "has no data on its volume"
	case s.crashLoops(m, r):
		return fmt.Sprintf("has crashed %d times while the other members are healthy (%s)", r.PodCrashes, r.PodMessage)
	case s.silentForLong(m, r) && s.replaceable(m, r):
		return fmt.Sprintf("has not responded since %s, longer than replaceAfter (%s)",
			silentSince(m, r).UTC().Format(time.RFC3339), s.Declared.ReplaceAfter)
	}
	return ""
}

// failsWithoutData reports whether a pod fails repeatedly because its volume is empty.
func (s State) failsWithoutData(r Replica) bool {
	return r.NoData && r.Pod == PodFailing && r.PodCrashes >= crashesWithoutData && s.notReadyFor(r, crashPatience)
}

// withoutItsData reports whether a member whose volume has been replaced also lacks its data there: the volume is
// missing, etcd has found no data, or the pod has failed to come up for a long time. A restored claim has a different
// UID, but still has the data.
func (s State) withoutItsData(r Replica) bool {
	return !hasVolume(r) || r.NoData || s.failsForLong(r)
}

// strandedFor reports whether a volume has been unreachable for at least the given time: passes have found it stranded,
// and its pod has not been ready, for that long. Neither alone is enough: a node may be drained long before it is
// removed, and it may have been back between two passes.
func (s State) strandedFor(r Replica, least time.Duration) bool {
	return s.notReadyFor(r, least) && !r.StrandedSince.IsZero() && s.Now.Sub(r.StrandedSince) >= least
}

// sparedBy reports whether the other members do not need a member's remaining data: without it, the voters whose data
// is on volumes that are kept still form a quorum, and its copy is not needed to determine which data is right.
func (s State) sparedBy(m Member) bool {
	return !s.copyCounts(m) && s.safeWithout(m) >= Quorum(len(s.Membership.Voters())-1)
}

// volumeGoesWithPod reports whether a volume is being deleted and nothing runs on it or is about to run on it: the
// volume disappears with the pod.
func (s State) volumeGoesWithPod(r Replica) bool {
	idle := r.Pod == PodAbsent || r.Pod == PodTerminating || r.Pod == PodPending && s.stuck(r) || s.failsForGood(r)
	return hasVolume(r) && r.VolumeTerminating && idle
}

// notReadyFor reports whether a pod is known to have been unready for at least the given time.
func (s State) notReadyFor(r Replica, least time.Duration) bool {
	return r.Pod != PodReady && !r.PodSince.IsZero() && s.Now.Sub(r.PodSince) >= least
}

// silentForLong reports whether a member has been unresponsive for the declared time. Kubernetes must have found its
// pod unready for the same time. Otherwise, Quorate alone may be unable to reach the member, or the member may have
// recovered in between.
func (s State) silentForLong(m Member, r Replica) bool {
	enough := s.Declared.ReplaceAfter
	if m.Learner {
		enough = max(enough, snapshotPatience)
	}
	return s.Declared.ReplaceAfter > 0 && !m.SilentSince.IsZero() && s.notReadyFor(r, 0) &&
		s.Now.Sub(silentSince(m, r)) >= enough && !s.standsBehindList(m)
}

// standsBehindList reports whether the known list may depend on an unresponsive voter: the responding voters are not a
// majority, so other voters must also be serving, and only Quorate cannot reach them. It is unknown which of them
// serve.
func (s State) standsBehindList(m Member) bool {
	return !m.Learner && !s.Membership.HasQuorum()
}

// silentSince returns the time from which both passes and Kubernetes have found a member unhealthy. A member may be
// unresponsive because it is still being defragmented, until the kubelet restarts it.
func silentSince(m Member, r Replica) time.Time {
	since := m.SilentSince
	for _, later := range []time.Time{r.PodSince, m.Defragmented.At.Add(defragmentationLimit)} {
		if later.After(since) {
			since = later
		}
	}
	return since
}

// sealedBlindly reports whether a member was sealed when its record was lost, so that it is unknown whether it has
// data.
func (s State) sealedBlindly(ordinal int) bool {
	m, _ := s.Record.Member(ordinal)
	return m.Mode == Sealed && m.ID == 0 && m.VolumeUID == ""
}

// replaceable reports whether replacing an unresponsive member may help. It does not help if the member has never
// started, or if its pod does not start and no healthy member runs with the same declaration.
func (s State) replaceable(m Member, r Replica) bool {
	stuck := r.Pod == PodFailing || r.Pod == PodPending
	proven := slices.ContainsFunc(s.Membership.Members, func(other Member) bool {
		ordinal, ours := s.OrdinalOf(other)
		return ours && other.Answers && s.Replica(ordinal).madeLike(r)
	})
	return m.Started && (!stuck || proven) && !s.copyCounts(m)
}

// madeLike reports whether two pods were created from the same declaration.
func (r Replica) madeLike(other Replica) bool {
	return r.PodVersion == other.PodVersion && r.PodSpecHash == other.PodSpecHash
}

// keepsCrashing reports whether etcd in a pod has repeatedly exited by itself.
func (s State) keepsCrashing(r Replica) bool {
	return r.Pod == PodFailing && r.PodCrashes >= crashLoopThreshold && s.notReadyFor(r, crashPatience)
}

// crashLoops reports whether a member crashes because of its own data: all other replicas run well with the same
// declaration, so neither a rollout nor a common problem is the cause (hard case H48), and all guests respond. Crashes
// of a terminating pod do not prove anything about a new member in its slot.
func (s State) crashLoops(m Member, r Replica) bool {
	if !m.Started || !s.keepsCrashing(r) || len(s.Membership.Members) < 2 || s.copyCounts(m) {
		return false
	}
	alike := false
	for _, other := range s.Membership.Members {
		ordinal, ours := s.OrdinalOf(other)
		o := s.Replica(ordinal)
		switch {
		case other.ID == m.ID:
		case s.Record.Hosts(other.ID) && other.Answers:
		case !ours || !other.Answers || o.Pod != PodReady || !o.madeLike(r):
			return false
		default:
			alike = true
		}
	}
	return alike
}

// replacedAgainAndAgain returns why another replacement would not help. It returns "" if a replacement may help, or if
// the member could not come back with its data.
func (s State) replacedAgainAndAgain(m Member) string {
	ordinal, _ := s.OrdinalOf(m)
	before := s.Record.replacements(ordinal)
	r := s.Replica(ordinal)
	gone := s.volumeLost(ordinal) || s.volumeGoesWithPod(r) || m.Answers && s.volumeGoes(m) || r.Stranded != ""
	if gone || before.Times < replacementThreshold || s.Now.Sub(before.Last) >= replacementMemory {
		return ""
	}
	return fmt.Sprintf("it has been replaced %d times, most recently at %s, without lasting success (%s). Check "+
		"its node, network and options",
		before.Times, before.Last.UTC().Format(time.RFC3339), s.describePod(r))
}
