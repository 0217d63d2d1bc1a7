package decide

import (
	"fmt"
	"strings"
	"time"
)

func notActedOn(s State) (Decision, bool) {
	if !s.Formed() {
		return Decision{}, false
	}
	wishes := s.unmetWishes()
	if len(wishes) == 0 {
		return Decision{}, false
	}
	return block("git asks for a change that is not acted on yet: %s; what runs is kept as it is", strings.Join(wishes, ", "))
}

// unmetWishes lists what git declares of a formed cluster that no rule brings about.
func (s State) unmetWishes() []string {
	var wishes []string
	if s.Declared.Lifecycle != "Running" {
		wishes = append(wishes, "lifecycle "+s.Declared.Lifecycle)
	}
	if n := len(s.Record.Members); s.recorded() && n != s.Declared.Replicas {
		wishes = append(wishes, fmt.Sprintf("%d to %d replicas", n, s.Declared.Replicas))
	}
	if runs := s.Objects.RunsVersion; runs != "" && runs != s.Declared.Version {
		wishes = append(wishes, fmt.Sprintf("version %s to %s", runs, s.Declared.Version))
	}
	if runs := s.Objects.RunsHash; runs != "" && runs != s.Declared.SpecHash {
		wishes = append(wishes, "other options or another shape of the pods")
	}
	return wishes
}

func applyObjects(s State) (Decision, bool) {
	if !s.Formed() || len(s.Objects.Drift) == 0 {
		return Decision{}, false
	}
	if !s.recorded() && !s.Membership.Known {
		return act(ApplyObjects{}, "the volumes of %s are there without objects: bring the members back on their data", s.describeVolumes())
	}
	return act(ApplyObjects{}, "%s", sentence(s.Objects.Drift))
}

func replaceMember(s State) (Decision, bool) {
	if !s.Membership.Known {
		return Decision{}, false
	}
	for _, m := range s.membersInOrder() {
		ordinal, ours := s.Ordinal(m.Name)
		if ours && !m.Answers && s.volumeLost(ordinal) {
			return block("%s lost its volume and stays down, so that it neither votes without its data nor founds a second cluster; %s serve; "+
				"replacing it is not acted on yet", m.Name, s.describeQuorum())
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

// allHealthy reports whether every member of the record is a voter that answers without alarm, and every pod is ready.
func (s State) allHealthy() bool {
	for _, m := range s.Membership.Members {
		if m.Learner || !m.Answers || len(m.Alarms) > 0 {
			return false
		}
	}
	for _, recorded := range s.Record.Members {
		if _, listed := s.Membership.byName(s.ReplicaName(recorded.Ordinal)); !listed || s.Replica(recorded.Ordinal).Pod != PodReady {
			return false
		}
	}
	return len(s.Membership.Members) == len(s.Record.Members)
}
