package decide

import (
	"fmt"
	"slices"
	"strings"
)

// recoveredBefore says that another cluster was made of the one on record, by the marks on what is left of it; empty
// if none was, as far as they say. While one is being made, they are of that.
func (s State) recoveredBefore() string {
	if s.Record.Recovering() || s.Record.ClusterID == 0 {
		return ""
	}
	marked := s.replicaNames(func(r Replica) bool {
		return r.LostCluster == s.Record.ClusterID
	})
	if len(marked) == 0 {
		return ""
	}
	return fmt.Sprintf("a new cluster was made of this one before, or was being made, as the marks on the claims of "+
		"%s say, and the record of it is gone: put back the one in ConfigMap %s-members that had it; if none was "+
		"made, take the marks off: kubectl annotate pvc data-%s etcd.quorate.dev/lost-cluster-",
		Enumerate(marked), s.Name, strings.Join(marked, " data-"))
}

// RecoveryMark is what the claim in a slot is to be marked with: the cluster that it is left of; zero: of none.
type RecoveryMark struct {
	Replica
	Lost ID
}

// RecoveryMarks are those that claims lack, of a recovery that was begun. The claim that the new cluster begins in has
// none, unless it is of a cluster that was lost before. A volume on record as that of a member is of the cluster that
// is lost now, whatever somebody has marked it with.
func (s State) RecoveryMarks(begun RecordedRecovery) (marks []RecoveryMark) {
	for _, r := range s.replicasInOrder() {
		begins := r.Ordinal == begun.Ordinal
		m, _ := s.Record.Member(r.Ordinal)
		ofMember := m.VolumeUID != "" && m.VolumeUID == r.VolumeUID
		switch {
		case !hasVolume(r):
		case begins && r.LostCluster != 0 && (r.LostCluster == begun.ClusterID || ofMember):
			marks = append(marks, RecoveryMark{r, 0})
		case !begins && (r.LostCluster == 0 || ofMember && r.LostCluster != begun.ClusterID):
			marks = append(marks, RecoveryMark{r, begun.ClusterID})
		}
	}
	return marks
}

// WrongMarks are the replicas whose claims are marked to be left of a lost cluster, although etcd lists their
// members, which have started on them: somebody has copied the marks there, or has given a recovery up.
func (s State) WrongMarks() []Replica {
	if !s.Membership.Known || s.Membership.ClusterID != s.Record.ClusterID {
		return nil
	}
	listed := s.listed()
	return slices.DeleteFunc(slices.Clone(s.replicasInOrder()), func(r Replica) bool {
		m, _ := s.Record.Member(r.Ordinal)
		return r.LostCluster == 0 || !hasVolume(r) || m.VolumeUID != r.VolumeUID || !listed[r.Ordinal].Started
	})
}

// wayOutOfMarks says how to have members start that are kept as left of a lost cluster, although no other one that
// was made of it is known: that was begun, and the record of it is lost. Empty if there are none.
func (s State) wayOutOfMarks() string {
	names, claims, lost := s.keptOfUnfinished()
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; what %s have is kept as left of cluster %s, of which a new one was being made: if none was, "+
		"have them start again: kubectl annotate pvc %s etcd.quorate.dev/lost-cluster-, "+
		"and then kubectl delete configmap %s-members", Enumerate(names), lost, strings.Join(claims, " "), s.Name)
}

// keptOfUnfinished are the replicas and the claims that are kept as left of a lost cluster, of which nobody knows
// another one to be made.
func (s State) keptOfUnfinished() (names, claims []string, lost ID) {
	standing, known := StandingRecord(s, ""), s.clusterIDs()
	for _, gone := range standing.Removed {
		made := slices.ContainsFunc(append(known, claim{id: standing.ClusterID}),
			func(c claim) bool { return c.id != 0 && c.id != gone.LostCluster })
		r := s.Replica(gone.Ordinal)
		if gone.Kept() && !made && hasVolume(r) && r.VolumeUID == gone.VolumeUID {
			names, lost = append(names, s.ReplicaName(gone.Ordinal)), gone.LostCluster
			claims = append(claims, "data-"+s.ReplicaName(gone.Ordinal))
		}
	}
	return names, claims, lost
}
