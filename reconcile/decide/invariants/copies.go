package invariants

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// copiesKept checks that a member is removed only if its data is proven lost or wrong, or once other members have the
// data on volumes that are kept.
func copiesKept(s decide.State, d decide.Decision) string {
	switch a := d.Action.(type) {
	case decide.RemoveMember:
		m, _ := memberByID(s, a.ID)
		if m.Learner || isGuest(s, m) || provenLost(s, m) || m.Disagrees == "" && wrongData(s, m) {
			return ""
		}
		return costsCopies(s, m)
	case decide.StopPods:
		return stopsOnGoingVolume(s) // another invariant checks whether pods may be stopped at all
	case decide.ApplyObjects:
		if s.Declared.Lifecycle != decide.Running {
			return stopsOnGoingVolume(s)
		}
	case decide.RestartReplica:
		r := replicaAt(s, a.Ordinal)
		m, listed := memberAt(s, a.Ordinal)
		gone := m.Answers && withoutClaim(s, r)
		if listed && m.Started && (gone || r.VolumeTerminating && r.VolumeUID != "" && !otherVolume(s, r)) {
			return fmt.Sprintf("restarts %s, but its volume is being deleted and would disappear with the pod",
				podName(s, a.Ordinal))
		}
	}
	return ""
}

// stopsOnGoingVolume returns which pod must not stop, because its volume would be deleted with it. The spec may allow
// that explicitly.
func stopsOnGoingVolume(s decide.State) string {
	for _, r := range s.Replicas {
		running := r.Pod != decide.PodAbsent && r.Pod != decide.PodTerminating
		goes := r.VolumeTerminating && r.VolumeUID != "" ||
			withoutClaim(s, r) && r.Pod != decide.PodPending
		spared := s.Declared.Lifecycle == decide.Running && saidLost(s, r.Ordinal) ||
			s.Declared.Lifecycle == decide.Deleted && s.Declared.Retention == decide.Delete
		if running && goes && !spared {
			return fmt.Sprintf("stops %s, but its volume is being deleted and would disappear with the pod",
				podName(s, r.Ordinal))
		}
	}
	return ""
}

// costsCopies returns the problem with removing a voter that may still have its data. Either the number of copies on
// volumes that are kept would decrease and be less than declared, or the voter is not replaced yet and too few other
// voters could replace it.
func costsCopies(s decide.State, m decide.Member) string {
	before, after := 0, 0
	for _, other := range voters(s) {
		if !onSafeVolume(s, other) {
			continue
		}
		before++
		if other.ID != m.ID {
			after++
		}
	}
	declared := wanted(s)
	unfilled := false
	for ordinal := range declared {
		_, listed := memberAt(s, ordinal)
		unfilled = unfilled || !listed
	}
	surplus := len(voters(s))-guests(s) > declared
	switch {
	case m.Disagrees != "":
		return fmt.Sprintf("removes %s, which may still serve clients with a different member list", m.Name)
	case !m.Answers && pod(s, m) == decide.PodReady:
		return fmt.Sprintf("removes %s, although its pod is ready", m.Name)
	case after < min(declared, before):
		return fmt.Sprintf("removes %s and leaves only %d copies on volumes that are kept", m.Name, after)
	case surplus && (after > 0 || declared == 0 || !m.Answers):
		return ""
	case onSafeVolume(s, m) || !m.Answers && !doomedVolume(s, m):
		return fmt.Sprintf("removes %s, which is not proven lost", m.Name)
	case surplus || unfilled || after < declared/2+1:
		return fmt.Sprintf("removes %s, but no other member has replaced it", m.Name)
	}
	return ""
}

// onSafeVolume reports whether a member responds, and its data and volume are not known to be bad.
func onSafeVolume(s decide.State, m decide.Member) bool {
	ordinal, ours := slotOf(s, m)
	r := replicaAt(s, ordinal)
	return ours && m.Answers && r.VolumeUID != "" && !r.VolumeTerminating && r.Stranded == "" && !outvoted(s, m)
}

func pod(s decide.State, m decide.Member) decide.PodPhase {
	ordinal, _ := slotOf(s, m)
	return replicaAt(s, ordinal).Pod
}

func doomedVolume(s decide.State, m decide.Member) bool {
	ordinal, _ := slotOf(s, m)
	r := replicaAt(s, ordinal)
	return r.VolumeTerminating || withoutClaim(s, r)
}

