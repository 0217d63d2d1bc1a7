package decide

import (
	"fmt"
	"slices"
	"strings"
)

// recoveredBefore returns a message if, according to the marks on the remaining claims, a new cluster was created from
// the recorded cluster. Otherwise, it returns "". While a recovery is in progress, the marks belong to it.
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
	return fmt.Sprintf("according to the marks on the claims of %s, a new cluster was created, or was being created, "+
		"from this one, but its record is lost. Restore the ConfigMap %s-members that contained it; if no new cluster "+
		"was created, remove the marks: kubectl annotate pvc data-%s etcd.quorate.dev/lost-cluster-",
		Enumerate(marked), s.Name, strings.Join(marked, " data-"))
}

// usedByOthers returns the replicas without a mark whose pod or claim belongs to a cluster other than the given one.
// Their claims show that a recovery from the given cluster has ended, although the record and status may be older. The
// claim in which this cluster was created does not count merely because it still names the lost cluster.
func (s State) usedByOthers(id ID) []string {
	return s.replicaNames(func(r Replica) bool {
		source := s.Record.Recovery
		used := r.otherUser(id) != 0 && !(r.VolumeUID == source.VolumeUID && r.LastUse.ClusterID == source.ClusterID)
		return r.LostCluster == 0 && (used || r.ClusterID != 0 && r.ClusterID != id)
	})
}

// usedLater returns which claims show that a new cluster was already created from the recorded cluster, or "".
func (s State) usedLater() string {
	used := s.usedByOthers(s.Record.ClusterID)
	if s.Record.Recovering() || len(used) == 0 {
		return ""
	}
	return fmt.Sprintf("the claims of %s were last used by another cluster. If that cluster was created from this "+
		"one, restore the ConfigMap %s-members that contained its record; otherwise delete these claims, or remove "+
		"their annotation: kubectl annotate pvc data-%s etcd.quorate.dev/cluster-id-",
		Enumerate(used), s.Name, strings.Join(used, " data-"))
}

// RecoveryMark is the mark that a slot's claim must get: the lost cluster to which it belongs, or zero for no mark.
type RecoveryMark struct {
	Replica
	Lost ID
}

// RecoveryMarks returns the marks that claims must get for a recovery that has begun. The claim in which the new
// cluster begins has no mark, unless it belongs to an earlier lost cluster. A member's recorded volume belongs to the
// cluster lost now, regardless of its mark.
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

// WrongMarks returns the replicas whose claims are marked as belonging to a lost cluster although etcd lists their
// members, which have started on them: the marks were copied there, or a recovery was abandoned.
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

// wayOutOfMarks returns how to start members whose volumes are kept for a lost cluster although no cluster created from
// it is known: a recovery has begun, but its record is lost. Otherwise, it returns "".
func (s State) wayOutOfMarks() string {
	names, claims, lost := s.keptOfUnfinished()
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; the data of %s is kept as part of lost cluster %s, from which a new cluster was being "+
		"created. If none was created, start these members again: kubectl annotate pvc %s "+
		"etcd.quorate.dev/lost-cluster-, and then kubectl delete configmap %s-members",
		Enumerate(names), lost, strings.Join(claims, " "), s.Name)
}

// keptOfUnfinished returns the replicas and claims that are kept for a lost cluster although no cluster is known to
// have been created from it.
func (s State) keptOfUnfinished() (names, claims []string, lost ID) {
	required, known := RequiredRecord(s, ""), s.clusterIDs()
	for _, gone := range required.Removed {
		made := slices.ContainsFunc(append(known, claim{id: required.ClusterID}),
			func(c claim) bool { return c.id != 0 && c.id != gone.LostCluster })
		r := s.Replica(gone.Ordinal)
		if gone.Kept() && !made && hasVolume(r) && r.VolumeUID == gone.VolumeUID {
			names, lost = append(names, s.ReplicaName(gone.Ordinal)), gone.LostCluster
			claims = append(claims, "data-"+s.ReplicaName(gone.Ordinal))
		}
	}
	return names, claims, lost
}
