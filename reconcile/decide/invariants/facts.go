package invariants

import (
	"regexp"
	"strconv"

	"quorate.dev/quorate/reconcile/decide"
)

// podName is the name of the pod and of the member of an ordinal.
func podName(s decide.State, ordinal int) string { return s.Name + "-" + strconv.Itoa(ordinal) }

// ordinalOf is the ordinal in the name of a pod, and whether the pod is one of this cluster's.
func ordinalOf(s decide.State, name string) (int, bool) {
	prefix := s.Name + "-"
	if len(name) < len(prefix) || name[:len(prefix)] != prefix {
		return 0, false
	}
	for ordinal := range 64 {
		if name[len(prefix):] == strconv.Itoa(ordinal) {
			return ordinal, true
		}
	}
	return 0, false
}

// host is what a peer URL says between the scheme and the first dot: the name of the pod.
var host = regexp.MustCompile(`^[^:]*://([^.]*)`)

// slotOf is the ordinal of a member, by its name or, as long as it has none, by its peer URL.
func slotOf(s decide.State, m decide.Member) (int, bool) {
	name := m.Name
	if name == "" {
		if found := host.FindStringSubmatch(m.PeerURL); found != nil {
			name = found[1]
		}
	}
	return ordinalOf(s, name)
}

// replicaAt is what there is of an ordinal: nothing, if nobody has seen anything.
func replicaAt(s decide.State, ordinal int) decide.Replica {
	for _, r := range s.Replicas {
		if r.Ordinal == ordinal {
			return r
		}
	}
	return decide.Replica{Ordinal: ordinal, Pod: decide.PodAbsent}
}

// recordedAt is the member on record with that ordinal.
func recordedAt(r decide.Record, ordinal int) (decide.RecordedMember, bool) {
	for _, m := range r.Members {
		if m.Ordinal == ordinal {
			return m, true
		}
	}
	return decide.RecordedMember{}, false
}

// memberAt is the member that etcd lists in a slot.
func memberAt(s decide.State, ordinal int) (decide.Member, bool) {
	for _, m := range s.Membership.Members {
		if n, ours := slotOf(s, m); ours && n == ordinal {
			return m, true
		}
	}
	return decide.Member{}, false
}

// memberNamed is the member that etcd lists by the name of a pod: one that has no name yet does not
// serve.
func memberNamed(s decide.State, ordinal int) (decide.Member, bool) {
	for _, m := range s.Membership.Members {
		if m.Name == podName(s, ordinal) {
			return m, true
		}
	}
	return decide.Member{}, false
}

// memberByID is the member that etcd lists with that ID.
func memberByID(s decide.State, id decide.ID) (decide.Member, bool) {
	for _, m := range s.Membership.Members {
		if m.ID == id {
			return m, true
		}
	}
	return decide.Member{}, false
}

// voters are the members that etcd lists with a vote.
func voters(s decide.State) (list []decide.Member) {
	for _, m := range s.Membership.Members {
		if !m.Learner {
			list = append(list, m)
		}
	}
	return list
}

// allAnswer reports whether all of them answer.
func allAnswer(members []decide.Member) bool {
	for _, m := range members {
		if !m.Answers {
			return false
		}
	}
	return true
}

// release is a version of etcd, with whatever its builder adds, or a minor version.
var release = regexp.MustCompile(`^(\d+)\.(\d+)(\.\d+([-+].*)?)?$`)

// minorOf is the major and the minor version in a version.
func minorOf(version string) (major, minor int, known bool) {
	found := release.FindStringSubmatch(version)
	if found == nil {
		return 0, 0, false
	}
	major, _ = strconv.Atoi(found[1])
	minor, _ = strconv.Atoi(found[2])
	return major, minor, true
}
