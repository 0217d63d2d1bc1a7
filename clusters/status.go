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

// newStatus is the status that a pass reports. live is the custom resource with the status that is there, declared
// what the pass went by.
func newStatus(live, declared *v1alpha1.EtcdCluster, entry report.Cluster, source reconcile.SourceState) v1alpha1.EtcdClusterStatus {
	old, s := live.Status, entry.State
	status := v1alpha1.EtcdClusterStatus{
		ObservedGeneration: live.Generation,
		Conditions:         slices.Clone(old.Conditions),
		DeclaredRevision:   firstNonEmpty(source.Revision, old.DeclaredRevision),
		Action:             entry.Decision.Rule,
		ClusterID:          old.ClusterID,
		Selector:           objects.SelectorString(live.Name),
		Endpoints:          objects.Endpoints(declared, s.Record),
		Members:            old.Members,
		Leader:             old.Leader,
		Version:            old.Version,
		Replicas:           old.Replicas,
	}
	if id := s.Record.ClusterID; id != 0 {
		status.ClusterID = id.String()
	}
	if declared.Spec.TLS.Mode == v1alpha1.TLSManaged {
		status.ClientSecretName = objects.NamesOf(live.Name).ClientSecret
	}
	if s.Membership.Known {
		status.Members = memberStatuses(s, old.Members)
		status.Leader, status.Version = leaderOf(s), oldestVersion(s)
		status.Replicas = int32(len(s.Membership.Members))
		status.ClusterID = s.Membership.ClusterID.String()
	} else {
		status.Members = silenced(old.Members, s)
		status.Leader = ""
	}
	status.ReadyReplicas = healthyVoters(status.Members)
	status.Membership = fmt.Sprintf("%d/%d", status.ReadyReplicas, s.Declared.Replicas)
	setConditions(&status, entry, source, metav1.NewTime(s.Now))
	return status
}

// news reports whether a status is worth writing: the figures that always move are not, by themselves.
func news(old, status v1alpha1.EtcdClusterStatus) bool {
	return !equality.Semantic.DeepEqual(withoutFigures(old, old), withoutFigures(status, old))
}

// withoutFigures puts the moving figures of each member to what base says, unless a size has moved by a tenth.
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

func memberStatuses(s decide.State, old []v1alpha1.MemberStatus) []v1alpha1.MemberStatus {
	var list []v1alpha1.MemberStatus
	for _, m := range s.MembersInOrder() {
		status := v1alpha1.MemberStatus{
			Name: m.Name, ID: m.ID.String(), Role: roleOf(m), Version: m.Version, Health: v1alpha1.MemberHealthy,
			Revision: m.Revision, DBSize: m.DBSize, DBSizeInUse: m.DBSizeInUse, Alarms: m.Alarms,
		}
		if ordinal, ours := s.Ordinal(m.Name); ours && s.Replica(ordinal).PodUID != "" {
			status.Pod = m.Name
		}
		switch {
		case !m.Answers:
			status.Health, status.Message = v1alpha1.MemberSilent, s.Explain(m)
		case len(m.Alarms) > 0:
			status.Health, status.Message = v1alpha1.MemberUnhealthy, s.Explain(m)
		}
		status.Since = since(status, old, metav1.NewTime(s.Now))
		list = append(list, status)
	}
	return list
}

// silenced is what is left to say of the members while the member list is not known: they are as last seen, and
// those that do not answer are silent.
func silenced(old []v1alpha1.MemberStatus, s decide.State) []v1alpha1.MemberStatus {
	list := slices.Clone(old)
	for i := range list {
		m := &list[i]
		if m.Role == v1alpha1.RoleLeader {
			m.Role = v1alpha1.RoleVoter
		}
		if m.Health == v1alpha1.MemberSilent || answers(s.Membership, m.ID) {
			continue
		}
		m.Health, m.Message, m.Since = v1alpha1.MemberSilent, s.Membership.Why, metav1.NewTime(s.Now)
	}
	return list
}

func answers(membership decide.Membership, id string) bool {
	return slices.ContainsFunc(membership.Members, func(m decide.Member) bool { return m.ID.String() == id && m.Answers })
}

// since when a member's role and health are as they are: as before if nothing has changed.
func since(status v1alpha1.MemberStatus, old []v1alpha1.MemberStatus, now metav1.Time) metav1.Time {
	for _, before := range old {
		if before.ID == status.ID && before.Role == status.Role && before.Health == status.Health && !before.Since.IsZero() {
			return before.Since
		}
	}
	return now
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

// setConditions tells of the decision in the conditions that tools understand: Ready, and the two that should be false.
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
	serving := status.ReadyReplicas > 0 && int(status.ReadyReplicas) == entry.State.Declared.Replicas
	ready := truth(serving && d.Verdict != decide.Block)
	if d.Rule == "MembershipUnknown" {
		ready = metav1.ConditionUnknown
	}
	set(v1alpha1.ConditionReady, ready, d.Rule, message)
	set(v1alpha1.ConditionReconciling, truth(d.Verdict == decide.Act || d.Verdict == decide.Wait), d.Rule, message)
	set(v1alpha1.ConditionStalled, truth(d.Verdict == decide.Block), d.Rule, message)
	if source.Error != "" {
		set(v1alpha1.ConditionSourceReady, metav1.ConditionFalse, "FetchFailed", source.Error)
	} else {
		set(v1alpha1.ConditionSourceReady, metav1.ConditionTrue, "Fetched", source.Revision)
	}
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
