package decide

import (
	"fmt"
	"slices"
	"strings"
)

// restoreMismatch blocks if a cluster created from a backup does not run on the restored data. Until a match is proven,
// the cluster is not sealed and the client Service stays closed; while there is a mismatch, nothing else is done.
func restoreMismatch(s State) (Decision, bool) {
	differences := s.restoreDifferences()
	if len(differences) == 0 {
		return Decision{}, false
	}
	return block("the running data does not match the restored backup (%s): %s. Service %s-client stays closed. "+
		"Delete the cluster with its volumes and declare it again; or, if the running data is right, remove restored "+
		"from record.yaml in ConfigMap %[3]s-members", s.Record.RestoredFrom, strings.Join(differences, "; "), s.Name)
}

// restoreDifferences returns how the running data differs from the restored data, until the match is proven. It is
// empty if etcd returns no list. If etcd lists several members, an older record was restored after the cluster had
// grown: then only the cluster ID is compared.
func (s State) restoreDifferences() []string {
	if !s.Record.Unproven() || !s.Membership.Known {
		return nil
	}
	want, name := s.Record.Restored, s.ReplicaName(SeedOrdinal)
	var facts []string
	if id := s.Membership.ClusterID; want.ClusterID != 0 && id != want.ClusterID {
		facts = append(facts, fmt.Sprintf("the cluster ID is %s, not %s", id, want.ClusterID))
	}
	if len(s.Membership.Members) > 1 {
		return facts
	}
	switch m, _ := s.listedAt(SeedOrdinal); {
	case want.MemberID != 0 && m.ID != want.MemberID:
		facts = append(facts, fmt.Sprintf("%s has member ID %s, not %s", name, m.ID, want.MemberID))
	case m.Revision < want.Revision:
		facts = append(facts, fmt.Sprintf("%s is at revision %d, but the restored data starts at %d", name, m.Revision,
			want.Revision))
	}
	if _, disarms := disarmAlarm(s); len(s.Membership.StaleAlarms) > 0 && !disarms {
		facts = append(facts, strings.Join(s.doubts(), ", ")+" (to disarm it, run etcdctl alarm disarm)")
	}
	return facts
}

// runsRestored reports whether the restored data is running, if any was restored. By then, no alarms of the backed-up
// cluster are active.
func (s State) runsRestored() bool {
	return !s.Record.Unproven() || len(s.restoreDifferences()) == 0 &&
		(len(s.Membership.StaleAlarms) == 0 || len(s.Membership.Members) > 1)
}

// grown reports whether etcd lists at least as many voters as declared and only voters, and all respond.
func (s State) grown() bool {
	voters := s.Membership.Voters()
	return s.Membership.Known && len(voters) >= max(s.Declared.Replicas, 1) &&
		len(voters) == len(s.Membership.Members) && Answering(voters) == len(voters)
}

// compared reports whether the data of all voters was compared, or etcd has reported why it could not be. A comparison
// scans all data, so it is not requested again after a refusal. Differences are handled by other rules.
func (s State) compared() bool {
	return s.grown() && !s.InDoubt() && !slices.ContainsFunc(s.Membership.Members,
		func(m Member) bool { return !m.Hash.Known() && m.HashWhy == "" })
}

// describeComparison returns the result of the comparison. Without a member list, an edited record is being corrected.
func (s State) describeComparison() string {
	voters := s.Membership.Voters()
	if len(voters) == 0 {
		return "it is unknown whether the members hold the same data from one backup: etcd returned no voters"
	}
	if s.Membership.votes(voters[0].Hash) == len(voters) {
		return "all voters hold the same data from one backup: " + s.describeHashes()
	}
	return "it is unknown whether all voters hold the same data from one backup: " + s.describeHashes()
}

// describeUnproven reports that the client Service is not open yet because the restored data is unproven, or returns
// "".
func (s State) describeUnproven() string {
	if !s.Record.Unproven() {
		return ""
	}
	return fmt.Sprintf("; Service %s-client will route to %s once %[2]s is confirmed to be running on the "+
		"restored data",
		s.Name,
		s.ReplicaName(SeedOrdinal))
}
