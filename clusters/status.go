package clusters

import (
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/quorate/clusters/objects"
	"quorate.dev/quorate/clusters/v1alpha1"
	"quorate.dev/quorate/reconcile"
	"quorate.dev/quorate/reconcile/decide"
	"quorate.dev/quorate/reconcile/report"
)

// newStatus is the status that a pass reports. live is the custom resource with the status that is
// there, declared what the pass went by.
func newStatus(live, declared *v1alpha1.EtcdCluster, entry report.Cluster, source reconcile.SourceState) v1alpha1.EtcdClusterStatus {
	old, s := live.Status, entry.State
	status := v1alpha1.EtcdClusterStatus{
		ObservedGeneration: live.Generation,
		Conditions:         slices.Clone(old.Conditions),
		DeclaredRevision:   firstNonEmpty(source.Revision, old.DeclaredRevision),
		DeclaredSource:     firstNonEmpty(source.Source, old.DeclaredSource),
		SourceRevision:     firstNonEmpty(source.Revision, old.SourceRevision),
		Rule:               entry.Decision.Rule,
		Selector:           objects.SelectorString(live.Name),
	}
	if source.Kin {
		status.SourceRevision = old.SourceRevision
	}
	if s.Declared.Orphaned != "" {
		status.DeclaredRevision = old.DeclaredRevision
	}
	if !isGone(s) {
		addMembers(&status, old, s)
		if closed := s.Record.MayFound() && len(old.Endpoints) == 0; !closed { // what clients were told is not taken back
			status.Endpoints = objects.Endpoints(declared, s.Record)
		}
		if declared.Spec.TLS.Mode == v1alpha1.TLSManaged {
			status.ClientSecretName = objects.NamesOf(live.Name).ClientSecret
		}
	}
	status.ReadyReplicas = healthyVoters(status.Members)
	status.Voters = fmt.Sprintf("%d/%d", status.ReadyReplicas, s.Declared.Replicas)
	status.Waiting = waiting(live, entry)
	setConditions(&status, entry, source, metav1.NewTime(s.Now))
	return status
}

// isGone reports whether a cluster has been deleted to the last volume. Its identity goes with it,
// so that it is founded again should git want it again.
func isGone(s decide.State) bool {
	return s.Declared.Lifecycle == decide.Deleted && len(s.Objects.Remaining) == 0 && len(s.Replicas) == 0 && s.Record.Token == ""
}

// addMembers fills in what is known of the members. The cluster ID comes from the record alone:
// what some etcd says may be another cluster's.
func addMembers(status *v1alpha1.EtcdClusterStatus, old v1alpha1.EtcdClusterStatus, s decide.State) {
	status.ClusterID, status.Version, status.Replicas = old.ClusterID, old.Version, old.Replicas
	if id := s.Record.ClusterID; id != 0 {
		status.ClusterID = id.String()
	}
	if !s.Membership.Known {
		status.Members = silenced(old.Members, s)
		return
	}
	status.Members = memberStatuses(s, old)
	status.Leader, status.Version = leaderOf(s), firstNonEmpty(oldestVersion(s), old.Version)
	status.Replicas = int32(len(s.Membership.Members))
}

// news reports whether a status is worth writing: the figures that always move are not, by
// themselves.
func worthWriting(old, status v1alpha1.EtcdClusterStatus) bool {
	return !equality.Semantic.DeepEqual(withoutFigures(old, old), withoutFigures(status, old))
}

// withoutFigures puts the moving figures of each member to what base says, unless a size has moved
// by a tenth.
func withoutFigures(status, base v1alpha1.EtcdClusterStatus) v1alpha1.EtcdClusterStatus {
	status.Members = slices.Clone(status.Members)
	for i := range status.Members {
		m := &status.Members[i]
		for _, b := range base.Members {
			if b.ID == m.ID && near(m.DBSize, b.DBSize) && near(m.DBSizeInUse, b.DBSizeInUse) {
				m.Revision, m.DBSize, m.DBSizeInUse = b.Revision, b.DBSize, b.DBSizeInUse
			}
		}
	}
	return status
}

// near reports whether a and b differ by less than a tenth of b.
func near(a, b int64) bool { return max(a-b, b-a)*10 < max(b, 1) || a == b }

func memberStatuses(s decide.State, old v1alpha1.EtcdClusterStatus) []v1alpha1.MemberStatus {
	var list []v1alpha1.MemberStatus
	before := withoutSilence(old, leaderOf(s))
	for _, m := range s.MembersInOrder() {
		status := v1alpha1.MemberStatus{
			Name: m.Name, ID: m.ID.String(), Role: roleOf(m), Version: m.Version, Health: v1alpha1.MemberHealthy,
			Revision: m.Revision, DBSize: m.DBSize, DBSizeInUse: m.DBSizeInUse, Alarms: m.Alarms,
		}
		if ordinal, ours := s.Ordinal(m.Name); ours && s.Replica(ordinal).PodUID != "" {
			status.Pod = m.Name
		}
		ordinal, ours := s.OrdinalOf(m)
		status.StrandedSince = strandedSince(s, ordinal, ours)
		switch {
		case !m.Answers:
			status.Health, status.Message = v1alpha1.MemberUnreachable, s.Explain(m)
		case len(m.Alarms) > 0 || m.Disagrees != "":
			status.Health, status.Message = v1alpha1.MemberUnhealthy, s.Explain(m)
		}
		status.Since = since(status, before, metav1.NewTime(s.Now))
		list = append(list, status)
	}
	return list
}

