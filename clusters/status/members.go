package status

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile/decide"
)

// addMembers fills in the known state of the members. It takes the cluster ID only from the record, because etcd may
// report the ID of a different cluster. If the status already contains an ID, a different ID in the record replaces it
// only once etcd agrees with the record, because the record may have been reverted.
func addMembers(status *v1alpha1.EtcdClusterStatus, old v1alpha1.EtcdClusterStatus, s decide.State) {
	status.ClusterID, status.Version, status.Replicas = old.ClusterID, old.Version, old.Replicas
	agreed := s.Membership.Known && s.Membership.ClusterID == s.Record.ClusterID
	if id := s.Record.ClusterID; id != 0 && (s.ReportedClusterID == 0 || agreed) {
		status.ClusterID = id.String()
	}
	if !s.Membership.Known {
		status.Members = silenced(old.Members, s)
		return
	}
	status.Members = memberStatuses(s, old)
	status.Leader, status.Version = leaderOf(s), cmp.Or(oldestVersion(s), old.Version)
	status.Replicas = int32(len(s.Membership.Members) - len(s.Guests()))
}

func memberStatuses(s decide.State, old v1alpha1.EtcdClusterStatus) []v1alpha1.MemberStatus {
	var list []v1alpha1.MemberStatus
	before := withoutSilence(old, leaderOf(s))
	for _, m := range s.MembersInOrder() {
		status := v1alpha1.MemberStatus{
			Name: nameOf(s, m), ID: m.ID.String(), Role: roleOf(m), Version: m.Version, Health: v1alpha1.MemberHealthy,
			Revision: m.Revision, DBSize: m.DBSize, DBSizeInUse: m.DBSizeInUse, Alarms: m.AlarmNames(),
		}
		if last := s.DefragmentationToReport(m); !last.At.IsZero() {
			status.DefragmentedAt, status.DefragmentationFailure = metav1.NewTime(last.At), last.Failure
		}
		ordinal, ours := s.OrdinalOf(m)
		if ours && s.Replica(ordinal).PodUID != "" {
			status.Pod = m.Name
		}
		status.StrandedSince = strandedSince(s, ordinal, ours)
		switch {
		case !m.Answers:
			status.Health, status.Message = v1alpha1.MemberUnreachable, s.Explain(m)
			status.Revision = max(m.Revision, lastRevision(old.Members, status.ID))
		case len(m.Alarms) > 0 || m.Disagrees != "":
			status.Health, status.Message = v1alpha1.MemberUnhealthy, s.Explain(m)
		}
		status.Since = since(status, before, metav1.NewTime(s.Now))
		list = append(list, status)
	}
	return list
}

// silenced returns the members while the member list is unknown: as last seen, except that members that do not respond
// are unreachable, and that a revision is current if the member reported it, even if the member does not know a leader.
// The revisions show which data a recovery from a member would lose.
func silenced(old []v1alpha1.MemberStatus, s decide.State) []v1alpha1.MemberStatus {
	list := slices.Clone(old)
	for i := range list {
		m := &list[i]
		ordinal, ours := s.Ordinal(m.Name)
		m.StrandedSince = strandedSince(s, ordinal, ours)
		if m.Role == v1alpha1.RoleLeader {
			m.Role = v1alpha1.RoleVoter
		}
		now := memberWithID(s.Membership, m.ID)
		m.Revision = max(m.Revision, now.Revision)
		if m.Health == v1alpha1.MemberUnreachable || now.Answers {
			continue
		}
		m.Health, m.Message, m.Since = v1alpha1.MemberUnreachable, s.Membership.Why, metav1.NewTime(s.Now)
	}
	return list
}

// strandedSince returns the time at which passes, including this one, first found the volume in a slot stranded. It
// returns zero if the volume is not stranded or the slot does not belong to the cluster.
func strandedSince(s decide.State, ordinal int, ours bool) metav1.Time {
	switch r := s.Replica(ordinal); {
	case !ours || r.Stranded == "":
		return metav1.Time{}
	case r.StrandedSince.IsZero():
		return metav1.NewTime(s.Now)
	default:
		return metav1.NewTime(r.StrandedSince)
	}
}

// memberWithID returns the member with the given ID, or the zero value if it is not listed.
func memberWithID(membership decide.Membership, id string) decide.Member {
	i := slices.IndexFunc(membership.Members, func(m decide.Member) bool { return m.ID.String() == id })
	if i < 0 {
		return decide.Member{}
	}
	return membership.Members[i]
}

// lastRevision returns the revision in the status of the member with the given ID, or 0.
func lastRevision(old []v1alpha1.MemberStatus, id string) int64 {
	i := slices.IndexFunc(old, func(m v1alpha1.MemberStatus) bool { return m.ID == id })
	if i < 0 {
		return 0
	}
	return old[i].Revision
}

// since returns the time at which a member's role and health last changed. This is the recorded time if they are
// unchanged and that time is not in the future, or else now.
func since(status v1alpha1.MemberStatus, old []v1alpha1.MemberStatus, now metav1.Time) metav1.Time {
	for _, before := range old {
		// The role of an unreachable member is unknown.
		sameRole := before.Role == status.Role || status.Health == v1alpha1.MemberUnreachable
		same := before.Health == status.Health && sameRole
		if before.ID == status.ID && same && !before.Since.IsZero() && !decide.YetToCome(before.Since.Time, now.Time) {
			return before.Since
		}
	}
	return now
}

// withoutSilence removes unreachable members from a status without a leader if etcd has a leader now. Quorate may have
// been cut off from the cluster, so for members that still do not respond, the time without a response counts from now.
func withoutSilence(old v1alpha1.EtcdClusterStatus, leader string) []v1alpha1.MemberStatus {
	if old.Leader != "" || leader == "" {
		return old.Members
	}
	return slices.DeleteFunc(slices.Clone(old.Members),
		func(m v1alpha1.MemberStatus) bool { return m.Health == v1alpha1.MemberUnreachable })
}

func roleOf(m decide.Member) v1alpha1.MemberRole {
	switch {
	case m.Learner:
		return v1alpha1.RoleLearner
	case m.Leader:
		return v1alpha1.RoleLeader
	}
	return v1alpha1.RoleVoter
}

func leaderOf(s decide.State) string {
	for _, m := range s.Membership.Members {
		if m.Leader {
			return nameOf(s, m)
		}
	}
	return ""
}

// nameOf returns the name under which the status lists a member. Guests are marked, because their names may be equal to
// a replica's name.
func nameOf(s decide.State, m decide.Member) string {
	if s.Record.Hosts(m.ID) {
		return strings.TrimSpace("guest " + m.Name)
	}
	return m.Name
}

// healthyVoters returns the number of healthy replicas that vote.
func healthyVoters(members []v1alpha1.MemberStatus, r decide.Record) int32 {
	var n int32
	for _, m := range members {
		isGuest := slices.ContainsFunc(r.Guests, func(id decide.ID) bool { return id.String() == m.ID })
		if !isGuest && m.Health == v1alpha1.MemberHealthy && m.Role != v1alpha1.RoleLearner {
			n++
		}
	}
	return n
}

// oldestVersion returns the oldest version of the responding members, or an empty string.
func oldestVersion(s decide.State) string {
	if runs := s.Running(); len(runs) > 0 {
		return runs[0].String()
	}
	return ""
}
