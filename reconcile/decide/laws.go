package decide

import (
	"fmt"
	"time"
)

// A law is something that no decision may do in any state.
type law struct {
	Name  string
	Holds func(State, Decision) string // what is broken, or ""
}

// laws that are about one state and one decision. Purity, order-blindness and the absence of dead ends are about many;
// tests check those.
var laws = []law{
	{"speaks", speaks},
	{"unknown changes nothing", unknownChangesNothing},
	{"never founded twice", neverFoundedTwice},
	{"quorum survives", quorumSurvives},
	{"leader hands over first", leaderHandsOverFirst},
	{"one learner", oneLearner},
	{"a volume outlives its member", volumeOutlivesMember},
	{"the dead go first", deadGoFirst},
	{"only the started are sealed", onlyStartedSealed},
	{"guards hold", guardsHold},
}

// Broken returns the laws that decision d breaks in state s, each with what is broken; none if all hold.
func Broken(s State, d Decision) []string {
	var broken []string
	for _, l := range laws {
		if what := l.Holds(s, d); what != "" {
			broken = append(broken, l.Name+": "+what)
		}
	}
	return broken
}

func speaks(_ State, d Decision) string {
	switch {
	case d.Rule == "" || d.Message == "":
		return "no rule or no message"
	case (d.Verdict == Act) != (d.Action != nil):
		return "an action exactly when the verdict is Act"
	case d.Recheck < 0 || d.Recheck > time.Minute:
		return "recheck out of bounds"
	}
	return ""
}

func unknownChangesNothing(s State, d Decision) string {
	if s.Membership.Known {
		return ""
	}
	switch d.Action.(type) {
	case Seal, AddLearner, PromoteLearner, RemoveMember, MoveLeader, RestartReplica, DeleteVolume:
		return fmt.Sprintf("%s although the membership is not known", d.Action)
	}
	return ""
}

func neverFoundedTwice(s State, d Decision) string {
	if _, founds := d.Action.(Found); founds && s.Formed() {
		return "founds a cluster that has formed"
	}
	return ""
}

func quorumSurvives(s State, d Decision) string {
	var after Membership
	switch a := d.Action.(type) {
	case RemoveMember:
		after = s.Membership.without(a.ID)
	case RestartReplica:
		member, listed := s.Membership.byName(s.ReplicaName(a.Ordinal))
		if !listed || member.Learner {
			return ""
		}
		after = s.Membership.whileDown(member.ID)
	default:
		return ""
	}
	if !after.HasQuorum() {
		return fmt.Sprintf("%s leaves no quorum", d.Action)
	}
	return ""
}

func leaderHandsOverFirst(s State, d Decision) string {
	var member Member
	switch a := d.Action.(type) {
	case RemoveMember:
		member, _ = s.Membership.byID(a.ID)
	case RestartReplica:
		member, _ = s.Membership.byName(s.ReplicaName(a.Ordinal))
	}
	if member.Leader && len(s.Membership.Voters()) > 1 {
		return fmt.Sprintf("%s takes the leader away", d.Action)
	}
	return ""
}

func oneLearner(s State, d Decision) string {
	if _, adds := d.Action.(AddLearner); adds && len(s.Membership.Voters()) != len(s.Membership.Members) {
		return "adds a learner beside another"
	}
	return ""
}

func volumeOutlivesMember(s State, d Decision) string {
	a, deletes := d.Action.(DeleteVolume)
	if !deletes {
		return ""
	}
	if _, listed := s.Membership.byName(s.ReplicaName(a.Ordinal)); listed {
		return "deletes the volume of a member that etcd lists"
	}
	for _, m := range s.Membership.Members {
		if m.Name == "" {
			return "deletes a volume while a member has no name yet"
		}
	}
	return ""
}

func deadGoFirst(s State, d Decision) string {
	if _, adds := d.Action.(AddLearner); !adds {
		return ""
	}
	if Answering(s.Membership.Members) < len(s.Membership.Members) {
		return "adds a member while another is silent"
	}
	return ""
}

func onlyStartedSealed(s State, d Decision) string {
	a, seals := d.Action.(Seal)
	if !seals {
		return ""
	}
	for _, ordinal := range a.Members.List() {
		if m, listed := s.Membership.byName(s.ReplicaName(ordinal)); !listed || !m.Started {
			return fmt.Sprintf("seals %s, which has not started", s.ReplicaName(ordinal))
		}
	}
	return ""
}

func guardsHold(s State, d Decision) string {
	if d.Verdict != Act {
		return ""
	}
	_, declares := d.Action.(Declare)
	switch {
	case len(s.Declared.Problems) > 0:
		return "acts on a declaration with problems"
	case len(s.Objects.Foreign) > 0:
		return "acts beside foreign objects"
	case s.Declared.Suspended && !declares:
		return "acts on a suspended cluster"
	case s.LockHolder != "":
		return "acts while another pass holds the lease"
	}
	return ""
}