// withoutClaim reports whether a sealed member's slot has no claim, even if the claim was already gone when the member
// was sealed.
func withoutClaim(s decide.State, r decide.Replica) bool {
	recorded, _ := recordedAt(s.Record, r.Ordinal)
	return r.VolumeUID == "" && (recorded.VolumeUID != "" || recorded.ID != 0)
}

// wrongData reports whether most voters hold different data, or a member has repeatedly reported that its data differs
// from the data of the other voters, which all agree.
func wrongData(s decide.State, m decide.Member) bool {
	ordinal, _ := slotOf(s, m)
	r := replicaAt(s, ordinal)
	stopped := !m.Answers && r.PodStoppedByCheck && r.PodCrashes >= 2 && r.Pod != decide.PodReady &&
		!r.PodSince.IsZero() && s.Now.Sub(r.PodSince) >= time.Minute
	return m.Answers && outvoted(s, m) || stopped && othersAreOne(s, m)
}

// otherVolume reports whether the volume in the slot is not the recorded volume, so that it does not hold the member's
// data.
func otherVolume(s decide.State, r decide.Replica) bool {
	recorded, _ := recordedAt(s.Record, r.Ordinal)
	return recorded.VolumeUID != "" && recorded.VolumeUID != r.VolumeUID
}

// provenLost reports whether it is proven that an unresponsive member will not come back with its data.
func provenLost(s decide.State, m decide.Member) bool {
	ordinal, ours := slotOf(s, m)
	r := replicaAt(s, ordinal)
	if m.Answers || !ours || r.Pod == decide.PodReady {
		return false
	}
	return itsVolumeIsLost(s, r) || itNeverStarts(s, r, m) || itKeepsFailing(s, r, m)
}

func notReadySince(s decide.State, r decide.Replica, least time.Duration) bool {
	return !r.PodSince.IsZero() && s.Now.Sub(r.PodSince) >= least
}

// itsVolumeIsLost reports whether the volume is missing, or its replacement is empty or a pod does not come up on it,
// or the volume is being deleted while nothing runs on it, or it has been unusable for a long time.
func itsVolumeIsLost(s decide.State, r decide.Replica) bool {
	running := r.Pod == decide.PodReady || r.Pod == decide.PodStarting || r.Pod == decide.PodFailing
	another := otherVolume(s, r) && (r.VolumeUID == "" || r.NoData ||
		r.Pod == decide.PodFailing && notReadySince(s, r, 2*time.Minute) || notReadySince(s, r, 30*time.Minute))
	runs := running && !(r.Pod == decide.PodFailing &&
		(notReadySince(s, r, 2*time.Minute) || r.PodCrashes >= 4 && notReadySince(s, r, time.Minute)))
	arrives := r.Pod == decide.PodPending && !notReadySince(s, r, 30*time.Second)
	held := r.Pod == decide.PodFailing || r.Pod == decide.PodPending
	goes := r.VolumeTerminating && r.VolumeUID != "" && !runs && !arrives && (!held || othersAreSafe(s, r))
	away := 10 * time.Minute
	if s.Declared.ReplaceAfter > 0 {
		away = s.Declared.ReplaceAfter
	}
	return another || goes || r.Stranded != "" && !r.StrandedSince.IsZero() && s.Now.Sub(r.StrandedSince) >= away &&
		notReadySince(s, r, away)
}

// othersAreSafe reports whether most of the other voters respond and are on volumes that are kept.
func othersAreSafe(s decide.State, r decide.Replica) bool {
	others, safe := 0, 0
	for _, m := range s.Membership.Members {
		if ordinal, ours := slotOf(s, m); m.Learner || ours && ordinal == r.Ordinal {
			continue
		}
		others++
		if onSafeVolume(s, m) {
			safe++
		}
	}
	return 2*safe > others
}

// itNeverStarts reports whether a slot holds a different member's volume, or its member may not have a configuration
// file to start with.
func itNeverStarts(s decide.State, r decide.Replica, m decide.Member) bool {
	recorded, _ := recordedAt(s.Record, r.Ordinal)
	anothers := recorded.ID != 0 && recorded.ID != m.ID
	for _, gone := range s.Record.Removed {
		anothers = anothers || gone.Ordinal == r.Ordinal && keepsVolume(r, gone.VolumeUID)
	}
	return !m.Started && (anothers || recorded.Mode == decide.Sealed && recorded.VolumeUID == "" &&
		r.Pod == decide.PodFailing)
}

