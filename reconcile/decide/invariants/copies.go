package invariants

import (
	"fmt"
	"time"

	"quorate.dev/quorate/reconcile/decide"
)

// copiesKept: a member is given up only on a proof of loss, or once others hold the data on volumes
// that stay.
func copiesKept(s decide.State, d decide.Decision) string {
	switch a := d.Action.(type) {
	case decide.RemoveMember:
		m, _ := memberByID(s, a.ID)
		if m.Learner || provenLost(s, m) || m.Disagrees == "" && wrongData(s, m) {
			return ""
		}
		return costsCopies(s, m)
	case decide.StopPods:
		return stopsOnGoingVolume(s) // whether they may be stopped at all is for another invariant
	case decide.ApplyObjects:
		if s.Declared.Lifecycle != decide.Running {
			return stopsOnGoingVolume(s)
		}
	case decide.RestartReplica:
		r := replicaAt(s, a.Ordinal)
		m, listed := memberAt(s, a.Ordinal)
		gone := m.Answers && withoutClaim(s, r)
		if listed && m.Started && (gone || r.VolumeTerminating && r.VolumeUID != "" && !otherVolume(s, r)) {
			return fmt.Sprintf("restarts %s: its volume, which is being deleted, goes with the pod",
				podName(s, a.Ordinal))
		}
	}
	return ""
}

// stopsOnGoingVolume: a volume that is being deleted goes with its pod. Git may want that, if it
// says so.
func stopsOnGoingVolume(s decide.State) string {
	for _, r := range s.Replicas {
		running := r.Pod != decide.PodAbsent && r.Pod != decide.PodTerminating
		goes := r.VolumeTerminating && r.VolumeUID != "" ||
			withoutClaim(s, r) && r.Pod != decide.PodPending
		spared := s.Declared.Lifecycle == decide.Running && saidLost(s, r.Ordinal) ||
			s.Declared.Lifecycle == decide.Deleted && s.Declared.Retention == decide.Delete
		if running && goes && !spared {
			return fmt.Sprintf("stops %s: its volume, which is being deleted, goes with the pod", podName(s, r.Ordinal))
		}
	}
	return ""
}

// costsCopies says what is wrong with giving up a voter that may still have its data: fewer copies
// would be left on volumes that stay than there were and are declared, or a voter goes whose place
// nobody has taken and whom too few others could replace.
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
	declared := s.Declared.Replicas
	unfilled := false
	for ordinal := range declared {
		_, listed := memberAt(s, ordinal)
		unfilled = unfilled || !listed
	}
	surplus := len(voters(s)) > declared
	switch {
	case m.Disagrees != "":
		return fmt.Sprintf("removes %s, which may serve others by a list of its own", m.Name)
	case !m.Answers && pod(s, m) == decide.PodReady:
		return fmt.Sprintf("removes %s, which Kubernetes finds ready", m.Name)
	case after < min(declared, before):
		return fmt.Sprintf("removes %s and leaves %d copies on volumes that stay", m.Name, after)
	case surplus && (after > 0 || !m.Answers):
		return ""
	case onSafeVolume(s, m) || !m.Answers && !doomedVolume(s, m):
		return fmt.Sprintf("removes %s, which nobody has proven lost", m.Name)
	case surplus || unfilled || after < declared/2+1:
		return fmt.Sprintf("removes %s, and nothing has taken its place", m.Name)
	}
	return ""
}

// onSafeVolume: it answers, and nothing is known against its data or its volume.
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

// withoutClaim: there is no claim in the slot of a member that was sealed, be it that it was gone by then.
func withoutClaim(s decide.State, r decide.Replica) bool {
	recorded, _ := recordedAt(s.Record, r.Ordinal)
	return r.VolumeUID == "" && (recorded.VolumeUID != "" || recorded.ID != 0)
}

// wrongData: most voters hold other data; or it has said itself, again and again, that it differs
// from the others, who all hold the same.
func wrongData(s decide.State, m decide.Member) bool {
	ordinal, _ := slotOf(s, m)
	r := replicaAt(s, ordinal)
	stopped := !m.Answers && r.PodStoppedByCheck && r.PodCrashes >= 2 && r.Pod != decide.PodReady &&
		!r.PodSince.IsZero() && s.Now.Sub(r.PodSince) >= time.Minute
	return m.Answers && outvoted(s, m) || stopped && othersAreOne(s, m)
}

