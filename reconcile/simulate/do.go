package simulate

import (
	"fmt"
	"slices"

	"quorate.dev/quorate/reconcile/decide"
)

// NoCrash lets an action be carried out to its end.
const NoCrash = -1

// write is one request that changes something.
type write struct {
	name string
	do   func()
}

// Do carries out an action, write by write, and returns the names of the writes. It dies after that many writes; NoCrash: it does
// not. Like whoever carries out actions, it reads again what it relies on, takes "already so" for success, and
// leaves alone what is no longer as it was. A write whose answer is lost is the same as death after it.
func (w *World) Do(a decide.Action, crashAfter int) []string {
	var done []string
	for _, write := range w.writes(w.Observe(), a) {
		if len(done) == crashAfter {
			break
		}
		write.do()
		done = append(done, write.name)
	}
	return done
}

func (w *World) writes(s decide.State, action decide.Action) []write {
	switch a := action.(type) {
	case decide.Found:
		if s.Formed() {
			return nil
		}
		return w.applyAll(s, false)
	case decide.ApplyObjects:
		return w.applyAll(s, a.KeepPods)
	case decide.Declare:
		return []write{w.apply(w.customResource(), decide.Record{})}
	case decide.Seal:
		if !s.Membership.Known || s.Membership.ClusterID != a.ClusterID {
			return nil
		}
		return []write{w.apply(w.configMap(), decide.SealedRecord(s, a, w.next("t")))}
	case decide.RestartReplica:
		return w.restart(s, a)
	case decide.DeleteVolume:
		return w.deleteVolume(s, a)
	}
	return w.changeMembers(s, action)
}

// applyAll writes every object that is not as it should be; with keepPods only those that are mendable. Once the custom
// resource has been made anew, all that it owns has to be its own.
func (w *World) applyAll(s decide.State, keepPods bool) []write {
	var writes []write
	standing := decide.StandingRecord(s, w.next("t"))
	anew := !w.exists(w.customResource())
	for _, name := range w.Objects() {
		kept := keepPods && !w.mendable(name, standing)
		switch {
		case kept && anew:
			writes = append(writes, write{name, func() { w.adopt(name) }})
		case !kept && (anew || w.differs(name, standing) != ""):
			writes = append(writes, w.apply(name, standing))
		}
	}
	return writes
}

func (w *World) apply(name string, standing decide.Record) write {
	return write{name, func() { w.write(name, standing) }}
}

func (w *World) restart(s decide.State, a decide.RestartReplica) []write {
	p := w.pods[a.Ordinal]
	if p.uid != a.PodUID || p.terminating {
		return nil
	}
	return []write{{"pod " + w.replicaName(a.Ordinal), func() {
		w.takeAway(s, w.replicaName(a.Ordinal))
		w.KillPod(a.Ordinal)
	}}}
}

func (w *World) deleteVolume(s decide.State, a decide.DeleteVolume) []write {
	if w.volumes[a.Ordinal].uid != a.VolumeUID {
		return nil
	}
	return []write{{"volume " + w.replicaName(a.Ordinal), func() {
		for _, r := range w.rafts {
			if m := r.byOrdinal(a.Ordinal); m != nil && m.ran {
				w.violate("the volume of %s is deleted, and etcd lists it", w.replicaName(a.Ordinal))
			}
		}
		w.DeleteVolume(a.Ordinal)
	}}}
}

// takeAway checks that the others hold quorum without the voter that is taken away.
func (w *World) takeAway(s decide.State, name string) {
	voters := s.Membership.Voters()
	rest := slices.DeleteFunc(slices.Clone(voters), func(m decide.Member) bool { return m.Name == name })
	if len(rest) < len(voters) && decide.Answering(rest) < decide.Quorum(len(voters)) && decide.Answering(voters) >= decide.Quorum(len(voters)) {
		w.violate("%s is taken away, and with it the quorum", name)
	}
}

// changeMembers are the writes of the actions on etcd's own list. Without a leader nothing can be changed.
func (w *World) changeMembers(s decide.State, action decide.Action) []write {
	r := w.rafts[s.Membership.ClusterID]
	if !r.serves() || w.cut {
		return nil
	}
	switch a := action.(type) {
	case decide.AddLearner:
		return w.addLearner(s, r, a)
	case decide.PromoteLearner:
		if m := r.byID(a.ID); m != nil && m.learner && m.inSync {
			return []write{{"promote " + a.Name, func() { m.learner = false }}}
		}
	case decide.RemoveMember:
		if m := r.byID(a.ID); m != nil {
			return []write{{fmt.Sprintf("remove member %s", a.ID), func() { w.removeMember(s, r, a) }}}
		}
	case decide.MoveLeader:
		if m := r.byID(a.To); m != nil && r.leader == a.From && !m.learner && slices.Contains(r.up, a.To) {
			return []write{{fmt.Sprintf("move leader to %s", a.To), func() { r.leader = a.To }}}
		}
	}
	return nil
}

// addLearner tells etcd first, then writes the file that the new member starts with, then has Kubernetes run it.
func (w *World) addLearner(s decide.State, r *raft, a decide.AddLearner) []write {
	var writes []write
	if r.byOrdinal(a.Ordinal) == nil {
		writes = append(writes, write{"add member " + w.replicaName(a.Ordinal), func() {
			id := hash(w.next("m"), a.Ordinal)
			r.members = append(r.members, member{id: id, ordinal: a.Ordinal, learner: true})
		}})
	}
	joined := s.Record.With(decide.RecordedMember{Ordinal: a.Ordinal, Mode: decide.Joining})
	return append(writes, w.apply(w.configMap(), joined), w.apply(w.statefulSet(), joined))
}

func (w *World) removeMember(s decide.State, r *raft, a decide.RemoveMember) {
	r.members = slices.DeleteFunc(r.members, func(m member) bool { return m.id == a.ID })
	r.removed = append(r.removed, a.ID)
	if len(r.voters()) == 0 {
		w.violate("the last voter is removed")
	}
	r.elect(w.exists(w.peerService()))
	if !r.serves() {
		w.violate("member %s is removed, and the others hold no quorum", a.ID)
	}
}
