package simulate

import (
	"cmp"
	"strings"

	"quorate.dev/quorate/reconcile/decide"
)

// From returns the world that a state shows, to see where passes lead from there. What a state does not show is taken
// to be well: pods that fail may start, nodes are up. Etcd that is silent behind ready pods is taken to be out of reach.
func From(s decide.State, seed uint64) *World {
	w := New(s.Name, s.Declared, seed)
	w.now = s.Now
	w.LockHolder = s.LockHolder
	w.status = s.ReportedClusterID
	w.record = s.Record
	w.cut = !s.Membership.Known && anyReady(s)
	w.fromObjects(s.Objects)
	if s.Objects.RunsVersion+s.Objects.RunsHash != "" {
		w.set = statefulSet{s.Record.Replicas(), s.Objects.RunsVersion, s.Objects.RunsHash, s.Record.Token}
	}
	w.fromMembership(s)
	for _, r := range s.Replicas {
		w.fromReplica(s, r)
	}
	w.runEtcd()
	w.judgePods()
	return w
}

func anyReady(s decide.State) bool {
	for _, r := range s.Replicas {
		if r.Pod == decide.PodReady {
			return true
		}
	}
	return false
}

// fromObjects takes every object to be there but those that are said to be missing.
func (w *World) fromObjects(o decide.Objects) {
	for _, name := range w.Objects() {
		w.objects[name] = object{uid: w.next("u")}
		w.adopt(name)
	}
	w.applied = w.Declared
	for _, entry := range o.Drift {
		name, what, _ := strings.Cut(entry, ": ")
		if what == "missing" {
			delete(w.objects, name)
			continue
		}
		w.Change(name)
	}
	for _, entry := range o.Foreign {
		if name, _, _ := strings.Cut(entry, ": "); w.exists(name) {
			w.Occupy(name)
		}
	}
}

// fromMembership takes etcd to be what its list says; where there is none, what the record says of members that have
// started; and where there is no record either, a member with data for each volume.
func (w *World) fromMembership(s decide.State) {
	r := &raft{}
	for _, m := range s.Membership.Members {
		ordinal, ours := s.Ordinal(m.Name)
		if !ours {
			ordinal = -1 - len(r.members)
		}
		r.members = append(r.members, member{
			id: m.ID, ordinal: ordinal, named: m.Name != "", ran: m.Started, started: m.Started, learner: m.Learner, inSync: m.Answers,
		})
		if m.Leader {
			r.leader = m.ID
		}
	}
	for _, m := range s.Record.Members {
		if len(s.Membership.Members) == 0 && m.Mode == decide.Sealed {
			id := cmp.Or(m.ID, hash(s.Record.Token, 1000+m.Ordinal))
			r.members = append(r.members, member{id: id, ordinal: m.Ordinal, named: true, ran: true, started: true})
		}
	}
	for _, v := range s.Replicas {
		if lost := len(s.Record.Members) == 0 && len(s.Membership.Members) == 0; lost && v.VolumeUID != "" {
			id := hash(v.VolumeToken, 1000+v.Ordinal)
			r.members = append(r.members, member{id: id, ordinal: v.Ordinal, named: true, ran: true, started: true})
		}
	}
	if len(r.members) > 0 {
		r.formed = true
		w.rafts[idOf(s)] = r
	}
}

// idOf is the ID of the cluster, made up where it is not known.
func idOf(s decide.State) decide.ID {
	return cmp.Or(s.Membership.ClusterID, s.Record.ClusterID, s.ReportedClusterID, hash(s.Name, 0))
}

func (w *World) fromReplica(s decide.State, r decide.Replica) {
	id := cmp.Or(r.ClusterID, idOf(s))
	if r.VolumeUID != "" {
		v := volume{uid: r.VolumeUID, token: r.VolumeToken, terminating: r.VolumeTerminating}
		recorded, _ := s.Record.Member(r.Ordinal)
		lost := recorded.VolumeUID != "" && recorded.VolumeUID != r.VolumeUID
		if cluster := w.rafts[id]; cluster != nil && !lost {
			if m := cluster.byOrdinal(r.Ordinal); m != nil && m.ran {
				v.data = data{cluster: id, member: m.id}
			}
		}
		w.volumes[r.Ordinal] = v
		w.set.token = cmp.Or(w.set.token, r.VolumeToken)
	}
	if hasData := w.volumes[r.Ordinal].data.member != 0; r.Pod != decide.PodAbsent {
		w.pods[r.Ordinal] = pod{
			uid: r.PodUID, version: r.PodVersion, hash: r.PodSpecHash, message: r.PodMessage, since: r.PodSince,
			up: hasData && (r.Pod == decide.PodReady || r.ClusterID != 0), terminating: r.Pod == decide.PodTerminating, failing: r.Pod == decide.PodFailing,
		}
	}
}