// otherVolume: the volume in the slot is not the one on record, so the data of the member are not
// on it.
func otherVolume(s decide.State, r decide.Replica) bool {
	recorded, _ := recordedAt(s.Record, r.Ordinal)
	return recorded.VolumeUID != "" && recorded.VolumeUID != r.VolumeUID
}

// provenLost lists all that proves that a silent member does not come back with its data; any one
// of it will do.
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

// itsVolumeIsLost: there is none, or another one that holds nothing or does not come up; it goes
// and nothing runs on it; or nobody can use it, and could not for long.
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

// othersAreSafe: most of the voters beside the one in that slot answer, on volumes that stay.
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

// itNeverStarts: what stands in its slot is another's, or there may be no file that it could start
// with.
func itNeverStarts(s decide.State, r decide.Replica, m decide.Member) bool {
	recorded, _ := recordedAt(s.Record, r.Ordinal)
	anothers := recorded.ID != 0 && recorded.ID != m.ID
	for _, gone := range s.Record.Removed {
		anothers = anothers || gone.Ordinal == r.Ordinal && keepsVolume(r, gone.VolumeUID)
	}
	return !m.Started && (anothers || recorded.Mode == decide.Sealed && recorded.VolumeUID == "" &&
		r.Pod == decide.PodFailing)
}

// itKeepsFailing: it crashes again and again, or says that it has no data; or it has been silent
// for as long as git allows, and Kubernetes has found it unwell as long.
func itKeepsFailing(s decide.State, r decide.Replica, m decide.Member) bool {
	crashes := r.Pod == decide.PodFailing && (r.NoData && r.PodCrashes >= 2 || r.PodCrashes >= 4) &&
		notReadySince(s, r, time.Minute)
	limit := s.Declared.ReplaceAfter
	silent := limit > 0 && !m.SilentSince.IsZero() && s.Now.Sub(m.SilentSince) >= limit && notReadySince(s, r, limit) &&
		(m.Learner || mostAnswer(s))
	return crashes || silent
}

// mostAnswer: the voters that answer are a majority by themselves, so a list that is known need not
// have come from others.
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

// volumesOnRecord: a volume of a cluster that goes on is deleted only where the record says that
// its member was removed.
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
	return fmt.Sprintf("deletes the volume of %s, whose removal is not on record", podName(s, a.Ordinal))
}

// missesTheMissing: a person is asked about members that etcd has lost only if it has lost some.
func missesTheMissing(s decide.State, d decide.Decision) string {
	if d.Rule != "MembersMissing" {
		return ""
	}
	for _, recorded := range s.Record.Members {
		member, listed := memberAt(s, recorded.Ordinal)
		another := listed && (recorded.ID != 0 && recorded.ID != member.ID || strange(recorded, member))
		if s.Membership.Known && recorded.Mode != decide.Joining && (!listed || another) {
			return ""
		}
	}
	return "asks a person about members that etcd has not lost"
}

// strange: a learner that cannot be the member on record, which had started, or was founded as a
// voter.
func strange(recorded decide.RecordedMember, member decide.Member) bool {
	return recorded.ID == 0 && member.Learner && (recorded.Mode == decide.Founding || !member.Started)
}

// forgets says which members a record drops although no majority of the recorded voters stands
// behind etcd's list. A removal that was announced on the record, or a list that a person has
// confirmed, needs none.
func forgets(s decide.State, m decide.RecordedMember) bool {
	if m.Leaving || m.Mode == decide.Joining || confirmed(s) {
		return false
	}
	voters, standing := 0, 0
	for _, recorded := range s.Record.Members {
		if recorded.Mode == decide.Joining {
			continue
		}
		voters++
		if member, listed := memberAt(s, recorded.Ordinal); listed && (recorded.ID == 0 && !strange(recorded, member) ||
			recorded.ID == member.ID || member.Answers) {
			standing++
		}
	}
	return standing <= voters/2
}

// confirmed: git names exactly the members that etcd lists, and not for the second time.
func confirmed(s decide.State) bool {
	named := map[decide.ID]bool{}
	for _, id := range s.Declared.ConfirmedMembers {
		named[id] = true
	}
	for _, m := range s.Membership.Members {
		if !named[m.ID] {
			return false
		}
	}
	again := len(s.Record.Confirmed) == len(named)
	for _, id := range s.Record.Confirmed {
		again = again && named[id]
	}
	return len(named) > 0 && len(named) == len(s.Membership.Members) && !again
}
