package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

func act(a Action, format string, args ...any) (Decision, bool) {
	return Decision{Verdict: Act, Action: a, Message: fmt.Sprintf(format, args...)}, true
}

func wait(recheck time.Duration, format string, args ...any) (Decision, bool) {
	return Decision{Verdict: Wait, Message: fmt.Sprintf(format, args...), Recheck: recheck}, true
}

func block(format string, args ...any) (Decision, bool) {
	return Decision{Verdict: Block, Message: fmt.Sprintf(format, args...)}, true
}

// enumerate joins names as prose does: a, b and c.
func enumerate(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// sentence joins facts, sorted, so that the order in which they were found does not show.
func sentence(facts []string) string {
	return strings.Join(slices.Sorted(slices.Values(facts)), "; ")
}

func (s State) replicasInOrder() []Replica {
	return slices.SortedFunc(slices.Values(s.Replicas), func(a, b Replica) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
}

// membersInOrder returns the members by ordinal; those of other names come last, by name and ID.
func (s State) membersInOrder() []Member {
	rank := func(m Member) int {
		if ordinal, ours := s.Ordinal(m.Name); ours {
			return ordinal
		}
		return 1 << 30
	}
	return slices.SortedFunc(slices.Values(s.Membership.Members), func(a, b Member) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
}

func describeConverged(s State) string {
	return fmt.Sprintf("as declared: %s", describe(s))
}

// describe says what runs.
func describe(s State) string {
	if !s.Membership.Known {
		return s.describeReplicas()
	}
	return fmt.Sprintf("%s of etcd %s", s.describeQuorum(), s.Declared.Version)
}

func (s State) describeQuorum() string {
	voters := s.Membership.Voters()
	return fmt.Sprintf("%d of %s", Answering(voters), plural(len(voters), "voter", "voters"))
}

// describeMembers says of each member what is the matter with it; healthy ones are only counted.
func (s State) describeMembers() string {
	var facts []string
	for _, m := range s.membersInOrder() {
		if fact := s.describeMember(m); fact != "" {
			facts = append(facts, fact)
		}
	}
	for _, r := range s.Record.Members {
		if _, listed := s.Membership.byName(s.ReplicaName(r.Ordinal)); !listed && s.Membership.Known {
			facts = append(facts, s.ReplicaName(r.Ordinal)+" is on record, but etcd does not list it")
		}
	}
	return strings.Join(append([]string{s.describeQuorum() + " healthy"}, facts...), "; ")
}

func (s State) describeMember(m Member) string {
	name := m.Name
	if name == "" {
		name = "member " + m.ID.String()
	}
	ordinal, ours := s.Ordinal(m.Name)
	switch {
	case !ours:
		return name + " is in etcd's list and is none of this cluster's replicas"
	case !m.Answers && s.volumeLost(ordinal):
		return name + " lost its volume"
	case !m.Answers:
		return fmt.Sprintf("%s is silent (%s)", name, s.describeReplica(s.Replica(ordinal)))
	case len(m.Alarms) > 0:
		return fmt.Sprintf("%s raises %s", name, enumerate(m.Alarms))
	case m.Learner:
		return name + " is a learner"
	case s.Replica(ordinal).Pod != PodReady:
		return fmt.Sprintf("%s answers, its pod is not ready (%s)", name, s.describeReplica(s.Replica(ordinal)))
	}
	return ""
}

// describeReplicas says of each recorded replica what its pod does.
func (s State) describeReplicas() string {
	var facts []string
	for _, m := range s.Record.Members {
		facts = append(facts, s.ReplicaName(m.Ordinal)+" "+s.describeReplica(s.Replica(m.Ordinal)))
	}
	if len(facts) == 0 {
		return "no member is on record"
	}
	return strings.Join(facts, ", ")
}

func (s State) describeReplica(r Replica) string {
	words := "pod " + strings.ToLower(string(r.Pod))
	if r.PodMessage != "" {
		words += ": " + r.PodMessage
	}
	if r.PodSpecHash != "" && r.Pod != PodReady && (r.PodSpecHash != s.Declared.SpecHash || r.PodVersion != s.Declared.Version) {
		words += "; it was made from an earlier declaration: delete the pod to let it start from the newest"
	}
	return words
}

func (s State) describeVolumes() string {
	var names []string
	for _, r := range s.replicasInOrder() {
		if r.VolumeUID != "" {
			names = append(names, s.ReplicaName(r.Ordinal))
		}
	}
	return enumerate(names)
}
