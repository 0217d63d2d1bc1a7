package invariants

import (
	"fmt"

	"quorate.dev/quorate/reconcile/decide"
)

// majorityJudges checks decisions while data is in doubt. A voter whose data may be right is removed only if a strict
// majority of the listed voters currently responds with the same hash. Responding members are not restarted, nothing is
// copied from a leader outside that majority, and the alarm is disarmed only once all voters agree.
func majorityJudges(s decide.State, d decide.Decision) string {
	if a, disarms := d.Action.(decide.DisarmAlarm); disarms && a.Kind == decide.AlarmCorrupt {
		return soonDisarmed(s, a)
	}
	if !doubted(s) {
		return ""
	}
	switch a := d.Action.(type) {
	case decide.RemoveMember:
		return wrongVerdict(s, a.ID)
	case decide.RestartReplica:
		if m, listed := memberAt(s, a.Ordinal); listed && m.Answers {
			return "restarts a responding member, which may not start again"
		}
	case decide.MoveLeader:
		if to, _ := memberByID(s, a.To); outvoted(s, to) {
			return "transfers leadership to an outvoted member"
		}
	case decide.AddLearner, decide.PromoteLearner:
		if !leaderIsRight(s) {
			return fmt.Sprintf("%s copies data from a leader that is not part of a majority", d.Action)
		}
	}
	return ""
}

// doubted reports whether there are signs that members hold different data: an alarm, their hashes, or a member that
// does not start because its data differs. A recorded difference counts until all voters are known to agree.
func doubted(s decide.State) bool {
	if alarmedCorrupt(s) || !s.Comparison.DiffersSince.IsZero() && !agree(s) {
		return true
	}
	for _, m := range s.Membership.Members {
		ordinal, ours := slotOf(s, m)
		stopped := ours && !m.Learner && !m.Answers && replicaAt(s, ordinal).PodStoppedByCheck
		if stopped || contradicted(s, m) {
			return true
		}
	}
	return false
}

// alarmedCorrupt reports whether etcd has raised a CORRUPT alarm.
func alarmedCorrupt(s decide.State) bool {
	for _, alarm := range s.Membership.StaleAlarms {
		if alarm.Kind == decide.AlarmCorrupt {
			return true
		}
	}
	for _, m := range s.Membership.Members {
		if blamed(m) {
			return true
		}
	}
	return false
}

// agree reports whether all voters respond with the same hash.
func agree(s decide.State) bool {
	for _, m := range s.Membership.Members {
		if votes, voters := votesFor(s, m.Hash); !m.Learner && votes < voters {
			return false
		}
	}
	return len(s.Membership.Members) > 0
}

func blamed(m decide.Member) bool {
	for _, alarm := range m.Alarms {
		if alarm == decide.AlarmCorrupt {
			return true
		}
	}
	return false
}

// contradicted reports whether another voter has a different hash at the same point.
func contradicted(s decide.State, m decide.Member) bool {
	for _, other := range s.Membership.Members {
		samePoint := m.Hash.Revision > 0 && m.Hash.Revision == other.Hash.Revision &&
			m.Hash.CompactRevision == other.Hash.CompactRevision
		if samePoint && m.Hash.Sum != other.Hash.Sum && !m.Learner && !other.Learner {
			return true
		}
	}
	return false
}

// votesFor returns the number of voters that report the given hash, and the number of all voters.
func votesFor(s decide.State, hash decide.Hash) (votes, voters int) {
	for _, m := range s.Membership.Members {
		if m.Learner {
			continue
		}
		voters++
		if m.Answers && hash.Revision > 0 && m.Hash == hash {
			votes++
		}
	}
	return votes, voters
}

// outvoted reports whether a strict majority of all voters has a different hash than the given member, at the same
// point.
func outvoted(s decide.State, member decide.Member) bool {
	for _, m := range s.Membership.Members {
		votes, voters := votesFor(s, m.Hash)
		samePoint := m.Hash.Revision == member.Hash.Revision && m.Hash.CompactRevision == member.Hash.CompactRevision
		if 2*votes > voters && samePoint && m.Hash.Sum != member.Hash.Sum && !member.Learner {
			return true
		}
	}
	return false
}

func leaderIsRight(s decide.State) bool {
	for _, m := range s.Membership.Members {
		if votes, voters := votesFor(s, m.Hash); m.Leader && 2*votes > voters {
			return true
		}
	}
	return false
}

// wrongVerdict returns the problem with removing a member: its data may be right.
func wrongVerdict(s decide.State, id decide.ID) string {
	m, _ := memberByID(s, id)
	ordinal, ours := slotOf(s, m)
	r := replicaAt(s, ordinal)
	recorded, _ := recordedAt(s.Record, ordinal)
	switch {
	case !ours || m.Learner || !m.Started || outvoted(s, m):
		return ""
	case r.VolumeTerminating && (m.Answers || r.Pod == decide.PodAbsent || r.Pod == decide.PodTerminating) ||
		r.VolumeUID == "" || recorded.VolumeUID != "" && recorded.VolumeUID != r.VolumeUID:
		return "" // its volume was deleted manually, or nothing remains of it
	case !m.Answers && r.PodStoppedByCheck && othersAreOne(s, m):
		return "" // the member itself has reported that its data differs from another's
	case !m.Answers && !r.PodStoppedByCheck && majorityStands(s):
		return "" // its data is not needed
	}
	return fmt.Sprintf("removes %s, but its data may be right", podName(s, ordinal))
}

// majorityStands reports whether most voters report the same hash.
func majorityStands(s decide.State) bool {
	for _, m := range s.Membership.Members {
		if votes, voters := votesFor(s, m.Hash); 2*votes > voters {
			return true
		}
	}
	return false
}

// othersAreOne reports whether all other voters report the same hash, and are a majority of all voters.
func othersAreOne(s decide.State, but decide.Member) bool {
	for _, m := range s.Membership.Members {
		if votes, voters := votesFor(s, m.Hash); m.ID != but.ID && !m.Learner {
			return votes == voters-1 && 2*votes > voters
		}
	}
	return false
}

// soonDisarmed returns the problem with disarming an alarm: it is unknown whether all voters hold the same data, or
// there is only one voter and the alarm may be about that voter.
func soonDisarmed(s decide.State, a decide.DisarmAlarm) string {
	_, gone := memberByID(s, a.ID)
	gone = !gone && a.ID != 0
	for _, m := range s.Membership.Members {
		votes, voters := votesFor(s, m.Hash)
		switch {
		case m.Learner:
		case votes != voters:
			return fmt.Sprintf("%s, but not all members are known to hold the same data", a)
		case voters < 2 && !gone:
			return fmt.Sprintf("%s, but there is no other voter to compare with", a)
		}
	}
	return ""
}
