package decide

import (
	"fmt"
	"slices"
	"strings"
)

// restoreMismatch: clients are led to a cluster that was made from a backup once it runs on what was
// restored. Until then it is not sealed, so whatever says that it does not, nothing else is done with it.
func restoreMismatch(s State) (Decision, bool) {
	differences := s.restoreDifferences()
	if len(differences) == 0 {
		return Decision{}, false
	}
	return block("what runs is not what was restored (%s): %s; Service %s-client is not opened for it: delete the "+
		"cluster with its volumes, and declare it again; or, if these data are right, take restored out of "+
		"record.yaml in ConfigMap %[3]s-members", s.Record.RestoredFrom, strings.Join(differences, "; "), s.Name)
}

// restoreDifferences says how what runs differs from what was restored, while that is not proven; none as
// long as nobody answers. Where etcd lists others, the record was put back, and the cluster has gone on.
func (s State) restoreDifferences() []string {
	if !s.Record.Unproven() || !s.Membership.Known {
		return nil
	}
	want, name := s.Record.Restored, s.ReplicaName(SeedOrdinal)
	var facts []string
	if id := s.Membership.ClusterID; want.ClusterID != 0 && id != want.ClusterID {
		facts = append(facts, fmt.Sprintf("it is cluster %s, and not %s", id, want.ClusterID))
	}
	if len(s.Membership.Members) > 1 {
		return facts
	}
	switch m := s.listed()[SeedOrdinal]; {
	case want.MemberID != 0 && m.ID != want.MemberID:
		facts = append(facts, fmt.Sprintf("%s is member %s, and not %s", name, m.ID, want.MemberID))
	case m.Revision < want.Revision:
		facts = append(facts, fmt.Sprintf("%s is at revision %d, and what was restored begins at %d", name, m.Revision,
			want.Revision))
	}
	if _, disarms := disarmAlarm(s); len(s.Membership.StaleAlarms) > 0 && !disarms {
		facts = append(facts, strings.Join(s.doubts(), ", ")+" (etcdctl alarm disarm takes that back)")
	}
	return facts
}

// runsRestored reports whether what runs is what was restored, if anything was. Alarms of the cluster that was
// backed up are gone by then.
func (s State) runsRestored() bool {
	return !s.Record.Unproven() || len(s.restoreDifferences()) == 0 &&
		(len(s.Membership.StaleAlarms) == 0 || len(s.Membership.Members) > 1)
}

// grown reports whether etcd lists as many voters as git declares, all of which answer, and no learner.
func (s State) grown() bool {
	voters := s.Membership.Voters()
	return s.Membership.Known && len(voters) >= max(s.Declared.Replicas, 1) &&
		len(voters) == len(s.Membership.Members) && Answering(voters) == len(voters)
}

// compared reports whether the data of all voters were compared, or etcd has said why not. It takes a scan of all
// data, so what it has refused it is not asked again. Where they differ, others say what happens.
func (s State) compared() bool {
	return s.grown() && !s.InDoubt() && !slices.ContainsFunc(s.Membership.Members,
		func(m Member) bool { return !m.Hash.Known() && m.HashWhy == "" })
}

// describeComparison says what has come of it.
func (s State) describeComparison() string {
	voters := s.Membership.Voters()
	if s.Membership.votes(voters[0].Hash) == len(voters) {
		return "all voters hold the same data, of one backup: " + s.describeHashes()
	}
	return "whether all voters hold the same data, of one backup, is not known: " + s.describeHashes()
}

// describeUnproven says that clients are not led to the member yet, if that is for lack of proof.
func (s State) describeUnproven() string {
	if !s.Record.Unproven() {
		return ""
	}
	return fmt.Sprintf("; Service %s-client leads to %s once that has shown that it runs on what was restored", s.Name,
		s.ReplicaName(SeedOrdinal))
}