// itKeepsFailing reports whether a member crashes repeatedly, or repeatedly finds no data, or has been unresponsive,
// with an unready pod, for as long as the spec allows.
func itKeepsFailing(s decide.State, r decide.Replica, m decide.Member) bool {
	crashes := r.Pod == decide.PodFailing && (r.NoData && r.PodCrashes >= 2 || r.PodCrashes >= 4) &&
		notReadySince(s, r, time.Minute)
	limit := s.Declared.ReplaceAfter
	silent := limit > 0 && !m.SilentSince.IsZero() && s.Now.Sub(m.SilentSince) >= limit && notReadySince(s, r, limit) &&
		(m.Learner || mostAnswer(s))
	return crashes || silent
}

// mostAnswer reports whether the responding voters alone form a majority. If they do, a known member list can be
// trusted without the other members.
func mostAnswer(s decide.State) bool {
	voters, answer := 0, 0
	for _, m := range s.Membership.Members {
		if !m.Learner {
			voters++
			if m.Answers {
				answer++
			}
		}
	}
	return 2*answer > voters
}

// volumesOnRecord checks that a volume of a continuing cluster is deleted only if the record shows that its member was
// removed.
func volumesOnRecord(s decide.State, d decide.Decision) string {
	a, deletes := d.Action.(decide.DeleteVolume)
	if !deletes || wholeClusterGoes(s) {
		return ""
	}
	for _, gone := range s.Record.Removed {
		if gone.Ordinal == a.Ordinal && gone.VolumeUID == a.VolumeUID {
			return ""
		}
	}
	return fmt.Sprintf("deletes the volume of %s, but its removal is not recorded", podName(s, a.Ordinal))
}

// missesTheMissing checks that MembersMissing applies only if recorded members are missing from etcd's list.
func missesTheMissing(s decide.State, d decide.Decision) string {
	if d.Rule != "MembersMissing" {
		return ""
	}
	asked := s.Membership.Known || s.Membership.Unrecorded
	for _, recorded := range s.Record.Members {
		member, listed := memberAt(s, recorded.Ordinal)
		another := listed && (recorded.ID != 0 && recorded.ID != member.ID || strange(recorded, member))
		if asked && recorded.Mode != decide.Joining && (!listed || another) {
			return ""
		}
	}
	return "requires manual action although etcd lists every recorded voter"
}

// strange reports whether a learner cannot be the recorded member, because the recorded member had started or was an
// initial voter.
func strange(recorded decide.RecordedMember, member decide.Member) bool {
	return recorded.ID == 0 && member.Learner && (recorded.Mode == decide.Founding || !member.Started)
}

// forgets reports whether a record drops a member although etcd's list does not contain a majority of the recorded
// voters. Announced removals and manually confirmed lists do not require a majority.
func forgets(s decide.State, m decide.RecordedMember) bool {
	if m.Leaving || m.Mode == decide.Joining || confirmed(s) {
		return false
	}
	voters, remaining := 0, 0
	for _, recorded := range s.Record.Members {
		if recorded.Mode == decide.Joining {
			continue
		}
		voters++
		if member, listed := memberAt(s, recorded.Ordinal); listed && (recorded.ID == 0 && !strange(recorded, member) ||
			recorded.ID == member.ID || member.Answers) {
			remaining++
		}
	}
	return remaining <= voters/2
}

// confirmed reports whether git names exactly the members that etcd lists. It does not check which loss git confirms.
func confirmed(s decide.State) bool {
	named := confirmation.FindStringSubmatch(s.Declared.ConfirmedMembers)
	if named == nil {
		return false
	}
	var ids []string
	for _, m := range s.Membership.Members {
		ids = append(ids, fmt.Sprintf("%x", uint64(m.ID)))
	}
	slices.Sort(ids)
	list := ""
	for _, id := range ids {
		list += "," + id
	}
	return list == ","+named[1]
}

// confirmation matches the value of the annotation that confirms a member list: IDs, a slash and a digest.
var confirmation = regexp.MustCompile(`^([0-9a-f,]+)/[0-9a-f]{16}$`)
