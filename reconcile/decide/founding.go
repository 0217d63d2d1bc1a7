package decide

import (
	"fmt"
	"time"
)

func bootstrap(s State) (Decision, bool) {
	if s.Formed() || s.recorded() && len(s.Objects.Drift) == 0 {
		return Decision{}, false
	}
	if s.recorded() {
		n := len(s.Record.Members)
		return act(Found{Replicas: n}, "founding %s is not finished: %s", plural(n, "member", "members"), sentence(s.Objects.Drift))
	}
	n := s.Declared.Replicas
	return act(Found{Replicas: n}, "nothing is there yet: found %s of etcd %s", plural(n, "member", "members"), s.Declared.Version)
}

func waitForFormation(s State) (Decision, bool) {
	if s.Formed() || !s.recorded() {
		return Decision{}, false
	}
	return wait(200*time.Millisecond, "%s", s.describeReplicas())
}

func seal(s State) (Decision, bool) {
	if !s.Membership.Known || s.Membership.ClusterID == 0 {
		return Decision{}, false
	}
	ready := s.sealable()
	switch {
	case ready.Len() > 0:
		return act(Seal{ClusterID: s.Membership.ClusterID, Members: ready},
			"cluster %s: %s started", s.Membership.ClusterID, s.names(ready))
	case s.Record.ClusterID == 0:
		return act(Seal{ClusterID: s.Membership.ClusterID}, "write down that the cluster is %s", s.Membership.ClusterID)
	}
	return Decision{}, false
}

// sealable is the set of members that etcd lists as started and whose record does not say so yet. A member that has
// not started must not be sealed: it could never start. Its ID and volume go on record only while it answers: a
// silent one may have lost the volume that the record is to prove.
func (s State) sealable() Ordinals {
	var set Ordinals
	for _, m := range s.Membership.Members {
		ordinal, ours := s.Ordinal(m.Name)
		if !ours || !m.Started {
			continue
		}
		recorded, found := s.Record.Member(ordinal)
		volume := s.Replica(ordinal).VolumeUID
		switch {
		case !found, recorded.Mode != Sealed:
			set = set.With(ordinal)
		case m.Answers && (recorded.ID != m.ID || recorded.VolumeUID == "" && volume != ""):
			set = set.With(ordinal)
		}
	}
	return set
}

// recorded reports whether there is a record.
func (s State) recorded() bool { return s.Record.Token != "" }

func (s State) names(set Ordinals) string {
	var names []string
	for _, ordinal := range set.List() {
		names = append(names, s.ReplicaName(ordinal))
	}
	return enumerate(names)
}

// volumeLost reports whether a sealed member has no longer the volume that it was sealed with.
func (s State) volumeLost(ordinal int) bool {
	m, found := s.Record.Member(ordinal)
	return found && m.Mode == Sealed && m.VolumeUID != "" && s.Replica(ordinal).VolumeUID != m.VolumeUID
}

func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}
