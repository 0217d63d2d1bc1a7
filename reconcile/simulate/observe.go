package simulate

import (
	"fmt"
	"maps"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

// Observe returns the state as one pass sees it.
func (w *World) Observe() decide.State {
	s := decide.State{
		Name:       w.name,
		Now:        w.now,
		Declared:   w.Declared,
		LockHolder: w.LockHolder,
		Membership: w.membership(),
	}
	if w.exists(w.customResource()) {
		s.ReportedClusterID = w.status
	}
	if w.exists(w.configMap()) {
		s.Record = w.record
		s.Record.Members = slices.Clone(w.record.Members)
	}
	for _, n := range w.ordinals() {
		s.Replicas = append(s.Replicas, w.replica(n))
	}
	s.Objects = w.compare(s)
	return s
}

func (w *World) replica(n int) decide.Replica {
	v := w.volumes[n]
	r := decide.Replica{Ordinal: n, Pod: decide.PodAbsent, VolumeUID: v.uid, VolumeToken: v.token, VolumeTerminating: v.terminating}
	p, there := w.pods[n]
	if !there {
		return r
	}
	r.Pod, r.PodUID, r.PodVersion, r.PodSpecHash, r.PodMessage = p.phase(), p.uid, p.version, p.hash, p.message
	if !p.ready {
		r.PodSince = p.since
	}
	if p.up && !w.cut {
		r.ClusterID = v.data.cluster
	}
	return r
}

func (w *World) compare(s decide.State) decide.Objects {
	var o decide.Objects
	if w.exists(w.statefulSet()) {
		o.RunsVersion, o.RunsHash = w.set.version, w.set.hash
	}
	standing := decide.StandingRecord(s, "fresh")
	for _, name := range w.Objects() {
		what := w.differs(name, standing)
		switch {
		case w.objects[name].foreign:
			o.Foreign = append(o.Foreign, name+": managed by somebody else")
			continue
		case what == "":
			continue
		case name == w.customResource():
			o.DeclarationDiffers = true
		case name == w.authority() && what == "missing" && len(w.pods) > 0:
			o.Irreplaceable = append(o.Irreplaceable, name+": missing")
		}
		o.Drift = append(o.Drift, name+": "+what)
		if w.mendable(name, standing) {
			o.Mendable = append(o.Mendable, name+": "+what)
		}
	}
	return o
}

// membership is what etcd says: the list of a cluster that has a leader, or what a member believes.
func (w *World) membership() decide.Membership {
	if w.cut {
		return decide.Membership{Why: "dial tcp: i/o timeout"}
	}
	var believed decide.Membership
	for _, id := range slices.Sorted(maps.Keys(w.rafts)) {
		r := w.rafts[id]
		switch {
		case r.serves():
			return decide.Membership{Known: true, ClusterID: id, Members: w.list(r)}
		case len(r.up) > 0:
			believed = decide.Membership{Why: "no leader", ClusterID: id, Members: w.list(r)}
		}
	}
	if believed.ClusterID == 0 {
		believed.Why = "no pod answers"
	}
	return believed
}

func (w *World) list(r *raft) []decide.Member {
	var list []decide.Member
	for _, m := range r.members {
		entry := decide.Member{
			ID:      m.id,
			PeerURL: w.peerURL(m.ordinal),
			Started: m.started,
			Learner: m.learner,
			Leader:  m.id == r.leader,
			Answers: r.serves() && slices.Contains(r.up, m.id),
			Version: w.pods[m.ordinal].version,
		}
		if m.named {
			entry.Name = w.replicaName(m.ordinal)
		}
		list = append(list, entry)
	}
	return list
}

func (w *World) peerURL(n int) string {
	return fmt.Sprintf("https://%s.%s:2380", w.replicaName(n), w.name)
}
