package decide

import (
	"slices"
	"time"
)

// Formed reports whether there is any sign that etcd has ever formed this cluster. Failing to reach etcd is not a sign,
// and does not invalidate other signs (hard case H1): a formed cluster is never bootstrapped again. If the record is
// lost, a StatefulSet, pod or volume is also a sign: its data may be needed.
func (s State) Formed() bool {
	return s.hasID() || s.Record.beyondFounding() || s.formedBefore() ||
		!s.recorded() && (s.hasStatefulSet() || s.anyReplica(Replica.remains))
}

// recorded reports whether a record with members or guests exists. A record without members does not specify how
// members may start.
func (s State) recorded() bool { return !s.Record.Empty() }

// Empty reports whether the record contains neither members nor guests.
func (r Record) Empty() bool { return len(r.Members) == 0 && len(r.Guests) == 0 }

// founding reports whether, according to earlier passes, the members are only about to bootstrap the cluster. etcd may
// have formed the cluster since.
func (s State) founding() bool { return s.recordsFounding() && !s.formedBefore() }

func (s State) recordsFounding() bool { return s.recordsNoID() && !s.Record.beyondFounding() }

// recordsNoID reports whether a record exists, and neither it nor the status names a cluster yet.
func (s State) recordsNoID() bool {
	return s.recorded() && s.Record.ClusterID == 0 && s.ReportedClusterID == 0
}

// formedBefore reports whether an outdated record, written during the bootstrap or the initial restore, was restored
// after the cluster had formed. Any of the following shows this: a claim that etcd has used, a claim that is marked as
// belonging to a lost cluster, or a recovery Job on a claim that still exists. None of them exists while a cluster is
// being created.
func (s State) formedBefore() bool {
	job := s.Recovery.Job
	early := s.recordsFounding() || s.recordsNoID() && s.Record.Restoring()
	return early && s.anyReplica(func(r Replica) bool {
		recovers := hasVolume(r) && job != nil && job.VolumeUID == r.VolumeUID
		return r.LastUse.ClusterID != 0 || r.LostCluster != 0 || recovers
	})
}

// recordLost reports whether the record does not describe the current cluster: it is missing, or it dates from the
// bootstrap.
func (s State) recordLost() bool { return !s.recorded() || s.formedBefore() }

// beyondFounding reports whether any recorded member has a mode other than Founding.
func (r Record) beyondFounding() bool {
	for _, m := range r.Members {
		if m.Mode != Founding {
			return true
		}
	}
	return false
}

// MayFound reports whether any member may still bootstrap the cluster: an initial member also starts on an empty volume
// until it is sealed. Writes that it has acknowledged can be lost with its volume, so the client Service stays closed
// until all initial members are sealed.
func (r Record) MayFound() bool {
	return slices.ContainsFunc(r.Members, func(m RecordedMember) bool { return m.Mode == Founding })
}

// Closed reports whether the client Service must not route to the members yet.
func (r Record) Closed() bool { return r.MayFound() || r.Restoring() || r.Unproven() }

// ClosedToClients reports whether clients must not use the members: the client Service is not open yet, or the cluster
// is being recovered.
func (s State) ClosedToClients() bool { return s.Record.Closed() || s.Record.Recovering() }

// remains reports whether the slot has a pod or a volume.
func (r Replica) remains() bool { return r.VolumeUID != "" || r.Pod != PodAbsent }

func inCluster(r Replica) bool { return r.ClusterID != 0 }

func (s State) anyReplica(is func(Replica) bool) bool {
	for _, r := range s.Replicas {
		if is(r) {
			return true
		}
	}
	return false
}

func (s State) hasStatefulSet() bool {
	return s.Objects.RunsVersion != "" || s.Objects.RunsHash != "" || s.Objects.RunsReplicas > 0
}

func bootstrap(s State) (Decision, bool) {
	switch n := len(s.Record.Members); {
	case s.Formed():
		return Decision{}, false
	case s.recorded() && len(s.Objects.Drift) == 0:
		return Decision{}, false
	case s.recorded():
		return act(Bootstrap{Replicas: n}, "the bootstrap of %s is not finished: %s", plural(n, "member", "members"),
			sentence(s.Objects.Drift))
	case !s.toRun() || s.Declared.Replicas < 1 || s.Declared.RenamedFrom != "" || s.Declared.Adoption.declared():
		return Decision{}, false
	}
	if s.Declared.Restore.declared() {
		return act(Bootstrap{Replicas: 1, Restores: true}, "the cluster does not exist yet; restoring %s into the "+
			"first member", s.Declared.Restore.From)
	}
	n := s.Declared.Replicas
	return act(Bootstrap{Replicas: n}, "the cluster does not exist yet; bootstrapping %s of etcd %s",
		plural(n, "member", "members"), s.Declared.Version)
}

func waitForFormation(s State) (Decision, bool) {
	if !s.founding() || s.Membership.Known {
		return Decision{}, false
	}
	if s.Membership.Forbidden != "" {
		return s.notAllowedToAsk()
	}
	switch mayForm := s.quorumMayRecover(); {
	case !mayForm && s.Membership.Unrecorded:
		return s.askToConfirmMembers()
	case !mayForm:
		return block("too few initial members can start%s: %s", s.why(), s.describeReplicas())
	}
	return wait(s.untilFormation(), "the initial members are starting%s: %s", s.why(), s.describeReplicas())
}

// untilFormation returns when to ask etcd again. Kubernetes reports when a container starts, but nothing reports when
// etcd has elected a leader.
func (s State) untilFormation() time.Duration {
	for _, r := range s.Replicas {
		if r.Pod == PodStarting || r.Pod == PodReady {
			return recheckStarting
		}
	}
	return recheck
}

func seal(s State) (Decision, bool) {
	id := s.Membership.ClusterID
	another := s.Record.ClusterID != 0 && s.Record.ClusterID != id || s.foundingID() != 0 && s.foundingID() != id
	if !s.Membership.Known || id == 0 || another || !s.runsRestored() || s.lacksGuests() {
		return Decision{}, false
	}
	set := s.sealable()
	switch {
	case set.Len() > 0:
		return act(Seal{ClusterID: id, Members: set}, "cluster %s: %s", id, s.describeSealable(set))
	case s.Record.ClusterID == 0 && len(RequiredRecord(s, "").Members) > 0:
		return act(Seal{ClusterID: id}, "recording the cluster ID %s", id)
	}
	return Decision{}, false
}

// sealable returns the members that etcd lists as started, but that are not recorded as sealed, or are recorded with a
// different ID or volume. A member that has not started must not be sealed: it could never start. The ID and volume are
// recorded only while the member responds: an unresponsive member may have lost the volume that would be recorded.
func (s State) sealable() Ordinals {
	var set Ordinals
	inSlots := s.listed()
	for _, m := range s.Membership.Members {
		ordinal, ours := s.namedOrdinal(m)
		if !ours || !m.Started || inSlots[ordinal].ID != m.ID {
			continue
		}
		recorded, _ := s.Record.Member(ordinal)
		volume := s.Replica(ordinal).VolumeUID
		switch {
		case recorded.Mode != Sealed:
			set = set.With(ordinal)
		case m.Answers && (recorded.ID != m.ID || volume != "" && recorded.VolumeUID != volume):
			set = set.With(ordinal)
		}
	}
	return set
}
