package decide

import (
	"fmt"
	"strings"
	"time"
)

func invalidSpec(s State) (Decision, bool) {
	if len(s.Declared.Problems) == 0 {
		return Decision{}, false
	}
	return block("%s", strings.Join(s.Declared.Problems, "; "))
}

func foreignObjects(s State) (Decision, bool) {
	if len(s.Objects.Foreign) == 0 {
		return Decision{}, false
	}
	return block("%s; rename or delete what is in the way, or give the cluster another name", sentence(s.Objects.Foreign))
}

func suspended(s State) (Decision, bool) {
	if !s.Declared.Suspended {
		return Decision{}, false
	}
	if s.Objects.DeclarationDiffers {
		return act(Declare{}, "write down that the cluster is suspended")
	}
	return Decision{Verdict: Done, Message: "suspended: " + describe(s)}, true
}

func clusterIDMismatch(s State) (Decision, bool) {
	want := s.Record.ClusterID
	if want == 0 {
		want = s.ReportedClusterID
	}
	if want == 0 {
		want = s.Membership.ClusterID
	}
	if want == 0 {
		return Decision{}, false
	}
	var strange []string
	if s.ReportedClusterID != 0 && s.ReportedClusterID != want {
		strange = append(strange, fmt.Sprintf("the status of the custom resource says %s", s.ReportedClusterID))
	}
	if s.Membership.ClusterID != 0 && s.Membership.ClusterID != want {
		strange = append(strange, fmt.Sprintf("etcd's member list is that of cluster %s", s.Membership.ClusterID))
	}
	for _, r := range s.replicasInOrder() {
		if r.ClusterID != 0 && r.ClusterID != want {
			strange = append(strange, fmt.Sprintf("%s is in cluster %s", s.ReplicaName(r.Ordinal), r.ClusterID))
		}
	}
	if len(strange) == 0 {
		return Decision{}, false
	}
	return block("the cluster on record is %s, but %s", want, strings.Join(strange, ", "))
}

func terminating(s State) (Decision, bool) {
	if len(s.Objects.Terminating) == 0 {
		return Decision{}, false
	}
	return wait(time.Second, "%s: being deleted", sentence(s.Objects.Terminating))
}

func authorityLost(s State) (Decision, bool) {
	if len(s.Objects.Irreplaceable) == 0 {
		return Decision{}, false
	}
	return block("%s; restore it from a backup, or stop all pods of the cluster so that a new one can be made", sentence(s.Objects.Irreplaceable))
}

func quorumLost(s State) (Decision, bool) {
	voters := s.Membership.Voters()
	if s.Membership.Known || len(voters) == 0 || s.Membership.HasQuorum() {
		return Decision{}, false
	}
	message := fmt.Sprintf("%d of %s, %d needed: %s", Answering(voters), plural(len(voters), "voter answers", "voters answer"),
		Quorum(len(voters)), s.describeMembers())
	if s.mayRecover(voters) {
		return wait(time.Second, "%s", message)
	}
	return block("%s", message)
}

// mayRecover reports whether the silent voters that may still come up by themselves are enough for quorum: their pods
// are on the way, or Kubernetes will make them anew, and their volumes are those on record.
func (s State) mayRecover(voters []Member) bool {
	hopeful := Answering(voters)
	for _, m := range voters {
		if !m.Answers && !s.beyondHope(m) {
			hopeful++
		}
	}
	return hopeful >= Quorum(len(voters))
}

// beyondHope reports whether a silent member cannot come up by itself.
func (s State) beyondHope(m Member) bool {
	ordinal, ours := s.Ordinal(m.Name)
	return !ours || s.volumeLost(ordinal) || s.Replica(ordinal).Pod == PodFailing
}

func membershipUnknown(s State) (Decision, bool) {
	if s.Membership.Known || !s.Formed() {
		return Decision{}, false
	}
	return wait(time.Second, "etcd gives no member list (%s); nothing is changed until it does: %s", s.Membership.Why, s.describeReplicas())
}