// silenced is what is left to say of the members while the member list is not known: they are as
// last seen, and those that do not answer are silent.
func silenced(old []v1alpha1.MemberStatus, s decide.State) []v1alpha1.MemberStatus {
	list := slices.Clone(old)
	for i := range list {
		m := &list[i]
		ordinal, ours := s.Ordinal(m.Name)
		m.StrandedSince = strandedSince(s, ordinal, ours)
		if m.Role == v1alpha1.RoleLeader {
			m.Role = v1alpha1.RoleVoter
		}
		if m.Health == v1alpha1.MemberUnreachable || answers(s.Membership, m.ID) {
			continue
		}
		m.Health, m.Message, m.Since = v1alpha1.MemberUnreachable, s.Membership.Why, metav1.NewTime(s.Now)
	}
	return list
}

// strandedSince is since when the volume in a slot is stranded, this pass included; zero if it is
// not, or the slot is none of the cluster's.
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

func answers(membership decide.Membership, id string) bool {
	return slices.ContainsFunc(membership.Members, func(m decide.Member) bool { return m.ID.String() == id && m.Answers })
}

// since when a member's role and health are as they are: as before if nothing has changed.
func since(status v1alpha1.MemberStatus, old []v1alpha1.MemberStatus, now metav1.Time) metav1.Time {
	for _, before := range old {
		same := before.Role == status.Role || status.Health == v1alpha1.MemberUnreachable // which tells nothing of its role
		if before.ID == status.ID && same && before.Health == status.Health && !before.Since.IsZero() {
			return before.Since
		}
	}
	return now
}

// withoutSilence leaves out the silent members of a status from a time when etcd named no leader,
// if it does now: the silence may have been ours, so what is silent still is so from now on.
func withoutSilence(old v1alpha1.EtcdClusterStatus, leader string) []v1alpha1.MemberStatus {
	if old.Leader != "" || leader == "" {
		return old.Members
	}
	return slices.DeleteFunc(slices.Clone(old.Members), func(m v1alpha1.MemberStatus) bool { return m.Health == v1alpha1.MemberUnreachable })
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
			return m.Name
		}
	}
	return ""
}

func healthyVoters(members []v1alpha1.MemberStatus) int32 {
	var n int32
	for _, m := range members {
		if m.Health == v1alpha1.MemberHealthy && m.Role != v1alpha1.RoleLearner {
			n++
		}
	}
	return n
}

// setConditions tells of the decision in the conditions that tools understand: Ready, and the two
// that should be false.
func setConditions(status *v1alpha1.EtcdClusterStatus, entry report.Cluster, source reconcile.SourceState, now metav1.Time) {
	d := entry.Decision
	message := d.Message
	if entry.Error != "" {
		message = entry.Error + " (" + message + ")"
	}
	set := func(kind string, value metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: value, Reason: reason, Message: message, ObservedGeneration: status.ObservedGeneration, LastTransitionTime: now,
		})
	}
	set(v1alpha1.ConditionReady, ready(status, entry), d.Rule, message)
	set(v1alpha1.ConditionReconciling, truth(d.Verdict == decide.Act || d.Verdict == decide.Wait), d.Rule, message)
	set(v1alpha1.ConditionStalled, truth(d.Verdict == decide.Block), d.Rule, message)
	switch {
	case source.Error != "":
		set(v1alpha1.ConditionSourceReady, metav1.ConditionFalse, "FetchFailed", source.Error)
	case source.Revision != "": // else it stays as it was: nothing is known of this cluster's source
		set(v1alpha1.ConditionSourceReady, metav1.ConditionTrue, "Fetched", source.Revision)
	}
	setCertificatesValid(status, entry, now)
	if orphaned := entry.State.Declared.Orphaned; orphaned != "" {
		set(v1alpha1.ConditionOrphaned, metav1.ConditionTrue, "Orphaned", orphaned)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionOrphaned)
	}
}

// ready says whether every declared member is a healthy voter, and is meant to be. An orphan is
// judged by etcd alone.
func ready(status *v1alpha1.EtcdClusterStatus, entry report.Cluster) metav1.ConditionStatus {
	s, d := entry.State, entry.Decision
	if d.Rule == "MembershipUnknown" || s.Declared.Orphaned != "" && !s.Membership.Known {
		return metav1.ConditionUnknown
	}
	stops := s.Declared.Lifecycle == decide.Stopped || s.Declared.Lifecycle == decide.Deleted
	serving := status.ReadyReplicas > 0 && int(status.ReadyReplicas) == s.Declared.Replicas
	return truth(serving && !stops && d.Verdict != decide.Block && !(s.Record.MayFound() && len(status.Endpoints) == 0))
}

func truth(is bool) metav1.ConditionStatus {
	if is {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// oldestVersion is the oldest version that an answering member runs; empty if none answers.
func oldestVersion(s decide.State) string {
	var oldest *semver.Version
	for _, m := range s.Membership.Members {
		v, err := semver.StrictNewVersion(m.Version)
		if err == nil && (oldest == nil || v.LessThan(oldest)) {
			oldest = v
		}
	}
	if oldest == nil {
		return ""
	}
	return oldest.String()
}
