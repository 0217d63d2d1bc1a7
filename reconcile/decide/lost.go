package decide

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// lost says why a member is lost for good: its data are known to be wrong, or it does not answer
// and does not come back with them. Empty if it may. Being slow, restarting, evicted or out of
// memory is none of the reasons (hard case H45).
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
		return "has never started, and the slot that it was added to is still that of a member that is gone"
	case s.volumeLost(ordinal) && s.withoutItsData(r):
		return "lost its volume"
	case m.Started && s.volumeGoesWithPod(r) && (!hasPodThatStays(r) || s.sparedBy(m)):
		return "is on a volume that is being deleted, and its pod does not run"
	case r.Stranded != "" && !s.copyCounts(m) && s.strandedFor(r, cmp.Or(s.Declared.ReplaceAfter, strandedPatience)):
		return "is stranded (" + r.Stranded + ")"
	case !m.Started && s.sealedBlindly(ordinal) && r.Pod == PodFailing:
		return "has never started, and the record that it could start with is lost"
	case m.Started && !s.copyCounts(m) && s.failsWithoutData(r):
		return "has no data on its volume"
	case s.crashLoops(m, r):
		return fmt.Sprintf("has crashed %d times, while the others run well (%s)", r.PodCrashes, r.PodMessage)
	case s.silentForLong(m, r) && s.replaceable(m, r):
		return fmt.Sprintf("has been silent since %s, longer than replaceAfter (%s)",
			silentSince(m, r).UTC().Format(time.RFC3339), s.Declared.ReplaceAfter)
	}
	return ""
}

// failsWithoutData reports whether a pod fails again and again because its volume is empty.
func (s State) failsWithoutData(r Replica) bool {
	return r.NoData && r.Pod == PodFailing && r.PodCrashes >= crashesWithoutData && s.notReadyFor(r, crashPatience)
}

// withoutItsData reports whether the data of a member whose volume is another one by now are not on
// that one either: there is none, or etcd has found none, or it has not come up for long. A claim
// that was restored has another UID and the data.
func (s State) withoutItsData(r Replica) bool {
	return !hasVolume(r) || r.NoData || s.failsForLong(r)
}

// strandedFor reports whether a volume is out of reach for that long: passes have found it so, and
// its pod has waited as long. Neither alone says so: a node may be drained for long before it is
// gone, and may have been there between two passes.
func (s State) strandedFor(r Replica, least time.Duration) bool {
	return s.notReadyFor(r, least) && !r.StrandedSince.IsZero() && s.Now.Sub(r.StrandedSince) >= least
}

// sparedBy reports whether the others do without what a member may still hold: as many voters have
// the data on volumes that stay as make a quorum of those that are left, and its copy decides
// nothing.
func (s State) sparedBy(m Member) bool {
	return !s.copyCounts(m) && s.safeWithout(m) >= Quorum(len(s.Membership.Voters())-1)
}

// volumeGoesWithPod reports whether a volume is being deleted and nothing runs on it, nor is about
// to: it goes as soon as the pod does.
func (s State) volumeGoesWithPod(r Replica) bool {
	idle := r.Pod == PodAbsent || r.Pod == PodTerminating || r.Pod == PodPending && s.stuck(r) || s.failsForGood(r)
	return hasVolume(r) && r.VolumeTerminating && idle
}

// notReadyFor reports whether a pod is known not to have been ready for that long.
func (s State) notReadyFor(r Replica, least time.Duration) bool {
	return r.Pod != PodReady && !r.PodSince.IsZero() && s.Now.Sub(r.PodSince) >= least
}

// silentForLong reports whether a member has been silent for as long as git allows. Kubernetes has
// to find its pod unwell as long as we have: else it may be only us whom it does not answer, or
// another silence than the one that was seen first.
func (s State) silentForLong(m Member, r Replica) bool {
	enough := s.Declared.ReplaceAfter
	if m.Learner {
		enough = max(enough, snapshotPatience)
	}
	return s.Declared.ReplaceAfter > 0 && !m.SilentSince.IsZero() && s.notReadyFor(r, 0) &&
		s.Now.Sub(silentSince(m, r)) >= enough && !s.standsBehindList(m)
}

// standsBehindList reports whether a silent voter is one without which the others could not have
// given the list that is known: those that answer are no majority, so silent ones serve as well,
// and only we do not reach them. Which of them cannot be told.
func (s State) standsBehindList(m Member) bool {
	return !m.Learner && !s.Membership.HasQuorum()
}

// silentSince is since when both a pass and Kubernetes have found a member unwell.
func silentSince(m Member, r Replica) time.Time {
	if r.PodSince.After(m.SilentSince) {
		return r.PodSince
	}
	return m.SilentSince
}

// sealedBlindly reports whether a member was sealed when its record was lost, so that nobody knows
// whether it has data.
func (s State) sealedBlindly(ordinal int) bool {
	m, _ := s.Record.Member(ordinal)
	return m.Mode == Sealed && m.ID == 0 && m.VolumeUID == ""
}

// replaceable reports whether a new member would do better than a silent one: not if its pod does
// not come up with what no healthy member runs, nor if it has never started.
func (s State) replaceable(m Member, r Replica) bool {
	stuck := r.Pod == PodFailing || r.Pod == PodPending
	proven := slices.ContainsFunc(s.Membership.Members, func(other Member) bool {
		ordinal, ours := s.OrdinalOf(other)
		return ours && other.Answers && s.Replica(ordinal).madeLike(r)
	})
	return m.Started && (!stuck || proven) && !s.copyCounts(m)
}

// madeLike reports whether two pods were made from the same declaration.
func (r Replica) madeLike(other Replica) bool {
	return r.PodVersion == other.PodVersion && r.PodSpecHash == other.PodSpecHash
}

// keepsCrashing reports whether etcd in a pod has ended by itself again and again.
func (s State) keepsCrashing(r Replica) bool {
	return r.Pod == PodFailing && r.PodCrashes >= crashLoopThreshold && s.notReadyFor(r, crashPatience)
}

// crashLoops reports whether a member crashes because of its own data: what it was made from has
// been proven by all the others, which run well, so it is neither a rollout nor something that
// happens to them all (hard case H48). What a pod on its way out has done says nothing about a new
// member in its slot.
func (s State) crashLoops(m Member, r Replica) bool {
	if !m.Started || !s.keepsCrashing(r) || len(s.Membership.Members) < 2 || s.copyCounts(m) {
		return false
	}
	for _, other := range s.Membership.Members {
		ordinal, ours := s.OrdinalOf(other)
		o := s.Replica(ordinal)
		if other.ID != m.ID && (!ours || !other.Answers || o.Pod != PodReady || !o.madeLike(r)) {
			return false
		}
	}
	return true
}

// replacedAgainAndAgain says that another replacement would not help; empty if it may, or if there
// is nothing that could come back.
func (s State) replacedAgainAndAgain(m Member) string {
	ordinal, _ := s.OrdinalOf(m)
	before := s.Record.replacements(ordinal)
	r := s.Replica(ordinal)
	gone := s.volumeLost(ordinal) || s.volumeGoesWithPod(r) || m.Answers && s.volumeGoes(m) || r.Stranded != ""
	if gone || before.Times < replacementThreshold || s.Now.Sub(before.Last) >= replacementMemory {
		return ""
	}
	return fmt.Sprintf("it was replaced %d times already, last at %s: "+
		"a new member fares no better; find out what is wrong in its place (%s), such as its node, "+
		"its network or its options", before.Times, before.Last.UTC().Format(time.RFC3339), s.describePod(r))
}
