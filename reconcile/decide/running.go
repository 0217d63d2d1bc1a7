package decide

import (
	"fmt"
	"strings"
	"time"
)

func applyObjects(s State) (Decision, bool) {
	drift, keep := s.Objects.Drift, s.wantsOtherPods()
	if keep {
		drift = s.Objects.Mendable
	}
	if !s.Formed() || len(drift) == 0 || len(StandingRecord(s, "").Members) == 0 {
		return Decision{}, false
	}
	a := ApplyObjects{KeepPods: keep}
	if !s.recorded() {
		return act(a, "the record is lost; bring %s back on the data that is there: %s", s.describeRemains(), sentence(drift))
	}
	return act(a, "%s", sentence(drift))
}

// wantsOtherPods reports whether git asks of a formed cluster for pods of another version or shape.
func (s State) wantsOtherPods() bool {
	return s.hasStatefulSet() && !s.founding() && (s.Objects.RunsVersion != s.Declared.Version || s.Objects.RunsHash != s.Declared.SpecHash)
}

func replaceMember(s State) (Decision, bool) {
	for _, ordinal := range s.silentOrdinals() {
		if s.volumeLost(ordinal) {
			return block("%s lost its volume and stays down, so that it neither votes without its data nor founds a second cluster; "+
				"%s answer; replacing it is not acted on yet", s.ReplicaName(ordinal), s.describeQuorum())
		}
	}
	return Decision{}, false
}

// silentOrdinals are those of the recorded members that etcd lists and that do not answer; none while etcd gives no list.
func (s State) silentOrdinals() []int {
	var silent []int
	for _, recorded := range s.Record.Members {
		m, listed := s.Membership.byName(s.ReplicaName(recorded.Ordinal))
		if s.Membership.Known && listed && !m.Answers {
			silent = append(silent, recorded.Ordinal)
		}
	}
	return silent
}

func membershipMismatch(s State) (Decision, bool) {
	if !s.Membership.Known {
		return Decision{}, false
	}
	var odd []string
	for _, m := range s.MembersInOrder() {
		ordinal, ours := s.Ordinal(m.Name)
		_, recorded := s.Record.Member(ordinal)
		switch {
		case !ours || !recorded:
			odd = append(odd, fmt.Sprintf("etcd lists %s, which is not on record", m.describeName()))
		case m.Learner:
			odd = append(odd, m.Name+" is a learner")
		}
	}
	if odd = append(odd, s.unlisted()...); len(odd) == 0 {
		return Decision{}, false
	}
	return block("%s; putting this right is not acted on yet", strings.Join(odd, "; "))
}

// unlisted are the recorded members that etcd does not list.
func (s State) unlisted() []string {
	var facts []string
	for _, r := range s.Record.Members {
		if _, listed := s.Membership.byName(s.ReplicaName(r.Ordinal)); !listed {
			facts = append(facts, s.ReplicaName(r.Ordinal)+" is on record, but etcd does not list it")
		}
	}
	return facts
}

func alarmRaised(s State) (Decision, bool) {
	var facts []string
	for _, m := range s.MembersInOrder() {
		if len(m.Alarms) > 0 {
			facts = append(facts, fmt.Sprintf("%s raises %s", m.describeName(), enumerate(m.Alarms)))
		}
	}
	if !s.Membership.Known || len(facts) == 0 {
		return Decision{}, false
	}
	return block("%s", strings.Join(facts, "; "))
}

func memberFailing(s State) (Decision, bool) {
	for _, ordinal := range s.silentOrdinals() {
		if s.failsForLong(s.Replica(ordinal)) {
			return block("%s", s.describeMembers())
		}
	}
	return Decision{}, false
}

func waitForMembers(s State) (Decision, bool) {
	if !s.Membership.Known || s.allHealthy() {
		return Decision{}, false
	}
	return wait(500*time.Millisecond, "%s", s.describeMembers())
}

// allHealthy reports whether the members of the record and those of etcd's list are the same, and nothing is the matter
// with any of them.
func (s State) allHealthy() bool {
	return s.Record.ClusterID != 0 && len(s.troubles())+len(s.unlisted()) == 0
}

func notActedOn(s State) (Decision, bool) {
	wishes := s.unmetWishes()
	if len(wishes) == 0 {
		return Decision{}, false
	}
	return block("git asks for a change that is not acted on yet: %s; what runs is kept as it is", strings.Join(wishes, ", "))
}

// unmetWishes lists what git declares and no rule brings about. What has been founded is first waited for and sealed.
func (s State) unmetWishes() []string {
	if s.founding() {
		return nil
	}
	var wishes []string
	if !s.toRun() {
		wishes = append(wishes, "lifecycle "+s.Declared.Lifecycle)
	}
	if n := len(s.Record.Members); n != s.Declared.Replicas {
		wishes = append(wishes, fmt.Sprintf("%d to %d replicas", n, s.Declared.Replicas))
	}
	if runs := s.Objects.RunsStorage; runs != "" && runs != s.Declared.Storage {
		wishes = append(wishes, fmt.Sprintf("volumes of %s to %s", runs, s.Declared.Storage))
	}
	if !s.wantsOtherPods() {
		return wishes
	}
	if runs := s.Objects.RunsVersion; runs != s.Declared.Version {
		wishes = append(wishes, fmt.Sprintf("version %s to %s", runs, s.Declared.Version))
	}
	if s.Objects.RunsHash != s.Declared.SpecHash {
		wishes = append(wishes, "other options or another shape of the pods")
	}
	return wishes
}
