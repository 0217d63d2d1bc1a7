package invariants

import (
	"regexp"
	"strconv"

	"quorate.dev/quorate/reconcile/decide"
)

// podName returns the name of an ordinal's pod and member.
func podName(s decide.State, ordinal int) string { return s.Name + "-" + strconv.Itoa(ordinal) }

// ordinalOf returns the ordinal in a pod name, and whether the pod belongs to this cluster.
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

// host matches a peer URL up to the first dot, and captures the name of the pod.
var host = regexp.MustCompile(`^[^:]*://([^.]*)`)

// slotOf returns a member's ordinal from its name or, if the member has no name yet, from its peer URL.
func slotOf(s decide.State, m decide.Member) (int, bool) {
	if isGuest(s, m) {
		return 0, false
	}
	name, pod := m.Name, ""
	if found := host.FindStringSubmatch(m.PeerURL); found != nil {
		pod = found[1]
	}
	adopts := s.Declared.Adoption.ClusterID != 0 || s.Record.Adopted != 0
	if name == "" || adopts && name != pod { // members of an adopted cluster may have the names of replicas
		name = pod
	}
	return ordinalOf(s, name)
}

// replicaAt returns the replica with that ordinal, or a replica without a pod and volume.
func replicaAt(s decide.State, ordinal int) decide.Replica {
	for _, r := range s.Replicas {
		if r.Ordinal == ordinal {
			return r
		}
	}
	return decide.Replica{Ordinal: ordinal, Pod: decide.PodAbsent}
}

// recordedAt returns the recorded member with that ordinal.
func recordedAt(r decide.Record, ordinal int) (decide.RecordedMember, bool) {
	for _, m := range r.Members {
		if m.Ordinal == ordinal {
			return m, true
		}
	}
	return decide.RecordedMember{}, false
}

// memberAt returns the member that etcd lists in a slot.
func memberAt(s decide.State, ordinal int) (decide.Member, bool) {
	for _, m := range s.Membership.Members {
		if n, ours := slotOf(s, m); ours && n == ordinal {
			return m, true
		}
	}
	return decide.Member{}, false
}

// memberNamed returns the member that etcd lists with the name of a pod. A member without a name does not serve yet.
func memberNamed(s decide.State, ordinal int) (decide.Member, bool) {
	for _, m := range s.Membership.Members {
		if n, ours := slotOf(s, m); m.Name == podName(s, ordinal) && ours && n == ordinal {
			return m, true
		}
	}
	return decide.Member{}, false
}

// memberByID returns the member that etcd lists with that ID.
func memberByID(s decide.State, id decide.ID) (decide.Member, bool) {
	for _, m := range s.Membership.Members {
		if m.ID == id {
			return m, true
		}
	}
	return decide.Member{}, false
}

// voters returns the voting members that etcd lists.
func voters(s decide.State) (list []decide.Member) {
	for _, m := range s.Membership.Members {
		if !m.Learner {
			list = append(list, m)
		}
	}
	return list
}

// allAnswer reports whether all members respond.
func allAnswer(members []decide.Member) bool {
	for _, m := range members {
		if !m.Answers {
			return false
		}
	}
	return true
}

// release matches an etcd version, with any vendor suffix, or a minor version.
var release = regexp.MustCompile(`^(\d+)\.(\d+)(\.\d+([-+].*)?)?$`)

// minorOf returns the major and minor numbers of a version.
func minorOf(version string) (major, minor int, known bool) {
	found := release.FindStringSubmatch(version)
	if found == nil {
		return 0, 0, false
	}
	major, _ = strconv.Atoi(found[1])
	minor, _ = strconv.Atoi(found[2])
	return major, minor, true
}
